//! The metrics of an edge, from its admin listener.

use std::{
    net::SocketAddr,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::http::Client;

/// Longest time without one more scan stored before the wait for them fails.
const STALL: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Scans since the start of the process, by the edge's own count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scans {
    /// Put into the ring.
    pub(crate) recorded: u64,
    /// In the database.
    pub(crate) shipped: u64,
    /// Dropped.
    pub(crate) lost: u64,
    /// The longest wait of a scan for the disk, in microseconds.
    pub(crate) writer_lag_max_us: u64,
}

/// Look-ups since the start of the process, by what the cache said.
#[derive(Debug, Default, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lookups {
    /// Answered from memory, remembered unknown ids included.
    pub(crate) hits: u64,
    /// Not in memory.
    pub(crate) misses: u64,
}

/// The admin listener of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admin(pub(crate) SocketAddr);

impl Admin {
    /// The counters of scans.
    pub(crate) fn scans(self) -> Result<Scans> {
        let text = self.metrics()?;
        Ok(Scans {
            recorded: counter(&text, "waymark_edge_scans_recorded_total")?,
            shipped: counter(&text, "waymark_edge_scans_shipped_total")?,
            lost: counter(&text, "waymark_edge_scans_lost_total")?,
            writer_lag_max_us: value(&text, "waymark_edge_writer_lag_max_seconds")
                .map(|seconds| (seconds * 1e6) as u64)
                .context("/metrics has no waymark_edge_writer_lag_max_seconds")?,
        })
    }

    /// The counters of look-ups.
    pub(crate) fn lookups(self) -> Result<Lookups> {
        let text = self.metrics()?;
        let sum = |statuses: &[&str]| {
            let of = |status: &&str| {
                text.lines()
                    .find(|line| {
                        line.starts_with("waymark_edge_lookups_total{")
                            && line.to_ascii_lowercase().contains(&format!("\"{status}\""))
                    })
                    .and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
                    .unwrap_or_default()
            };
            statuses.iter().map(of).sum()
        };
        Ok(Lookups { hits: sum(&["hit", "negative"]), misses: sum(&["miss", "stale", "coalesced"]) })
    }

    /// Bytes that the table of all links takes, where every link is held.
    pub(crate) fn replica_bytes(self) -> Result<Option<u64>> {
        Ok(value(&self.metrics()?, "waymark_edge_replica_bytes").map(|bytes| bytes as u64))
    }

    /// Waits until the stream is live; `all`: until every link is held too.
    pub(crate) fn wait_live(self, all: bool, patience: Duration) -> Result<()> {
        let begun = Instant::now();
        loop {
            let text = self.metrics().unwrap_or_default();
            let is = |name: &str| value(&text, name).is_some_and(|value| value >= 1.0);
            if is("waymark_edge_live") && (!all || is("waymark_edge_replica_whole")) {
                return Ok(());
            }
            if begun.elapsed() > patience {
                let wanted = if all { "hold every link" } else { "follow control" };
                bail!("the edge does not {wanted} within {patience:?}");
            }
            sleep(LOOK);
        }
    }

    /// Waits until every recorded scan is stored; gives how many came in, and the time.
    pub(crate) fn settle(self) -> Result<(u64, Duration)> {
        let (begun, first) = (Instant::now(), self.scans()?);
        let (mut last, mut moved) = (first, begun);
        while last.shipped < last.recorded {
            ensure!(moved.elapsed() < STALL, "no scan was stored for {STALL:?}: {last:?}");
            sleep(LOOK);
            let scans = self.scans()?;
            if scans.shipped != last.shipped {
                moved = Instant::now();
            }
            last = scans;
        }
        Ok((last.shipped - first.shipped, begun.elapsed()))
    }

    fn metrics(self) -> Result<String> {
        let answer = Client::connect(self.0, None)?.ask("GET", "/metrics", None)?;
        ensure!(answer.status == 200, "/metrics: {}", answer.status);
        Ok(String::from_utf8(answer.body)?)
    }
}

fn value(metrics: &str, name: &str) -> Option<f64> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.split(' ').next()?.parse().ok()
}

fn counter(metrics: &str, name: &str) -> Result<u64> {
    value(metrics, name).map(|value| value as u64).with_context(|| format!("/metrics has no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_whole_name() {
        let text =
            "waymark_edge_scans_total_lost 1\nwaymark_edge_scans_total 7\nwaymark_edge_live 1.0\n# EOF";
        assert_eq!(counter(text, "waymark_edge_scans_total").unwrap(), 7);
        assert_eq!(value(text, "waymark_edge_live"), Some(1.0));
        assert!(counter(text, "waymark_edge_scans").is_err());
    }
}
