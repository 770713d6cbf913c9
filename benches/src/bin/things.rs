//! `cargo run --release -p benches --bin things`: properties and the broker beside raw SQL.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

fn main() -> ExitCode {
    match benches::run_things(benches::ThingsArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "things: {error:#}");
            ExitCode::FAILURE
        }
    }
}
