//! Releases take-downs whose time is over, and counts what accounts hold and have open.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::service::{By, Core, quotas_of_accounts, take_downs};

/// Time between two looks: so much late a take-down begins to end.
const LOOK: Duration = Duration::from_secs(1);

/// Time between two looks for counts that are due.
const COUNTS: Duration = Duration::from_secs(5);

/// Time between two looks for accounts that lack a limit which is set for all. It reads all of them, and rarely finds one.
const LIMITS: Duration = Duration::from_secs(600);

/// Works until `shutdown`.
pub async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    tokio::join!(
        release(&core, &shutdown),
        apply(&core, &shutdown),
        count(&core, &shutdown),
        core.open_quotas.run(&core.db, shutdown.clone())
    );
}

async fn apply(core: &Core, shutdown: &CancellationToken) {
    let work = async {
        loop {
            if let Err(error) = quotas_of_accounts::apply_defaults(&core.db, core.clock.now()).await {
                tracing::warn!(%error, "limits for all accounts are compared later");
            }
            tokio::time::sleep(LIMITS).await;
        }
    };
    shutdown.run_until_cancelled(work).await;
}

async fn count(core: &Core, shutdown: &CancellationToken) {
    let work = async {
        loop {
            if let Err(error) = quotas_of_accounts::count(&core.db, core.clock.now()).await {
                tracing::warn!(%error, "what accounts hold is counted later");
            }
            tokio::time::sleep(COUNTS).await;
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
