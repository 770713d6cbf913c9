//! Counts scans of before there were statistics, once after each start.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{
    StatisticsState,
    backfill::{Step, step},
};

/// Pause between two steps, for those who write meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// How long after a start a replica of the release before may still store scans.
const OVERLAP_MS: i64 = 60 * 60 * 1_000;

/// Time until the next try after a failure, or at the end of what can be counted yet.
const WAIT: Duration = Duration::from_secs(60);

/// Works until everything is counted that a replica of the release before may have stored, and then waits for `shutdown`.
pub async fn run(state: StatisticsState, shutdown: CancellationToken) {
    tokio::select! {
        () = fill(&state) => {}
        () = shutdown.cancelled() => return,
    }
    shutdown.cancelled().await;
}

async fn fill(state: &StatisticsState) {
    let started = state.clock.now();
    let mut all = 0;
    loop {
        match step(state).await {
            Ok(Step::Passed { counted }) => {
                all += counted;
                tokio::time::sleep(PAUSE).await;
            }
            Ok(Step::AtEnd { until }) => {
                if all > 0 {
                    tracing::info!(scans = all, "counted scans from before there were statistics");
                    all = 0;
                }
                if until.0 > started.0.saturating_add(OVERLAP_MS) {
                    return;
                }
                tokio::time::sleep(WAIT).await;
            }
            Err(error) => {
                tracing::warn!(%error, "counting scans from before there were statistics is left for later");
                tokio::time::sleep(WAIT).await;
            }
        }
    }
}
