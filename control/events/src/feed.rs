//! The event feed of a process: reads the event log in order and delivers to local subscribers.
//!
//! A wake-up only says that there may be new events. Between replicas it is a NOTIFY, sent by one task after a commit:
//! inside each transaction it would serialise all commits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use shared::time::{Clock, UnixMillis};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{channels::Channels, dispatch::Dispatcher};
use crate::{
    domain::event::{Event, Position, Recorded},
    metrics::FeedMetrics,
    store::{
        Ctx, Db, StoreError,
        event_log::{self, Keep},
        events::{self, Snapshot, Wakes},
    },
};
use ::actions::service::Observers;

/// The reader asks at least so often, should a wake-up be lost.
const POLL: Duration = Duration::from_millis(100);

/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Connections that its tasks use at once, one each: reading, delivering bulk events, finding the end of the log,
/// notifying other replicas, listening, trimming.
pub const CONNECTIONS: u32 = 6;

/// Events per read.
const BATCH: u32 = 500;

/// How long and how many events are kept: how far back an interrupted stream can resume.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
const KEPT_ROWS: i64 = 1_000_000;

/// How long events are kept that a reader has not delivered.
const KEPT_AT_MOST_MS: i64 = 3 * KEPT_MS;

/// Bulk events waiting for delivery; the reader waits when there are more.
const BULK_WAITING: usize = 64;

/// Least time between two queries for the end of the settled log.
const SETTLE: Duration = Duration::from_millis(20);

/// Least time between two wake-ups of other replicas, and between two reads: what is written meanwhile is batched
/// into the next one.
const GAP: Duration = Duration::from_millis(2);

/// Time between two removals of old events.
const TRIM_PERIOD: Duration = Duration::from_secs(20);

/// Events that one transaction removes.
const TRIM_STEP: u32 = 5_000;

/// Handle of the feed; cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

shared::opaque!(Feed);

struct Inner {
    /// Distinguishes its own wake-ups from those of other replicas.
    name: String,
    db: Db,
    clock: Arc<dyn Clock>,
    observers: Arc<dyn Observers>,
    wake: Notify,
    news: Notify,
    written: Notify,
    channels: Channels,
    settled: watch::Sender<Position>,
    metrics: FeedMetrics,
}

/// How far the reader is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    /// The greatest number that was seen.
    head: i64,
    /// Smaller numbers that were missing, each with the transaction from which on nobody can use it; `None` until
    /// that is known.
    missing: BTreeMap<i64, Option<i64>>,
}

impl Feed {
    /// A feed of a database.
    #[must_use]
    pub fn new(db: Db, clock: Arc<dyn Clock>, observers: Arc<dyn Observers>) -> Self {
        // Without randomness it also receives its own wake-ups, which is harmless.
        let name = getrandom::u64().map(|name| format!("{name:x}")).unwrap_or_default();
        Self(Arc::new(Inner {
            name,
            db,
            clock,
            observers,
            wake: Notify::new(),
            news: Notify::new(),
            written: Notify::new(),
            channels: Channels::default(),
            settled: watch::Sender::new(Position::START),
            metrics: FeedMetrics::default(),
        }))
    }

    /// The subscriptions of this process.
    #[must_use]
    pub fn channels(&self) -> &Channels {
        &self.0.channels
    }

    /// Its counters.
    #[must_use]
    pub fn metrics(&self) -> &FeedMetrics {
        &self.0.metrics
    }

    /// The end of the settled log, as it moves.
    #[must_use]
    pub fn settled(&self) -> watch::Receiver<Position> {
        self.0.settled.subscribe()
    }

    /// Signals that an event was committed here.
    pub fn wake(&self) {
        self.0.wake.notify_one();
        self.0.news.notify_one();
        self.0.written.notify_one();
    }

