//! Timing of the change stream: how fresh it is, and how long changes take to the edges.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use shared::wire::stream::Rev;

use crate::metrics::StreamMetrics;

/// Moments of sending that are kept for the time to the acknowledgement: 1,024 messages under way.
const SENT: usize = 1_024;

/// Timings of one change stream, and its counters.
#[derive(Debug)]
pub(super) struct Timing {
    /// When the log was last read well.
    read_at: Mutex<Instant>,
    /// The last revisions of the newest messages, and when they went out.
    sent: Mutex<VecDeque<(Rev, Instant)>>,
    pub(super) metrics: StreamMetrics,
}

impl Timing {
    /// Begins with a log that was read just now.
    pub(super) fn new() -> Self {
        Self {
            read_at: Mutex::new(Instant::now()),
            sent: Mutex::default(),
            metrics: StreamMetrics::default(),
        }
    }

    /// The log was read, to its end or not.
    pub(super) fn read(&self) {
        *locked(&self.read_at) = Instant::now();
    }

    /// How long ago the log was read well.
    pub(super) fn silence(&self) -> Duration {
        locked(&self.read_at).elapsed()
    }

    /// A message that ends with `last` goes out.
    pub(super) fn sent(&self, last: Rev) {
        let mut sent = locked(&self.sent);
        if sent.len() == SENT {
            sent.pop_front();
        }
        sent.push_back((last, Instant::now()));
    }

    /// An edge that had `before` has `applied`: notes how long the oldest message in between was under way.
    pub(super) fn acked(&self, before: Rev, applied: Rev) {
        if let Some((_, at)) = self.oldest(before, applied) {
            self.metrics.push_seconds.observe(at.elapsed().as_secs_f64());
        }
    }

    fn oldest(&self, before: Rev, applied: Rev) -> Option<(Rev, Instant)> {
        let sent = locked(&self.sent);
        let first = sent.get(sent.partition_point(|(rev, _)| *rev <= before)).copied();
        first.filter(|(rev, _)| *rev <= applied)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held; a poisoned one is as good as before.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_is_timed_from_the_oldest_message_in_it() {
        let timing = Timing::new();
        for last in [10, 20, 30] {
            timing.sent(last);
        }
        for (before, applied, expected, why) in [
            (0, 9, None, "nothing is whole yet"),
            (9, 10, Some(10), "the first message"),
            (10, 10, None, "nothing new"),
            (0, 30, Some(10), "all three"),
            (10, 25, Some(20), "the second, and a part of the third"),
            (20, 30, Some(30), "the third"),
            (30, 99, None, "what went out at another replica"),
        ] {
            assert_eq!(timing.oldest(before, applied).map(|(rev, _)| rev), expected, "{why}");
        }
        for last in 31..5_000 {
            timing.sent(last);
        }
        assert_eq!(locked(&timing.sent).len(), SENT);
    }
}
