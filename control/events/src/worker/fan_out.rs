//! Background task of the fan-out to the queues of webhooks and reactions.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::{
    domain::event::Position,
    error::ServiceError,
    service::{EventState, fan_out},
    store::{deferred_events, event_log},
};

/// Poll interval for events of other processes.
const LOOK: Duration = Duration::from_millis(250);

/// How often the cursor is saved while there are no webhooks and reactions.
const IDLE: Duration = Duration::from_secs(10);

/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Shares out for as long as it runs.
pub(super) async fn run(state: &EventState) {
    let mut settled = state.feed.settled();
    let mut noted: Option<Instant> = None;
    loop {
        let head = *settled.borrow_and_update();
        match share_once(state, head, &mut noted).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "events were not queued for webhooks and reactions; retried");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
        // The feed lives as long as the process; the floor is for what another process left.
        let _ = timeout(LOOK, settled.changed()).await;
    }
}

async fn share_once(
    state: &EventState,
    head: Position,
    noted: &mut Option<Instant>,
) -> Result<bool, ServiceError> {
    let mut conn = state.db.read().await?;
    let has_any = fan_out::has_any(&mut conn).await?;
    let place = event_log::find_place(&mut conn, fan_out::PLACE).await?;
    let has_deferred = deferred_events::has_any(&mut conn).await?;
    drop(conn);
    let has_new = place.is_none_or(|place| place < head);
    if has_deferred || (has_new && has_any) {
        return fan_out::step(state).await;
    }
    if !has_new {
        return Ok(false);
    }
    // A webhook that is created later only gets later events, so nothing is lost if the cursor lags a little.
    if noted.is_none_or(|at| at.elapsed() >= IDLE) && fan_out::pass(state, head).await? {
        *noted = Some(Instant::now());
    }
    Ok(false)
}
