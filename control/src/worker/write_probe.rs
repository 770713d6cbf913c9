//! Runs the write probe every few seconds, so that readiness reflects what the database really accepts.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    service::write_probe::{LIMIT, forget, probe},
    state::ApiState,
};

/// Time between two probes: as long as a silent change log takes to make a replica not ready.
const PERIOD: Duration = Duration::from_secs(5);

/// Time between two probes while writes fail.
const RETRY: Duration = Duration::from_secs(1);

/// The row of a process that has not written for so long is deleted: ten minutes.
const FORGET_MS: i64 = 600_000;

/// Probes between two such deletions: about ten minutes.
const FORGET_EVERY: u64 = 120;

/// Probes until `shutdown`.
pub async fn run(app: Arc<ApiState>, shutdown: CancellationToken) {
    let mut bits = [0; 8];
    // Without random bits all processes share a row, which is slower and not wrong.
    let _ = app.core.random.fill(&mut bits);
    let id = i64::from_le_bytes(bits);
    for count in 0_u64.. {
        let Some(is_well) = shutdown.run_until_cancelled(probe(&app, id, LIMIT)).await else { return };
        if is_well
            && count.is_multiple_of(FORGET_EVERY)
            && let Err(error) = forget(&app, FORGET_MS).await
        {
            tracing::debug!(%error, "rows of processes that are gone are left for later");
        }
        tokio::select! {
            () = tokio::time::sleep(if is_well { PERIOD } else { RETRY }) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
