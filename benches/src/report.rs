//! What a run found, as JSON and as a table in Markdown.

use std::{collections::BTreeMap, fmt::Write, fs, time::Duration};

use serde::Serialize;

use crate::{
    drive::Outcome,
    import::Import,
    process::Cpu,
    rounds::{Sample, Scenario},
    update::Update,
    waymark::{Lookups, Scans},
};

/// Everything that was measured in one run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// The command line.
    command: String,
    /// When, in UTC.
    date: String,
    /// On what.
    cpu_model: String,
    kernel: String,
    cores: usize,
    /// Whether servers had core 0 and everything else core 1.
    is_pinned: bool,
    /// One-minute load before and after: 0 and about 1 mean that nobody else was there.
    load_before: String,
    load_after: String,
    links: usize,
    rounds: usize,
    seconds: f64,
    connections: usize,
    /// The import under load.
    pub(crate) import: Option<Import>,
    /// Starts with all links in place.
    pub(crate) starts: Vec<Start>,
    /// The first request for each id.
    pub(crate) first_touch: Vec<FirstTouch>,
    /// Scans stored a second while nothing else was asked of the process.
    stored_per_second: Option<f64>,
    /// Each scenario, server and round.
    pub(crate) samples: Vec<Sample>,
    /// What memory answered in the rounds of ours.
    lookups: BTreeMap<Scenario, Lookups>,
    /// The changes.
    pub(crate) update: Option<Update>,
    /// Scans since the last start.
    pub(crate) scans: Option<Scans>,
    /// The longest wait of a scan for the disk before the rounds, in microseconds.
    pub(crate) writer_lag_us: Option<u64>,
    /// Everything that was wrong; a good run has nothing here.
    pub(crate) faults: Vec<String>,
}

/// Time from the start of a process to its first redirect.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Start {
    peer: &'static str,
    seconds: Spread,
    rss_mib: f64,
}

impl Start {
    /// Some starts of one server, and its memory after the last.
    pub(crate) fn new(peer: &'static str, seconds: &[f64], rss: u64) -> Self {
        Self { peer, seconds: spread(seconds), rss_mib: rss as f64 / f64::from(1 << 20) }
    }
}

/// A pass over many ids, each for the first time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FirstTouch {
    name: &'static str,
    answers: u64,
    wrong: u64,
    per_second: f64,
    cpu: Cpu,
    p50_us: f64,
    p99_us: f64,
}

