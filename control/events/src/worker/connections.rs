//! The heartbeat of a replica that holds connections of Thngs, and the checks of the keys of all connections.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::service::{
    EventState,
    connections::{self, HEARTBEAT, KEY_CHECK},
};

/// Renews the lease, closes what other replicas left and checks keys, until `shutdown`; then gives up the replica.
pub async fn run(state: Arc<EventState>, shutdown: CancellationToken) {
    tokio::join!(beat(&state, &shutdown), check(&state, &shutdown));
    if let Err(error) = connections::leave(&state).await {
        tracing::warn!(%error, "this replica could not release its lease, which will expire");
    }
}

async fn beat(state: &EventState, shutdown: &CancellationToken) {
    let mut ticks = interval(HEARTBEAT);
    // After a pause one heartbeat is enough.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        if let Err(error) = connections::beat(state).await {
            tracing::warn!(%error, "the lease of this replica was not renewed");
        }
    }
}

async fn check(state: &EventState, shutdown: &CancellationToken) {
    let mut ticks = interval(KEY_CHECK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failed = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = state.key_lookups.changed.notified() => {}
            () = shutdown.cancelled() => return,
        }
        match connections::check_keys(state).await {
            Ok(()) => failed = false,
            Err(error) if !failed => {
                failed = true;
                tracing::warn!(%error, "the keys of open connections cannot be checked");
            }
            Err(_) => {}
        }
    }
}