    /// Reads and delivers until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            let (bulk, waiting) = mpsc::channel(BULK_WAITING);
            tokio::join!(
                self.read(bulk),
                self.deliver_bulk(waiting),
                self.announce(),
                self.listen(),
                self.settle(),
                self.trim()
            );
        };
        shutdown.run_until_cancelled(work).await;
    }

    async fn read(&self, bulk: mpsc::Sender<Recorded>) {
        let mut place = Place::default();
        loop {
            match self.step(&mut place, &bulk).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    self.0.metrics.read_failures.inc();
                    tracing::warn!(%error, "events cannot be read");
                    tokio::time::sleep(FAILURE_PAUSE).await;
                    continue;
                }
            }
            tokio::time::sleep(GAP).await;
            // The end of the time is no fault: it is the floor under lost wake-ups.
            let _ = tokio::time::timeout(POLL, self.0.wake.notified()).await;
        }
    }

    /// Reads once; returns whether there is more to read.
    async fn step(&self, place: &mut Place, bulk: &mpsc::Sender<Recorded>) -> Result<bool, StoreError> {
        let mut conn = self.0.db.read().await?;
        if self.0.channels.is_empty() {
            // Existing rows are not delivered: a subscriber receives what happens after it subscribed, and what was
            // committed just before and is not read yet.
            *place = Place { head: events::find_head(&mut conn).await?, missing: BTreeMap::new() };
            return Ok(false);
        }
        let before = if place.missing.is_empty() { None } else { events::find_snapshot(&mut conn).await? };
        let asked: Vec<i64> = place.missing.keys().copied().collect();
        let rows = events::list_after(&mut conn, place.head, &asked, BATCH).await?;
        let is_full = rows.len() as u64 >= u64::from(BATCH);
        let seen: Vec<i64> = rows.iter().map(|(seq, _)| *seq).collect();
        if place.pass(&seen, before) {
            let after = events::find_snapshot(&mut conn).await?;
            place.bound(after);
        }
        let dispatcher = self.dispatcher();
        for recorded in rows.into_iter().filter_map(|(_, recorded)| recorded) {
            if recorded.quiet.notifications {
                continue;
            }
            let at = recorded.at;
            match &recorded.event {
                Event::Properties { .. } => dispatcher.deliver_properties(&mut conn, &recorded).await?,
                Event::Action(action) => dispatcher.deliver_action(&mut conn, &recorded, action).await?,
                // A subscriber that is slow to take thousands of them must not delay the others.
                Event::Actions { .. } | Event::Redirections { .. } if dispatcher.has_any(&recorded) => {
                    // The other end lives as long as this one.
                    let _ = bulk.send(recorded).await;
                }
                Event::Actions { .. } | Event::Redirections { .. } => {}
                Event::Job { .. } => dispatcher.deliver_job(&recorded),
                // It has no topic.
                Event::PrintOrder { .. }
                | Event::ShortDomain(..)
                | Event::Certificate(..)
                | Event::LinkChange { .. }
                | Event::Report(..) => {}
            }
            let delay = self.0.clock.now().0.saturating_sub(at.0).max(0);
            self.0.metrics.delay_seconds.observe(delay as f64 / 1_000.0);
        }
        Ok(is_full)
    }

    fn dispatcher(&self) -> Dispatcher<'_> {
        Dispatcher { channels: &self.0.channels, metrics: &self.0.metrics, observers: &*self.0.observers }
    }

    /// Delivers actions of jobs and changes of redirections, in chunks.
    async fn deliver_bulk(&self, mut waiting: mpsc::Receiver<Recorded>) {
        while let Some(recorded) = waiting.recv().await {
            let dispatcher = self.dispatcher();
            dispatcher.deliver_redirections(&recorded).await;
            if let Err(error) = dispatcher.deliver_actions(&self.0.db, &recorded).await {
                self.0.metrics.read_failures.inc();
                tracing::warn!(%error, "actions of a job were not delivered to subscribers");
            }
        }
    }

    /// Finds the end of the settled log.
    async fn settle(&self) {
        loop {
            let head = async { event_log::find_head(&mut self.0.db.read().await?).await };
            match head.await {
                Ok(head) => {
                    self.0.settled.send_if_modified(|known| {
                        head > *known && {
                            *known = head;
                            true
                        }
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "the end of the log is not known");
                    tokio::time::sleep(FAILURE_PAUSE).await;
                }
            }
            tokio::time::sleep(SETTLE).await;
            // New rows may settle a little later, so the poll interval is needed here too.
            let _ = tokio::time::timeout(POLL, self.0.news.notified()).await;
        }
    }

    /// Wakes the other replicas after commits here, one wake-up at a time for as many as there were.
    async fn announce(&self) {
        if matches!(self.0.db, Db::Sqlite { .. }) {
            return;
        }
        loop {
            self.0.written.notified().await;
            let sent = async { events::notify(&mut self.0.db.read().await?, &self.0.name).await };
            if let Err(error) = sent.await {
                // The other replicas will find the rows by polling.
                tracing::debug!(%error, "other replicas were not woken");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
            tokio::time::sleep(GAP).await;
        }
    }

    /// Is woken by other replicas.
    async fn listen(&self) {
        while let Err(error) = self.hear().await {
            tracing::debug!(%error, "wake-ups of other replicas are not received");
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
    }

    /// Listens for wake-ups until the connection fails; returns at once in a single process.
    async fn hear(&self) -> Result<(), StoreError> {
        let Some(mut wakes) = Wakes::open(&self.0.db).await? else { return Ok(()) };
        loop {
            let name = wakes.next().await?;
            // It woke itself before it notified the others.
            if name.is_none_or(|name| name.is_empty() || name != self.0.name) {
                self.0.wake.notify_one();
                self.0.news.notify_one();
            }
        }
    }

    async fn trim(&self) {
        let mut ticks = tokio::time::interval(TRIM_PERIOD);
        loop {
            ticks.tick().await;
            loop {
                let step = async {
                    let now = self.0.clock.now().0;
                    let keep = Keep {
                        since: UnixMillis(now - KEPT_MS),
                        rows: KEPT_ROWS,
                        at_most_since: UnixMillis(now - KEPT_AT_MOST_MS),
                    };
                    let mut tx = self.0.db.begin(&Ctx::default()).await?;
                    let gone = event_log::trim(&mut tx, keep, TRIM_STEP).await?;
                    tx.commit().await?;
                    Ok::<u64, StoreError>(gone)
                };
                match step.await {
                    Ok(gone) if gone >= u64::from(TRIM_STEP) => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(%error, "old events were not deleted; retried later");
                        break;
                    }
                }
            }
        }
    }
}

impl Place {
    /// Moves past what was read; returns whether there are gaps whose transaction is unknown.
    fn pass(&mut self, seen: &[i64], before: Option<Snapshot>) -> bool {
        for seq in seen {
            self.missing.remove(seq);
        }
        // Numbers that no transaction can use any more were rolled back.
        if let Some(before) = before {
            self.missing.retain(|_, bound| bound.is_none_or(|bound| before.oldest < bound));
        }
        for seq in seen.iter().copied().filter(|seq| *seq > self.head).collect::<Vec<_>>() {
            self.missing.extend((self.head + 1..seq).map(|gap| (gap, None)));
            self.head = seq;
        }
        self.missing.values().any(Option::is_none)
    }

    /// Notes who can have the numbers that were just found missing.
    fn bound(&mut self, after: Option<Snapshot>) {
        match after {
            Some(after) => {
                for bound in self.missing.values_mut() {
                    bound.get_or_insert(after.next);
                }
            }
            // Numbers become visible in order: missing ones were deleted.
            None => self.missing.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_watched_until_no_transaction_can_fill_it() {
        let snapshot = |oldest, next| Some(Snapshot { oldest, next });
        let mut place = Place { head: 10, missing: BTreeMap::new() };
        assert!(!place.pass(&[11, 12], None));
        // 13 and 15 are held by transactions 100 and 101 at most; 102 is the next.
        assert!(place.pass(&[14, 16], None));
        place.bound(snapshot(100, 102));
        assert_eq!(place.missing.keys().copied().collect::<Vec<_>>(), [13, 15]);
        // One comes late; the other may still.
        assert!(!place.pass(&[13], snapshot(101, 103)));
        assert_eq!(place.missing.keys().copied().collect::<Vec<_>>(), [15]);
        // All that could have it are over, and it did not come.
        assert!(!place.pass(&[], snapshot(102, 110)));
        assert_eq!(place, Place { head: 16, missing: BTreeMap::new() });
    }

    #[test]
    fn gaps_are_ignored_where_numbers_become_visible_in_order() {
        let mut place = Place { head: 1, missing: BTreeMap::new() };
        assert!(place.pass(&[5], None));
        place.bound(None);
        assert_eq!(place, Place { head: 5, missing: BTreeMap::new() });
    }
}
