//! Lanes of workers: each takes the next item of its kind, works on it for a moment, and releases it, so that items of all accounts
//! progress side by side. What a process held that died is taken over as soon as the lease has run out.

use std::time::{Duration, Instant};

use kernel::{
    error::ServiceError,
    store::{Ctx, Db, StoreError},
};
use shared::problem::Code;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::store::work::{self, Claimed, Work};

/// Tries of an item that does not move on, each after a longer pause: some nine minutes together.
const MAX_FAILURES: u64 = 25;

/// Of these, most that are counted while a store is away: enough for the longest pause. The others are left for workers that
/// are killed meanwhile, each of which costs a try.
const MAX_OUTAGE_FAILURES: u64 = 10;

/// Shortest and longest pause before an item that failed is tried again.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Longest pause before a lane claims again: so long items may wait when the database is back.
const MAX_CLAIM_PAUSE: Duration = Duration::from_secs(5);

/// Pause of an item that was given up for a while.
const REST: Duration = Duration::from_secs(60 * 60);

/// Pause of an item that waits for others.
const WAIT: Duration = Duration::from_secs(2);

/// Time between attempts to release an item.
const RELEASE: Duration = Duration::from_millis(250);

/// Time between two counts of items.
const STANDING: Duration = Duration::from_secs(5);

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stepped {
    /// There is more to do.
    Moved,
    /// There is more to do, but not at once.
    Waits,
    /// It was given up for an hour, and is then tried as if it had never failed.
    Rests,
    /// The item has ended, and nothing of its work is left.
    Settled,
    /// Another worker holds the item, it was cancelled, or its account is suspended.
    Lost,
}

/// One worker of a kind of work.
pub trait Lane: Send + Sync {
    /// What it works on.
    type Item: Work;
    /// What the log calls the kind.
    const KIND: &'static str;
    /// Poll interval without a wake-up.
    const LOOK: Duration = Duration::from_secs(1);
    /// How long an item is worked on before another one is looked at.
    const TURN: Duration = Duration::from_secs(1);
    /// Pause between two steps, in which others write.
    const BREATH: Duration = Duration::from_millis(2);

    /// The database of the items.
    fn db(&self) -> &Db;

    /// Claims the next item.
    fn claim(&mut self) -> impl Future<Output = Result<Option<Claimed<Self::Item>>, StoreError>> + Send;

    /// Does the next step. An error means that it is done again; a refusal below 429, that the item cannot be carried out.
    fn step(
        &mut self,
        claimed: &mut Claimed<Self::Item>,
        stop: &CancellationToken,
    ) -> impl Future<Output = Result<Stepped, ServiceError>> + Send;

    /// Ends an item that cannot be carried out, or gives it up for a while.
    fn fail(
        &mut self,
        claimed: &mut Claimed<Self::Item>,
        message: String,
    ) -> impl Future<Output = Result<Stepped, ServiceError>> + Send;

    /// Whether the next step of an item is one for this lane.
    fn is_ours(&self, _item: &Self::Item) -> bool {
        true
    }

    /// Whether others may wait for this lane when the turn of an item is over.
    fn is_wanted(&mut self) -> impl Future<Output = Result<bool, StoreError>> + Send {
        std::future::ready(Ok(true))
    }

    /// Counts an item that another worker took.
    fn lost(&self) {}

    /// Counts a step that failed.
    fn failed(&self) {}
}

/// Releases what the process before held, where there is one only.
pub async fn take_over<L: Lane>(db: &Db) {
    if let Err(error) = work::free_all::<L::Item>(db).await {
        let kind = L::KIND;
        tracing::warn!(%error, kind, "what the previous process held stays claimed until its leases expire");
    }
}

