//! The feed of a process: reads what happened, in order, and tells who subscribed.
//!
//! A wake-up only says that something may be there. Between replicas it is a NOTIFY, which is sent after a
//! commit by one task: inside of each transaction it would make all commits wait for each other.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use shared::time::{Clock, UnixMillis};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::channels::{About, Channel, Channels, Heard};
use crate::{
    domain::{
        event::{ActionEvent, Event, Recorded, action_message, point_message},
        property::Point,
        redirection::Scopes,
    },
    metrics::FeedMetrics,
    store::{
        Db, StoreError, action_lists,
        events::{self, Snapshot, Wakes},
    },
};

/// The reader asks at least so often, should a wake-up be lost.
const POLL: Duration = Duration::from_millis(100);

/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Events that are read at once.
const BATCH: u32 = 500;

/// How long events are kept: longer than any transaction runs, and than a reader may be away.
const KEPT_MS: i64 = 10 * 60 * 1_000;

/// Time between two removals of old events.
const TRIM_PERIOD: Duration = Duration::from_secs(20);

/// Events that one transaction removes.
const TRIM_STEP: u32 = 5_000;

/// Handle of the feed; cheap to clone.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Feed")
    }
}

struct Inner {
    db: Db,
    clock: Arc<dyn Clock>,
    wake: Notify,
    written: Notify,
    channels: Channels,
    metrics: FeedMetrics,
}

/// How far the reader is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place {
    /// The greatest number that was seen.
    head: i64,
    /// Numbers below it that were not, each with the transaction from which on nobody can have taken it;
    /// `None` until that is known.
    missing: BTreeMap<i64, Option<i64>>,
}

