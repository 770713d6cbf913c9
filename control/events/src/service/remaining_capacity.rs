//! Cached remaining capacity of queues, refreshed from the database every 10 s.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long a cached capacity is used: what other processes add to a queue meanwhile is not seen.
const REFRESH_AFTER: Duration = Duration::from_secs(10);

/// The same for a full queue, so that free capacity is noticed soon.
const FULL: Duration = Duration::from_secs(1);

/// Queues that are cached; others are read each time.
const MOST: usize = 10_000;

/// The queues that a process puts something into.
#[derive(Debug)]
pub struct RemainingCapacity<K>(Mutex<HashMap<K, (u64, Instant)>>);

impl<K> Default for RemainingCapacity<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Copy + Eq + Hash> RemainingCapacity<K> {
    /// How many of `wanted` messages the queue can take; `None` when its capacity must be read first, and
    /// [`Self::note`]d.
    pub fn take(&self, queue: K, wanted: u64, now: Instant) -> Option<u64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = known.get_mut(&queue)?;
        let age = now.saturating_duration_since(*at);
        if age > REFRESH_AFTER || (*left < wanted && age > FULL) {
            return None;
        }
        let taken = wanted.min(*left);
        *left -= taken;
        Some(taken)
    }

    /// Caches the remaining capacity of a queue, and returns how many of `wanted` it can take.
    pub fn note(&self, queue: K, left: u64, wanted: u64, now: Instant) -> u64 {
        let taken = wanted.min(left);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (_, at)| now.saturating_duration_since(*at) <= REFRESH_AFTER);
        }
        if known.len() < MOST || known.contains_key(&queue) {
            known.insert(queue, (left - taken, now));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_capacity_is_used_for_a_while() {
        let (remaining, begun) = (RemainingCapacity::default(), Instant::now());
        let later = |seconds: u64| begun + Duration::from_secs(seconds);
        assert_eq!(remaining.take(1, 5, begun), None, "nobody has looked");
        assert_eq!(remaining.note(1, 13, 3, begun), 3);
        assert_eq!(remaining.take(1, 7, later(9)), Some(7));
        assert_eq!(remaining.take(2, 7, later(9)), None, "another queue");
        assert_eq!(remaining.note(1, 3, 0, later(9)), 0);
        assert_eq!(remaining.take(1, 7, later(10)), Some(3), "what there is room for");
        assert_eq!(remaining.take(1, 7, later(10)), Some(0), "full");
        assert_eq!(remaining.take(1, 1, later(11)), None, "there may be room again");
        assert_eq!(remaining.note(1, 100, 0, later(11)), 0);
        assert_eq!(remaining.note(3, 1, 2, later(11)), 1, "no more than there is room");
        assert_eq!(remaining.take(1, 1, later(22)), None, "too long ago");
        for queue in 0..2 * MOST {
            assert_eq!(remaining.note(queue, 1, 1, later(30)), 1);
        }
        assert!(remaining.0.lock().unwrap().len() <= MOST);
    }
}
