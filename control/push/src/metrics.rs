//! Counters of the change stream.

use ::kernel::buckets::PUSH_SECONDS;
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

/// The change log and its way to the edges.
#[derive(Debug, Clone)]
pub struct StreamMetrics {
    /// From reading a change to an edge's acknowledgement.
    pub push_seconds: Histogram,
    /// How long `wait=edges` took.
    pub wait_seconds: Histogram,
    /// `wait=edges` that ended at its deadline.
    pub waits_expired: Counter,
    /// Times the change log could not be read.
    pub read_failures: Counter,
    /// Revisions that were compacted.
    pub compacted: Counter,
    /// Edges that had to read everything again.
    pub resyncs: Counter,
    /// Connections of edges that were refused.
    pub rejected: Counter,
}

impl Default for StreamMetrics {
    fn default() -> Self {
        Self {
            push_seconds: Histogram::new(PUSH_SECONDS),
            wait_seconds: Histogram::new(PUSH_SECONDS),
            waits_expired: Counter::default(),
            read_failures: Counter::default(),
            compacted: Counter::default(),
            resyncs: Counter::default(),
            rejected: Counter::default(),
        }
    }
}

impl StreamMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        let (push, wait) = (self.push_seconds.clone(), self.wait_seconds.clone());
        registry.register("push_seconds", "From reading a change to an edge's acknowledgement", push);
        registry.register("wait_edges_seconds", "How long wait=edges took", wait);
        for (name, help, counter) in [
            ("wait_edges_expired", "wait=edges that ended at its deadline", &self.waits_expired),
            ("log_read_failures", "Times the change log could not be read", &self.read_failures),
            ("log_compacted_revs", "Revisions deleted from the change log", &self.compacted),
            ("edge_resyncs", "Times an edge asked to restart the stream", &self.resyncs),
            ("edge_rejected", "Changes that an edge refused", &self.rejected),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}
