//! Gives entries of the audit trail their place in the chain of their account.

use std::{sync::Arc, time::Duration};

use kernel::service::Core;
use tenants::service::audit;
use tokio_util::sync::CancellationToken;

/// Time between two looks: an entry is part of the chain so soon.
const PERIOD: Duration = Duration::from_secs(1);

/// Chains new entries until `shutdown`, and once more then.
pub async fn run(core: Arc<Core>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stops = false;
    while !stops {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => stops = true,
        }
        match audit::chain_some(&core).await {
            Ok(true) => {}
            Ok(false) => tracing::info!("many entries of the audit trail wait: the rest follows"),
            Err(error) => tracing::warn!(%error, "entries of the audit trail are chained later"),
        }
    }
}
