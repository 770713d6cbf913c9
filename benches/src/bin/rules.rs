//! `cargo run --release -p benches --bin rules`: what 20 rules cost a redirect.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

fn main() -> ExitCode {
    match benches::run_rules(benches::RulesArgs::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "rules: {error:#}");
            ExitCode::FAILURE
        }
    }
}
