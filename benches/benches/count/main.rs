//! How many instructions the hot paths take, counted by callgrind: the one gate on speed that neither the
//! clock nor other work on the machine can move.
//!
//! ```text
//! count='cargo bench --profile count -p benches --no-default-features --bench count'
//! $count                  the gate: counts, compared with counts.json
//! $count -- --refresh     rewrites counts.json
//! $count -- --region X    one region, to run below valgrind by hand
//! ```
//!
//! The edge is the real one, over a control plane in memory; requests come over a wire in memory, so that
//! what is counted is ours, hyper's, tokio's and moka's, and no kernel's. Other threads are not counted.

mod control;
mod gate;
mod regions;
mod wire;

use std::{
    io::{Write as _, stderr},
    process::ExitCode,
};

/// As in the binary of an edge.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    let done = if let Some(region) = value("--region") {
        regions::run(region)
    } else if arguments.iter().any(|argument| argument == "--test") {
        regions::ALL.iter().try_for_each(|region| regions::run(region.name))
    } else {
        gate::run(arguments.iter().any(|argument| argument == "--refresh"))
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "count: {error:#}");
            ExitCode::FAILURE
        }
    }
}
