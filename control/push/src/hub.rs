//! The change stream: reads the change log, sends it to every edge, and tracks how far each edge is.
//!
//! The notification is only a wake-up: the reader always asks for revisions after its cursor, in order. A session that
//! falls behind the shared ring reads the log itself, so a slow edge costs one cursor.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use redirects::edges::{Edges, WaitReport};
use shared::{
    time::Clock,
    wire::stream::{Epoch, Events, HEARTBEAT_MS, Hello, Rev, Start},
};
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{
    certificates::CertificateKey,
    members::Members,
    replica::{Joined, Replica},
    ring::{Batch, Ring},
    timing::Timing,
    welcomes::{self, Welcomes},
};
pub use super::{
    members::{EdgeStatus, LEASE},
    session::{EdgeSession, Outgoing},
    welcomes::Greeting,
};
use crate::metrics::StreamMetrics;
use crate::store::{Ctx, Db, StoreError, Tx, dialect, log, rules};

/// The reader asks at least so often, should a wake-up be lost.
const POLL: Duration = Duration::from_millis(25);

/// While the log cannot be read, the pause grows to 32 polls: 800 ms.
const MAX_DOUBLINGS: u32 = 5;

/// Time between two checks that the log still has the epoch that is followed.
const HISTORY_LOOK: Duration = Duration::from_secs(1);

/// Most revisions in one message.
const BATCH: u32 = 500;

/// Runs of events that a follower may be behind before it must read the log itself.
const FOLLOWED: usize = 64;

/// Sessions that may read the log at once: those far behind must not starve others of the database.
const READERS: usize = 4;

/// Revisions and time that compaction keeps.
const KEPT_REVS: u64 = 1_000_000;
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// Revisions that one step of compaction deletes at most.
const COMPACT_STEP: u64 = 5_000;

pub(super) struct Inner {
    pub(super) db: Db,
    /// A connection that does nothing else: one of those that serve requests may be new to reading the log, and
    /// every edge would wait until it has planned it.
    log: Db,
    epoch: Epoch,
    wake: Notify,
    pub(super) head: watch::Sender<Rev>,
    pub(super) ring: Ring,
    followed: broadcast::Sender<Arc<Events>>,
    readers: Semaphore,
    pub(super) timing: Timing,
    pub(super) members: Members,
    joined: Joined,
    pub(super) welcomes: Welcomes,
    pub(super) certificate_key: OnceLock<CertificateKey>,
}

/// Why the change stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Stopped,
    /// The log is not the one it began with: what follows needs a new start, under a new epoch.
    OtherHistory,
}

/// Handle of the change stream; cheap to clone.
#[derive(Clone)]
pub struct Hub(pub(super) Arc<Inner>);

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("epoch", &self.0.epoch)
            .field("head", &self.head())
            .finish_non_exhaustive()
    }
}

impl Edges for Hub {
    fn wait(&self, rev: Rev, timeout: Duration) -> BoxFuture<'_, WaitReport> {
        Box::pin(self.wait_edges(rev, timeout))
    }
}

impl Hub {
    /// A hub over a log that was set up.
    pub async fn open(db: Db) -> Result<Self, StoreError> {
        let head = log::load_head(&mut db.read().await?).await?;
        Ok(Self(Arc::new(Inner {
            log: db.with_own_pool(1),
            db,
            epoch: head.epoch,
            wake: Notify::new(),
            head: watch::Sender::new(head.head),
            ring: Ring::default(),
            followed: broadcast::Sender::new(FOLLOWED),
            readers: Semaphore::new(READERS),
            timing: Timing::new(),
            members: Members::default(),
            joined: Joined::new(),
            welcomes: Welcomes::default(),
            certificate_key: OnceLock::new(),
        })))
    }

    /// Takes part in a fleet: edges of other replicas count from here on. Once, before anybody connects.
    pub fn join(&self, replica: Arc<Replica>) {
        if self.0.joined.set(replica).is_err() {
            tracing::error!("a replica joins its fleet twice");
        }
    }

    /// This replica among the others, in a fleet.
    #[must_use]
    pub fn replica(&self) -> Option<&Arc<Replica>> {
        self.0.joined.get()
    }

    /// The newest revision that is on its way to the edges.
    #[must_use]
    pub fn head(&self) -> Rev {
        *self.0.head.borrow()
    }

    /// The epoch of the log.
    #[must_use]
    pub fn epoch(&self) -> &Epoch {
        &self.0.epoch
    }

