//! Workers of webhooks: one task fills the queues, also those of reactions, and many deliver. Any number of processes
//! may run them.

use std::{sync::Arc, time::Duration};

use platform::{Share, Shares};
use shared::id::AccountId;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::fan_out;
use crate::{
    error::ServiceError,
    service::{
        EventState,
        webhooks::deliver::{self, LEASE},
    },
    store::Ctx,
    store::webhooks::{self, Claimed, Fit},
};

/// Webhooks that one process delivers to concurrently: each mostly waits for its receiver, and one that hangs takes a
/// lane for 15 s, then less and less often.
const LANES: usize = 256;

/// Of these, places of webhooks whose receivers failed last: however many hang, the others have the rest.
const SICK_LANES: usize = LANES / 2;

/// Of these, places of webhooks of one account alone. Where the receivers of many accounts are slow, each has fewer, and
/// some are left for others.
const ACCOUNT_LANES: usize = 32;

/// Webhooks per claim.
const CLAIM: usize = 32;

/// Poll interval without a wake-up.
const LOOK: Duration = Duration::from_millis(250);

/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// How long deliveries may take at shutdown; one that takes longer is sent again by the next process.
const LAST: Duration = Duration::from_secs(2);

/// Works until `stop`.
pub async fn run(state: Arc<EventState>, stop: CancellationToken) {
    if let Err(error) = webhooks::free_all(&state.db).await {
        tracing::warn!(%error, "webhooks of the previous process stay claimed until their leases expire");
    }
    // Deliveries in flight end when this is dropped.
    let mut lanes = JoinSet::new();
    let work = async { tokio::join!(fan_out::run(&state), send(&state, &mut lanes, &stop)) };
    stop.run_until_cancelled(work).await;
    let rest = async { while lanes.join_next().await.is_some() {} };
    if timeout(LAST, rest).await.is_err() {
        tracing::debug!("webhooks that were on their way wait for their leases to run out");
    }
}

async fn send(state: &Arc<EventState>, lanes: &mut JoinSet<()>, stop: &CancellationToken) {
    let sick = Arc::new(Semaphore::new(SICK_LANES));
    let accounts = Shares::new(LANES);
    loop {
        while lanes.try_join_next().is_some() {}
        if lanes.len() >= LANES {
            lanes.join_next().await;
            continue;
        }
        // Fewer are claimed than there are places for sick ones, or only those that are well.
        let room = (LANES - lanes.len()).min(CLAIM);
        let (room, fit) = match sick.available_permits() {
            0 => (room, Fit::Healthy),
            places => (room.min(places), Fit::Any),
        };
        let claimed = match claim(state, room, fit, &accounts).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "webhooks cannot be claimed");
                tokio::time::sleep(FAILURE_PAUSE).await;
                continue;
            }
        };
        if claimed.is_empty() {
            let _ = timeout(LOOK, state.webhooks.wake.notified()).await;
            continue;
        }
        for (claimed, of_account) in claimed {
            let sick = (claimed.health.failures > 0).then(|| sick.clone().try_acquire_owned().ok()).flatten();
            lanes.spawn(lane(state.clone(), claimed, (of_account, sick), stop.clone()));
        }
    }
}

/// A place of the account's, and one of those for webhooks whose receivers failed.
type Places = (Share<AccountId>, Option<OwnedSemaphorePermit>);

async fn lane(state: Arc<EventState>, claimed: Claimed, places: Places, stop: CancellationToken) {
    if let Err(error) = deliver::work(&state, claimed, &stop).await {
        tracing::warn!(%error, webhook = %claimed.id, "a webhook stays claimed until its lease expires");
    }
    drop(places);
}

/// Claims webhooks of accounts with free lanes; others are released at once.
async fn claim(
    state: &EventState,
    room: usize,
    fit: Fit,
    accounts: &Shares<AccountId>,
) -> Result<Vec<(Claimed, Share<AccountId>)>, ServiceError> {
    let full: Vec<String> = accounts.list_full(ACCOUNT_LANES).iter().map(AccountId::to_string).collect();
    let mut conn = state.db.read().await?;
    let is_due = webhooks::is_due(&mut conn, fit, &full).await?;
    drop(conn);
    if !is_due {
        return Ok(Vec::new());
    }
    let limit = u32::try_from(room).unwrap_or(1);
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let claimed = webhooks::claim(&mut tx, limit, LEASE, fit, &full).await?;
    let mut entered = Vec::with_capacity(claimed.len());
    for claimed in claimed {
        match accounts.take([(claimed.account, ACCOUNT_LANES)]) {
            Ok(place) => entered.push((claimed, place)),
            Err(_) => webhooks::release(&mut tx, &claimed).await?,
        }
    }
    tx.commit().await?;
    Ok(entered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_with_slow_receivers_leave_lanes_to_others() {
        let account = |n: u8| AccountId::new(1, [n; 16]);
        for noisy in [1, 8, 10, 100] {
            let accounts = Shares::new(LANES);
            let mut taken = Vec::new();
            loop {
                let take = |n| accounts.take([(account(n), ACCOUNT_LANES)]).ok();
                let more: Vec<_> = (0..noisy).filter_map(take).collect();
                if more.is_empty() {
                    break;
                }
                taken.extend(more);
            }
            assert_eq!(accounts.list_full(ACCOUNT_LANES).len(), usize::from(noisy), "all have what they get");
            assert!(accounts.taken() < LANES, "{noisy} accounts: {} of {LANES}", accounts.taken());
            assert!(accounts.take([(account(200), ACCOUNT_LANES)]).is_ok(), "{noisy} accounts");
        }
    }
}
