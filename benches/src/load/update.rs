//! Changes of targets under scan load: no old target after an acknowledged change.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use ::tests::hist::Hist;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::{
    drive::{Outcome, Plan, Until, drive},
    http::Client,
    links::{Id, Links},
    scripts::{CHANGED, Changing, version},
    waymark::{Waymark, path},
};

/// Links that are changed in turn; the scans go to the same ones.
const LINKS: usize = 100;
/// Connections of the scan load.
const CONNECTIONS: usize = 16;

/// What the changes were like.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    /// Changes made, each with `wait=edges`.
    pub(crate) changes: usize,
    /// Scans a second asked for meanwhile.
    pub(crate) scans_per_second: f64,
    /// Scans answered meanwhile.
    pub(crate) scans: u64,
    /// Scans that were recorded and not stored, before and after.
    pub(crate) backlog: (u64, u64),
    /// Answers with a target that was older than the last acknowledged change when they were asked for:
    /// in the read right after each change, and among all scans.
    pub(crate) stale: u64,
    /// The first of them.
    pub(crate) first_stale: Option<String>,
    /// From the commit to the acknowledgement of the edge as the service reports it, in milliseconds.
    pub(crate) ack_ms: Quantiles,
    /// The whole request, in milliseconds.
    pub(crate) put_ms: Quantiles,
}

/// Quantiles of a time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Quantiles {
    /// Median.
    pub(crate) p50: f64,
    /// 99th percentile.
    pub(crate) p99: f64,
    /// The longest.
    pub(crate) max: f64,
}

impl From<&Hist> for Quantiles {
    fn from(hist: &Hist) -> Self {
        Self { p50: hist.quantile_us(0.5) / 1e3, p99: hist.quantile_us(0.99) / 1e3, max: hist.max_us() / 1e3 }
    }
}

/// Changes targets one after the other while the same links are scanned.
///
/// The second value holds all scans of the load, the reads after each change added to its redirects.
///
/// # Errors
/// A change was refused, or an edge did not acknowledge it in time.
pub(crate) fn run(
    waymark: &Waymark,
    links: &Links,
    changes: usize,
    per_second: f64,
) -> Result<(Update, Outcome)> {
    let behind = || waymark.scans().map(|scans| scans.recorded.saturating_sub(scans.shipped));
    let before = behind()?;
    let ids: Vec<Id> = (0..LINKS.min(links.count())).map(|index| links.known(index)).collect();
    let acknowledged: Vec<AtomicU64> = ids.iter().map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let plan =
        Plan { per_second: Some(per_second), ..Plan::new(waymark.edge, CONNECTIONS, Until::Told(&stop)) };
    let mut script = Changing::new(&ids, &acknowledged, 3);
    let (mut changer, mut outcome) = thread::scope(|scope| {
        let load = scope.spawn(|| drive(&plan, &mut script));
        let changed = Changer::new(waymark).and_then(|changer| changer.run(&ids, &acknowledged, changes));
        stop.store(true, SeqCst);
        let outcome = load.join().map_err(|_| anyhow::anyhow!("the load generator panicked"))??;
        changed.map(|changer| (changer, outcome))
    })?;
    let backlog = (before, behind()?);
    for (index, id) in ids.iter().enumerate() {
        // The rounds that follow expect what was imported.
        changer.change(id, std::str::from_utf8(&links.target(index))?)?;
    }
    outcome.redirects += changes as u64;
    let update = Update {
        changes,
        scans_per_second: per_second,
        scans: outcome.answers,
        backlog,
        stale: changer.stale + outcome.wrong,
        first_stale: changer.first_stale.take().or_else(|| outcome.first_wrong.clone()),
        ack_ms: (&changer.ack).into(),
        put_ms: (&changer.put).into(),
    };
    Ok((update, outcome))
}

struct Changer {
    api: Client,
    edge: Client,
    ack: Hist,
    put: Hist,
    stale: u64,
    first_stale: Option<String>,
}

impl Changer {
    fn new(waymark: &Waymark) -> Result<Self> {
        Ok(Self {
            api: Client::connect(waymark.api, Some(&waymark.key))?,
            edge: Client::connect(waymark.edge, None)?,
            ack: Hist::default(),
            put: Hist::default(),
            stale: 0,
            first_stale: None,
        })
    }

    fn run(mut self, ids: &[Id], acknowledged: &[AtomicU64], changes: usize) -> Result<Self> {
        for turn in 0..changes {
            let (index, next) = (turn % ids.len(), turn as u64 + 1);
            let (ack, put) = self
                .change(&ids[index], &format!("{CHANGED}{next}"))
                .with_context(|| format!("change {next}"))?;
            self.ack.add(ack);
            self.put.add(put);
            acknowledged[index].store(next, SeqCst);
            let answer = self.edge.ask("GET", &path(&ids[index]), None)?;
            if answer.status != 307 || version(answer.location.as_bytes()) < next {
                self.stale += 1;
                self.first_stale.get_or_insert_with(|| {
                    format!("after change {next}: {} {}", answer.status, answer.location)
                });
            }
        }
        Ok(self)
    }

    /// Changes a target; gives the times from the commit to the acknowledgement, and of it all.
    fn change(&mut self, id: &Id, target: &str) -> Result<(Duration, Duration)> {
        let body = json!({"defaultRedirectUrl": target}).to_string();
        let begun = Instant::now();
        let answer = self.api.ask("PUT", &format!("/redirections{}?wait=edges", path(id)), Some(&body))?;
        let put = begun.elapsed();
        let report = answer.json()?;
        // 202 would mean that the edge lags: nothing is promised then, so nothing could be checked.
        ensure!(answer.status == 200, "{}: {report}", answer.status);
        let members = report["members"].as_u64();
        ensure!(members >= Some(1) && members == report["acked"].as_u64(), "not every edge: {report}");
        let ms = report["ms"].as_f64().context("no ms in the answer")?;
        Ok((Duration::from_secs_f64(ms / 1e3), put))
    }
}
