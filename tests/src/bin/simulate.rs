//! `cargo run --release -p tests --bin simulate [ITEMS] [SEED]`: how well copies and diverted goods are detected.
//! `simulate --kept` prints the table of what they lose under each setting of `personalData`, as the guide has it.

use std::{
    io::{Result, Write, stdout},
    process::ExitCode,
};

use simulator::{
    ASSUMPTIONS, ATTACKED, FIRST_EVALUATION_SEED, KEPT_ITEMS, Population, Report, attack, kept_table,
    measure, run,
};

/// Items of each mix, unless the command line says otherwise.
const ITEMS: u64 = 100_000;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == "--kept") {
        let table = kept_table(FIRST_EVALUATION_SEED, KEPT_ITEMS);
        return stdout().write_all(table.as_bytes()).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().ok());
    let mut next = |default: u64| arguments.next().unwrap_or(Some(default));
    let (Some(items), Some(seed)) = (next(ITEMS), next(FIRST_EVALUATION_SEED)) else {
        return ExitCode::from(64);
    };
    match tell(usize::try_from(items).unwrap_or(usize::MAX), seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn tell(items: usize, seed: u64) -> Result<()> {
    let mut out = stdout();
    for population in Population::all() {
        let judged = run(seed, items, population);
        writeln!(out, "== {population}, seed {seed}\n{}", Report::of(&judged))?;
        for measured in measure(population, &judged) {
            writeln!(out, "  {measured}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "== attackers, on items of the plain mix: what each can still do")?;
    for one in attack(seed, items.min(ATTACKED)) {
        writeln!(out, "{one}")?;
    }
    writeln!(out, "== assumed, in the plain and the shifted mix")?;
    for one in ASSUMPTIONS {
        writeln!(out, "  {:<18} {:>6} {:>6}  {}", one.name, one.plain, one.shifted, one.reason)?;
    }
    Ok(())
}
