//! How print orders stand.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use shared::time::UnixMillis;

use crate::domain::order::{Standing, Status};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    status: &'static str,
}

/// Print orders: the gauges are of all processes, the counters of this one.
#[derive(Debug, Default)]
pub struct PrintMetrics {
    open: Gauge,
    oldest_seconds: Gauge<f64, AtomicU64>,
    ended: Family<Ended, Counter>,
    /// Things that were made.
    pub made: Counter,
    /// Codes that were drawn.
    pub rendered: Counter,
    /// Orders that others took from a worker of this process.
    pub leases_lost: Counter,
    /// Tries of steps that failed.
    pub tries_failed: Counter,
}

impl PrintMetrics {
    /// Shows how many orders have not ended, and the age of the oldest one.
    pub fn stand(&self, standing: Standing, now: UnixMillis) {
        self.open.set(i64::try_from(standing.open).unwrap_or(i64::MAX));
        let age_ms = if standing.open == 0 { 0 } else { now.0.saturating_sub(standing.oldest.0).max(0) };
        self.oldest_seconds.set(age_ms as f64 / 1e3);
    }

    /// Counts an order that has ended.
    pub fn ended(&self, status: Status) {
        self.ended.get_or_create(&Ended { status: status.as_str() }).inc();
    }

    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        // Present from the start, because an alert on an absent series never fires.
        for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
            drop(self.ended.get_or_create(&Ended { status: status.as_str() }));
        }
        registry.register("print_orders", "Print orders that have not ended", self.open.clone());
        let help = "Age of the oldest print order that has not ended";
        registry.register("print_orders_oldest_seconds", help, self.oldest_seconds.clone());
        let help = "Print orders that this process brought to their end, by state";
        registry.register("print_orders_ended", help, self.ended.clone());
        for (name, help, counter) in [
            ("print_things", "Things that print orders made", &self.made),
            ("print_codes", "Codes that print orders drew", &self.rendered),
            (
                "print_leases_lost",
                "Print orders that others took from a worker of this process",
                &self.leases_lost,
            ),
            (
                "print_tries_failed",
                "Times that a print order could not go on and was left for later",
                &self.tries_failed,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn the_oldest_one_has_an_age_while_there_is_one() {
        let metrics = PrintMetrics::default();
        metrics.stand(Standing { open: 2, oldest: UnixMillis(1_000) }, UnixMillis(3_500));
        assert_eq!((metrics.open.get(), metrics.oldest_seconds.get()), (2, 2.5));
        metrics.stand(Standing::default(), UnixMillis(3_500));
        assert_eq!((metrics.open.get(), metrics.oldest_seconds.get()), (0, 0.0));
    }

    #[test]
    fn ends_are_shown_before_there_is_one() {
        let (metrics, mut registry) = (PrintMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        metrics.ended(Status::Failed);
        let mut shown = String::new();
        text::encode(&mut shown, &registry).unwrap();
        assert!(shown.contains("print_orders_ended_total{status=\"failed\"} 1"), "{shown}");
        assert!(shown.contains("print_orders_ended_total{status=\"complete\"} 0"), "{shown}");
        assert!(!shown.contains("waiting"), "{shown}");
    }
}
