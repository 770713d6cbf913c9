//! `bench SCENARIO`: measurements of the real binaries, beside their peers where there are some. The README of this
//! crate says what each scenario measures and how; `benches/results` has the figures that are kept.
//!
//! Invariants: every answer of every run is checked; a wrong one fails the run, a slow one never does, but where a
//! scenario says so; `assess`, `audit`, `deliver`, `find` and `scans` call the service in this process, `print` and
//! `table` a crate; all others drive the product from outside, through its public interfaces alone.

mod answer;
mod args;
mod assess;
mod audit;
mod control;
mod deliver;
mod digital_links;
mod drive;
mod find;
mod http;
mod ingest;
mod links;
mod load;
mod metrics;
mod mixed;
mod neighbours;
mod orders;
mod other;
mod postgres;
mod process;
mod product;
mod push;
mod rules;
mod scan_stats;
mod scans;
mod scripts;
mod stats;
mod suspend;
mod table;
mod things;
mod waymark;

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

/// As in the binaries of ours: this program is the bare hyper server too, and the service.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Waymark; every answer is checked
#[derive(Debug, Parser)]
#[command(name = "bench", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    scenario: Scenario,
    /// Small sizes, for CI: correctness only
    #[arg(long, global = true)]
    smoke: bool,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// Redirects beside nginx, HAProxy and hyper with the same links
    Load(Box<load::Args>),
    /// Redirections and scans written a second, beside COPY of the rows that they made
    Ingest(ingest::Args),
    /// Redirects at a steady rate with and without images that nobody asked for before
    Mixed(mixed::Args),
    /// Scans that the store takes, the room of one, and changes of redirections meanwhile
    Scans(scans::Args),
    /// The effect of noisy accounts on a quiet one
    Neighbours(neighbours::Args),
    /// From a commit to the acknowledgement of every edge
    Push(push::Args),
    /// From the commit of a suspension to the acknowledgement of every edge, by the links of the account
    Suspend(suspend::Args),
    /// The CPU time of a redirect with 20 rules against none
    Rules(rules::Args),
    /// The CPU time of a redirect by GS1 Digital Link against one by short id
    DigitalLinks(digital_links::Args),
    /// What a link takes in memory, and what a look-up takes
    Table(table::Args),
    /// Codes a second of print orders, and what each step takes
    Print(orders::Args),
    /// Properties and the broker on Postgres, beside raw SQL
    Things(things::Args),
    /// Assessments and lists of commissioning states, by how much there is
    Assess(assess::Args),
    /// What the audit trail costs a change of a redirection
    Audit(audit::Args),
    /// Lists of links by words and conditions, and what the words cost a write
    Find(find::Args),
    /// Questions to the statistics of a hundred million scans, and what the roll-ups cost the intake
    Stats(scan_stats::Args),
    /// From the commit of an action to the receiver of a webhook, and what the log of events costs
    Deliver(deliver::Args),
}

fn main() -> ExitCode {
    let Cli { scenario, smoke } = Cli::parse();
    let result = match scenario {
        Scenario::Load(args) => load::run(*args, smoke),
        Scenario::Ingest(args) => ingest::run(args, smoke),
        Scenario::Mixed(args) => mixed::run(args, smoke),
        Scenario::Scans(args) => scans::run(args, smoke),
        Scenario::Neighbours(args) => neighbours::run(args, smoke),
        Scenario::Push(args) => push::run(args, smoke),
        Scenario::Suspend(args) => suspend::run(args, smoke),
        Scenario::Rules(args) => rules::run(args, smoke),
        Scenario::DigitalLinks(args) => digital_links::run(args, smoke),
        Scenario::Table(args) => table::run(&args, smoke),
        Scenario::Print(args) => orders::run(&args, smoke),
        Scenario::Things(args) => things::run(args, smoke),
        Scenario::Assess(args) => assess::run(&args, smoke),
        Scenario::Audit(args) => audit::run(args, smoke),
        Scenario::Find(args) => find::run(args, smoke),
        Scenario::Stats(args) => scan_stats::run(args, smoke),
        Scenario::Deliver(args) => deliver::run(&args, smoke),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // A closed stderr is no reason to fail in another way.
            let _ = writeln!(stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
