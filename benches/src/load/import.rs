//! The import of all links by the operator's tool, while known ids are scanned.

use std::{
    path::Path,
    process::Child,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::{
    drive::{Outcome, Plan, Until, drive},
    links::Links,
    process::{self, Server},
    scripts::{Kind, Scans},
    waymark::Waymark,
};

/// Time between two looks at the memory.
const SAMPLE: Duration = Duration::from_millis(250);
/// Connections of the light load.
const CONNECTIONS: usize = 8;

/// What the import was like.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Import {
    /// Redirections imported under load.
    pub(crate) rows: usize,
    /// Wall time of `waymark import` in seconds.
    pub(crate) seconds: f64,
    /// Rows a second.
    pub(crate) rows_per_second: f64,
    /// Resident memory of `waymark up` in MiB: medians of the first and last third, and the most.
    pub(crate) server_mib: Thirds,
    /// The same of `waymark import`.
    pub(crate) tool_mib: Thirds,
    /// Redirects a second asked for meanwhile.
    pub(crate) scans_per_second: f64,
    /// Redirects answered meanwhile.
    pub(crate) scans: u64,
    /// Wrong or missing answers among them.
    pub(crate) wrong: u64,
    /// Latency of the redirects in microseconds.
    pub(crate) p50_us: f64,
    /// The same, 99th percentile.
    pub(crate) p99_us: f64,
    /// The longest.
    pub(crate) max_us: f64,
}

/// Memory over time in MiB.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Thirds {
    /// Median of the first third of the time.
    pub(crate) first: f64,
    /// Median of the last third.
    pub(crate) last: f64,
    /// The most that was seen.
    pub(crate) peak: f64,
}

/// Imports all links: a few first, so that there is something to scan, the rest under load.
///
/// # Errors
/// The tool failed; wrong redirects are counted in the outcome.
pub(crate) fn run(
    waymark: &Waymark,
    server: &Server,
    links: &Links,
    folder: &Path,
    core: Option<usize>,
    per_second: f64,
) -> Result<(Import, Outcome)> {
    let product = waymark.create_product()?;
    let early = 1_000.min(links.count() / 2);
    let (first, rest) = (folder.join("first.ndjson"), folder.join("links.ndjson"));
    links.write_ndjson(&first, 0..early, &product)?;
    links.write_ndjson(&rest, early..links.count(), &product)?;
    let mut tool = waymark.import(&first, core)?.spawn()?;
    finish(&mut tool, |_| Ok(()))?;

    let stop = AtomicBool::new(false);
    let plan =
        Plan { per_second: Some(per_second), ..Plan::new(waymark.edge, CONNECTIONS, Until::Told(&stop)) };
    let mut script = Scans::new(links, Kind::Known { among: early }, 1);
    let (mut server_rss, mut tool_rss) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let mut tool = waymark.import(&rest, core)?.spawn()?;
    let (took, outcome) = thread::scope(|scope| {
        let load = scope.spawn(|| drive(&plan, &mut script));
        let ended = finish(&mut tool, |pid| {
            server_rss.push(process::memory(server.pid)?.rss);
            // The tool may have ended between the two looks.
            tool_rss.extend(process::memory(pid).ok().map(|memory| memory.rss).filter(|rss| *rss > 0));
            Ok(())
        });
        let took = begun.elapsed();
        stop.store(true, Relaxed);
        let outcome = load.join().map_err(|_| anyhow::anyhow!("the load generator panicked"))??;
        ended.map(|()| (took, outcome))
    })?;
    let rows = links.count() - early;
    let import = Import {
        rows,
        seconds: took.as_secs_f64(),
        rows_per_second: rows as f64 / took.as_secs_f64(),
        server_mib: thirds(&server_rss),
        tool_mib: thirds(&tool_rss),
        scans_per_second: per_second,
        scans: outcome.answers,
        wrong: outcome.wrong,
        p50_us: outcome.hist.quantile_us(0.5),
        p99_us: outcome.hist.quantile_us(0.99),
        max_us: outcome.hist.max_us(),
    };
    Ok((import, outcome))
}

/// Waits for the tool, and looks at it now and then.
fn finish(tool: &mut Child, mut look: impl FnMut(u32) -> Result<()>) -> Result<()> {
    loop {
        if let Some(status) = tool.try_wait()? {
            ensure!(status.success(), "waymark import: {status}; see import.log (--keep)");
            return Ok(());
        }
        if let Err(error) = look(tool.id()) {
            // Nobody else ends it.
            tool.kill()?;
            tool.wait()?;
            return Err(error);
        }
        thread::sleep(SAMPLE);
    }
}

fn thirds(samples: &[u64]) -> Thirds {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let median = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part.get(part.len() / 2).copied().map_or(0.0, mib)
    };
    let third = samples.len().div_ceil(3);
    Thirds {
        first: median(&samples[..third]),
        last: median(&samples[samples.len() - third..]),
        peak: samples.iter().copied().max().map_or(0.0, mib),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_are_medians_of_the_ends() {
        let mib: Vec<u64> = [9, 1, 2, 50, 60, 70, 7, 8, 9].iter().map(|n| n << 20).collect();
        let thirds = thirds(&mib);
        assert_eq!((thirds.first, thirds.last, thirds.peak), (2.0, 8.0, 70.0));
        assert_eq!(super::thirds(&[]).peak, 0.0);
    }
}
