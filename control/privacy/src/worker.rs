//! Carries erasures out: any number of processes, each with one lane, and one erasure of an account at a time. Who has waited
//! longest is next.

use std::{sync::Arc, time::Duration};

use kernel::store::{Ctx, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    domain::erasure::Stage,
    error::ServiceError,
    service::{
        PrivacyState,
        steps::{self, Stepped},
    },
    store::erasures,
};

/// Steps of an erasure before another one is looked at.
const TURN: usize = 50;

/// Poll interval without a wake-up.
const LOOK: Duration = Duration::from_secs(5);

/// Pause before an erasure that failed is tried again: others go on meanwhile.
const PAUSE: Duration = Duration::from_secs(60);

/// Shortest pause between two steps, in which others write.
const BREATH: Duration = Duration::from_millis(5);

/// Works on erasures until `stop`, then releases the one in progress.
pub async fn run(state: Arc<PrivacyState>, stop: CancellationToken) {
    if let Err(error) = erasures::free_all(&state.db).await {
        tracing::warn!(%error, "erasures of the previous process stay claimed until their leases expire");
    }
    while !stop.is_cancelled() {
        // Registered before the query, so that an erasure that is asked for in between is noticed.
        let woken = state.wake.notified();
        if let Err(error) = stand(&state).await {
            tracing::warn!(%error, "erasures that have not ended cannot be counted");
        }
        match work(&state, TURN, &stop).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => {
                state.metrics.tries_failed.inc();
                tracing::warn!(%error, "an erasure is left for later");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn stand(state: &PrivacyState) -> Result<(), StoreError> {
    let (count, oldest) = erasures::standing(&mut state.db.read().await?).await?;
    state.metrics.stand(count, oldest, state.clock.now());
    Ok(())
}

/// Claims an erasure and does up to so many steps of it; returns whether there was one.
///
/// # Errors
/// A store failed; the erasure is tried again later.
pub async fn work(state: &PrivacyState, most: usize, stop: &CancellationToken) -> Result<bool, ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let claimed = erasures::claim(&mut tx).await?;
    tx.commit().await?;
    let Some(mut claimed) = claimed else { return Ok(false) };
    let mut ended = Ok(Stepped::Moved);
    for _ in 0..most {
        let is_long = claimed.erasure.details.place.stage == Stage::Texts;
        ended = tokio::select! {
            stepped = steps::step(state, &mut claimed) => stepped,
            // It may take minutes; what it has not committed is done again.
            () = stop.cancelled(), if is_long => Ok(Stepped::Moved),
        };
        if !matches!(ended, Ok(Stepped::Moved)) || stop.is_cancelled() {
            break;
        }
        tokio::time::sleep(BREATH).await;
    }
    let id = claimed.erasure.id;
    let pause = match &ended {
        Ok(Stepped::Lost) => {
            tracing::warn!(erasure = %id, "the lease of an erasure has expired, or another worker holds it");
            None
        }
        Ok(Stepped::Done) => {
            state.metrics.completed.inc();
            tracing::info!(erasure = %id, rows = claimed.erasure.details.counts.total(), "an erasure has ended");
            None
        }
        Ok(Stepped::Moved) => Some(Duration::ZERO),
        Ok(Stepped::Waiting) | Err(_) => Some(PAUSE),
    };
    if let Some(pause) = pause {
        let mut tx = state.db.begin(&Ctx::default()).await?;
        erasures::release(&mut tx, &claimed, pause).await?;
        tx.commit().await?;
    }
    ended.map(|_| true)
}
