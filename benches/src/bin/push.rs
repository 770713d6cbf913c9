//! `cargo run --release -p benches --bin push`: from a commit to the acknowledgement of every edge.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

fn main() -> ExitCode {
    match benches::run_push(benches::PushArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "push: {error:#}");
            ExitCode::FAILURE
        }
    }
}
