//! Keeps the Redis view of a region up to date: follows the change log, with one active publisher at a time.
//!
//! Every replica runs one. A lease in the database makes one of them active, and its term makes Redis reject a former
//! holder that does not know yet. Redis may be down for any time: writes and the change stream do not depend on it.

mod fault;
mod rebuilding;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use region_redis::RedisUrl;
use shared::wire::stream::{Epoch, Event, Events, Rev};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use self::fault::Fault;
use super::{
    hub::Hub,
    link::{Link, Policy, until_answers},
    publisher_stats::PublisherStats,
    view::{Batch, SetupBook, View, ViewError},
};
use crate::store::{
    Ctx, Db, StoreError, log,
    publishers::{self, Lease},
};

/// How long a lease holds without being renewed: so long the view stands still when its publisher dies.
const LEASE: Duration = Duration::from_secs(3);

/// Time between two renewals: two may fail.
const RENEW: Duration = Duration::from_secs(1);

/// How often waiting publishers check the lease.
const LOOK: Duration = Duration::from_millis(500);

/// How often the view is checked while nothing changes: a flush is detected within this time.
const IDLE: Duration = Duration::from_millis(250);

/// Shortest and longest pause after a failure.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_DOUBLINGS: u32 = 6;

/// Most revisions per read.
const BATCH: u32 = 500;

/// Size at which a script is closed: Redis serves no other client while one runs, which takes some milliseconds.
const SCRIPT_BYTES: usize = 1 << 20;

/// Attempts to bring a view up to date before it is retried later.
const ROUNDS: u32 = 5;

/// Where the view is and who writes it.
#[derive(Debug, Clone)]
pub struct PublisherConfig {
    /// The region that the view serves.
    pub region: String,
    /// Name of this publisher, unlike any other's: a new one for each start.
    pub owner: String,
    /// The region's Redis.
    pub redis: RedisUrl,
    /// The authority that signed its certificates, as PEM; `None` means those of the system.
    pub ca: Option<Vec<u8>>,
    /// Into how many shards the view is cut: 1, or 16 on a cluster; 1 to [`shared::wire::view::MAX_SHARDS`].
    pub shards: u16,
}

/// The publisher of one region in this process.
pub struct Publisher {
    db: Db,
    hub: Hub,
    config: PublisherConfig,
    stats: PublisherStats,
    /// How far each shard was seen, in which history: less than that means a rollback.
    known: Option<(Epoch, Vec<Rev>)>,
    /// Whether it was logged that the eviction policy cannot be read.
    said_unknown: bool,
    /// The fault that was logged and lasts.
    logged: Option<String>,
}

/// What leading needs at each step.
struct Lead {
    lease: Lease,
    renewed: Instant,
    /// Requests for a rebuild that no finished one has answered.
    asked: Option<u64>,
    epoch: Epoch,
    view: View,
    book: SetupBook,
    book_rev: Rev,
}

impl Publisher {
    /// A publisher over a log that was set up; [`Self::run`] does the work.
    #[must_use]
    pub fn new(db: Db, hub: Hub, config: PublisherConfig, stats: PublisherStats) -> Self {
        Self { db, hub, config, stats, known: None, said_unknown: false, logged: None }
    }

