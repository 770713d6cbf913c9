//! Counters of the writer of changes.

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
}

impl Default for WriterMetrics {
    fn default() -> Self {
        Self {
            group_size: Histogram::new(GROUP_SIZES),
            group_seconds: Histogram::new(REQUEST_SECONDS),
            failed_groups: Counter::default(),
            refused: Counter::default(),
        }
    }
}

impl WriterMetrics {
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
