//! Counters of scans, in the order of a scan's way from the buffers to control.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};

/// Counters of the scans of one edge since its start.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Put into a buffer.
    pub recorded: Counter,
    /// On disk.
    pub written: Counter,
    /// Acknowledged by control; may hold some of earlier boots.
    pub shipped: Counter,
    /// Lost because the buffers were full, the disk budget spent or the disk failing.
    pub lost: Counter,
    /// Only counted by link and minute, as the disk budget is spent.
    pub degraded: Counter,
    /// Batches that control refused for good: an alarm.
    pub(crate) refused: Counter,
    /// Bytes of scans on disk.
    pub(crate) spool_bytes: Gauge,
    /// Whether the reserve file for waiting sums of scans exists: 1 or 0.
    pub(crate) sums_reserved: Gauge,
    /// Scans in sums that only memory has.
    pub(crate) sums_unkept: Gauge,
    /// How long the last written scan had waited at most, in seconds.
    pub(crate) writer_lag_last: Gauge<f64, AtomicU64>,
    /// The longest such wait since the start, in seconds.
    pub(crate) writer_lag_max: Gauge<f64, AtomicU64>,
}

impl Metrics {
    /// Registers every counter; they stay shared with the registry, whose prefix names the process.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("scans_recorded", "Scans recorded", &self.recorded),
            ("scans_written", "Scans written to disk", &self.written),
            ("scans_shipped", "Scans acknowledged by control", &self.shipped),
            ("scans_lost", "Scans dropped", &self.lost),
            ("scans_degraded", "Scans counted by link and minute alone", &self.degraded),
            ("scan_batches_refused", "Batches of scans that control refused", &self.refused),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, gauge) in [
            ("spool_bytes", "Bytes of scans on disk", &self.spool_bytes),
            ("sums_reserved", "1 while sums of scans would survive a kill", &self.sums_reserved),
            ("sums_unkept", "Scans in sums that a kill would lose", &self.sums_unkept),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for (name, help, gauge) in [
            ("writer_lag_last_seconds", "Longest wait of the last written scans", &self.writer_lag_last),
            ("writer_lag_max_seconds", "Longest wait of a scan since the start", &self.writer_lag_max),
        ] {
            registry.register(name, help, gauge.clone());
        }
    }
}
