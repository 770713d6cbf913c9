//! What a run found, as it goes into `load.json`.

use std::{fs, time::Duration};

use serde::Serialize;

use super::{
    bars::{Bar, bars},
    edges::Filled,
    import::Import,
    rounds::{Case, Sample},
    steady::Steady,
    update::Update,
};
use crate::{
    drive::Outcome,
    metrics::{Lookups, Scans},
    process::Cpu,
    stats::Spread,
};

/// Everything that was measured in one run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The command line.
    pub(crate) command: String,
    /// When, in UTC.
    pub(crate) date: String,
    /// On what.
    pub(crate) cpu_model: String,
    pub(crate) kernel: String,
    pub(crate) cores: usize,
    /// Whether servers had core 0 and everything else core 1.
    pub(crate) is_pinned: bool,
    /// One-minute load before and after: 0 and about 1 mean that nobody else was there.
    pub(crate) load_before: String,
    pub(crate) load_after: String,
    pub(crate) links: usize,
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    pub(crate) connections: usize,
    /// The import under load, by one process.
    pub(crate) import: Option<Import>,
    /// Starts with all links in place.
    pub(crate) starts: Vec<Start>,
    /// How edges came to hold every link.
    pub(crate) fills: Vec<Fill>,
    /// Memory of the Redis that holds all links.
    pub(crate) redis_mib: Option<f64>,
    /// The first request for each id.
    pub(crate) first_touch: Vec<FirstTouch>,
    /// Scans stored a second while nothing else was asked of the process.
    pub(crate) stored_per_second: Option<f64>,
    /// Each case, server and round.
    pub(crate) samples: Vec<Sample>,
    /// What memory answered in the rounds of ours.
    pub(crate) lookups: Vec<Looked>,
    /// Full replicas of several sizes.
    pub(crate) sizes: Vec<Size>,
    /// Each size and round.
    pub(crate) size_samples: Vec<Sample>,
    /// Ten minutes, or so.
    pub(crate) steady: Option<Steady>,
    /// The changes, by one process: while a backlog of scans drains, and then without one.
    pub(crate) updates: Vec<Update>,
    /// Scans of that process since its last start.
    pub(crate) scans: Option<Scans>,
    /// The longest wait of a scan for the disk before the rounds, in microseconds.
    pub(crate) writer_lag_us: Option<u64>,
    /// The performance bars that the run has figures for.
    pub(crate) bars: Vec<Bar>,
    /// What was left out, and why.
    pub(crate) left_out: Vec<String>,
    /// Everything that was wrong; a good run has nothing here.
    pub(crate) faults: Vec<String>,
}

/// Time from the start of a process to its first redirect.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Start {
    pub(crate) peer: String,
    pub(crate) links: usize,
    pub(crate) seconds: Spread,
    pub(crate) rss_mib: f64,
}

impl Start {
    /// Some starts of one server, and its memory after the last.
    pub(crate) fn new(peer: impl Into<String>, links: usize, seconds: &[f64], rss: u64) -> Self {
        Self { peer: peer.into(), links, seconds: Spread::of(seconds), rss_mib: mib(rss) }
    }
}

/// How an edge came to hold every link.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fill {
    pub(crate) links: usize,
    /// From the start of the process until every link was read from control, page by page.
    pub(crate) fill_seconds: f64,
    /// From the signal to the end of the process: all links are on disk then.
    pub(crate) save_seconds: f64,
    pub(crate) disk_mib: f64,
}

impl Fill {
    /// Of so many links.
    pub(crate) fn new(links: usize, filled: &Filled) -> Self {
        let Filled { fill_seconds, save_seconds, disk_bytes } = *filled;
        Self { links, fill_seconds, save_seconds, disk_mib: mib(disk_bytes) }
    }
}

/// A full replica of one size, after its restart from disk.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Size {
    pub(crate) links: usize,
    /// Bytes of its table a link.
    pub(crate) table_bytes: f64,
    /// Bytes of its process a link.
    pub(crate) rss_bytes: f64,
}

/// Look-ups of one server in one case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Looked {
    pub(crate) case: Case,
    pub(crate) peer: &'static str,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// A pass over many ids, each for the first time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FirstTouch {
    pub(crate) peer: &'static str,
    pub(crate) name: &'static str,
    pub(crate) answers: u64,
    pub(crate) wrong: u64,
    pub(crate) per_second: f64,
    pub(crate) cpu: Cpu,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl FirstTouch {
    /// A pass and the CPU time that the server took for it.
    pub(crate) fn new(peer: &'static str, name: &'static str, outcome: &Outcome, cpu: Cpu) -> Self {
        let answers = outcome.answers.max(1) as f64;
        Self {
            peer,
            name,
            answers: outcome.answers,
            wrong: outcome.wrong,
            per_second: answers / outcome.took.as_secs_f64(),
            cpu: Cpu { user_us: cpu.user_us / answers, system_us: cpu.system_us / answers },
            p50_us: outcome.hist.quantile_us(0.5),
            p99_us: outcome.hist.quantile_us(0.99),
        }
    }
}

impl Report {
    /// A report without figures, but with what is known of the machine.
    pub(crate) fn new(
        links: usize,
        rounds: usize,
        seconds: f64,
        connections: usize,
        is_pinned: bool,
    ) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu_model = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned()))
            .unwrap_or_else(|| "unknown".to_owned());
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            command: format!("cargo run --release -p benches -- {}", arguments.join(" ")),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            cpu_model,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cores: std::thread::available_parallelism()
                .map_or(1, usize::from)
                .max(1 + usize::from(is_pinned)),
            is_pinned,
            load_before: load(),
            links,
            rounds,
            seconds,
            connections,
            ..Self::default()
        }
    }

    /// Takes the figures that are known at the end.
    pub(crate) fn end(&mut self) {
        self.load_after = load();
        self.bars = bars(self);
    }

    /// Takes the rate at which a backlog of scans was stored; the longest backlog tells best.
    pub(crate) fn stored(&mut self, scans: u64, took: Duration) {
        if scans > 5_000 && took > Duration::from_millis(500) {
            self.stored_per_second = Some(scans as f64 / took.as_secs_f64());
        }
    }

    /// Takes the look-ups before and after a round.
    pub(crate) fn looked_up(&mut self, case: Case, peer: &'static str, before: Lookups, after: Lookups) {
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        match self.lookups.iter_mut().find(|looked| looked.case == case && looked.peer == peer) {
            Some(looked) => (looked.hits, looked.misses) = (looked.hits + hits, looked.misses + misses),
            None => self.lookups.push(Looked { case, peer, hits, misses }),
        }
    }

    /// A figure of a server in a case, over all rounds.
    pub(crate) fn of(&self, case: Case, peer: &str, value: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let of = |sample: &&Sample| sample.case == case && sample.peer == peer;
        let values: Vec<f64> = self.samples.iter().filter(of).map(value).collect();
        (!values.is_empty()).then(|| Spread::of(&values))
    }

    /// A figure of a full replica of one size in a case, over all rounds.
    pub(crate) fn of_size(&self, case: Case, links: usize, value: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let of = |sample: &&Sample| sample.case == case && sample.links == links;
        let values: Vec<f64> = self.size_samples.iter().filter(of).map(value).collect();
        (!values.is_empty()).then(|| Spread::of(&values))
    }
}

/// Bytes as MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
