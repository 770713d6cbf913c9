//! Connections of Thngs to the broker, and the property `~connected` that reflects them.
//!
//! A connection of a Thng is a row under the lease of its replica. `~connected` changes in the transaction that adds
//! the first row of a Thng or removes its last one, so it always matches the rows. Rows of a replica whose lease ran
//! out are removed by the other replicas, or at the next start.

mod key_checks;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::instrument;

pub use self::key_checks::{KEY_CHECK, check_keys, is_valid};
use super::EventState;
use crate::{
    domain::{
        access::{Actor, ActorKind},
        event::Event,
        property::{Owner, Point, PropertyKey},
        quota::Quota,
    },
    error::ServiceError,
    metrics::BrokerMetrics,
    service::open_quotas::OpenPlace,
    store::{
        Ctx, StoreError, Tx, connections as store, events,
        properties::{self, Values},
        property_owners::{self, Hold},
    },
};

/// How long a replica counts as alive after its last heartbeat.
pub const LEASE: Duration = Duration::from_secs(10);

/// Time between two words of a replica.
pub const HEARTBEAT: Duration = Duration::from_secs(3);

/// Orphaned connections that one heartbeat closes.
const ROUND: u32 = 500;

/// The system property that shows whether a Thng is connected.
const CONNECTED: &str = "~connected";

/// Why a connection is ended by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Another connection came with the same client id.
    TakenOver,
    /// Its key is not valid any more.
    KeyRevoked,
    /// The replica was given up, or the row could not be kept: the client must reconnect.
    Lost,
}

/// A connection as this process holds it.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Its name, which no other has.
    pub id: String,
    /// Cancelled when it must end.
    pub ends: CancellationToken,
}

#[derive(Debug)]
struct Held {
    ends: CancellationToken,
    why: Option<Ended>,
    key: [u8; 32],
    address: Option<IpAddr>,
    client: Option<(AccountId, String, String)>,
    /// Who came with the key, with what it could do then.
    actor: Actor,
    /// Its place among the streams that the account may have.
    place: Option<OpenPlace>,
}

#[derive(Debug, Default)]
struct Table {
    /// This replica's name, once it is registered.
    replica: Option<String>,
    held: HashMap<String, Held>,
    by_client: HashMap<(AccountId, String, String), String>,
}

impl Table {
    /// The place of the connection that a client has.
    fn inherit(&mut self, client: &(AccountId, String, String)) -> Option<OpenPlace> {
        let id = self.by_client.get(client)?;
        self.held.get_mut(id)?.place.take()
    }

    /// Gives the place back that a connection inherited, when it fails and the one of before stays.
    fn give_back(&mut self, client: &(AccountId, String, String), id: &str) {
        let place = self.held.get_mut(id).and_then(|held| held.place.take());
        let before = self.by_client.get(client).and_then(|before| self.held.get_mut(before));
        if let Some(before) = before.filter(|before| before.place.is_none()) {
            before.place = place;
        }
    }
}

/// The connections of this process.
#[derive(Debug, Default)]
pub struct Connections {
    table: Mutex<Table>,
    /// Cancelled at shutdown, when connections must move to another replica.
    pub stopping: CancellationToken,
    /// The tasks that serve them.
    pub sessions: TaskTracker,
    /// Counters of the broker.
    pub metrics: BrokerMetrics,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().held.len()
    }

    /// Why a connection must end, once it must.
    #[must_use]
    pub fn why(&self, id: &str) -> Option<Ended> {
        self.lock().held.get(id).and_then(|held| held.why)
    }

    fn end(&self, ids: impl Iterator<Item = String>, why: Ended) {
        let mut table = self.lock();
        for id in ids {
            if let Some(held) = table.held.get_mut(&id) {
                held.why.get_or_insert(why);
                held.ends.cancel();
            }
        }
    }
}

/// Takes a new connection in; one of the same caller with the same client id ends.
///
/// # Errors
/// The Thng does not exist, the replica is not registered, or the account has as many streams as it may have.
#[instrument(skip_all)]
pub async fn open(
    state: &EventState,
    actor: &Actor,
    key: [u8; 32],
    address: Option<IpAddr>,
    client: Option<&str>,
) -> Result<Connection, ServiceError> {
    let id = ActionId::new(state.clock.now().0, state.random16()?).to_string();
    let connection = Connection { id: id.clone(), ends: CancellationToken::new() };
    let client = client.map(|client| (actor.account, actor.own_name(), client.to_owned()));
    let (ends, actor_then) = (connection.ends.clone(), actor.clone());
    // A client that comes back takes the place of its connection of before, which may not have ended yet.
    let inherited = client.as_ref().and_then(|client| state.connections.lock().inherit(client));
    let place = match inherited {
        Some(place) => place,
        None => state.open_quotas.take(&state.db, actor.account, Quota::Streams, state.clock.now()).await?,
    };
    let place = Some(place);
    let held = Held { ends, why: None, key, address, client: client.clone(), actor: actor_then, place };
    state.connections.lock().held.insert(id.clone(), held);
    if actor.kind == ActorKind::Thng {
        let replica = state.connections.lock().replica.clone();
        let added = match replica {
            Some(replica) => add(state, actor, &id, &replica).await,
            None => Err(StoreError::Busy.into()),
        };
        if let Err(error) = added {
            if let Some(client) = &client {
                state.connections.lock().give_back(client, &id);
            }
            forget(state, &id);
            return Err(error);
        }
    }
    // Once its own row stands: the Thng is connected all the while.
    if let Some(client) = client {
        let before = state.connections.lock().by_client.insert(client, id);
        state.connections.end(before.into_iter(), Ended::TakenOver);
    }
    Ok(connection)
}

