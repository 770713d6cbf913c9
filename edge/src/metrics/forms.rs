//! Metric types that cost the hot path one or two additions: no lock, no allocation, no look-up.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};

/// Upper bounds of the latency buckets: a hit takes microseconds, a miss in a fleet milliseconds.
const BUCKETS_US: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 1_000_000];

/// Counters that differ in the value of one label; all of them are always shown.
#[derive(Debug, Clone)]
pub(crate) struct Counters<const N: usize> {
    label: &'static str,
    values: [&'static str; N],
    counts: Arc<[AtomicU64; N]>,
}

impl<const N: usize> Counters<N> {
    pub(crate) fn new(label: &'static str, values: [&'static str; N]) -> Self {
        Self { label, values, counts: Arc::new(std::array::from_fn(|_| AtomicU64::new(0))) }
    }

    /// Counts one; an index that no value has is left out.
    pub(crate) fn inc(&self, index: usize) {
        if let Some(count) = self.counts.get(index) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn get(&self, index: usize) -> u64 {
        self.counts.get(index).map_or(0, |count| count.load(Relaxed))
    }
}

impl<const N: usize> TypedMetric for Counters<N> {
    const TYPE: MetricType = MetricType::Counter;
}

impl<const N: usize> EncodeMetric for Counters<N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (value, count) in self.values.iter().zip(&*self.counts) {
            encoder
                .encode_family(&[(self.label, *value)])?
                .encode_counter::<NoLabelSet, _, u64>(&count.load(Relaxed), None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// Histograms of fixed buckets that differ in the value of one label.
#[derive(Debug, Clone)]
pub(crate) struct Latencies<const N: usize> {
    label: &'static str,
    values: [&'static str; N],
    inner: Arc<[Latency; N]>,
}

#[derive(Debug, Default)]
struct Latency {
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl<const N: usize> Latencies<N> {
    pub(crate) fn new(label: &'static str, values: [&'static str; N]) -> Self {
        Self { label, values, inner: Arc::new(std::array::from_fn(|_| Latency::default())) }
    }

    pub(crate) fn observe(&self, index: usize, took: Duration) {
        let Some(latency) = self.inner.get(index) else { return };
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|bound| bound * 1_000 < ns);
        latency.buckets[bucket].fetch_add(1, Relaxed);
        latency.sum_ns.fetch_add(ns, Relaxed);
    }
}

impl<const N: usize> TypedMetric for Latencies<N> {
    const TYPE: MetricType = MetricType::Histogram;
}

impl<const N: usize> EncodeMetric for Latencies<N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (value, latency) in self.values.iter().zip(&*self.inner) {
            let bounds = BUCKETS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::MAX]);
            let buckets: Vec<_> =
                bounds.zip(&latency.buckets).map(|(bound, count)| (bound, count.load(Relaxed))).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = latency.sum_ns.load(Relaxed) as f64 / 1e9;
            encoder
                .encode_family(&[(self.label, *value)])?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A number that is read when somebody asks, not counted.
pub(crate) struct Reading {
    /// Without the registry's prefix.
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// Label and value, where several readings share a name.
    pub(crate) labels: Vec<(&'static str, Box<str>)>,
    pub(crate) value: f64,
}

impl Reading {
    pub(crate) fn new(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, labels: Vec::new(), value }
    }
}

/// Where readings come from; those of one name must follow each other.
pub(crate) struct Readings<F>(pub(crate) F);

impl<F> fmt::Debug for Readings<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Readings")
    }
}

impl<F: Fn() -> Vec<Reading> + Send + Sync + 'static> Collector for Readings<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let readings = (self.0)();
        for group in readings.chunk_by(|a, b| a.name == b.name) {
            let Some(first) = group.first() else { continue };
            let mut metric = encoder.encode_descriptor(first.name, first.help, None, MetricType::Gauge)?;
            for reading in group {
                let encode = |metric: &mut MetricEncoder<'_>| match reading.value {
                    // Revisions and bytes are written without a decimal point as long as a float represents them
                    // exactly.
                    whole if whole.fract() == 0.0 && whole.abs() < 9e15 => {
                        metric.encode_gauge(&(whole as i64))
                    }
                    other => metric.encode_gauge(&other),
                };
                if reading.labels.is_empty() {
                    encode(&mut metric)?;
                } else {
                    let labels: Vec<(&str, &str)> =
                        reading.labels.iter().map(|(label, value)| (*label, &**value)).collect();
                    encode(&mut metric.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
