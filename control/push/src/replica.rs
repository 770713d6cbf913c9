//! Coordination with other control replicas: publishes how far the local edges are, and reads how far theirs are.
//!
//! Leases are written in batches: once a second, and within milliseconds while somebody waits at any replica. A call
//! between replicas is only a wake-up: the receiver reads the table.

mod announce;
mod call;

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use shared::wire::stream::Hello;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::call::Call;
use super::{
    hub::Hub,
    members::{LEASE, Members},
    spread::surplus,
};
use crate::store::{
    Ctx, Db, StoreError,
    calls::{Calls, call},
    edge_leases::{self, Opened},
};

/// Interval at which leases are written and read.
const TICK: Duration = Duration::from_secs(1);

/// How long a replica counts as running after it renewed its lease: four renewals may fail.
const HELD: Duration = Duration::from_secs(5);

/// Edges are sent only to replicas that renewed their lease within this time: one interval, and half of one for
/// writing and reading. A frozen replica holds no edges any more and would otherwise be the first to get some.
const ALIVE_WITHIN: Duration = Duration::from_millis(1_500);

/// While somebody waits here, the others are asked so often.
const ASK: Duration = Duration::from_secs(1);

/// Intervals for which a replica must hold too many edges before it sends some away.
const PATIENCE: u32 = 3;

/// Longest pause after a failure.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Connections to the database: one listens, one writes, one reads, and one replaces a failed listener.
const CONNECTIONS: u32 = 4;

/// Bound of the queue of calls; one that does not fit is a lost wake-up.
const HEARD: usize = 64;

/// Attempts to open a session while the same edge opens others.
const ATTEMPTS: u32 = 3;

/// This replica among the others.
#[derive(Debug)]
pub struct Replica {
    id: Arc<str>,
    /// Numbers of the last requested read, and of the last completed one.
    asked: watch::Sender<u64>,
    read: AtomicU64,
    waiting: AtomicUsize,
    committed: Notify,
    /// Replicas that run, this one too, as last read.
    running: Mutex<Vec<Running>>,
    /// Connections of its own: who waits for edges must not wait for the queries of others.
    own_db: OnceLock<Db>,
}

/// A replica that runs, as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Running {
    id: Arc<str>,
    /// Whether it renewed its lease within [`ALIVE_WITHIN`].
    is_heard: bool,
}

