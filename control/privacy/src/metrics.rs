//! How erasures stand.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use shared::time::UnixMillis;

/// Erasures: the gauges are of all processes, the counters of this one.
#[derive(Debug, Default)]
pub struct ErasureMetrics {
    open: Gauge,
    oldest_seconds: Gauge<f64, AtomicU64>,
    /// Rows that were changed.
    pub rows: Counter,
    /// Erasures that were brought to their end.
    pub completed: Counter,
    /// Tries of steps that failed.
    pub tries_failed: Counter,
    /// Removals of users of deleted applications that were given up for a while.
    pub removals_given_up: Counter,
}

impl ErasureMetrics {
    /// Shows how many have not ended, and the age of the oldest one.
    pub fn stand(&self, count: u64, oldest: UnixMillis, now: UnixMillis) {
        self.open.set(i64::try_from(count).unwrap_or(i64::MAX));
        let age_ms = if count == 0 { 0 } else { now.0.saturating_sub(oldest.0).max(0) };
        self.oldest_seconds.set(age_ms as f64 / 1e3);
    }

    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "erasures",
            "Erasures of personal data that have not ended, and deleted applications whose users are being removed",
            self.open.clone(),
        );
        let help = "Age of the oldest erasure that has not ended";
        registry.register("erasures_oldest_seconds", help, self.oldest_seconds.clone());
        for (name, help, counter) in [
            ("erasure_rows", "Rows that erasures changed or removed", &self.rows),
            ("erasures_completed", "Erasures that this process brought to their end", &self.completed),
            (
                "erasure_tries_failed",
                "Times that an erasure could not go on and was left for later",
                &self.tries_failed,
            ),
            (
                "removals_given_up",
                "Times that the users of a deleted application could not be removed and were left for an hour",
                &self.removals_given_up,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_one_has_an_age_while_there_is_one() {
        let metrics = ErasureMetrics::default();
        metrics.stand(2, UnixMillis(1_000), UnixMillis(3_500));
        assert_eq!((metrics.open.get(), metrics.oldest_seconds.get()), (2, 2.5));
        metrics.stand(0, UnixMillis(0), UnixMillis(3_500));
        assert_eq!((metrics.open.get(), metrics.oldest_seconds.get()), (0, 0.0));
    }
}
