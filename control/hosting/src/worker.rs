//! Releases take-downs whose time is over, and counts what accounts hold and have open.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::service::{By, Core, quotas_of_accounts, take_downs};

/// Time between two looks: so much late a take-down begins to end.
const LOOK: Duration = Duration::from_secs(1);

/// Time between two looks at quotas: a limit for all accounts holds for a new one so much later at most.
const QUOTAS: Duration = Duration::from_secs(5);

/// Works until `shutdown`.
pub async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    tokio::join!(
        release(&core, &shutdown),
        count(&core, &shutdown),
        core.open_quotas.run(&core.db, shutdown.clone())
    );
}

async fn count(core: &Core, shutdown: &CancellationToken) {
    let work = async {
        loop {
            if let Err(error) = quotas_of_accounts::maintain(&core.db, core.clock.now()).await {
                tracing::warn!(%error, "what accounts hold is counted later");
            }
            tokio::time::sleep(QUOTAS).await;
        }
    };
    shutdown.run_until_cancelled(work).await;
}

async fn release(core: &Core, shutdown: &CancellationToken) {
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
