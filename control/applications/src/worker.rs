//! Removes the users of deleted applications.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::service::{Core, removal};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(5);

/// Pause between two steps, in which others write.
const BREATH: Duration = Duration::from_millis(20);

/// Works until `shutdown`.
pub async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    let work = async {
        loop {
            let pause = match removal::step(&core).await {
                Ok(true) => BREATH,
                Ok(false) => LOOK,
                Err(error) => {
                    tracing::warn!(%error, "users of deleted applications could not be removed; it is tried again");
                    LOOK
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    shutdown.run_until_cancelled(work).await;
}