    /// Publishes, or waits for the lease, until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut failures = 0;
        loop {
            let pause = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                acquired = self.acquire() => match acquired {
                    Ok(Some(lease)) => {
                        let begun = Instant::now();
                        self.stats.leading.set(1);
                        let fault = self.lead(lease, &shutdown).await;
                        self.stats.leading.set(0);
                        let Some(fault) = fault else { return };
                        // What failed after a while of working is a new failure.
                        failures = if begun.elapsed() > LEASE * 4 { 1 } else { failures + 1 };
                        self.report(&fault);
                        let pause = if matches!(fault, Fault::Deposed) { LOOK } else { self.pause(failures) };
                        if matches!(fault, Fault::View(ViewError::Redis(_))) {
                            // The pause protects the database; a Redis that is back, and may be empty, is noticed at
                            // once.
                            tokio::select! {
                                () = shutdown.cancelled() => return,
                                () = tokio::time::sleep(pause) => {}
                                () = until_answers(&self.config.redis, self.config.ca.as_deref()) => {}
                            }
                            continue;
                        }
                        pause
                    }
                    Ok(None) => {
                        failures = 0;
                        LOOK
                    }
                    Err(error) => {
                        tracing::warn!(%error, region = self.config.region, "cannot ask for the publisher's lease");
                        failures += 1;
                        self.pause(failures)
                    }
                },
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Grows to 6.4 s; replicas differ by up to a quarter of it.
    fn pause(&self, failures: u32) -> Duration {
        let pause = MIN_PAUSE * 2_u32.pow(failures.saturating_sub(1).min(MAX_DOUBLINGS));
        let spread = crc(&self.config.owner, failures) % 256;
        pause + pause * spread / 1_024
    }

    /// Counts a fault each time, and logs it once for as long as it lasts.
    fn report(&mut self, fault: &Fault) {
        let (region, error) = (&self.config.region, fault.to_string());
        let is_logged = self.logged.as_ref() == Some(&error);
        match fault {
            Fault::Deposed => {
                tracing::info!(region, "another publisher took over");
                return;
            }
            Fault::Evicts(_) => {
                self.stats.refused_policy.inc();
                if !is_logged {
                    tracing::error!(region, error, "the view is not written");
                }
            }
            Fault::View(ViewError::Unreadable(_)) => {
                self.stats.failures.inc();
                if !is_logged {
                    tracing::error!(region, error, "the view stands still");
                }
            }
            Fault::View(_) | Fault::Store(_) | Fault::Unsettled => {
                self.stats.failures.inc();
                if !is_logged {
                    tracing::warn!(region, error, "publishing failed; retried until it works");
                }
            }
        }
        self.logged = Some(error);
    }

    async fn acquire(&self) -> Result<Option<Lease>, StoreError> {
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let lease = publishers::acquire(&mut tx, &self.config.region, &self.config.owner, LEASE).await?;
        tx.commit().await?;
        Ok(lease)
    }

    /// Leads until the end; `None` after `shutdown`.
    async fn lead(&mut self, lease: Lease, shutdown: &CancellationToken) -> Option<Fault> {
        let fault = tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            result = self.publish(&lease) => match result {
                Ok(never) => match never {},
                Err(fault) => Some(fault),
            },
        };
        if !matches!(fault, Some(Fault::Deposed)) {
            self.release(&lease).await;
        }
        fault
    }

    /// Releases the lease: at shutdown, and if this replica cannot reach Redis but others may.
    async fn release(&self, lease: &Lease) {
        let released = async {
            let mut tx = self.db.begin(&Ctx::default()).await?;
            publishers::release(&mut tx, lease).await?;
            tx.commit().await
        };
        // Otherwise it runs out by itself.
        if let Err(error) = released.await {
            tracing::debug!(%error, "the publisher's lease was not released");
        }
    }