/// Works on items until `stop`, then releases the one in progress. `wake` is notified when there may be one.
pub async fn run<L: Lane>(mut lane: L, wake: &Notify, stop: &CancellationToken) {
    let mut failures = 0_u64;
    while !stop.is_cancelled() {
        // Registered before the query, so that an item that arrives in between is noticed.
        let woken = wake.notified();
        let wait = match turn(&mut lane, stop).await {
            Ok(true) => {
                failures = 0;
                // What this lane has released may be for another one: its operations, once a job is loaded.
                wake.notify_waiters();
                continue;
            }
            Ok(false) => {
                failures = 0;
                L::LOOK
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, kind = L::KIND, "items cannot be claimed or released");
                pause(failures).min(MAX_CLAIM_PAUSE)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken, if failures == 0 => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Calls `count` every few seconds until `stop`.
pub async fn watch<F>(kind: &str, stop: &CancellationToken, count: impl Fn() -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    loop {
        if let Err(error) = count().await {
            tracing::warn!(%error, kind, "items that have not ended cannot be counted");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(STANDING) => {}
        }
    }
}

/// Claims an item and works on it for a moment; returns whether there was one.
///
/// # Errors
/// The store failed. What fails of an item is logged, and tried again later.
pub async fn turn<L: Lane>(lane: &mut L, stop: &CancellationToken) -> Result<bool, StoreError> {
    let Some(mut claimed) = lane.claim().await? else { return Ok(false) };
    let (kind, id, failures) = (L::KIND, claimed.item.mark().id.to_owned(), claimed.failures);
    let mut most_failures = u64::MAX;
    let pause = match steps(lane, &mut claimed, stop).await {
        // An item that was cancelled, or whose account is suspended, is free at once.
        Ok(Stepped::Moved | Stepped::Lost) => Duration::ZERO,
        Ok(Stepped::Waits) => WAIT,
        Ok(Stepped::Rests) => {
            tracing::error!(kind, %id, failures, "an item is given up for an hour");
            most_failures = 0;
            REST
        }
        Ok(Stepped::Settled) => {
            tracing::info!(kind, %id, status = claimed.item.mark().status, "an item has ended");
            return Ok(true);
        }
        Err(error) => {
            tracing::warn!(%error, kind, %id, failures, "an item could not go on");
            lane.failed();
            if matches!(error.code(), Code::Unavailable | Code::Timeout) {
                // It is not the item's fault, however long it takes.
                most_failures = MAX_OUTAGE_FAILURES;
            }
            pause(failures)
        }
    };
    if !release(lane.db(), &claimed, (pause, most_failures), stop).await? {
        tracing::info!(kind, %id, "an item was taken by another worker");
        lane.lost();
    }
    Ok(true)
}

/// Steps until the item ends or waits, its turn is over and others wait, or `stop`.
async fn steps<L: Lane>(
    lane: &mut L,
    claimed: &mut Claimed<L::Item>,
    stop: &CancellationToken,
) -> Result<Stepped, ServiceError> {
    if claimed.failures > MAX_FAILURES && !claimed.item.mark().is_over {
        let tries = claimed.failures;
        let message = format!("It was tried {tries} times and never went on; the service's log says why.");
        return lane.fail(claimed, message).await;
    }
    let mut begun = Instant::now();
    loop {
        let stepped = match lane.step(claimed, stop).await {
            // The item as a whole cannot be carried out.
            Err(ServiceError::Refused { code, errors }) if code.status() < 429 => {
                lane.fail(claimed, errors.join(" ")).await?
            }
            stepped => stepped?,
        };
        if stepped != Stepped::Moved || stop.is_cancelled() || !lane.is_ours(&claimed.item) {
            return Ok(stepped);
        }
        if begun.elapsed() >= L::TURN {
            if lane.is_wanted().await? {
                return Ok(stepped);
            }
            begun = Instant::now();
        }
        if !L::BREATH.is_zero() {
            tokio::time::sleep(L::BREATH).await;
        }
    }
}

/// Releases an item; returns whether it was still held. Retries until the lease runs out if the database is down, for example
/// during its restart, because the item would otherwise stand still until then. A process that stood still for longer than that
/// asks once more: another one may have taken the item, which is then counted.
async fn release<T: Work>(
    db: &Db,
    claimed: &Claimed<T>,
    (pause, most_failures): (Duration, u64),
    stop: &CancellationToken,
) -> Result<bool, StoreError> {
    let begun = Instant::now();
    loop {
        let was_held = begun.elapsed() < work::LEASE;
        let released = async {
            let mut tx = db.begin(&Ctx::default()).await?;
            let released = work::release(&mut tx, claimed, pause, most_failures).await?;
            tx.commit().await?;
            Ok(released)
        };
        match released.await {
            Err(error) if was_held && !stop.is_cancelled() => {
                tracing::debug!(%error, id = %claimed.item.mark().id, "an item is still held");
                tokio::time::sleep(RELEASE).await;
            }
            ended => return ended,
        }
    }
}

fn pause(failures: u64) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    (MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE)
}
