//! Ships scans to control: in order, one batch in flight, retried until it is acknowledged.

use std::{sync::Arc, time::Duration};

use shared::wire::{scan::ScanReceipt, spooled::SpooledScans};

use super::{
    Metrics,
    spool::{Cursor, Run, Spool},
};

/// Pause after a batch behind which there was nothing: scans gather, so that control commits some 40 times a
/// second at most, and a change that somebody waits for finds its writer free.
const GATHER: Duration = Duration::from_millis(25);
/// How long control may take for one batch.
const TIMEOUT: Duration = Duration::from_secs(10);
/// First and longest wait after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long a stopping edge tries to ship what is left; the next boot ships the rest.
const FINISH: Duration = Duration::from_secs(5);

/// Where scans are delivered: control, over the network or in the same process.
pub trait Intake: Send + Sync + 'static {
    /// Hands over scans; a batch seen before is acknowledged and not counted again.
    ///
    /// # Errors
    /// Nothing answered (repeat), or the batch is refused (an alarm: it will never be taken).
    fn take(&self, scans: &SpooledScans) -> impl Future<Output = Result<ScanReceipt, NotTaken>> + Send;
}

/// Why control did not take a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Nothing answered in time, or the connection broke: the batch is sent again.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Control will never take it: the batch is dropped, and counted as lost.
    #[error("refused: {0}")]
    Refused(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Shipped,
    Idle,
    Failed,
}

/// Ships one spool.
pub(super) struct Shipper<I> {
    /// Name of the edge.
    edge: Arc<str>,
    intake: I,
    metrics: Arc<Metrics>,
    spool: Arc<Spool>,
    cursor: Cursor,
    /// Whether more scans waited behind the last batch.
    has_more: bool,
}

impl<I: Intake> Shipper<I> {
    pub(super) fn new(edge: Arc<str>, intake: I, metrics: Arc<Metrics>, spool: Arc<Spool>) -> Self {
        Self { edge, intake, metrics, spool, cursor: Cursor::default(), has_more: false }
    }

    /// Ships for ever; may be dropped at any time, at worst a batch is sent once more.
    pub(super) async fn run(&mut self) {
        let mut backoff = BACKOFF.0;
        loop {
            match self.step().await {
                Step::Shipped => {
                    backoff = BACKOFF.0;
                    if !self.has_more {
                        tokio::time::sleep(GATHER).await;
                    }
                }
                Step::Idle => self.spool.written.notified().await,
                Step::Failed => {
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }

    /// Ships what is left, for a bounded time.
    pub(super) async fn finish(&mut self) {
        let all = async { while self.step().await == Step::Shipped {} };
        if tokio::time::timeout(FINISH, all).await.is_err() {
            tracing::info!("unshipped scans are left for the next start");
        }
    }

    async fn step(&mut self) -> Step {
        let (spool, cursor) = (self.spool.clone(), self.cursor);
        let run = match tokio::task::spawn_blocking(move || spool.read(cursor)).await {
            Ok(Ok(Some(run))) => run,
            Ok(Ok(None)) => return Step::Idle,
            Ok(Err(error)) => {
                tracing::error!(%error, "the spool cannot be read");
                return Step::Failed;
            }
            Err(_) => return Step::Failed,
        };
        self.ship(run).await
    }

    async fn ship(&mut self, run: Run) -> Step {
        let count = run.count as u64;
        self.has_more = run.has_more;
        let scans = SpooledScans {
            edge: self.edge.clone(),
            boot: run.boot,
            first_seq: run.first_seq,
            count: run.count,
            frames: run.frames,
        };
        match tokio::time::timeout(TIMEOUT, self.intake.take(&scans)).await {
            Ok(Ok(receipt)) => match Cursor::acknowledged(run.end, run.first_seq, receipt.next_seq) {
                Some(cursor) => {
                    self.cursor = cursor;
                    self.metrics.shipped.inc_by(count.min(receipt.next_seq.saturating_sub(run.first_seq)));
                    Step::Shipped
                }
                None => {
                    let (expects, has) = (receipt.next_seq, run.first_seq);
                    tracing::error!(expects, has, "control expects scans that are no longer in the spool");
                    self.metrics.refused.inc();
                    Step::Failed
                }
            },
            Ok(Err(NotTaken::Refused(reason))) => {
                // They will never be taken; held back they would hold back all that come after them. What cannot be
                // read here was not sent in the form that was refused.
                let count = scans.read().map_or(0, |batch| batch.records.len() as u64);
                let Some(cursor) = Cursor::acknowledged(run.end, run.first_seq, run.first_seq + count) else {
                    return Step::Failed;
                };
                tracing::error!(%reason, count, boot = run.boot, first_seq = run.first_seq, "control refused scans");
                self.metrics.refused.inc();
                self.metrics.lost.inc_by(count);
                self.cursor = cursor;
                Step::Shipped
            }
            Ok(Err(NotTaken::Unreachable(reason))) => {
                tracing::warn!(%reason, "scans are waiting for control");
                Step::Failed
            }
            Err(_) => {
                tracing::warn!("control took too long for a batch of scans");
                Step::Failed
            }
        }
    }
}
