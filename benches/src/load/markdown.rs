//! The report for people.

use std::fmt::{Result, Write};

use super::{
    peers::{HAPROXY, HYPER, MOKA, NGINX_FIXED, NGINX_MAP, ONE_PROCESS, REPLICA},
    report::Report,
    rounds::{Case, Sample},
};
use crate::stats::Spread;

/// Every server, in the order of the tables.
pub(crate) const PEERS: [&str; 7] = [REPLICA, MOKA, ONE_PROCESS, NGINX_MAP, NGINX_FIXED, HAPROXY, HYPER];

/// A figure of a sample.
type Column = fn(&Sample) -> f64;

const COLUMNS: [(Column, usize); 9] = [
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
const HEADINGS: &str = "requests/s | CPU µs/request | user | system | p50 µs | p99 µs | p99.9 µs | RSS MiB | \
    bytes/answer | wrong |\n|---|---|---|---|---|---|---|---|---|---|---|---|";

impl Report {
    /// The whole report for people.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> Result {
        let pinned = if self.is_pinned { "servers on core 0, the rest on core 1" } else { "not pinned" };
        writeln!(out, "`{}`, {}", self.command.trim_end(), self.date)?;
        writeln!(
            out,
            "{}, {} cores, Linux {}, {pinned}; load before {}, after {}.",
            self.cpu_model, self.cores, self.kernel, self.load_before, self.load_after
        )?;
        for what in &self.left_out {
            writeln!(out, "Left out: {what}.")?;
        }
        self.write_bars(out)?;
        self.write_single_figures(out)?;
        if !self.samples.is_empty() {
            self.write_samples(out)?;
            self.write_notes(out)?;
        }
        self.write_sizes(out)?;
        match &self.steady {
            Some(steady) => steady.write(out),
            None => Ok(()),
        }
    }

    fn write_bars(&self, out: &mut String) -> Result {
        if self.bars.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n| bar | figure | reached | bound | |\n|---|---|---|---|---|")?;
        for bar in &self.bars {
            let (sign, word) =
                (if bar.is_least { "≥" } else { "≤" }, if bar.holds() { "holds" } else { "**missed**" });
            writeln!(
                out,
                "| {} | {} | {:.2} | {sign} {:.2} | {word} |",
                bar.number, bar.what, bar.reached, bar.bound
            )?;
        }
        Ok(())
    }

    fn write_samples(&self, out: &mut String) -> Result {
        writeln!(
            out,
            "\n{} links, {} connections, {} rounds of {} s alternated; median (least–most).\n",
            self.links, self.connections, self.rounds, self.seconds
        )?;
        writeln!(out, "| case | server | {HEADINGS}")?;
        for case in Case::ALL {
            for peer in PEERS {
                let of = |sample: &&Sample| sample.case == case && sample.peer == peer;
                let samples: Vec<&Sample> = self.samples.iter().filter(of).collect();
                write_row(out, &case.name(), peer, &samples)?;
            }
        }
        Ok(())
    }

    /// Where the CPU time of ours goes, and what of it was a look-up beyond memory.
    fn write_notes(&self, out: &mut String) -> Result {
        writeln!(out)?;
        for looked in &self.lookups {
            let (case, peer) = (looked.case, looked.peer);
            write!(out, "- {}, {peer}, CPU by thread:", case.name())?;
            let mut names: Vec<&String> =
                self.samples.iter().flat_map(|sample| sample.cpu_by_thread.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let us = self.of(case, peer, |sample| sample.cpu_by_thread.get(name).copied().unwrap_or(0.0));
                if let Some(us) = us.filter(|us| us.median >= 0.005) {
                    write!(out, " {name} {:.2} µs,", us.median)?;
                }
            }
            let busy = self.of(case, peer, |sample| sample.generator_busy * 100.0);
            let share = looked.hits as f64 / (looked.hits + looked.misses).max(1) as f64 * 100.0;
            writeln!(
                out,
                " load generator {:.0} % busy; {share:.1} % of the look-ups answered from memory.",
                busy.map_or(0.0, |busy| busy.median)
            )?;
        }
        writeln!(
            out,
            "\nOurs records every GET redirect as a scan, on disk, and hands it over; the others log nothing. \
             nginx sends a body of about 145 bytes with each redirect, which is part of its cost; ours, HAProxy \
             and hyper send none: the row by HEAD leaves out both, scans and bodies."
        )
    }

    fn write_sizes(&self, out: &mut String) -> Result {
        if self.sizes.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nFull replicas by size, alternated:\n\n| links | bytes/link, table | bytes/link, process |\n|---|---|---|"
        )?;
        for size in &self.sizes {
            writeln!(out, "| {} | {:.1} | {:.1} |", size.links, size.table_bytes, size.rss_bytes)?;
        }
        writeln!(out, "\n| case | links | {HEADINGS}")?;
        for case in Case::ALL {
            for size in &self.sizes {
                let of = |sample: &&Sample| sample.case == case && sample.links == size.links;
                let samples: Vec<&Sample> = self.size_samples.iter().filter(of).collect();
                write_row(out, &case.name(), &size.links.to_string(), &samples)?;
            }
        }
        Ok(())
    }

    fn write_single_figures(&self, out: &mut String) -> Result {
        writeln!(out, "\n| figure | value |\n|---|---|")?;
        self.write_import(out)?;
        for start in &self.starts {
            writeln!(
                out,
                "| start of {} with {} links to the first redirect | {} s; RSS {:.0} MiB |",
                start.peer,
                start.links,
                start.seconds.text(2),
                start.rss_mib
            )?;
        }
        for fill in &self.fills {
            writeln!(
                out,
                "| full replica of {} links | read from control in {:.1} s ({:.0}/s), stopped with all on disk in \
                 {:.1} s, {:.0} MiB there |",
                fill.links,
                fill.fill_seconds,
                fill.links as f64 / fill.fill_seconds,
                fill.save_seconds,
                fill.disk_mib
            )?;
        }
        if let Some(mib) = self.redis_mib {
            writeln!(out, "| Redis with {} links | RSS {mib:.0} MiB |", self.links)?;
        }
        for pass in &self.first_touch {
            writeln!(
                out,
                "| {}: {}, each for the first time | {} asked, {} wrong: {:.0}/s, CPU {:.1} µs each, p50 {:.0} µs, \
                 p99 {:.0} µs |",
                pass.peer,
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
            writeln!(out, "| scans stored by `{ONE_PROCESS}` from a backlog | {rate:.0}/s |")?;
        }
        self.write_update(out)
    }

    fn write_import(&self, out: &mut String) -> Result {
        let Some(import) = &self.import else { return Ok(()) };
        let (server, tool) = (&import.server_mib, &import.tool_mib);
        writeln!(
            out,
            "| import | {} rows in {:.1} s: {:.0} rows/s |\n\
             | memory of `{ONE_PROCESS}` during the import | first third {:.0} MiB, last third {:.0}, peak {:.0} |\n\
             | memory of `waymark import` | first third {:.0} MiB, last third {:.0}, peak {:.0} |\n\
             | redirects during the import | {} at {:.0}/s: {} wrong, p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs |",
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
        )
    }

    fn write_update(&self, out: &mut String) -> Result {
        for update in &self.updates {
            writeln!(
                out,
                "| changes with `wait=edges` | {} under {:.0} scans/s ({} scans), {} and {} not stored before and after: \
                 {} old targets seen |\n\
                 | commit to acknowledgement | p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms |\n\
                 | the whole PUT | p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms |",
                update.changes,
                update.scans_per_second,
                update.scans,
                update.backlog.0,
                update.backlog.1,
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
            let lag_ms = self.writer_lag_us.unwrap_or_default() as f64 / 1e3;
            writeln!(
                out,
                "| scans of `{ONE_PROCESS}` since its last start | {} recorded, {} stored, {} lost; longest wait \
                 for the disk, before the rounds, {lag_ms:.1} ms |",
                scans.recorded, scans.shipped, scans.lost
            )?;
        }
        Ok(())
    }
}

fn write_row(out: &mut String, case: &str, who: &str, samples: &[&Sample]) -> Result {
    if samples.is_empty() {
        return Ok(());
    }
    write!(out, "| {case} | {who} |")?;
    for (value, decimals) in COLUMNS {
        let values: Vec<f64> = samples.iter().map(|sample| value(sample)).collect();
        write!(out, " {} |", Spread::of(&values).text(decimals))?;
    }
    writeln!(out, " {} |", samples.iter().map(|sample| sample.wrong).sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_figures_is_still_one() {
        let report = Report::new(100, 1, 1.0, 1, false);
        assert!(report.markdown().contains("| figure | value |"));
        assert!(serde_json::to_string(&report).is_ok());
    }
}
