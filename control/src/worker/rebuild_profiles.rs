//! Rebuilds scan profiles that an older release made, once after each start.

use std::{sync::Arc, time::Duration};

use assessment::service::assessment::history::rebuild_outdated;
use tokio_util::sync::CancellationToken;

use crate::state::ApiState;

/// Time until the next try after a failure.
const PAUSE: Duration = Duration::from_secs(60);

/// Works through all profiles, and then waits for `shutdown`.
pub async fn run(app: Arc<ApiState>, shutdown: CancellationToken) {
    tokio::select! {
        () = rebuild(&app) => {}
        () = shutdown.cancelled() => return,
    }
    shutdown.cancelled().await;
}

async fn rebuild(app: &ApiState) {
    let mut after = String::new();
    loop {
        match rebuild_outdated(&app.assessment, &mut after).await {
            Ok(0) => return,
            Ok(profiles) => return tracing::info!(profiles, "rebuilt scan profiles of an older release"),
            Err(error) => {
                tracing::warn!(%error, "rebuilding scan profiles of an older release is left for later")
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
