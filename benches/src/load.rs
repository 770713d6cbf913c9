//! The whole-system benchmark: ours beside its peers, with the same links.

mod bars;
mod bench;
mod certificate;
mod edges;
mod fixed;
mod haproxy;
mod import;
mod kills;
mod markdown;
mod nginx;
mod one_process;
mod peers;
mod plot;
mod report;
mod rounds;
mod sizes;
mod standin;
mod steady;
mod update;
mod view;

use std::{
    fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use self::{bench::Bench, fixed::FixedArgs, report::Report};
use crate::args::{Length, WaymarkArgs, given_or_built};

/// A server that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Who {
    /// The `edge` binary that holds every link
    Replica,
    /// The `edge` binary that keeps what was asked for, over Redis
    Moka,
    /// `waymark up`, one process with SQLite; with its import, its first touch and its changes
    Waymark,
    /// nginx with a `map`
    Nginx,
    /// nginx with one `return`
    NginxFixed,
    /// HAProxy with a map file
    Haproxy,
    /// hyper with one fixed answer
    Hyper,
}

/// Measures Waymark beside its peers with the same links; every answer is checked.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("5")), mut_arg("seconds", |arg| arg.default_value("4")))]
pub(crate) struct Args {
    /// Redirections that all servers hold
    #[arg(long, default_value_t = 1_000_000)]
    links: usize,
    /// Who is measured
    #[arg(long, value_enum, value_delimiter = ',', num_args = 1..,
        default_values_t = [Who::Replica, Who::Moka, Who::Waymark, Who::Nginx, Who::NginxFixed, Who::Haproxy, Who::Hyper])]
    peers: Vec<Who>,
    /// Sizes of full replicas that are compared with each other; one that does not fit here is left out
    #[arg(long, value_delimiter = ',', num_args = 0.., default_values_t = [10_000, 1_000_000, 10_000_000])]
    sizes: Vec<usize>,
    #[command(flatten)]
    length: Length,
    /// Connections, each with one request under way
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Changes of targets under scan load, by `waymark up`
    #[arg(long, default_value_t = 1_000)]
    changes: usize,
    /// Changes before those, while the scans of the first touch of every link are stored
    #[arg(long, default_value_t = 0)]
    backlog_changes: usize,
    /// Scans a second during the import and during the changes of `waymark up`
    #[arg(long, default_value_t = 1_000.0)]
    scans_per_second: f64,
    /// Instead of all that: so many seconds of a full replica at half its capacity, with changes and an import
    #[arg(long, value_name = "SECONDS")]
    steady: Option<f64>,
    /// Instead of all that: so many times a full replica is killed at full speed, and its scans are counted
    #[arg(long, value_name = "TIMES", conflicts_with = "steady")]
    kills: Option<usize>,
    /// Changes a second of the steady run
    #[arg(long, default_value_t = 100.0)]
    changes_per_second: f64,
    /// Links that the steady run imports, from a quarter of its time on
    #[arg(long, default_value_t = 1_000_000)]
    import: usize,
    /// How many of them a second
    #[arg(long, default_value_t = 10_000.0)]
    import_per_second: f64,
    /// Seed of the links and of what is asked for
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(skip)]
    smoke: bool,
    /// Folder for load.json, load.md and the plots [default: none is written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    waymark: WaymarkArgs,
    /// The edge binary [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    edge: Option<PathBuf>,
    /// The nginx binary
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    nginx: PathBuf,
    /// The HAProxy binary
    #[arg(long, value_name = "PATH", default_value = "haproxy")]
    haproxy: PathBuf,
    /// Keep the data and the logs
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    fixed: FixedArgs,
}

impl Args {
    fn has(&self, who: Who) -> bool {
        self.peers.contains(&who)
    }
}

/// Runs everything and prints the report; `false` when an answer was wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if !args.fixed.serve_fixed.is_empty() {
        fixed::serve(&args.fixed)?;
        return Ok(true);
    }
    args.smoke = is_smoke;
    if is_smoke {
        (args.links, args.length, args.changes) = (2_000, Length { rounds: 1, seconds: 0.2 }, 100);
        (args.sizes, args.connections, args.import) = (vec![500, 1_500], 32, 2_000);
        args.backlog_changes = 20;
    }
    ensure!(args.links >= 100 && args.length.rounds >= 1 && args.connections >= 1, "sizes are too small");
    ensure!(args.sizes.iter().all(|size| *size >= 100), "sizes of replicas begin at 100");
    if args.has(Who::Waymark) && args.steady.is_none() && args.kills.is_none() {
        args.waymark.waymark = Some(args.waymark.binary()?);
    }
    args.edge = Some(given_or_built(args.edge.as_deref(), "edge", "edge")?);
    let folder = tempfile::tempdir()?;
    if let Some(kills) = args.kills {
        return kills::run(&args, folder.path(), kills);
    }
    let result = measure(&args, folder.path());
    if args.keep {
        say(&format!("data and logs: {}", folder.keep().display()));
    }
    let report = result?;
    let table = report.markdown();
    writeln!(stdout(), "{table}")?;
    if let Some(out) = &args.out {
        write(out, &report, &table)?;
    }
    for fault in &report.faults {
        say(&format!("WRONG: {fault}"));
    }
    Ok(report.faults.is_empty())
}

fn measure(args: &Args, folder: &Path) -> Result<Report> {
    let mut report = Bench::new(args, folder)?.run()?;
    if args.smoke && args.steady.is_none() {
        // In its usual form it would be a command of its own.
        let steady = Args { steady: Some(1.0), import_per_second: 20_000.0, ..args.clone() };
        let steady = Bench::new(&steady, folder)?.run()?;
        report.steady = steady.steady;
        report.faults.extend(steady.faults);
    }
    report.end();
    Ok(report)
}

fn write(out: &Path, report: &Report, table: &str) -> Result<()> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    fs::write(out.join("load.json"), serde_json::to_string_pretty(report)?)?;
    fs::write(out.join("load.md"), table)?;
    if report.sizes.len() > 1 {
        fs::write(out.join("sizes.svg"), sizes::figure(report).svg())?;
    }
    if let Some(steady) = &report.steady {
        fs::write(out.join("steady.svg"), steady.figure().svg())?;
    }
    Ok(())
}

/// Tells what goes on.
fn say(text: &str) {
    // A closed stderr must not end a measurement.
    let _ = writeln!(stderr(), "{text}");
}
