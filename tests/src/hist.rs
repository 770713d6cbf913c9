//! A histogram of durations with an error of at most 3 %: one addition for each answer.

use std::time::Duration;

/// Buckets of each power of two.
const SUB: u64 = 32;
const SUB_BITS: u32 = SUB.trailing_zeros();

/// Counts of durations, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Hist {
    buckets: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Default for Hist {
    fn default() -> Self {
        Self { buckets: vec![0; 64 * SUB as usize], count: 0, max_ns: 0 }
    }
}

impl Hist {
    /// Counts one duration.
    pub fn add(&mut self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts what another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += count;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The duration that a share of `quantile` (0 to 1) does not pass, in microseconds; 0 when empty.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        let rank = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_ns(index).min(self.max_ns) as f64 / 1e3;
            }
        }
        0.0
    }

    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration in microseconds.
    #[must_use]
    pub fn max_us(&self) -> f64 {
        self.max_ns as f64 / 1e3
    }
}

fn bucket(ns: u64) -> usize {
    if ns < SUB {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    // Of the leading bits the first is always 1: it is the power of two that `shift` names.
    ((u64::from(shift) + 1) * SUB + (ns >> shift) - SUB) as usize
}

/// The largest duration of a bucket.
fn upper_ns(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = index / SUB - 1;
    ((index % SUB + SUB + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_falls_into_a_bucket_that_ends_at_most_3_percent_above() {
        for ns in (0..4_000).chain((0..50).map(|n| 5_000 + 7_919 * n * n * n)) {
            let upper = upper_ns(bucket(ns));
            assert!(upper >= ns && (upper - ns) as f64 <= ns as f64 * 0.032, "{ns}: {upper}");
        }
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut hist = Hist::default();
        assert!(hist.quantile_us(0.5) < f64::EPSILON);
        (1..=1_000).for_each(|us| hist.add(Duration::from_micros(us)));
        for (quantile, expected) in [(0.0, 1.0), (0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = hist.quantile_us(quantile);
            assert!((found - expected).abs() <= expected * 0.032, "{quantile}: {found}");
        }
        assert!((hist.max_us() - 1_000.0).abs() < f64::EPSILON);
    }
}
