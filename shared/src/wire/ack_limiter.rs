//! How often an edge acknowledges events: a few at once, then at a bounded rate (README, "Acknowledgements").

use std::time::{Duration, Instant};

/// Time between acknowledgements while events come without end.
const INTERVAL: Duration = Duration::from_millis(5);

/// Acknowledgements that an edge which was silent may send one after the other.
///
/// A change that somebody waits for then never waits for the one before it; a stream of changes is still
/// acknowledged 200 times a second at most.
const BURST: u32 = 8;

/// Rate limiter of acknowledgements of events; those of heartbeats are not counted.
#[derive(Debug, Clone, Copy)]
pub struct AckLimiter {
    next: Instant,
}

impl AckLimiter {
    /// The limiter of a new stream.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { next: now }
    }

    /// From when on the next may go; often a moment that is over.
    #[must_use]
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// One went.
    pub fn sent(&mut self, now: Instant) {
        // The clock of a machine that has just started may not reach so far back.
        let silent = now.checked_sub(INTERVAL * (BURST - 1)).unwrap_or(self.next);
        self.next = self.next.max(silent) + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many go within `time` if one could go at each `step`.
    fn sent(limiter: &mut AckLimiter, from: Instant, time: Duration, step: Duration) -> u32 {
        let (mut now, mut count) = (from, 0);
        while now < from + time {
            if limiter.next() <= now {
                limiter.sent(now);
                count += 1;
            }
            now += step;
        }
        count
    }

    #[test]
    fn bursts_are_acknowledged_at_once_and_streams_every_5_ms() {
        let start = Instant::now() + Duration::from_secs(1);
        let mut limiter = AckLimiter::new(start);
        let (second, step) = (Duration::from_secs(1), Duration::from_micros(100));
        let first = sent(&mut limiter, start, second, step);
        assert!((200..=200 + BURST).contains(&first), "{first}");
        // No burst is left over from before.
        assert_eq!(sent(&mut limiter, start + second, second, step), 200);
        // Silence restores the burst, and a longer silence restores no more than that.
        let later = start + second * 100;
        assert_eq!(sent(&mut limiter, later, Duration::from_millis(1), step), BURST);
        // Changes each six milliseconds are never waited for.
        let mut limiter = AckLimiter::new(start);
        assert_eq!(sent(&mut limiter, start, second * 3, Duration::from_millis(6)), 500);
    }
}
