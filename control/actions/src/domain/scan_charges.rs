//! What the quota of scans decided about scans of one boot of an edge that are under way.

use serde::{Deserialize, Serialize};

/// Sequence numbers in ascending order, as runs: the first and the last one of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Runs(Vec<(u64, u64)>);

impl Runs {
    /// Adds a number that is above all others.
    pub fn push(&mut self, seq: u64) {
        match self.0.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(seq) => *last = seq,
            Some(_) | None => self.0.push((seq, seq)),
        }
    }

    /// Whether a number is among them.
    #[must_use]
    pub fn contains(&self, seq: u64) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= seq);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|(_, last)| seq <= *last)
    }

    /// Forgets runs that end below a number.
    fn forget_below(&mut self, seq: u64) {
        self.0.retain(|(_, last)| *last >= seq);
    }
}

/// Scans that were looked at and are not stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotStored {
    /// Those that their account may not store today any more.
    pub above: Runs,
    /// Those of short ids that were unknown then, and were charged to nobody.
    pub unknown: Runs,
}

impl NotStored {
    /// Forgets scans that are done with.
    pub fn forget_below(&mut self, seq: u64) {
        self.above.forget_below(seq);
        self.unknown.forget_below(seq);
    }
}

/// How far the scans of a boot are charged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charges {
    /// Scans below this number are charged, or need no charge.
    pub next_seq: u64,
    /// Those of them that are not stored.
    pub not_stored: NotStored,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_as_runs() {
        let mut runs = Runs::default();
        [3, 4, 5, 9, 11, 12].into_iter().for_each(|seq| runs.push(seq));
        assert_eq!(serde_json::to_string(&runs).unwrap(), "[[3,5],[9,9],[11,12]]");
        let held: Vec<u64> = (0..15).filter(|seq| runs.contains(*seq)).collect();
        assert_eq!(held, [3, 4, 5, 9, 11, 12]);
        runs.forget_below(5);
        assert!(runs.contains(4), "a run stays whole");
        runs.forget_below(10);
        let held: Vec<u64> = (0..15).filter(|seq| runs.contains(*seq)).collect();
        assert_eq!(held, [11, 12]);
        runs.push(u64::MAX);
        assert!(runs.contains(u64::MAX) && !runs.contains(u64::MAX - 1));
    }
}
