//! Carries print orders out: any number of processes, each with one order at a time; some do only a [`Part`] of the work. Who
//! has waited longest is next, so that orders of all accounts progress side by side.

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
        PrintState,
        steps::{self, Stepped},
    },
    store::{
        leases::{self, Claimed},
        orders,
    },
};

/// How long an order is worked on before another one is looked at.
const TURN: Duration = Duration::from_secs(1);

/// Poll interval without a wake-up.
const LOOK: Duration = Duration::from_secs(1);

/// Time between two counts of orders.
const STANDING: Duration = Duration::from_secs(5);

/// Pause of an order that waits for edges.
const WAIT: Duration = Duration::from_secs(2);

/// Tries of an order that does not move on, each after a longer pause: some ten minutes together. While a store is away they
/// do not come to an end.
const MAX_FAILURES: u64 = 25;

/// Shortest and longest pause before an order that failed is tried again.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Shortest pause between two steps, in which others write.
const BREATH: Duration = Duration::from_millis(2);

/// What a process does of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything: it has the writer of links, and edges.
    All,
    /// What needs neither: reading, drawing, joining and removing.
    Drawing,
}

/// Works on orders until `stop`, then releases the one in progress.
pub async fn run(state: Arc<PrintState>, stop: CancellationToken) {
    if let Err(error) = leases::free_all(&state.db).await {
        tracing::warn!(%error, "print orders of the previous process stay claimed until their leases expire");
    }
    run_part(state, Part::All, stop).await;
}

/// Does a part of the work on orders until `stop`, then releases the one in progress.
pub async fn run_part(state: Arc<PrintState>, part: Part, stop: CancellationToken) {
    let mut counted: Option<Instant> = None;
    while !stop.is_cancelled() {
        // Registered before the query, so that an order that is asked for in between is noticed.
        let woken = state.wake.notified();
        if counted.is_none_or(|at| at.elapsed() >= STANDING) {
            counted = Some(Instant::now());
            if let Err(error) = stand(&state).await {
                tracing::warn!(%error, "print orders that have not ended cannot be counted");
            }
        }
        match work_part(&state, part, &stop).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "print orders cannot be claimed"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn stand(state: &PrintState) -> Result<(), StoreError> {
    let standing = orders::standing(&mut state.db.read().await?).await?;
    state.metrics.stand(standing, state.clock.now());
    Ok(())
}

/// Claims an order and works on it for a moment; returns whether there was one.
///
/// # Errors
/// The store failed. What fails of an order is logged, and tried again later.
pub async fn work(state: &Arc<PrintState>, stop: &CancellationToken) -> Result<bool, StoreError> {
    work_part(state, Part::All, stop).await
}

/// The same for a part of the work.
///
/// # Errors
/// The store failed. What fails of an order is logged, and tried again later.
pub async fn work_part(
    state: &Arc<PrintState>,
    part: Part,
    stop: &CancellationToken,
) -> Result<bool, StoreError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let claimed = match part {
        Part::All => leases::claim(&mut tx).await,
        Part::Drawing => leases::claim_drawing(&mut tx).await,
    };
    // Also of an order that this release cannot read: with its lease it is in nobody's way for a while.
    tx.commit().await?;
    let Some(mut claimed) = claimed? else { return Ok(false) };
    let (id, failures) = (claimed.order.id, claimed.failures);
    let mut most_failures = u64::MAX;
    let pause = match steps_of(state, part, &mut claimed, stop).await {
        Ok(Stepped::Moved) => Duration::ZERO,
        Ok(Stepped::Waits) => WAIT,
        Ok(Stepped::Settled) => {
            tracing::info!(order = %id, status = claimed.order.status.as_str(), "a print order has ended");
            return Ok(true);
        }
        Ok(Stepped::Lost) => {
            // If it was cancelled, what is left of it is removed by its next holder.
            tracing::info!(order = %id, "a print order was cancelled, or taken by another worker");
            state.metrics.leases_lost.inc();
            Duration::ZERO
        }
        Err(error) => {
            state.metrics.tries_failed.inc();
            tracing::warn!(%error, order = %id, failures, "a print order could not go on");
            if is_outage(&error) {
                // It is not the order's fault, however long it takes.
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

/// Steps until the order ends or waits, the time is over, or `stop`.
async fn steps_of(
    state: &Arc<PrintState>,
    part: Part,
    claimed: &mut Claimed,
    stop: &CancellationToken,
) -> Result<Stepped, ServiceError> {
    if claimed.failures > MAX_FAILURES && !claimed.order.status.is_terminal() {
        let tries = claimed.failures;
        let message = format!("It was tried {tries} times and never went on; the service's log says why.");
        return steps::fail(state, claimed, message).await;
    }
    let begun = Instant::now();
    loop {
        let stepped = tokio::select! {
            stepped = steps::step(state, claimed) => stepped,
            // It may take minutes; what it has not committed is done again.
            () = stop.cancelled() => return Ok(Stepped::Moved),
        };
        let stepped = match stepped {
            // The order as a whole cannot be carried out.
            Err(ServiceError::Refused { code, errors }) if code.status() < 429 => {
                steps::fail(state, claimed, errors.join(" ")).await?
            }
            stepped => stepped?,
        };
        let order = &claimed.order;
        let is_ours = part == Part::All || order.status.is_terminal() || order.details.stage.is_drawing();
        if stepped != Stepped::Moved || !is_ours || begun.elapsed() >= TURN || stop.is_cancelled() {
            return Ok(stepped);
        }
        tokio::time::sleep(BREATH).await;
    }
}

/// Whether a database or the store of blobs is away, or overloaded.
fn is_outage(error: &ServiceError) -> bool {
    matches!(error.code(), Code::Unavailable | Code::Timeout)
}

fn pause(failures: u64) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    (MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE)
}
