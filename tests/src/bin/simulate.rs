//! `cargo run --release -p tests --bin simulate [ITEMS] [SEED]`: how well copies and diverted goods are told.

use std::{
    io::{Write, stdout},
    process::ExitCode,
};

use tests::simulator::{Mix, Report, run};

/// Items of each mix, unless the command line says otherwise.
const ITEMS: usize = 100_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().ok());
    let mut next = |default: u64| arguments.next().unwrap_or(Some(default));
    let (Some(items), Some(seed)) = (next(ITEMS as u64), next(1)) else { return ExitCode::from(64) };
    for (name, mix) in [("plain", Mix::Plain), ("shifted", Mix::Shifted)] {
        let report = Report::of(&run(seed, usize::try_from(items).unwrap_or(ITEMS), mix));
        if writeln!(stdout(), "== {name} mix, seed {seed}\n{report}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
