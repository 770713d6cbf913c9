//! `cargo run --release -p benches --bin mixed`: what codes that are rendered beside them cost redirects.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

fn main() -> ExitCode {
    match benches::run_mixed(benches::MixedArgs::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "mixed: {error:#}");
            ExitCode::FAILURE
        }
    }
}
