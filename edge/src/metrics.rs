//! What the edge counts; read by `/metrics` in the OpenMetrics text form.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric, counter::Counter, gauge::Gauge},
    registry::Registry,
};

use crate::cache::CacheStatus;

/// Upper bounds of the latency buckets: a hit takes microseconds, a miss in a fleet milliseconds.
const BUCKETS_US: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 1_000_000];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counters of one edge.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by class of status; the first digit less one is the index.
    responses: [Counter; 5],
    /// Look-ups by cache status, in the order of [`CacheStatus::ALL`].
    lookups: [Counter; 5],
    latency: Latency,
    /// Views that the fill rule refused.
    pub(crate) rejected_fills: Counter,
    /// Misses without a verified answer (503).
    pub(crate) unanswered: Counter,
    /// Misses refused by a limiter.
    pub(crate) limited: Counter,
    /// 1 while misses are refused in masses: an alarm.
    pub(crate) miss_storm: Gauge,
    /// Events that could not be applied: an alarm.
    pub(crate) rejected_events: Counter,
    /// Times the stream was connected.
    pub(crate) connects: Counter,
    /// Gaps found in the stream.
    pub(crate) resyncs: Counter,
    /// Connections refused by a limit.
    pub(crate) refused_connections: Counter,
    /// Connections open.
    pub(crate) connections: Gauge,
    /// Images rendered (not cached).
    pub(crate) rendered: Counter,
    /// Scans put into the ring.
    pub(crate) scans_recorded: Counter,
    /// Scans on disk.
    pub(crate) scans_written: Counter,
    /// Scans that control has acknowledged.
    pub(crate) scans_shipped: Counter,
    /// Scans lost because the ring was full, the disk budget spent or the disk failing.
    pub(crate) scans_lost: Counter,
    /// Scans that are only counted by link and minute, as the disk budget is spent.
    pub(crate) scans_degraded: Counter,
    /// Batches that control refused for good: an alarm.
    pub(crate) scans_refused: Counter,
    /// Bytes of scans on disk.
    pub(crate) spool_bytes: Gauge,
    /// How long the last written scan had waited at most, in microseconds.
    pub(crate) writer_lag_last_us: Gauge,
    /// The longest such wait since the start, in microseconds.
    pub(crate) writer_lag_max_us: Gauge,
}

impl Metrics {
    /// Counts one answer.
    pub(crate) fn answered(&self, status: http::StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.responses.get(class) {
            counter.inc();
        }
        self.latency.observe(took);
    }

    /// Counts one look-up.
    pub(crate) fn looked_up(&self, status: CacheStatus) {
        // `ALL` lists the variants in order of declaration, so the cast is the index.
        self.lookups[status as usize].inc();
    }

    /// Look-ups of one status so far.
    pub(crate) fn lookups(&self, status: CacheStatus) -> u64 {
        self.lookups[status as usize].get()
    }

    /// Registers every counter; they stay shared with the registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for (class, counter) in CLASSES.iter().zip(&self.responses) {
            registry.sub_registry_with_label(("class".into(), (*class).into())).register(
                "responses",
                "Answers by class of status",
                counter.clone(),
            );
        }
        for (status, counter) in CacheStatus::ALL.iter().zip(&self.lookups) {
            registry.sub_registry_with_label(("status".into(), status.as_str().into())).register(
                "lookups",
                "Look-ups of redirections by cache status",
                counter.clone(),
            );
        }
        for (name, help, counter) in [
            ("fills_rejected", "Views refused by the fill rule", &self.rejected_fills),
            ("misses_unanswered", "Misses without a verified answer", &self.unanswered),
            ("misses_limited", "Misses refused by a limiter", &self.limited),
            ("events_rejected", "Changes that could not be applied", &self.rejected_events),
            ("stream_connects", "Connections of the change stream", &self.connects),
            ("stream_resyncs", "Gaps found in the change stream", &self.resyncs),
            ("connections_refused", "Connections refused by a limit", &self.refused_connections),
            ("images_rendered", "Codes rendered", &self.rendered),
            ("scans_recorded", "Scans recorded", &self.scans_recorded),
            ("scans_written", "Scans written to disk", &self.scans_written),
            ("scans_shipped", "Scans acknowledged by control", &self.scans_shipped),
            ("scans_lost", "Scans dropped", &self.scans_lost),
            ("scans_degraded", "Scans counted by link and minute alone", &self.scans_degraded),
            ("scan_batches_refused", "Batches of scans that control refused", &self.scans_refused),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, gauge) in [
            ("connections", "Connections open", &self.connections),
            ("miss_storm", "1 while misses are refused in masses", &self.miss_storm),
            ("spool_bytes", "Bytes of scans on disk", &self.spool_bytes),
            (
                "writer_lag_last_microseconds",
                "Longest wait of the last written scans",
                &self.writer_lag_last_us,
            ),
            (
                "writer_lag_max_microseconds",
                "Longest wait of a scan since the start",
                &self.writer_lag_max_us,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register("response_seconds", "Time to an answer", self.latency.clone());
    }
}

/// A histogram of fixed buckets without a lock: one addition for each answer.
#[derive(Debug, Clone, Default)]
struct Latency(std::sync::Arc<LatencyInner>);

#[derive(Debug, Default)]
struct LatencyInner {
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Latency {
    fn observe(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let index = BUCKETS_US.partition_point(|bound| bound * 1_000 < ns);
        self.0.buckets[index].fetch_add(1, Relaxed);
        self.0.sum_ns.fetch_add(ns, Relaxed);
    }
}

impl TypedMetric for Latency {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Latency {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BUCKETS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::MAX]);
        let buckets: Vec<_> =
            bounds.zip(&self.0.buckets).map(|(bound, count)| (bound, count.load(Relaxed))).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.0.sum_ns.load(Relaxed) as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// Numbers that are read when somebody asks, not counted.
pub(crate) struct Reading<F>(pub(crate) F);

impl<F> fmt::Debug for Reading<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reading")
    }
}

impl<F: Fn() -> Vec<(&'static str, &'static str, u64)> + Send + Sync + 'static> Collector for Reading<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in (self.0)() {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            let mut gauge = gauge;
            gauge.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }
}
