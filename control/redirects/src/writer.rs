//! The single task that writes redirections: many requests share a transaction and its fsync.
//!
//! Commits are serial, because each holds the row lock of the log's head to its end (`control/README.md`, "Change
//! log"). A group takes urgent single changes, or steps of imports and the urgent changes that came meanwhile, until its time is
//! used up. Beside urgent changes it has one step, which is short: no urgent change waits for a step that began later. When no step
//! was written for a while, one goes first. In each lane that account is next that has used the least time. Each request has its own
//! savepoint, so a refused one does not affect the others.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use kernel::{FairQueue, batch_size::AdaptiveBatchSize};
use shared::{id::AccountId, wire::stream::Rev};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServiceError,
    metrics::WriterMetrics,
    service::{Readers, capacity::WAITING_CHANGES},
    store::{Ctx, Db, Group, StoreError, Tx, log},
};

/// Longest run of one transaction before it commits, but for its last request: an urgent change waits for at
/// most one such group.
const GROUP_TIME: Duration = Duration::from_millis(20);

/// Most requests in one transaction.
const GROUP_SIZE: usize = 256;

/// Most revisions of a transaction before it commits, but for those of its last request: what it has to write then is kept in
/// memory, some KiB for each.
const GROUP_REVS: u64 = 2_000;

/// How long steps of imports are short after an urgent change: somebody changes links one after the other.
const BESIDE: Duration = Duration::from_millis(200);

/// How long a step of an import waits at most while urgent changes come all the time, but for one group: that leaves imports
/// about a tenth of the time.
const BULK_WAIT: Duration = Duration::from_millis(100);

/// Which requests go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// A change that somebody waits for.
    Urgent,
    /// The first step of an import, or a long list of changes.
    Bulk,
    /// A further step of an import, which waits for room: an import is not abandoned half way because of later
    /// requests.
    Begun,
}

type Work = Box<dyn for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Finish> + Send>;

/// The completion of a request: `keep` says whether its savepoint is kept.
struct Finish {
    keep: bool,
    settle: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

/// Handle of the writer task.
#[derive(Debug, Clone)]
pub struct Writer {
    urgent: mpsc::Sender<(AccountId, Work)>,
    bulk: mpsc::Sender<(AccountId, Work)>,
    metrics: WriterMetrics,
    batch_size: Arc<AdaptiveBatchSize>,
}

/// The other end of a [`Writer`], to be run once.
pub struct WriterTask {
    urgent: mpsc::Receiver<(AccountId, Work)>,
    bulk: mpsc::Receiver<(AccountId, Work)>,
    metrics: WriterMetrics,
    batch_size: Arc<AdaptiveBatchSize>,
}

/// The task at work.
struct Lanes {
    urgent: FairQueue<AccountId, Work>,
    bulk: FairQueue<AccountId, Work>,
    metrics: WriterMetrics,
    batch_size: Arc<AdaptiveBatchSize>,
    /// When the last urgent change was written.
    urgent_at: Option<Instant>,
    /// When the last step was written.
    bulk_at: Instant,
}

/// Creates a writer and its task.
#[must_use]
pub fn writer() -> (Writer, WriterTask) {
    let (urgent, urgent_in) = mpsc::channel(WAITING_CHANGES.0);
    let (bulk, bulk_in) = mpsc::channel(WAITING_CHANGES.1);
    let metrics = WriterMetrics::default();
    let batch_size: Arc<AdaptiveBatchSize> = Arc::default();
    let task = WriterTask {
        urgent: urgent_in,
        bulk: bulk_in,
        metrics: metrics.clone(),
        batch_size: batch_size.clone(),
    };
    (Writer { urgent, bulk, metrics, batch_size }, task)
}

impl Writer {
    /// Counters of the writer.
    #[must_use]
    pub fn metrics(&self) -> &WriterMetrics {
        &self.metrics
    }

    /// How much of an import one step takes.
    #[must_use]
    pub fn batch_size(&self) -> &Arc<AdaptiveBatchSize> {
        &self.batch_size
    }

