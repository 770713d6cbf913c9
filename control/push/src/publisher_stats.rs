//! Counters of a publisher; clones share them.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// The numbers of the publisher of one region in this process.
#[derive(Debug, Clone, Default)]
pub struct PublisherStats {
    /// 1 while this process has the lease.
    pub leading: Gauge,
    /// Everything up to this revision is in the view, as this process last wrote it.
    pub watermark: Gauge,
    /// Batches written.
    pub batches: Counter,
    /// Records set or removed by batches.
    pub keys_written: Counter,
    /// Rebuilds begun.
    pub rebuilds: Counter,
    /// Times that publishing failed and was tried again.
    pub failures: Counter,
    /// Times that a Redis was refused since it would throw keys away.
    pub refused_policy: Counter,
}

impl PublisherStats {
    /// Adds the numbers to a registry under `publisher_…`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("publisher");
        registry.register("leading", "1 while this process writes the view", self.leading.clone());
        registry.register("watermark", "Revision up to which the view was written", self.watermark.clone());
        registry.register("batches", "Batches written", self.batches.clone());
        registry.register("keys_written", "Records set or removed by batches", self.keys_written.clone());
        registry.register("rebuilds", "Rebuilds of the view begun", self.rebuilds.clone());
        registry.register(
            "failures",
            "Times that publishing failed and was tried again",
            self.failures.clone(),
        );
        registry.register(
            "refused_policy",
            "Times that a Redis was refused since it would throw keys away",
            self.refused_policy.clone(),
        );
    }
}
