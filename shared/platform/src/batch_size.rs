//! Adaptive batch size of imports: as many items per transaction as fit into a bounded time.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How long one step of an import may hold the order of changes. An urgent change waits for one step and its
/// commit; a commit costs an fsync of some 2 ms, so that an import loses a tenth by being cut like this.
pub const STEP_TIME: Duration = Duration::from_millis(20);

/// The same beside urgent changes: one of them waits for a step and its commit.
pub const SHORT_STEP_TIME: Duration = Duration::from_millis(10);

/// Fewest items of a step: its fixed cost, some ten statements, is that of a few items.
const FEWEST: u64 = 20;

/// Most items of a step: an import of the API has no more.
const MOST: u64 = 1_000;

/// What an item is taken to cost before any was written: then the first step has 100.
const FIRST_GUESS: Duration = Duration::from_micros(200);

/// Measures the cost of items, and derives the size of the next step.
#[derive(Debug)]
pub struct AdaptiveBatchSize {
    item_nanos: AtomicU64,
    is_short: AtomicBool,
}

impl Default for AdaptiveBatchSize {
    fn default() -> Self {
        Self { item_nanos: AtomicU64::new(nanos(FIRST_GUESS)), is_short: AtomicBool::new(false) }
    }
}

impl AdaptiveBatchSize {
    /// Items of the next step.
    #[must_use]
    pub fn step(&self) -> usize {
        let time = if self.is_short() { SHORT_STEP_TIME } else { STEP_TIME };
        let items = nanos(time) / self.item_nanos.load(Relaxed).max(1);
        // At most a thousand.
        items.clamp(FEWEST, MOST) as usize
    }

    /// Sets whether steps are short from now on.
    pub fn set_short(&self, is_short: bool) {
        self.is_short.store(is_short, Relaxed);
    }

    /// Whether steps are short.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.is_short.load(Relaxed)
    }

    /// Records the duration of a step. The previous estimate keeps half of the weight, so that one slow fsync only
    /// makes the next step smaller.
    pub fn took(&self, items: usize, time: Duration) {
        if let Some(each) = nanos(time).checked_div(items as u64) {
            let before = self.item_nanos.load(Relaxed);
            // A race of two writers loses one measurement.
            self.item_nanos.store(before.midpoint(each), Relaxed);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_size_follows_the_measured_cost() {
        let size = AdaptiveBatchSize::default();
        assert_eq!(size.step(), 100);
        size.set_short(true);
        assert_eq!(size.step(), 50, "beside urgent changes");
        size.set_short(false);
        for (each, expected, why) in [
            (Duration::from_micros(40), 500, "a fast machine"),
            (Duration::from_millis(5), FEWEST as usize, "a slow one still gets on"),
            (Duration::from_nanos(10), MOST as usize, "and there is no more to write"),
        ] {
            for _ in 0..40 {
                size.took(10, each * 10);
            }
            assert_eq!(size.step(), expected, "{why}");
        }
        size.took(0, Duration::from_secs(1));
        assert_eq!(size.step(), MOST as usize, "a step without items says nothing");
        let before = AdaptiveBatchSize::default();
        before.took(100, Duration::from_millis(220));
        assert!((8..=20).contains(&before.step()), "one stall: {}", before.step());
    }
}
