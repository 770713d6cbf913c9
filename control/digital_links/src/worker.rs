//! Brings Digital Links up to date that follow from a setting: any number of processes, of which one works at a time.

use std::{sync::Arc, time::Duration};

use kernel::service::Core;
use tokio_util::sync::CancellationToken;

use crate::service::step;

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Pause between two steps, in which others write.
const BREATH: Duration = Duration::from_millis(50);

/// Works until `shutdown`.
pub async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    let work = async {
        loop {
            let pause = match step(&core).await {
                Ok(true) => BREATH,
                Ok(false) => LOOK,
                Err(error) => {
                    tracing::warn!(%error, "Digital Links could not be brought up to date; it is tried again");
                    LOOK
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    shutdown.run_until_cancelled(work).await;
}
