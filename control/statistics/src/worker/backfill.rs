//! Counts scans of before there were statistics, after each start, and then keeps its place near the end.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::service::{
    StatisticsState,
    backfill::{Step, follow, head, step},
};

/// Pause between two steps, for those who write meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// How long after a start a replica of the release before may still store scans.
const OVERLAP_MS: i64 = 60 * 60 * 1_000;

/// Time until the next try after a failure, or at the end of what can be counted yet.
const WAIT: Duration = Duration::from_secs(60);

/// Time between two moves of the place where the next start begins. It is longer than the transaction of a batch may take:
/// each action up to a number that was the last one so long ago is stored by now, or never will be.
const FOLLOW: Duration = Duration::from_secs(15 * 60);

/// Works until `shutdown`.
pub async fn run(state: StatisticsState, shutdown: CancellationToken) {
    tokio::select! {
        () = async {
            fill(&state).await;
            keep_up(&state).await;
        } => {}
        () = shutdown.cancelled() => {}
    }
}

/// Works until everything is counted that a replica of the release before may have stored.
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

/// Moves the place where the next start begins. What is stored by now is counted in the same transaction; should an older
/// release come back, what it stores is behind that place.
async fn keep_up(state: &StatisticsState) {
    loop {
        let last = head(state).await;
        tokio::time::sleep(FOLLOW).await;
        let moved = match last {
            Ok(last) => follow(state, last).await,
            Err(error) => Err(error),
        };
        if let Err(error) = moved {
            tracing::warn!(%error, "the place of the backfill is moved later");
        }
    }
}