    /// How long ago the log was last read well; grows while the database is away.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.0.timing.silence()
    }

    /// Counters of the stream.
    #[must_use]
    pub fn metrics(&self) -> &StreamMetrics {
        &self.0.timing.metrics
    }

    /// A subscription to every run of events from now on; a receiver that falls behind reads the log itself.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<Events>> {
        self.0.followed.subscribe()
    }

    /// Signals that this process may have committed something.
    pub fn wake(&self) {
        self.wake_reader();
        if let Some(replica) = self.replica() {
            replica.committed();
        }
    }

    /// Signals that something may have been committed, here or by another replica.
    pub(super) fn wake_reader(&self) {
        self.0.wake.notify_one();
    }

    /// Reads the log into the ring until `shutdown`.
    ///
    /// Ends by itself when the log is not the one it began with (a restore, a failover to an older copy):
    /// revisions would be used twice. A new start follows the new history under its own epoch.
    pub async fn run(self, shutdown: CancellationToken) -> Ended {
        let mut cursor = self.head();
        let mut failures = 0;
        let mut looked = Instant::now();
        loop {
            match self.read_after(&self.0.log, cursor).await {
                Ok(Some(events)) => {
                    (cursor, failures) = (events.last, 0);
                    let batch = Arc::new(Batch::new(events));
                    // Without a publisher there is no receiver, which is no fault.
                    let _ = self.0.followed.send(batch.events.clone());
                    // Everything up to the announced head is in the ring.
                    self.0.timing.sent(cursor);
                    self.0.ring.push(batch);
                    self.0.head.send_replace(cursor);
                    continue;
                }
                Ok(None) => {
                    failures = 0;
                    if looked.elapsed() >= HISTORY_LOOK {
                        looked = Instant::now();
                        self.forget_reading();
                        match self.is_same_history(cursor).await {
                            Ok(true) => {}
                            Ok(false) => {
                                tracing::error!(cursor, "the change log has another epoch; restarting");
                                return Ended::OtherHistory;
                            }
                            Err(error) => tracing::warn!(%error, "cannot read the head of the change log"),
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read the change log");
                    failures += 1;
                    self.0.timing.metrics.read_failures.inc();
                    // A wake-up does not shorten this pause: it says nothing about the database.
                    tokio::select! {
                        () = tokio::time::sleep(POLL * 2_u32.pow(failures.min(MAX_DOUBLINGS))) => continue,
                        () = shutdown.cancelled() => return Ended::Stopped,
                    }
                }
            }
            tokio::select! {
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                () = shutdown.cancelled() => return Ended::Stopped,
            }
        }
    }

    async fn is_same_history(&self, cursor: Rev) -> Result<bool, StoreError> {
        let mut conn = self.0.db.read().await?;
        let history = dialect::find_history_id(&mut conn).await?;
        let head = log::load_head(&mut conn).await?;
        let is_bound = history.is_none_or(|history| history == head.bound_to);
        Ok(is_bound && head.epoch == self.0.epoch && head.head >= cursor)
    }

    /// Reads the log for a session that is behind the ring.
    pub(super) async fn read_behind(&self, cursor: Rev) -> Result<Option<Events>, StoreError> {
        let _turn = self.0.readers.acquire().await.map_err(|_| StoreError::Stopped)?;
        self.read_after(&self.0.db, cursor).await
    }

    async fn read_after(&self, db: &Db, cursor: Rev) -> Result<Option<Events>, StoreError> {
        let items = log::list_after(&mut db.read().await?, &self.0.epoch, cursor, BATCH).await?;
        let items = self.reveal(items);
        self.0.timing.read();
        let Some(last) = items.last().map(|event| event.rev) else { return Ok(None) };
        Ok(Some(Events { prev: cursor, items, last }))
    }

    /// Opens a session for an edge.
    pub async fn connect(&self, hello: &Hello) -> Result<EdgeSession, StoreError> {
        // Before the head is read: a caller that waits for a revision either counts this edge, or the edge is
        // welcomed with a head that includes the revision.
        let opened = match self.replica() {
            Some(replica) => {
                self.0.members.arrives(&hello.edge_id);
                Some(replica.open(&self.0.db, hello).await?)
            }
            None => None,
        };
        let mut conn = self.0.db.read().await?;
        let head = log::load_head(&mut conn).await?;
        if opened.is_some() && hello.epoch.as_ref() == Some(&head.epoch) && hello.applied > head.head {
            drop(conn);
            return Err(self.end_history(&head.epoch, hello).await);
        }
        let resumes = hello.epoch.as_ref() == Some(&head.epoch)
            && head.compacted <= hello.applied
            && hello.applied <= head.head;
        let (start, cursor, rules) = if resumes {
            (Start::Resume, hello.applied, Vec::new())
        } else {
            // Rules are held whole by the edge: they must be those of the very revision it starts from.
            let (at_rev, rules) = rules::list_with_head(&mut conn).await?;
            (Start::Snapshot { at_rev }, at_rev, rules)
        };
        drop(conn);
        if head.epoch != self.0.epoch {
            // The ring is of the history before: a new start follows this one.
            return Err(StoreError::Stopped);
        }
        let at_least = head.head.max(cursor);
        let greeting = self.greet(welcomes::bare(head, start, rules), hello, at_least).await?;
        let session = self.0.members.insert(hello, resumes.then_some(hello.applied), opened);
        Ok(EdgeSession::new(self.clone(), hello, session, greeting, cursor))
    }

    /// An edge is ahead of the log: the database was set back to an older state. Other edges must not continue
    /// in this history, in which revisions are used twice; it ends for every replica.
    async fn end_history(&self, epoch: &Epoch, hello: &Hello) -> StoreError {
        let ended = async {
            let mut tx = self.0.db.begin(&Ctx::default()).await?;
            let ended = log::end_history(&mut tx, epoch, hello.applied).await?;
            tx.commit().await?;
            Ok::<_, StoreError>(ended)
        };
        match ended.await {
            Ok(ended) => {
                let (edge, applied) = (&hello.edge_id, hello.applied);
                tracing::error!(%edge, applied, ended, "an edge is ahead of the log: the database was reset");
                StoreError::Stopped
            }
            Err(error) => error,
        }
    }

    /// Waits until every member has `rev` live, at most until `timeout` is over.
    ///
    /// In a fleet, members are those of all replicas, as the database has them after this call began.
    pub async fn wait_edges(&self, rev: Rev, timeout: Duration) -> WaitReport {
        let begun = Instant::now();
        let deadline = tokio::time::Instant::now() + timeout;
        let fleet = self.replica().map(|replica| (replica, replica.wait(), replica.ask()));
        let mut last = None;
        loop {
            // Registered before the check, so that nothing in between is missed.
            let news = self.0.members.news();
            let incomplete = fleet.as_ref().is_some_and(|(replica, _, read)| !replica.has_read(*read));
            let laggard = self.0.members.laggard(rev, last.as_ref());
            if !incomplete && laggard.is_none() {
                let report = self.0.members.report(rev, begun);
                if report.is_done() {
                    self.metrics().wait_seconds.observe(begun.elapsed().as_secs_f64());
                    return report;
                }
            }
            last = laggard.as_ref().map(|laggard| laggard.edge.clone());
            // One of many is enough to wait for: who wakes at each of a thousand acks slows all of them down.
            let acked = async {
                match laggard {
                    Some(laggard) => laggard.acked.await,
                    None => std::future::pending().await,
                }
            };
            // A lease may run out without any ack.
            let look_again = tokio::time::Instant::now() + Duration::from_millis(HEARTBEAT_MS);
            tokio::select! {
                () = news => {}
                () = acked => {}
                () = tokio::time::sleep_until(look_again.min(deadline)) => {
                    if tokio::time::Instant::now() >= deadline {
                        self.metrics().waits_expired.inc();
                        return WaitReport { incomplete, ..self.0.members.report(rev, begun) };
                    }
                    // A call of another replica may have been lost.
                    if let Some((replica, ..)) = &fleet {
                        replica.ask();
                    }
                }
            }
        }
    }

    /// Every edge that is known, by name: of the whole fleet, as of a second ago for those of other replicas.
    #[must_use]
    pub fn edges(&self) -> Vec<EdgeStatus> {
        self.0.members.list(self.head(), self.replica().map(|replica| replica.id()))
    }

    /// Deletes old revisions in small steps, until none is left to delete.
    ///
    /// # Errors
    /// The database failed; what was deleted stays deleted.
    pub async fn compact(&self, clock: &dyn Clock) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let mut tx: Tx = self.0.db.begin(&Ctx::default()).await?;
            let step = log::compact(&mut tx, clock.now().0 - KEPT_MS, KEPT_REVS, COMPACT_STEP).await?;
            tx.commit().await?;
            deleted += step;
            self.metrics().compacted.inc_by(step);
            if step == 0 {
                return Ok(deleted);
            }
        }
    }
}