impl Feed {
    /// A feed of a database.
    #[must_use]
    pub fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            db,
            clock,
            wake: Notify::new(),
            written: Notify::new(),
            channels: Channels::default(),
            metrics: FeedMetrics::default(),
        }))
    }

    /// The subscriptions of this process.
    #[must_use]
    pub fn channels(&self) -> &Channels {
        &self.0.channels
    }

    /// What it counted.
    #[must_use]
    pub fn metrics(&self) -> &FeedMetrics {
        &self.0.metrics
    }

    /// Says that an event was committed here.
    pub fn wake(&self) {
        self.0.wake.notify_one();
        self.0.written.notify_one();
    }

    /// Reads and tells until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            tokio::join!(self.read(), self.announce(), self.listen(), self.trim());
        };
        shutdown.run_until_cancelled(work).await;
    }

    async fn read(&self) {
        let mut place = Place::default();
        loop {
            match self.step(&mut place).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    self.0.metrics.read_failures.inc();
                    tracing::warn!(%error, "events cannot be read");
                    tokio::time::sleep(FAILURE_PAUSE).await;
                    continue;
                }
            }
            // The end of the time is no fault: it is the floor under lost wake-ups.
            let _ = tokio::time::timeout(POLL, self.0.wake.notified()).await;
        }
    }

    /// Reads once; gives whether there is more to read.
    async fn step(&self, place: &mut Place) -> Result<bool, StoreError> {
        let mut conn = self.0.db.read().await?;
        if self.0.channels.is_empty() {
            // Nobody hears what is already there: who subscribes hears what begins afterwards.
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
        for recorded in rows.into_iter().filter_map(|(_, recorded)| recorded) {
            if let Event::Action(action) = &recorded.event {
                let channels = action_channels(action);
                if self.0.channels.has_any(recorded.account, &channels) {
                    let found = action_lists::find(&mut conn, recorded.account, action.id).await?;
                    // One that was removed meanwhile is not told any more.
                    if let Some(found) = found {
                        self.tell_action(&recorded, action, channels, &action_message(&found));
                    }
                }
            } else {
                self.tell_properties(&recorded);
            }
            let delay = self.0.clock.now().0.saturating_sub(recorded.at.0).max(0);
            self.0.metrics.delay_seconds.observe(delay as f64 / 1_000.0);
        }
        Ok(is_full)
    }

    fn tell_properties(&self, recorded: &Recorded) {
        let Event::Properties { owner, resource, points } = &recorded.event else { return };
        let origin: Option<Arc<str>> = recorded.origin.as_deref().map(Arc::from);
        self.tell(recorded, Channel::Properties(*owner, resource.clone()), None, || Heard {
            last: "properties".into(),
            payload: array(points.iter()),
            origin: origin.clone(),
        });
        for (key, points) in by_key(points) {
            let heard =
                || Heard { last: key.into(), payload: array(points.iter().copied()), origin: origin.clone() };
            let one = Channel::Property(*owner, resource.clone(), key.to_owned());
            self.tell(recorded, one, None, heard);
            self.tell(recorded, Channel::EachProperty(*owner, resource.clone()), None, heard);
        }
    }

    fn tell_action(
        &self,
        recorded: &Recorded,
        action: &ActionEvent,
        channels: Vec<Channel>,
        message: &Value,
    ) {
        let heard = Heard {
            last: action.kind.as_str().into(),
            payload: Bytes::from(message.to_string()),
            origin: recorded.origin.as_deref().map(Arc::from),
        };
        let whose = (action.thng.as_deref().unwrap_or_default(), action.scopes.as_ref());
        for channel in channels {
            self.tell(recorded, channel, Some(whose), || heard.clone());
        }
    }

    fn tell(
        &self,
        recorded: &Recorded,
        channel: Channel,
        whose: Option<(&str, Option<&Scopes>)>,
        heard: impl FnOnce() -> Heard,
    ) {
        let (told, lost) = self.0.channels.tell(recorded.account, channel, whose, heard);
        self.0.metrics.told.inc_by(told);
        self.0.metrics.lost.inc_by(lost);
    }

    /// Wakes the other replicas after commits here, one wake-up at a time for as many as there were.
    async fn announce(&self) {
        if matches!(self.0.db, Db::Sqlite { .. }) {
            return;
        }
        loop {
            self.0.written.notified().await;
            let sent = async { events::notify(&mut self.0.db.read().await?).await };
            if let Err(error) = sent.await {
                // The others' poll finds what this did not tell.
                tracing::debug!(%error, "other replicas were not woken");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }

    /// Is woken by other replicas.
    async fn listen(&self) {
        while let Err(error) = self.hear().await {
            tracing::debug!(%error, "wake-ups of other replicas are not heard");
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
    }

    /// Hears wake-ups until the connection fails; returns at once where there is one process.
    async fn hear(&self) -> Result<(), StoreError> {
        let Some(mut wakes) = Wakes::open(&self.0.db).await? else { return Ok(()) };
        loop {
            wakes.next().await?;
            self.0.wake.notify_one();
        }
    }

    async fn trim(&self) {
        let mut ticks = tokio::time::interval(TRIM_PERIOD);
        loop {
            ticks.tick().await;
            loop {
                let step = async {
                    let before = UnixMillis(self.0.clock.now().0 - KEPT_MS);
                    let mut tx = self.0.db.begin().await?;
                    let gone = events::trim(&mut tx, before, TRIM_STEP).await?;
                    tx.commit().await?;
                    Ok::<u64, StoreError>(gone)
                };
                match step.await {
                    Ok(gone) if gone >= u64::from(TRIM_STEP) => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(%error, "old events were not removed and are tried again later");
                        break;
                    }
                }
            }
        }
    }
}

impl Place {
    /// Moves past what was read; gives whether numbers are missing of which it is not known who has them.
    fn pass(&mut self, seen: &[i64], before: Option<Snapshot>) -> bool {
        for seq in seen {
            self.missing.remove(seq);
        }
        // What nobody can have any more was rolled back.
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
            // Numbers are seen in their order: what is missing was removed.
            None => self.missing.clear(),
        }
    }
}

fn array<'a>(points: impl Iterator<Item = &'a Point>) -> Bytes {
    Bytes::from(Value::Array(points.map(point_message).collect()).to_string())
}

/// The points of each key, in order.
fn by_key(points: &[Point]) -> BTreeMap<&str, Vec<&Point>> {
    let mut all: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
    for point in points {
        all.entry(point.key.as_str()).or_default().push(point);
    }
    all
}

fn action_channels(action: &ActionEvent) -> Vec<Channel> {
    let about = [
        Some(About::Anything),
        action.thng.clone().map(About::Thng),
        action.product.clone().map(About::Product),
        action.collection.clone().map(About::Collection),
    ];
    let both = |about: About| {
        [Channel::Actions(about.clone(), None), Channel::Actions(about, Some(action.kind.clone()))]
    };
    about.into_iter().flatten().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_watched_until_nobody_can_fill_it() {
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
    fn where_numbers_are_seen_in_order_a_gap_is_nothing() {
        let mut place = Place { head: 1, missing: BTreeMap::new() };
        assert!(place.pass(&[5], None));
        place.bound(None);
        assert_eq!(place, Place { head: 5, missing: BTreeMap::new() });
    }
}
