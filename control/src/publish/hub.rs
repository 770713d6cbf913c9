//! The change stream: reads the log, hands it to every edge, and knows how far each edge is.
//!
//! The notify is only a wake-up: the reader always asks for revisions behind its cursor, in order. A
//! session that falls behind the shared ring reads the log itself, so a slow edge costs one cursor.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde::Serialize;
use shared::{
    time::Clock,
    wire::stream::{Epoch, Events, HEARTBEAT_MS, Hello, Rejected, Rev, Start, ToControl, ToEdge, Welcome},
};
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::store::{Db, StoreError, Tx, accounts, dialect, log, rules};

/// The reader asks at least so often, should a wake-up be lost.
const POLL: Duration = Duration::from_millis(25);

/// While the log cannot be read, the pause grows to 32 polls: 800 ms.
const MAX_DOUBLINGS: u32 = 5;

/// Time between two looks whether the log is still the one that is followed.
const HISTORY_LOOK: Duration = Duration::from_secs(1);

/// Most revisions in one message.
const BATCH: u32 = 500;

/// Messages that the shared ring holds before a slow session must read the log itself.
const RING: usize = 2_048;

/// How long an edge counts as a member after its last sign of life.
pub const LEASE: Duration = Duration::from_secs(10);

/// Revisions and time that compaction keeps (design: push, 1).
const KEPT_REVS: u64 = 1_000_000;
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// Revisions that one step of compaction deletes at most.
const COMPACT_STEP: u64 = 5_000;

/// One edge as control sees it.
#[derive(Debug, Clone)]
struct Member {
    region: Arc<str>,
    build: Arc<str>,
    applied: Rev,
    rejected: Vec<Rejected>,
    session: u64,
    seen: Instant,
}

/// The state of one edge, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeStatus {
    /// Name of the edge.
    pub edge_id: Arc<str>,
    /// Region of the edge.
    pub region: Arc<str>,
    /// Build of the edge.
    pub build: Arc<str>,
    /// Whether its lease is valid.
    pub reachable: bool,
    /// The newest revision that is live on it.
    pub applied: Rev,
    /// Revisions it is behind.
    pub lag: u64,
    /// Milliseconds since its last sign of life.
    pub silent_ms: u64,
    /// Revisions it refused, newest last.
    pub rejected: Vec<Rev>,
}

/// What `?wait=edges` reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitReport {
    /// The revision waited for.
    pub rev: Rev,
    /// Edges that have it live.
    pub acked: usize,
    /// Edges with a valid lease.
    pub members: usize,
    /// Members that do not have it live; empty unless the deadline passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lagging: Vec<Arc<str>>,
    /// Edges that are known but whose lease has run out.
    pub unreachable: Vec<Arc<str>>,
    /// Milliseconds from the commit to the last acknowledgement, or to the deadline.
    pub ms: u64,
}

struct Inner {
    db: Db,
    epoch: Epoch,
    wake: Notify,
    head: watch::Sender<Rev>,
    ring: broadcast::Sender<Arc<Events>>,
    members: Mutex<HashMap<Arc<str>, Member>>,
    acked: Notify,
    sessions: std::sync::atomic::AtomicU64,
}

