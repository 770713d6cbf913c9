//! Counters of the writer of changes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ::kernel::buckets::REQUEST_SECONDS;
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

/// Requests in one transaction: the writer takes at most 256.
const GROUP_SIZES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Groups of changes that share a transaction.
#[derive(Debug, Clone)]
pub struct WriterMetrics {
    /// Requests in one transaction.
    pub group_size: Histogram,
    /// Time of one transaction.
    pub group_seconds: Histogram,
    /// Transactions that did not commit.
    pub failed_groups: Counter,
    /// Changes refused because too many wait.
    pub refused: Counter,
    /// When the transaction that runs began.
    runs_since: Arc<Mutex<Option<Instant>>>,
}

impl Default for WriterMetrics {
    fn default() -> Self {
        Self {
            group_size: Histogram::new(GROUP_SIZES),
            group_seconds: Histogram::new(REQUEST_SECONDS),
            failed_groups: Counter::default(),
            refused: Counter::default(),
            runs_since: Arc::default(),
        }
    }
}

impl WriterMetrics {
    /// Notes that a transaction begins, or with `None` that none runs.
    pub fn note_group(&self, begun: Option<Instant>) {
        *self.runs_since.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }

    /// How long the transaction that runs has been running; zero without one.
    #[must_use]
    pub fn group_age(&self) -> Duration {
        let begun = *self.runs_since.lock().unwrap_or_else(PoisonError::into_inner);
        begun.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        let (size, seconds) = (self.group_size.clone(), self.group_seconds.clone());
        registry.register("writer_group_size", "Requests in a transaction of the writer", size);
        registry.register("writer_group_seconds", "Time of a transaction of the writer", seconds);
        let help = "Transactions of the writer that did not commit";
        registry.register("writer_groups_failed", help, self.failed_groups.clone());
        registry.register("writer_refused", "Changes refused because too many wait", self.refused.clone());
    }
}