impl Running {
    fn new((id, left_ms): (Arc<str>, i64)) -> Self {
        let silence_ms = i64::try_from(HELD.as_millis()).unwrap_or(i64::MAX).saturating_sub(left_ms);
        Self { id, is_heard: u128::try_from(silence_ms).unwrap_or(0) <= ALIVE_WITHIN.as_millis() }
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

/// Somebody who waits for edges; ends when dropped.
pub(super) struct Waiting<'r>(&'r Replica);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// The replica of a hub, once it takes part in a fleet.
pub(super) type Joined = OnceLock<Arc<Replica>>;

impl Replica {
    /// A replica by its name, unlike any other's: a new one for each start.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            asked: watch::Sender::new(0),
            read: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            committed: Notify::new(),
            running: Mutex::default(),
            own_db: OnceLock::new(),
        }
    }

    fn db(&self, hub: &Hub) -> &Db {
        self.own_db.get_or_init(|| hub.0.db.with_own_pool(CONNECTIONS))
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Replicas that run, this one too.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.running().len().max(1)
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        // Nothing panics while it is held; a poisoned list is as good as before.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces that somebody waits, so that the other replicas publish acknowledgements immediately.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, SeqCst);
        Waiting(self)
    }

    /// Asks for the leases of the whole fleet as they are from now on; returns the number of the read.
    pub(super) fn ask(&self) -> u64 {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        number
    }

    /// Whether a read that began after [`Self::ask`] returned this number is complete.
    pub(super) fn has_read(&self, number: u64) -> bool {
        self.read.load(SeqCst) >= number
    }

    /// Announces a commit of this replica.
    pub(super) fn committed(&self) {
        self.committed.notify_one();
    }

    /// Opens a session of an edge, above all that it had at any replica.
    pub(super) async fn open(&self, db: &Db, hello: &Hello) -> Result<Opened, StoreError> {
        for _ in 0..ATTEMPTS {
            let mut tx = db.begin(&Ctx::default()).await?;
            edge_leases::relax(&mut tx).await?;
            let opened = edge_leases::open(&mut tx, &self.id, hello, LEASE).await?;
            if self.replicas() > 1 {
                call(&mut tx, &self.text(Call::Edge)).await?;
            }
            tx.commit().await?;
            if let Some(opened) = opened {
                return Ok(opened);
            }
        }
        Err(StoreError::Busy)
    }

    /// Takes part until `shutdown`; while the database is away, it continues trying.
    pub async fn run(self: Arc<Self>, hub: Hub, shutdown: CancellationToken) {
        let mut pause = TICK / 10;
        loop {
            let begun = Instant::now();
            let error = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                ended = self.take_part(&hub) => match ended {
                    Ok(never) => match never {},
                    Err(error) => error,
                },
            };
            hub.0.members.tell_anew();
            tracing::warn!(%error, "the edges of other replicas cannot be read");
            pause = if begun.elapsed() > HELD { TICK / 10 } else { (pause * 2).min(MAX_PAUSE) };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.leave(&hub).await;
    }

    async fn take_part(&self, hub: &Hub) -> Result<Infallible, StoreError> {
        let calls = Calls::listen(self.db(hub)).await?;
        let ((tell, told), (read, heard)) = (mpsc::channel(HEARD), mpsc::channel(HEARD));
        // Listening is never cancelled in the middle of a message, and reading what others publish does not wait for
        // what this replica has to publish.
        tokio::select! {
            ended = self.listen(hub, calls, &tell, &read) => ended,
            ended = self.keep_announcing(hub, told) => ended,
            ended = self.keep_reading(hub, heard) => ended,
        }
    }

    async fn listen(
        &self,
        hub: &Hub,
        mut calls: Calls,
        tell: &mpsc::Sender<()>,
        read: &mpsc::Sender<Call>,
    ) -> Result<Infallible, StoreError> {
        loop {
            let heard_call = match calls.next().await? {
                None => Some(Call::Gap),
                Some(text) => match text.split_once(' ') {
                    Some((who, what)) if who != &*self.id => Call::parse(what),
                    // One's own, or of a later release.
                    Some(_) | None => None,
                },
            };
            // If the channel is full, the next interval catches up.
            match heard_call {
                Some(Call::Wait) => drop(tell.try_send(())),
                Some(Call::Log) => hub.wake_reader(),
                Some(call @ (Call::Told | Call::Edge | Call::Gap)) => drop(read.try_send(call)),
                None => {}
            }
        }
    }

    /// Reads what the others publish: each second, when they call, and when somebody here waits.
    async fn keep_reading(
        &self,
        hub: &Hub,
        mut heard: mpsc::Receiver<Call>,
    ) -> Result<Infallible, StoreError> {
        let members = &hub.0.members;
        let (mut ticks, mut too_many) = (ticks(), 0);
        let mut asks = self.asked.subscribe();
        // One that waited before is answered too.
        asks.mark_changed();
        let mut asked_at = None::<Instant>;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    self.read_all(hub).await?;
                    too_many = if self.spread(hub, too_many >= PATIENCE) { too_many + 1 } else { 0 };
                }
                Some(call) = heard.recv() => match call {
                    Call::Told if self.waiting.load(SeqCst) == 0 => {}
                    Call::Gap => {
                        self.read_all(hub).await?;
                        hub.wake_reader();
                    }
                    Call::Told | Call::Edge | Call::Wait | Call::Log => self.read_all(hub).await?,
                },
                changed = asks.changed() => {
                    // The sender lives as long as this.
                    changed.map_err(|_| StoreError::Stopped)?;
                    if self.knows_others(members) && asked_at.is_none_or(|at| at.elapsed() >= ASK) {
                        asked_at = Some(Instant::now());
                        self.call(hub, Call::Wait).await?;
                    }
                    let number = *asks.borrow_and_update();
                    self.read_all(hub).await?;
                    self.read.fetch_max(number, SeqCst);
                    members.wake_waiting();
                }
            }
        }
    }

    /// Reads what others hold.
    async fn read_all(&self, hub: &Hub) -> Result<(), StoreError> {
        let mut conn = self.db(hub).read().await?;
        let leases = edge_leases::list(&mut conn, &self.id).await?;
        let replicas = edge_leases::list_replicas(&mut conn).await?;
        drop(conn);
        *self.running() = replicas.into_iter().map(Running::new).collect();
        for edge in hub.0.members.read(leases) {
            tracing::info!(%edge, "an edge moved to another replica");
        }
        Ok(())
    }

    /// Whether others may hold edges: those that run, or that did until a moment ago.
    fn knows_others(&self, members: &Members) -> bool {
        self.replicas() > 1 || !members.counts().2.is_empty()
    }

    /// Sends some edges away if there are too many and it `is_time`; returns whether there are.
    fn spread(&self, hub: &Hub, is_time: bool) -> bool {
        let members = &hub.0.members;
        let (here, leaving, elsewhere) = members.counts();
        let others: Vec<usize> = self
            .running()
            .iter()
            .filter(|other| other.id != self.id && other.is_heard)
            .map(|other| elsewhere.get(&other.id).copied().unwrap_or(0))
            .collect();
        let surplus = surplus(here, leaving, &others);
        if surplus > 0 && is_time {
            let sent = members.send_away(surplus);
            tracing::info!(here, ?others, sent, "edges are sent to other replicas, which hold fewer");
        }
        surplus > 0
    }

    async fn call(&self, hub: &Hub, what: Call) -> Result<(), StoreError> {
        let mut tx = self.db(hub).begin(&Ctx::default()).await?;
        edge_leases::relax(&mut tx).await?;
        call(&mut tx, &self.text(what)).await?;
        tx.commit().await
    }

    fn text(&self, call: Call) -> String {
        format!("{} {}", self.id, call.as_str())
    }

    /// Announces that this replica stops, so that it is no longer counted.
    async fn leave(&self, hub: &Hub) {
        let left = async {
            self.tell(hub, true).await?;
            let mut tx = self.db(hub).begin(&Ctx::default()).await?;
            edge_leases::leave(&mut tx, &self.id).await?;
            tx.commit().await
        };
        // Otherwise it is no longer counted in some seconds.
        if let Err(error) = left.await {
            tracing::debug!(%error, "the others were not told that this replica stops");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_only_sent_to_live_replicas() {
        for (left_ms, expected, why) in [
            (5_000, true, "it said so this moment"),
            (3_900, true, "a round ago"),
            (3_500, true, "it is half a round late"),
            (3_400, false, "it is silent, though its lease still holds"),
            (1, false, "its lease ends"),
            (5_100, true, "its clock is the database's, and a moment ahead"),
        ] {
            assert_eq!(Running::new(("r".into(), left_ms)).is_heard, expected, "{why}");
        }
    }
}
