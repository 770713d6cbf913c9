//! The most recently changed keys with their exact values: brings an older view up to what this edge has applied.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use shared::{
    redirect::{Redirect, RedirectKey},
    wire::stream::Rev,
};

/// The newest state of a key, from an event.
#[derive(Debug, Clone)]
pub enum Last {
    /// It has this value.
    Value(Arc<Redirect>),
    /// It was deleted.
    Absent,
    /// The event was rejected; the key's value is not known here.
    Refused,
}

/// The tail's answer for a key.
#[derive(Debug)]
pub enum Resolved {
    /// Unchanged between the view's watermark and `through`.
    Unchanged,
    /// Changed by this revision last.
    Changed(Rev, Last),
}

/// The keys that changed last, up to a number, each with its newest change.
#[derive(Debug)]
pub struct Tail {
    newest: HashMap<RedirectKey, (Rev, Last)>,
    order: VecDeque<(Rev, RedirectKey)>,
    /// Every key changed after this revision is in `newest`.
    complete_from: Rev,
    /// Every event up to this revision was pushed.
    through: Rev,
    capacity: usize,
}

impl Tail {
    /// An empty tail from `rev` on, of at most `capacity` keys.
    pub fn new(rev: Rev, capacity: usize) -> Self {
        Self { newest: HashMap::new(), order: VecDeque::new(), complete_from: rev, through: rev, capacity }
    }

    /// Clears it and restarts at `rev`.
    pub fn restart(&mut self, rev: Rev) {
        *self = Self::new(rev, self.capacity);
    }

    /// Remembers one change.
    pub fn push(&mut self, rev: Rev, key: &RedirectKey, last: Last) {
        self.newest.insert(key.clone(), (rev, last));
        self.order.push_back((rev, key.clone()));
        self.through = rev;
        while self.newest.len() > self.capacity || self.order.len() > 2 * self.capacity {
            let Some((old, key)) = self.order.pop_front() else { break };
            // A key that changed again has a newer position in the queue; this one is outdated.
            if self.newest.get(&key).is_some_and(|(rev, _)| *rev == old) {
                self.newest.remove(&key);
                self.complete_from = old;
            }
        }
    }

    /// Notes a revision that changed no key.
    pub fn pass(&mut self, rev: Rev) {
        self.through = rev;
    }

    /// Every event up to this revision was seen.
    pub fn through(&self) -> Rev {
        self.through
    }

    /// What became of `key` after the state of `rev`, as far as this edge has seen it; `None` if that is not known.
    pub fn since(&self, key: &RedirectKey, rev: Rev) -> Option<Resolved> {
        // A state that is newer than all that was seen: nothing of it is known to have changed.
        if rev > self.through { Some(Resolved::Unchanged) } else { Some(self.resolve(key, rev)?.1) }
    }

    /// The state of `key` at the returned revision, given a view of `watermark`; `None` if not covered.
    pub fn resolve(&self, key: &RedirectKey, watermark: Rev) -> Option<(Rev, Resolved)> {
        if watermark < self.complete_from || watermark > self.through {
            return None;
        }
        let resolved = match self.newest.get(key) {
            Some((rev, last)) if *rev > watermark => Resolved::Changed(*rev, last.clone()),
            Some(_) | None => Resolved::Unchanged,
        };
        Some((self.through, resolved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> RedirectKey {
        RedirectKey::new("tn.gg", &n.to_string())
    }

    #[test]
    fn covers_exactly_what_it_remembers() {
        let mut tail = Tail::new(10, 2);
        assert!(matches!(tail.resolve(&key(1), 10), Some((10, Resolved::Unchanged))));
        assert!(tail.resolve(&key(1), 9).is_none());
        tail.push(11, &key(1), Last::Absent);
        tail.push(12, &key(2), Last::Absent);
        tail.push(13, &key(1), Last::Refused);
        assert!(matches!(tail.resolve(&key(1), 10), Some((13, Resolved::Changed(13, Last::Refused)))));
        assert!(matches!(tail.resolve(&key(1), 13), Some((13, Resolved::Unchanged))));
        tail.push(14, &key(3), Last::Absent);
        // Key 2, changed by 12, was forgotten: only views from 12 on are covered.
        assert!(tail.resolve(&key(1), 11).is_none());
        assert!(matches!(tail.resolve(&key(1), 12), Some((14, Resolved::Changed(13, _)))));
        tail.pass(15);
        assert!(matches!(tail.resolve(&key(3), 14), Some((15, Resolved::Unchanged))));
        assert!(tail.resolve(&key(3), 16).is_none());
    }

    #[test]
    fn repeated_changes_of_one_key_take_no_memory() {
        let mut tail = Tail::new(0, 4);
        for rev in 1..1_000 {
            tail.push(rev, &key(1), Last::Absent);
        }
        assert!(tail.order.len() <= 8);
        assert!(matches!(tail.resolve(&key(1), 0), Some((999, Resolved::Changed(999, _)))));
    }
}
