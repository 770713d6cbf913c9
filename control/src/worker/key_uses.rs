//! Writes when keys were last used.

use std::{sync::Arc, time::Duration};

use kernel::service::key_uses;
use tokio_util::sync::CancellationToken;

use crate::state::ApiState;

/// Time between two writes: so late a use is shown.
const PERIOD: Duration = Duration::from_secs(30);

/// Writes noted uses until `shutdown`, and once more then.
pub async fn run(app: Arc<ApiState>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stops = false;
    while !stops {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => stops = true,
        }
        if let Err(error) = key_uses::write(&app.core).await {
            tracing::warn!(%error, "the last use of keys is written later");
        }
    }
}
