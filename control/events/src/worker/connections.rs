//! The heartbeat of a replica that holds connections of Thngs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::service::{
    EventState,
    connections::{self, HEARTBEAT},
};

/// Renews the lease and closes what other replicas left, until `shutdown`; then gives up the replica.
pub async fn run(state: Arc<EventState>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(HEARTBEAT);
    // After a pause one heartbeat is enough.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => break,
        }
        if let Err(error) = connections::beat(&state).await {
            tracing::warn!(%error, "the lease of this replica was not renewed");
        }
    }
    if let Err(error) = connections::leave(&state).await {
        tracing::warn!(%error, "this replica could not release its lease, which will expire");
    }
}