    /// Runs `work` of an account inside a shared transaction; returns after its commit.
    ///
    /// The transaction holds the order of changes from before `work`: what it reads of redirections does not change
    /// until the commit, whatever other replicas do. A request whose caller has left before it starts is skipped, so
    /// that an abandoned request is not executed after its repeat.
    ///
    /// # Errors
    /// The error of `work` (then nothing of it stays), or that the commit failed or the lane is full.
    pub async fn submit<T, F>(
        &self,
        ctx: &Ctx,
        (account, lane): (AccountId, Lane),
        work: F,
    ) -> Result<T, ServiceError>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a mut Tx) -> BoxFuture<'a, Result<T, ServiceError>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let ctx = ctx.clone();
        let work: Work = Box::new(move |tx| {
            Box::pin(async move {
                if answer.is_closed() {
                    return Finish { keep: false, settle: Box::new(|_| ()) };
                }
                let claim = ctx.claim();
                let shared = tx.set_ctx(ctx);
                // A panic is one request's fault: without this it would end the writer, and the process.
                let result = AssertUnwindSafe(work(tx))
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|_| Err(ServiceError::Internal("a write panicked".to_owned())));
                let result = match (result, claim) {
                    (Ok(value), Some(claim)) => {
                        claim.write(tx).await.map(|()| value).map_err(ServiceError::from)
                    }
                    (result, _) => result,
                };
                tx.set_ctx(shared);
                let keep = result.is_ok();
                // A caller that left gets no answer; the change stays.
                let settle = Box::new(move |committed: Result<(), StoreError>| {
                    let _ = answer.send(match committed {
                        Ok(()) => result,
                        Err(error) => result.and(Err(error.into())),
                    });
                });
                Finish { keep, settle }
            })
        });
        let queue = match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk | Lane::Begun => &self.bulk,
        };
        if lane == Lane::Begun {
            queue.send((account, work)).await.map_err(|_| StoreError::Stopped)?;
        } else {
            queue.try_send((account, work)).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => {
                    self.metrics.refused.inc();
                    StoreError::Busy
                }
                mpsc::error::TrySendError::Closed(_) => StoreError::Stopped,
            })?;
        }
        answered.await.unwrap_or(Err(StoreError::Stopped.into()))
    }
}

impl WriterTask {
    /// Writes until `shutdown` and the queues are empty.
    pub async fn run(self, db: Db, readers: Arc<dyn Readers>, shutdown: CancellationToken) {
        let Self { urgent, bulk, metrics, batch_size } = self;
        let urgent = FairQueue::new(urgent, WAITING_CHANGES.0);
        let bulk = FairQueue::new(bulk, WAITING_CHANGES.1);
        let lanes = Lanes { urgent, bulk, metrics, batch_size, urgent_at: None, bulk_at: Instant::now() };
        lanes.run(db, readers, shutdown).await;
    }
}

impl Lanes {
    async fn run(mut self, db: Db, readers: Arc<dyn Readers>, shutdown: CancellationToken) {
        loop {
            let overdue = if self.bulk_at.elapsed() < BULK_WAIT { None } else { self.bulk.try_next() };
            let (first, is_bulk) = match overdue {
                Some(work) => (work, true),
                None => tokio::select! {
                    biased;
                    Some(work) = self.urgent.next() => (work, false),
                    Some(work) = self.bulk.next() => (work, true),
                    () = shutdown.cancelled() => {
                        self.urgent.close();
                        self.bulk.close();
                        match self.urgent.next().await {
                            Some(work) => (work, false),
                            None => match self.bulk.next().await {
                                Some(work) => (work, true),
                                None => return,
                            },
                        }
                    }
                    else => return,
                },
            };
            self.metrics.note_group(Some(Instant::now()));
            self.write_group(&db, first, is_bulk).await;
            self.metrics.note_group(None);
            readers.wake_edges();
            readers.wake_events();
        }
    }

