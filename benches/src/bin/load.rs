//! `cargo run --release -p benches --bin load`: the load figures, beside the peers.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::Parser;

/// As in the binaries of ours: this program is the bare hyper server too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match benches::run(benches::Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "load: {error:#}");
            ExitCode::FAILURE
        }
    }
}