/// Handle of the change stream; cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("epoch", &self.0.epoch)
            .field("head", &self.head())
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub over a log that was set up.
    ///
    /// # Errors
    /// The database failed.
    pub async fn open(db: Db) -> Result<Self, StoreError> {
        let head = log::load_head(&mut db.read().await?).await?;
        Ok(Self(Arc::new(Inner {
            db,
            epoch: head.epoch,
            wake: Notify::new(),
            head: watch::Sender::new(head.head),
            ring: broadcast::Sender::new(RING),
            members: Mutex::default(),
            acked: Notify::new(),
            sessions: std::sync::atomic::AtomicU64::new(1),
        })))
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

    /// Every run of events from now on, as it is read from the log; who falls behind reads the log itself.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<Events>> {
        self.0.ring.subscribe()
    }

    /// Says that something may have been committed.
    pub fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// Reads the log into the ring until `shutdown`.
    ///
    /// Ends by itself when the log is not the one it began with (a restore, a failover to an older copy):
    /// revisions would be used twice. A new start follows the new history under its own epoch.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut cursor = self.head();
        let mut failures = 0;
        let mut looked = Instant::now();
        loop {
            match self.read_after(cursor).await {
                Ok(Some(events)) => {
                    (cursor, failures) = (events.last, 0);
                    // Without an edge nobody listens, which is no fault.
                    let _ = self.0.ring.send(Arc::new(events));
                    self.0.head.send_replace(cursor);
                    continue;
                }
                Ok(None) => {
                    failures = 0;
                    if looked.elapsed() >= HISTORY_LOOK {
                        looked = Instant::now();
                        match self.is_same_history(cursor).await {
                            Ok(true) => {}
                            Ok(false) => {
                                tracing::error!(cursor, "the change log has another history; start anew");
                                return;
                            }
                            Err(error) => tracing::warn!(%error, "cannot read the head of the change log"),
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot read the change log");
                    failures += 1;
                    // A wake-up does not hasten this: it says nothing of the database.
                    tokio::select! {
                        () = tokio::time::sleep(POLL * 2_u32.pow(failures.min(MAX_DOUBLINGS))) => continue,
                        () = shutdown.cancelled() => return,
                    }
                }
            }
            tokio::select! {
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                () = shutdown.cancelled() => return,
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

    async fn read_after(&self, cursor: Rev) -> Result<Option<Events>, StoreError> {
        let items = log::list_after(&mut self.0.db.read().await?, cursor, BATCH).await?;
        let Some(last) = items.last().map(|event| event.rev) else { return Ok(None) };
        Ok(Some(Events { prev: cursor, items, last }))
    }

    /// Opens a session for an edge.
    ///
    /// # Errors
    /// The database failed.
    pub async fn connect(&self, hello: &Hello) -> Result<EdgeSession, StoreError> {
        // Listen before the head is read: nothing falls between.
        let ring = self.0.ring.subscribe();
        let mut conn = self.0.db.read().await?;
        let head = log::load_head(&mut conn).await?;
        let domains = accounts::list_all_domains(&mut conn).await?;
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
        let session = self.0.sessions.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.members().insert(
            hello.edge_id.clone(),
            Member {
                region: hello.region.clone(),
                build: hello.build.clone(),
                applied: if resumes { hello.applied } else { 0 },
                rejected: Vec::new(),
                session,
                seen: Instant::now(),
            },
        );
        let welcome =
            Welcome { epoch: head.epoch, head: head.head, compacted: head.compacted, start, domains, rules };
        let mut heartbeat = tokio::time::interval(Duration::from_millis(HEARTBEAT_MS));
        heartbeat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ok(EdgeSession {
            hub: self.clone(),
            edge_id: hello.edge_id.clone(),
            session,
            welcome: Some(welcome),
            ring,
            cursor,
            heartbeat,
            beats: 0,
        })
    }

    /// Waits until every member has `rev` live, at most until `timeout` is over.
    pub async fn wait_edges(&self, rev: Rev, timeout: Duration) -> WaitReport {
        let begun = Instant::now();
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            // Registered before the look, so that an ack in between is not missed.
            let acked = self.0.acked.notified();
            let report = self.report(rev, begun);
            if report.lagging.is_empty() {
                return report;
            }
            // A lease may run out without any ack.
            let look_again = tokio::time::Instant::now() + Duration::from_millis(HEARTBEAT_MS);
            tokio::select! {
                () = acked => {}
                () = tokio::time::sleep_until(look_again.min(deadline)) => {
                    if tokio::time::Instant::now() >= deadline {
                        return self.report(rev, begun);
                    }
                }
            }
        }
    }

    fn report(&self, rev: Rev, begun: Instant) -> WaitReport {
        let mut report = WaitReport {
            rev,
            acked: 0,
            members: 0,
            lagging: Vec::new(),
            unreachable: Vec::new(),
            ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        for (edge_id, member) in self.members().iter() {
            if member.seen.elapsed() > LEASE {
                report.unreachable.push(edge_id.clone());
                continue;
            }
            report.members += 1;
            if member.applied >= rev && !member.rejected.iter().any(|rejected| rejected.rev == rev) {
                report.acked += 1;
            } else {
                report.lagging.push(edge_id.clone());
            }
        }
        report.lagging.sort_unstable();
        report.unreachable.sort_unstable();
        report
    }

    /// Every edge that was seen since the start, by name.
    #[must_use]
    pub fn edges(&self) -> Vec<EdgeStatus> {
        let head = self.head();
        let mut edges: Vec<EdgeStatus> = self
            .members()
            .iter()
            .map(|(edge_id, member)| EdgeStatus {
                edge_id: edge_id.clone(),
                region: member.region.clone(),
                build: member.build.clone(),
                reachable: member.seen.elapsed() <= LEASE,
                applied: member.applied,
                lag: head.saturating_sub(member.applied),
                silent_ms: u64::try_from(member.seen.elapsed().as_millis()).unwrap_or(u64::MAX),
                rejected: member.rejected.iter().map(|rejected| rejected.rev).collect(),
            })
            .collect();
        edges.sort_by(|a, b| a.edge_id.cmp(&b.edge_id));
        edges
    }

    /// Deletes what the log need not keep, in small steps, until nothing is left to delete.
    ///
    /// # Errors
    /// The database failed; what was deleted stays deleted.
    pub async fn compact(&self, clock: &dyn Clock) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let mut tx: Tx = self.0.db.begin().await?;
            let step = log::compact(&mut tx, clock.now().0 - KEPT_MS, KEPT_REVS, COMPACT_STEP).await?;
            tx.commit().await?;
            deleted += step;
            if step == 0 {
                return Ok(deleted);
            }
        }
    }

    fn members(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Member>> {
        // Nothing panics while it is held; a poisoned map is as good as before.
        self.0.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream of one edge.
pub struct EdgeSession {
    hub: Hub,
    edge_id: Arc<str>,
    session: u64,
    welcome: Option<Welcome>,
    ring: broadcast::Receiver<Arc<Events>>,
    cursor: Rev,
    heartbeat: tokio::time::Interval,
    beats: u64,
}

impl EdgeSession {
    /// The next message: the welcome, then events without a gap, with heartbeats between. Cancel-safe.
    ///
    /// # Errors
    /// The database failed, or control stops.
    pub async fn next(&mut self) -> Result<ToEdge, StoreError> {
        if let Some(welcome) = self.welcome.take() {
            return Ok(ToEdge::Welcome(welcome));
        }
        loop {
            let received = tokio::select! {
                biased;
                received = self.ring.recv() => Some(received),
                _ = self.heartbeat.tick() => None,
            };
            match received {
                Some(Ok(events)) if events.prev == self.cursor => {
                    self.cursor = events.last;
                    return Ok(ToEdge::Events(events));
                }
                // The session began behind these, and has had them.
                Some(Ok(events)) if events.last <= self.cursor => {}
                Some(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => {
                    if let Some(events) = self.read_log().await? {
                        return Ok(events);
                    }
                }
                Some(Err(broadcast::error::RecvError::Closed)) => return Err(StoreError::Stopped),
                None => {
                    // A heartbeat never overtakes events: what is missing goes first.
                    if self.hub.head() > self.cursor
                        && let Some(events) = self.read_log().await?
                    {
                        self.heartbeat.reset_immediately();
                        return Ok(events);
                    }
                    self.beats += 1;
                    return Ok(ToEdge::Heartbeat { seq: self.beats, head: self.cursor });
                }
            }
        }
    }

    async fn read_log(&mut self) -> Result<Option<ToEdge>, StoreError> {
        let Some(events) = self.hub.read_after(self.cursor).await? else { return Ok(None) };
        // A gap means that the log was compacted past the cursor; the edge must start anew.
        if events.items.first().is_some_and(|event| event.rev != self.cursor + 1) {
            return Ok(Some(ToEdge::Goaway {
                reason: format!("revisions after {} are no longer in the log", self.cursor),
                retry_after_ms: 0,
            }));
        }
        self.cursor = events.last;
        Ok(Some(ToEdge::Events(Arc::new(events))))
    }

    /// Takes a message of the edge.
    pub fn receive(&mut self, message: ToControl) {
        match message {
            ToControl::Ack { applied, rejected } => {
                for rejected in &rejected {
                    tracing::error!(edge = %self.edge_id, rev = rejected.rev, reason = %rejected.reason,
                        "an edge refused a change");
                }
                {
                    let mut members = self.hub.members();
                    if let Some(member) = members.get_mut(&self.edge_id).filter(|m| m.session == self.session)
                    {
                        member.applied = member.applied.max(applied);
                        member.seen = Instant::now();
                        member.rejected.extend(rejected);
                        // The newest few are enough to answer those who wait.
                        let surplus = member.rejected.len().saturating_sub(64);
                        member.rejected.drain(..surplus);
                    }
                }
                self.hub.0.acked.notify_waiters();
            }
            ToControl::Hello(_) => tracing::warn!(edge = %self.edge_id, "an edge says hello twice"),
            ToControl::Resync { applied, reason } => {
                tracing::warn!(edge = %self.edge_id, applied, reason, "an edge asks for the stream anew");
                self.cursor = applied;
            }
        }
    }
}