    async fn write_group(&mut self, db: &Db, first: Work, mut is_bulk: bool) {
        let begun = Instant::now();
        let mut tx = match begin(db).await {
            Ok(tx) => tx,
            Err(error) => {
                tracing::error!(%error, "cannot begin a write transaction");
                self.metrics.failed_groups.inc();
                // The request is dropped, and its caller gets 503.
                drop(first);
                return;
            }
        };
        let first_rev = revs(&tx);
        let is_short = !self.urgent.is_empty() || self.urgent_at.is_some_and(|at| at.elapsed() < BESIDE);
        self.batch_size.set_short(is_short);
        let mut finished = Vec::new();
        let mut next = Some(first);
        let mut broken = None;
        let mut point = Point::None;
        while let Some(work) = next.take() {
            let started = Instant::now();
            let ran = run_one(&mut tx, &mut point, work).await;
            let now = Instant::now();
            if is_bulk {
                self.bulk_at = now;
                self.bulk.charge(now - started);
            } else {
                self.urgent_at = Some(now);
                self.urgent.charge(now - started);
            }
            match ran {
                Ok(finish) => finished.push(finish),
                Err((finish, error)) => {
                    finished.extend(finish);
                    broken = Some(error);
                    break;
                }
            }
            let is_full = finished.len() >= GROUP_SIZE || revs(&tx) - first_rev >= GROUP_REVS;
            if is_full || begun.elapsed() >= GROUP_TIME {
                break;
            }
            next = self.urgent.try_next();
            if next.is_some() {
                is_bulk = false;
            } else if is_bulk && !is_short {
                next = self.bulk.try_next();
            }
        }
        let committed = match broken {
            None => commit(tx, &point).await,
            Some(error) => Err(error),
        };
        self.metrics.group_size.observe(finished.len() as f64);
        self.metrics.group_seconds.observe(begun.elapsed().as_secs_f64());
        if let Err(error) = &committed {
            self.metrics.failed_groups.inc();
            tracing::error!(%error, requests = finished.len(), "a group of changes was not written");
        }
        for finish in finished {
            (finish.settle)(match &committed {
                Ok(()) => Ok(()),
                Err(StoreError::Timeout) => Err(StoreError::Timeout),
                Err(_) => Err(StoreError::Busy),
            });
        }
    }
}

/// A transaction that holds the order of changes.
async fn begin(db: &Db) -> Result<Tx, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    log::begin_group(&mut tx).await?;
    Ok(tx)
}

/// The head of the change log behind what the requests of a group have taken.
fn revs(tx: &Tx) -> Rev {
    tx.group.as_ref().map_or(0, Group::head)
}

/// The savepoint of a group.
enum Point {
    /// There is none yet.
    None,
    /// Nothing was done since it was set.
    Clean,
    /// What a request has done since is kept.
    Used,
}

/// Runs one request behind a savepoint; an error means that the whole transaction is unusable.
async fn run_one(tx: &mut Tx, point: &mut Point, work: Work) -> Result<Finish, (Option<Finish>, StoreError)> {
    let set = match point {
        Point::None => tx.savepoint().await,
        Point::Clean => Ok(()),
        Point::Used => tx.next_savepoint().await,
    };
    if let Err(error) = set {
        return Err((None, error));
    }
    let finish = work(tx).await;
    if finish.keep {
        *point = Point::Used;
        return Ok(finish);
    }
    *point = Point::Clean;
    match tx.rewind_to_savepoint().await {
        Ok(()) => Ok(finish),
        Err(error) => Err((Some(finish), error)),
    }
}

/// Writes what the requests of a group have left to its end, and commits.
async fn commit(mut tx: Tx, point: &Point) -> Result<(), StoreError> {
    match point {
        Point::None => {}
        // It fails where a request went on behind an error of the database: a commit would be a rollback then, without a word.
        Point::Clean | Point::Used => tx.release_savepoint().await?,
    }
    log::finish_group(&mut tx).await?;
    tx.commit().await
}
