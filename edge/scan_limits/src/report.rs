//! Hands counts over to control, and keeps them on disk.

use std::{sync::Arc, time::Duration};

use shared::wire::limits::{LimitReport, MAX_COUNTS};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{ScanLimits, file};

/// Time in which scans gather before a report.
const GATHER: Duration = Duration::from_millis(25);
/// Time after which everything that control does not have is reported.
const SWEEP: Duration = Duration::from_secs(60);
/// Least time between two writings of the file.
const SAVE: Duration = Duration::from_secs(1);
/// The file of very many links takes long to write: the next one waits this many times as long.
const SAVE_REST: u32 = 9;
/// First and longest wait after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How long a stopping edge tries to hand over the rest.
const FINISH: Duration = Duration::from_secs(1);

/// Where reports go: control, over the network or in the same process.
pub trait Sink: Send + Sync + 'static {
    /// Hands a report over; one that comes again changes nothing.
    ///
    /// # Errors
    /// Nothing answered (repeat), or control will never take it.
    fn report(&self, report: &LimitReport) -> impl Future<Output = Result<(), NotTaken>> + Send;
}

/// Why control did not take a report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Nothing answered: it is sent again.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// It would be refused again: it is dropped, and the next report of its links says it again.
    #[error("refused: {0}")]
    Refused(String),
}

impl ScanLimits {
    /// Reports and saves until `stop`, and once more then. `stop` comes after the last request was answered.
    pub async fn run(self: Arc<Self>, sink: impl Sink, stop: CancellationToken) {
        // How much control has of what the file holds is not known.
        self.lock().sweep();
        self.due.notify_one();
        tokio::join!(stop.run_until_cancelled(self.hand_over_always(&sink)), self.save_until(&stop));
        self.lock().sweep();
        if timeout(FINISH, self.hand_over(&sink)).await.is_err() {
            tracing::info!("counts of scans are left for the next start");
        }
        self.save().await;
    }

    /// Hands over for ever. Dropped in the midst of a report, it leaves that to the next sweep.
    async fn hand_over_always(&self, sink: &impl Sink) {
        let mut next_sweep = Instant::now() + SWEEP;
        loop {
            // Whichever comes first.
            let _ = timeout_at(next_sweep, self.due.notified()).await;
            if Instant::now() >= next_sweep {
                self.lock().sweep();
                next_sweep = Instant::now() + SWEEP;
            }
            sleep(GATHER).await;
            let mut backoff = BACKOFF.0;
            while !self.hand_over(sink).await {
                sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF.1);
            }
        }
    }

    /// Hands over what is due; whether nothing is left to be sent again.
    async fn hand_over(&self, sink: &impl Sink) -> bool {
        loop {
            let counts = self.lock().take_due();
            if counts.is_empty() {
                return true;
            }
            // What comes due meanwhile gathers for the next time.
            let is_last = counts.len() < MAX_COUNTS;
            let report = LimitReport { edge: (&*self.edge).into(), counts };
            let begun = Instant::now();
            match sink.report(&report).await {
                Ok(()) => self.lock().reported(&report.counts),
                Err(NotTaken::Refused(reason)) => {
                    tracing::error!(%reason, "control refused counts of scans");
                }
                Err(NotTaken::Unreachable(reason)) => {
                    tracing::debug!(%reason, "counts of scans are reported later");
                    self.lock().not_reported(&report.counts);
                    return false;
                }
            }
            if is_last {
                return true;
            }
            // Control writes a report under the lock of the change log: other changes get as much of its time.
            sleep(begun.elapsed()).await;
        }
    }

    async fn save_until(self: &Arc<Self>, stop: &CancellationToken) {
        let mut pause = SAVE;
        while stop.run_until_cancelled(sleep(pause)).await.is_some() {
            let begun = Instant::now();
            self.save().await;
            pause = SAVE.max(begun.elapsed().saturating_mul(SAVE_REST));
        }
    }

    /// Saves what is counted, if something was since the last time.
    async fn save(self: &Arc<Self>) {
        if !self.lock().has_changed() {
            return;
        }
        let this = self.clone();
        let write = move || {
            let Some(counts) = this.lock().take_changed() else { return };
            // Texts are made here, without the lock: requests wait for it.
            let counts = counts.into_iter().map(|(key, count)| count.report_of(&key)).collect();
            if let Err(error) = file::save(&this.path, &this.edge, counts) {
                tracing::error!(%error, "the counts of scans could not be saved");
                this.lock().not_saved();
            }
        };
        if let Err(error) = tokio::task::spawn_blocking(write).await {
            tracing::error!(%error, "saving the counts of scans panicked");
        }
    }
}
