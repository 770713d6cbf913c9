//! Releases take-downs whose time is over.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::service::{By, Core, take_downs};

/// Time between two looks: so much late a take-down begins to end.
const LOOK: Duration = Duration::from_secs(1);

/// Releases them until `shutdown`.
pub async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    let look = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let by = By::platform("the end of a take-down", core.clock.now());
            match take_downs::release_over(&core.db, &by).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(count, "take-downs ended");
                    core.readers.wake_edges();
                }
                Err(error) => tracing::warn!(%error, "take-downs whose time is over are looked for later"),
            }
        }
    };
    shutdown.run_until_cancelled(look).await;
}