/// Releases a connection; what cannot be written now is written when the replica is given up.
#[instrument(skip_all)]
pub async fn close(state: &EventState, actor: &Actor, id: &str) {
    if actor.kind == ActorKind::Thng {
        let mut pause = Duration::from_millis(100);
        for _ in 0..5 {
            match remove(state, actor.account, &actor.id, id).await {
                Ok(()) => break,
                Err(error) => tracing::warn!(%error, "the end of a connection is not recorded yet"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
    forget(state, id);
}

/// Releases a connection that is not a Thng's own, which is only in the table of this process.
pub(super) fn release(state: &EventState, id: &str) {
    forget(state, id);
}

fn forget(state: &EventState, id: &str) {
    let mut table = state.connections.lock();
    let Some(held) = table.held.remove(id) else { return };
    if let Some(client) = held.client
        && table.by_client.get(&client).is_some_and(|current| current == id)
    {
        table.by_client.remove(&client);
    }
}

async fn add(state: &EventState, actor: &Actor, id: &str, replica: &str) -> Result<(), ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if !property_owners::hold(&mut tx, actor.account, Owner::Thng, &actor.id, Hold::Alone).await? {
        return Err(ServiceError::not_found("thng", &actor.id));
    }
    if !store::open(&mut tx, id, replica, actor.account, &actor.id).await? {
        return Err(StoreError::Busy.into());
    }
    note(state, &mut tx, actor.account, &actor.id, true).await?;
    tx.commit().await?;
    state.readers.wake_events();
    Ok(())
}

async fn remove(state: &EventState, account: AccountId, thng: &str, id: &str) -> Result<(), StoreError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // The properties of a deleted Thng are gone, too.
    let is_there = property_owners::hold(&mut tx, account, Owner::Thng, thng, Hold::Alone).await?;
    if store::close(&mut tx, id).await? && is_there && !store::is_connected(&mut tx, thng).await? {
        note(state, &mut tx, account, thng, false).await?;
    }
    tx.commit().await?;
    state.readers.wake_events();
    Ok(())
}

/// Writes `~connected` of a Thng that the transaction holds alone, if it changes.
async fn note(
    state: &EventState,
    tx: &mut Tx,
    account: AccountId,
    thng: &str,
    is_connected: bool,
) -> Result<(), StoreError> {
    let key = PropertyKey::stored(CONNECTED.to_owned());
    let now = state.clock.now();
    let timestamp = match properties::find_latest(tx, account, thng, &key).await? {
        Some(point) if point.value == Value::Bool(is_connected) => return Ok(()),
        // Another replica's clock may be ahead: the change is later all the same.
        Some(point) => UnixMillis(now.0.max(point.timestamp.0.saturating_add(1))),
        None => now,
    };
    let points = vec![Point { key, value: Value::Bool(is_connected), timestamp, created_at: now }];
    properties::write(tx, &[Values { account, resource: thng, points: &points }], now).await?;
    let event = Event::Properties { owner: Owner::Thng, resource: thng.to_owned(), points };
    events::record(tx, now, &[(account, event)]).await
}

/// One heartbeat: renews the lease of this replica, closes what dead replicas left.
///
/// # Errors
/// The database failed; the next heartbeat comes soon.
pub async fn beat(state: &EventState) -> Result<(), ServiceError> {
    let own = state.connections.lock().replica.clone();
    let own = match own {
        None => register(state).await?,
        Some(own) => {
            let mut tx = state.db.begin(&Ctx::default()).await?;
            let is_renewed = store::renew(&mut tx, &own, LEASE).await?;
            tx.commit().await?;
            if is_renewed {
                own
            } else {
                tracing::error!("the lease of this replica expired: its connections end");
                let ids: Vec<String> = {
                    let mut table = state.connections.lock();
                    table.replica = None;
                    table.held.keys().cloned().collect()
                };
                state.connections.end(ids.into_iter(), Ended::Lost);
                register(state).await?
            }
        }
    };
    reap(state, &own).await
}

async fn register(state: &EventState) -> Result<String, ServiceError> {
    let name = ActionId::new(state.clock.now().0, state.random16()?).to_string();
    let mut tx = state.db.begin(&Ctx::default()).await?;
    store::register(&mut tx, &name, LEASE).await?;
    tx.commit().await?;
    state.connections.lock().replica = Some(name.clone());
    Ok(name)
}

/// Closes connections of replicas that are gone.
async fn reap(state: &EventState, own: &str) -> Result<(), ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    store::expire_replicas(&mut tx, own).await?;
    store::forget(&mut tx).await?;
    tx.commit().await?;
    loop {
        let orphans = store::list_orphans(&mut state.db.read().await?, ROUND).await?;
        for orphan in &orphans {
            let account = orphan.account_id.parse().map_err(|_| StoreError::Row("account_id".to_owned()))?;
            remove(state, account, &orphan.thng_id, &orphan.id).await?;
        }
        if orphans.len() < ROUND as usize {
            return Ok(());
        }
        // The own lease comes first.
        let mut tx = state.db.begin(&Ctx::default()).await?;
        store::renew(&mut tx, own, LEASE).await?;
        tx.commit().await?;
    }
}

/// Gives up this replica at shutdown: what it still holds is closed by the others, or by the next start.
///
/// # Errors
/// The database failed; the lease runs out then.
pub async fn leave(state: &EventState) -> Result<(), StoreError> {
    let Some(own) = state.connections.lock().replica.take() else { return Ok(()) };
    let mut tx = state.db.begin(&Ctx::default()).await?;
    store::leave(&mut tx, &own).await?;
    tx.commit().await
}
