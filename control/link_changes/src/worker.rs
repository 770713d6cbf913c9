//! Carries changes of many links out: any number of processes, each with one lane. Who has waited longest is next, so that
//! changes of all accounts progress side by side.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kernel::store::{Ctx, StoreError};
use shared::problem::Code;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServiceError,
    service::{
        LinkChangeState,
        steps::{self, Stepped},
    },
    store::change_leases::{self as leases, Claimed},
};

/// How long a change is worked on before another one is looked at.
const TURN: Duration = Duration::from_secs(1);

/// Poll interval without a wake-up.
const LOOK: Duration = Duration::from_secs(1);

/// Tries of a change that does not move on, each after a longer pause: some ten minutes together. While the database is away
/// they do not come to an end.
const MAX_FAILURES: u64 = 25;

/// Shortest and longest pause before a change that failed is tried again.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Shortest pause between two steps, in which others write.
const BREATH: Duration = Duration::from_millis(2);

/// Works on changes until `stop`, then releases the one in progress.
pub async fn run(state: Arc<LinkChangeState>, stop: CancellationToken) {
    if let Err(error) = leases::free_all(&state.db).await {
        tracing::warn!(%error, "changes of links of the previous process stay claimed until their leases expire");
    }
    while !stop.is_cancelled() {
        // Registered before the query, so that a change that is asked for in between is noticed.
        let woken = state.wake.notified();
        match work(&state, &stop).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "changes of links cannot be claimed"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Claims a change and works on it for a moment; returns whether there was one.
///
/// # Errors
/// The store failed. What fails of a change is logged, and tried again later.
pub async fn work(state: &Arc<LinkChangeState>, stop: &CancellationToken) -> Result<bool, StoreError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let claimed = leases::claim(&mut tx).await;
    // Also of a change that this release cannot read: with its lease it is in nobody's way for a while.
    tx.commit().await?;
    let Some(mut claimed) = claimed? else { return Ok(false) };
    let (id, failures) = (claimed.change.id, claimed.failures);
    let mut most_failures = u64::MAX;
    let pause = match steps_of(state, &mut claimed, stop).await {
        Ok(Stepped::Moved) => Duration::ZERO,
        Ok(Stepped::Settled) => {
            tracing::info!(change = %id, status = claimed.change.status.as_str(), "a change of links has ended");
            return Ok(true);
        }
        Ok(Stepped::Lost) => {
            tracing::info!(change = %id, "a change of links was cancelled, or taken by another worker");
            Duration::ZERO
        }
        Err(error) => {
            tracing::warn!(%error, change = %id, failures, "a change of links could not go on");
            if is_outage(&error) {
                // It is not the change's fault, however long it takes.
                most_failures = MAX_FAILURES - 1;
            }
            pause(failures)
        }
    };
    let mut tx = state.db.begin(&Ctx::default()).await?;
    leases::release(&mut tx, &claimed, pause, most_failures).await?;
    tx.commit().await?;
    Ok(true)
}

/// Steps until the change ends, the time is over, or `stop`.
async fn steps_of(
    state: &Arc<LinkChangeState>,
    claimed: &mut Claimed,
    stop: &CancellationToken,
) -> Result<Stepped, ServiceError> {
    if claimed.failures > MAX_FAILURES {
        let tries = claimed.failures;
        let message = format!("It was tried {tries} times and never went on; the service's log says why.");
        return steps::fail(state, claimed, message).await;
    }
    let begun = Instant::now();
    loop {
        let stepped = match steps::step(state, claimed).await {
            // The change as a whole cannot be carried out.
            Err(ServiceError::Refused { code, errors }) if code.status() < 429 => {
                steps::fail(state, claimed, errors.join(" ")).await?
            }
            stepped => stepped?,
        };
        if stepped != Stepped::Moved || begun.elapsed() >= TURN || stop.is_cancelled() {
            return Ok(stepped);
        }
        tokio::time::sleep(BREATH).await;
    }
}

/// Whether the database is away, or overloaded.
fn is_outage(error: &ServiceError) -> bool {
    matches!(error.code(), Code::Unavailable | Code::Timeout)
}

fn pause(failures: u64) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    (MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE)
}