impl FirstTouch {
    /// A pass and the CPU time that the server took for it.
    pub(crate) fn new(name: &'static str, outcome: &Outcome, cpu: Cpu) -> Self {
        let answers = outcome.answers.max(1) as f64;
        Self {
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

/// A figure of a sample.
type Column = fn(&Sample) -> f64;

/// Median, least and most of some rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

fn spread(values: &[f64]) -> Spread {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    // Of an even number the lower of the two in the middle: a value that was measured.
    Spread {
        median: at(values.len().saturating_sub(1) / 2),
        min: at(0),
        max: at(values.len().saturating_sub(1)),
    }
}

impl Spread {
    fn text(self, decimals: usize) -> String {
        let Self { median, min, max } = self;
        format!("{median:.decimals$} ({min:.decimals$}–{max:.decimals$})")
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
            command: format!("cargo run --release -p benches --bin load -- {}", arguments.join(" ")),
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
    }

    /// Takes the rate at which a backlog of scans was stored; the longest backlog tells best.
    pub(crate) fn stored(&mut self, scans: u64, took: Duration) {
        if scans > 5_000 && took > Duration::from_millis(500) {
            self.stored_per_second = Some(scans as f64 / took.as_secs_f64());
        }
    }

    /// Takes the look-ups before and after a round.
    pub(crate) fn looked_up(&mut self, scenario: Scenario, before: Lookups, after: Lookups) {
        let sum = self.lookups.entry(scenario).or_default();
        sum.hits += after.hits - before.hits;
        sum.misses += after.misses - before.misses;
    }

    /// The whole report for people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let pinned = if self.is_pinned { "servers on core 0, the rest on core 1" } else { "not pinned" };
        writeln!(out, "`{}`, {}", self.command.trim_end(), self.date)?;
        writeln!(
            out,
            "{}, {} cores, Linux {}, {pinned}; load before {}, after {}.\n",
            self.cpu_model, self.cores, self.kernel, self.load_before, self.load_after
        )?;
        self.write_single_figures(out)?;
        writeln!(
            out,
            "\n{} links, {} connections, {} rounds of {} s by turns; median (least–most).\n",
            self.links, self.connections, self.rounds, self.seconds
        )?;
        writeln!(
            out,
            "| scenario | server | requests/s | CPU µs/request | user | system | p50 µs | p99 µs | p99.9 µs \
             | RSS MiB | bytes/answer | wrong |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
        )?;
        for scenario in Scenario::ALL {
            for peer in ["ours", "nginx"] {
                self.write_row(out, scenario, peer)?;
            }
        }
        self.write_ratios(out)
    }

    fn of(&self, scenario: Scenario, peer: &str, value: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let of = |sample: &&Sample| sample.scenario == scenario && sample.peer == peer;
        let values: Vec<f64> = self.samples.iter().filter(of).map(value).collect();
        (!values.is_empty()).then(|| spread(&values))
    }

    fn write_row(&self, out: &mut String, scenario: Scenario, peer: &str) -> std::fmt::Result {
        let columns: [(Column, usize); 9] = [
            (|sample| sample.per_second, 0),
            (|sample| sample.cpu.total_us(), 2),
            (|sample| sample.cpu.user_us, 2),
            (|sample| sample.cpu.system_us, 2),
            (|sample| sample.p50_us, 0),
            (|sample| sample.p99_us, 0),
            (|sample| sample.p999_us, 0),
            (|sample| sample.rss_mib, 0),
            (|sample| sample.answer_bytes, 0),
        ];
        if self.of(scenario, peer, |_| 0.0).is_none() {
            return Ok(());
        }
        write!(out, "| {} | {peer} |", scenario.name())?;
        for (value, decimals) in columns {
            if let Some(spread) = self.of(scenario, peer, value) {
                write!(out, " {} |", spread.text(decimals))?;
            }
        }
        let of = |sample: &&Sample| sample.scenario == scenario && sample.peer == peer;
        writeln!(out, " {} |", self.samples.iter().filter(of).map(|sample| sample.wrong).sum::<u64>())
    }

    fn write_ratios(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out)?;
        for scenario in Scenario::ALL {
            let cpu = |peer| self.of(scenario, peer, |sample| sample.cpu.total_us());
            let Some(ours) = cpu("ours") else { continue };
            write!(out, "- {}: ", scenario.name())?;
            if let Some(nginx) = cpu("nginx") {
                write!(out, "CPU/request {:.2} × nginx; ", ours.median / nginx.median)?;
            }
            let mut names: Vec<&String> =
                self.samples.iter().flat_map(|sample| sample.cpu_by_thread.keys()).collect();
            names.sort_unstable();
            names.dedup();
            write!(out, "ours by thread:")?;
            for name in names {
                let us = self
                    .of(scenario, "ours", |sample| sample.cpu_by_thread.get(name).copied().unwrap_or(0.0));
                if let Some(us) = us.filter(|us| us.median >= 0.005) {
                    write!(out, " {name} {:.2} µs,", us.median)?;
                }
            }
            let busy = self.of(scenario, "ours", |sample| sample.generator_busy * 100.0);
            write!(out, " load generator {:.0} % busy;", busy.map_or(0.0, |busy| busy.median))?;
            let Lookups { hits, misses } = self.lookups.get(&scenario).copied().unwrap_or_default();
            let share = hits as f64 / (hits + misses).max(1) as f64 * 100.0;
            writeln!(out, " {share:.1} % of the look-ups answered from memory.")?;
        }
        writeln!(
            out,
            "\nOurs records every GET redirect as a scan, on disk and in the database; nginx logs nothing. \
             nginx sends a body of about 145 bytes with each redirect, ours none: the row by HEAD leaves out \
             both, scans and bodies."
        )
    }

    fn write_single_figures(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "| figure | value |\n|---|---|")?;
        if let Some(import) = &self.import {
            let (server, tool) = (&import.server_mib, &import.tool_mib);
            writeln!(
                out,
                "| import | {} rows in {:.1} s: {:.0} rows/s |\n\
                 | memory of `waymark up` during the import | first third {:.0} MiB, last third {:.0}, peak \
                 {:.0} |\n\
                 | memory of `waymark import` | first third {:.0} MiB, last third {:.0}, peak {:.0} |\n\
                 | redirects during the import | {} at {:.0}/s: {} wrong, p50 {:.0} µs, p99 {:.0} µs, max \
                 {:.0} µs |",
                import.rows,
                import.seconds,
                import.rows_per_second,
                server.first,
                server.last,
                server.peak,
                tool.first,
                tool.last,
                tool.peak,
                import.scans,
                import.scans_per_second,
                import.wrong,
                import.p50_us,
                import.p99_us,
                import.max_us
            )?;
        }
        for start in &self.starts {
            writeln!(
                out,
                "| start of {} to the first redirect | {} s; RSS {:.0} MiB |",
                start.peer,
                start.seconds.text(2),
                start.rss_mib
            )?;
        }
        for pass in &self.first_touch {
            writeln!(
                out,
                "| {}, each for the first time | {} asked, {} wrong: {:.0}/s, CPU {:.1} µs each, p50 {:.0} µs, \
                 p99 {:.0} µs |",
                pass.name,
                pass.answers,
                pass.wrong,
                pass.per_second,
                pass.cpu.total_us(),
                pass.p50_us,
                pass.p99_us
            )?;
        }
        if let Some(rate) = self.stored_per_second {
            writeln!(out, "| scans stored from a backlog | {rate:.0}/s |")?;
        }
        if let Some(update) = &self.update {
            writeln!(
                out,
                "| changes with `wait=edges` | {} under {:.0} scans/s ({} scans): {} old targets seen |\n\
                 | commit to acknowledgement | p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms |\n\
                 | the whole PUT | p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms |",
                update.changes,
                update.scans_per_second,
                update.scans,
                update.stale,
                update.ack_ms.p50,
                update.ack_ms.p99,
                update.ack_ms.max,
                update.put_ms.p50,
                update.put_ms.p99,
                update.put_ms.max
            )?;
        }
        if let Some(scans) = &self.scans {
            let Scans { recorded, shipped, lost, .. } = scans;
            let lag_ms = self.writer_lag_us.unwrap_or_default() as f64 / 1e3;
            writeln!(
                out,
                "| scans since the last start | {recorded} recorded, {shipped} stored, {lost} lost; longest \
                 wait for the disk, before the rounds, {lag_ms:.1} ms |"
            )?;
        }
        Ok(())
    }
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_of_values_that_were_measured() {
        for (values, expected) in [
            (&[3.0][..], (3.0, 3.0, 3.0)),
            (&[5.0, 1.0, 3.0], (3.0, 1.0, 5.0)),
            (&[4.0, 1.0, 3.0, 2.0], (2.0, 1.0, 4.0)),
        ] {
            let spread = spread(values);
            assert_eq!((spread.median, spread.min, spread.max), expected);
        }
    }

    #[test]
    fn a_report_without_figures_is_still_one() {
        let report = Report::new(100, 1, 1.0, 1, false);
        assert!(report.markdown().contains("| figure | value |"));
        assert!(serde_json::to_string(&report).is_ok());
    }
}