    async fn publish(&mut self, lease: &Lease) -> Result<std::convert::Infallible, Fault> {
        // Before the log is read: nothing falls between.
        let mut ring = self.hub.follow();
        let link = Link::connect(&self.config.redis, self.config.ca.as_deref()).await?;
        self.check_policy(&link).await?;
        let head = log::load_head(&mut self.db.read().await?).await?;
        let mut lead = Lead {
            lease: lease.clone(),
            renewed: Instant::now(),
            asked: None,
            epoch: head.epoch,
            view: View::open(link, self.config.shards).await?,
            book: SetupBook::default(),
            book_rev: 0,
        };
        self.renew(&mut lead).await?;
        self.settle(&mut lead).await?;
        let (mut pending, mut is_behind) = (VecDeque::new(), true);
        loop {
            if lead.renewed.elapsed() >= RENEW {
                self.renew(&mut lead).await?;
                if lead.asked.is_some() {
                    (pending, is_behind) = (VecDeque::new(), true);
                    self.rebuild(&mut lead, "an operator asked for it").await?;
                }
            }
            let step = self.step(&mut lead, &mut ring, &mut pending, &mut is_behind).await;
            match step {
                Ok(()) => {}
                Err(Fault::View(ViewError::Refused)) => {
                    (pending, is_behind) = (VecDeque::new(), true);
                    lead.view.reload().await?;
                    self.settle(&mut lead).await?;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Writes the next batch, or waits for it.
    async fn step(
        &mut self,
        lead: &mut Lead,
        ring: &mut broadcast::Receiver<Arc<Events>>,
        pending: &mut VecDeque<Event>,
        is_behind: &mut bool,
    ) -> Result<(), Fault> {
        let cursor = lead.view.cursor();
        if pending.is_empty() {
            if *is_behind {
                let events = log::list_after(&mut self.db.read().await?, &lead.epoch, cursor, BATCH).await?;
                if events.first().is_some_and(|event| event.rev != cursor + 1) {
                    return self.rebuild(lead, "the log no longer reaches back to it").await;
                }
                *is_behind = !events.is_empty();
                *pending = events.into();
            } else {
                match tokio::time::timeout(IDLE, ring.recv()).await {
                    Ok(Ok(events)) if events.prev == cursor => *pending = events.items.clone().into(),
                    Ok(Ok(events)) if events.last <= cursor => {}
                    Ok(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => *is_behind = true,
                    Ok(Err(broadcast::error::RecvError::Closed)) => return Err(StoreError::Stopped.into()),
                    Err(_elapsed) => {
                        if !lead.view.is_as_left().await? {
                            return Err(ViewError::Refused.into());
                        }
                    }
                }
            }
        }
        let book_rev = lead.book_rev;
        let taken = Batch::take(pending, &mut lead.book, book_rev, self.config.shards, SCRIPT_BYTES)?;
        let Some(batch) = taken else { return Ok(()) };
        lead.view.advance(lead.lease.term, Some(&batch)).await?;
        lead.book_rev = lead.book_rev.max(batch.last);
        self.stats.batches.inc();
        self.stats.keys_written.inc_by(batch.len() as u64);
        self.note(lead);
        Ok(())
    }

    fn note(&mut self, lead: &Lead) {
        if self.logged.take().is_some() {
            tracing::info!(region = self.config.region, "publishing works again");
        }
        let watermark = lead.view.cursor();
        self.stats.watermark.set(i64::try_from(watermark).unwrap_or(i64::MAX));
        self.known = Some((lead.epoch.clone(), lead.view.watermarks()));
    }

    /// Renews the lease, and checks that the log still has the epoch that is followed.
    async fn renew(&self, lead: &mut Lead) -> Result<(), Fault> {
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let renewed = publishers::renew(&mut tx, &lead.lease, LEASE).await?;
        let head = log::load_head(&mut tx).await?;
        tx.commit().await?;
        lead.renewed = Instant::now();
        let rebuilds = renewed.ok_or(Fault::Deposed)?;
        lead.asked = (rebuilds.asked > rebuilds.done).then_some(rebuilds.asked);
        if head.epoch != lead.epoch {
            lead.epoch = head.epoch;
            return Err(Fault::Unsettled);
        }
        Ok(())
    }

    /// Brings the view into a state that can be continued under the lease's term, if necessary by a rebuild.
    async fn settle(&mut self, lead: &mut Lead) -> Result<(), Fault> {
        for _ in 0..ROUNDS {
            if lead.view.highest_term() > lead.lease.term {
                self.raise(lead).await?;
            }
            let head = log::load_head(&mut self.db.read().await?).await?;
            lead.epoch = head.epoch.clone();
            let known = self.known.as_ref().filter(|(epoch, _)| *epoch == head.epoch);
            let known = known.map_or(&[][..], |(_, known)| known);
            if let Some(fault) = lead.view.find_fault(&head.epoch, head.compacted, head.head, known) {
                return self.rebuild(lead, fault).await;
            }
            let Some((rev, book)) = lead.view.load_setup().await? else {
                return self.rebuild(lead, "it holds no setup").await;
            };
            (lead.book_rev, lead.book) = (rev, book);
            match lead.view.advance(lead.lease.term, None).await {
                Ok(()) => {
                    self.note(lead);
                    return Ok(());
                }
                Err(ViewError::Refused) => lead.view.reload().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Fault::Unsettled)
    }

    async fn raise(&self, lead: &mut Lead) -> Result<(), Fault> {
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let raised = publishers::raise(&mut tx, &lead.lease, lead.view.highest_term()).await?;
        tx.commit().await?;
        lead.lease = raised.ok_or(Fault::Deposed)?;
        Ok(())
    }

    async fn check_policy(&mut self, link: &Link) -> Result<(), Fault> {
        match link.eviction_policy().await? {
            Policy::NoEviction => Ok(()),
            Policy::Evicts(policy) => Err(Fault::Evicts(policy)),
            Policy::Unknown => {
                if !self.said_unknown {
                    self.said_unknown = true;
                    tracing::warn!(
                        region = self.config.region,
                        "the maxmemory-policy of Redis cannot be read: it must be noeviction"
                    );
                }
                Ok(())
            }
        }
    }
}

fn crc(owner: &str, turn: u32) -> u32 {
    owner.bytes().fold(turn, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
}
