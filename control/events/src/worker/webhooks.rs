//! Workers of webhooks: one task fills the queues, also those of reactions, and many deliver. Any number of processes
//! may run them.

use std::{collections::HashMap, sync::Arc, time::Duration};

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

/// Of these, places of webhooks of one account: eight whose receivers are slow, all of them, take what there is.
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

/// The places that accounts have taken.
#[derive(Debug, Default)]
struct Accounts(HashMap<AccountId, Arc<Semaphore>>);

impl Accounts {
    /// Those that have taken all of theirs; of those that have taken none nothing is kept.
    fn full(&mut self) -> Vec<String> {
        self.0.retain(|_, places| places.available_permits() < ACCOUNT_LANES);
        let full = self.0.iter().filter(|(_, places)| places.available_permits() == 0);
        full.map(|(account, _)| account.to_string()).collect()
    }

    fn enter(&mut self, account: AccountId) -> Option<OwnedSemaphorePermit> {
        let places = self.0.entry(account).or_insert_with(|| Arc::new(Semaphore::new(ACCOUNT_LANES)));
        places.clone().try_acquire_owned().ok()
    }
}

async fn send(state: &Arc<EventState>, lanes: &mut JoinSet<()>, stop: &CancellationToken) {
    let sick = Arc::new(Semaphore::new(SICK_LANES));
    let mut accounts = Accounts::default();
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
        let claimed = match claim(state, room, fit, &mut accounts).await {
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
type Places = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

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
    accounts: &mut Accounts,
) -> Result<Vec<(Claimed, OwnedSemaphorePermit)>, ServiceError> {
    let full = accounts.full();
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
        match accounts.enter(claimed.account) {
            Some(place) => entered.push((claimed, place)),
            None => webhooks::release(&mut tx, &claimed).await?,
        }
    }
    tx.commit().await?;
    Ok(entered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_bounded_and_its_lanes_are_returned() {
        let (one, other) = (AccountId::new(1, [1; 16]), AccountId::new(1, [2; 16]));
        let mut accounts = Accounts::default();
        let mut taken: Vec<_> = (0..ACCOUNT_LANES).map(|_| accounts.enter(one).unwrap()).collect();
        let theirs = accounts.enter(other);
        assert!(accounts.enter(one).is_none() && theirs.is_some());
        assert_eq!(accounts.full(), [one.to_string()]);
        taken.pop();
        assert!(accounts.full().is_empty() && accounts.enter(one).is_some());
        drop((taken, theirs));
        assert!(accounts.full().is_empty() && accounts.0.is_empty(), "nothing is kept");
    }
}
