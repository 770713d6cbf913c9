//! Assessments over HTTP by many callers at once.

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use shared::id::ActionId;
use tests::db::random16;
use tokio::task::JoinSet;

use super::Bench;

/// Items that are assessed, each with so many scans.
const ITEMS: usize = 64;
const SCANS: usize = 10;

/// How long the callers ask.
pub(super) const MEASURED: Duration = Duration::from_secs(10);

/// Asks as fast as so many callers can, and says how long each assessment took and how many there were a second.
///
/// A fifth of the time is spent before, and not counted.
pub(super) async fn measure(
    bench: &Arc<Bench>,
    callers: usize,
    measured: Duration,
    out: &mut impl Write,
) -> Result<()> {
    let warm_up = measured / 5;
    let mut items = Vec::with_capacity(ITEMS);
    for n in 0..ITEMS {
        items.push(bench.scanned_as(&format!("caller {n}"), SCANS).await?);
    }
    let items = Arc::new(items);
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (bench, items) = (bench.clone(), items.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            for n in (caller..).step_by(callers) {
                let since = begun.elapsed();
                if since > warm_up + measured {
                    break;
                }
                let (thng, at) = items[n % items.len()];
                let took = bench.ask(bench.key(caller), thng.to_string(), at).await?;
                if since > warm_up {
                    times.push(took);
                }
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    times.sort_unstable();
    let part = |of: usize| times.get(times.len() * of / 100).copied().unwrap_or_default();
    let rate = times.len() as f64 / measured.as_secs_f64();
    writeln!(
        out,
        "assessments over HTTP by {callers} callers: p50 {:.2?}, p99 {:.2?}, {rate:.0}/s",
        part(50),
        part(99)
    )?;
    Ok(())
}

impl Bench {
    /// The key of a caller.
    pub(super) fn key(&self, caller: usize) -> &str {
        self.keys.get(caller % self.keys.len().max(1)).map_or("", String::as_str)
    }

    /// One assessment over HTTP.
    pub(super) async fn ask(&self, key: &str, thng: String, at: i64) -> Result<Duration> {
        let body = json!({"timestamp": at, "id": ActionId::new(1, random16()?), "type": "scans",
            "locationSource": "sensor", "thng": thng, "location": {"latitude": 46.9, "longitude": 7.4,
                "position": {"type": "Point", "coordinates": [7.4, 46.9]}}});
        let request = self.http.post(&self.authentication).header("authorization", key);
        let request = request.header("content-type", "application/json").body(body.to_string());
        let begun = Instant::now();
        let answer = request.send().await?;
        let status = answer.status();
        let bytes = answer.bytes().await?;
        let took = begun.elapsed();
        let found: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let verdict = &found["customFields"]["authenticationStatus"];
        ensure!(verdict == "positive", "{status}: {}", String::from_utf8_lossy(&bytes));
        Ok(took)
    }
}
