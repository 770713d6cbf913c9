//! `cargo run --release -p benches --bin ingest`: redirections and scans written a second, beside `COPY`.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

fn main() -> ExitCode {
    match benches::run_ingest(benches::IngestArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "ingest: {error:#}");
            ExitCode::FAILURE
        }
    }
}
