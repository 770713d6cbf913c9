//! Every link, where the edge holds them all: mirrors `edge/src/cache/generation/links.rs` and `edge/replica/src/full.rs`.
//!
//! What is answered is what an edge answers for a Digital Link: from its entries, then from the table, whose record is offered
//! to the entries a while later. Pages are read and taken all at once.

use super::{
    redis::View,
    rule::Rule,
    truth::{KEYS, Value, Write, is_poison, rev_of},
    world::{Places, World},
};

/// The table, and what decides whether it may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Replica {
    rows: [Value; KEYS],
    /// Events that are in the table.
    pub(super) tabled: u8,
    /// Every page is in.
    pub(super) is_read: bool,
    /// Nothing newer is in the table, but for what events brought.
    newest: u8,
    /// The revision of pages that were read and are not in yet; 0 is none.
    pub(super) reading: u8,
    filled: [u8; KEYS],
    /// Links of revisions after the first may have been absent in a view, until the second is applied.
    absent: (u8, u8),
}

/// A record of the table that is to be offered to the entries, as a view of what was applied when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Offered {
    pub(super) key: u8,
    applied: u8,
    value: Value,
}

impl Replica {
    /// A table with everything up to `at_rev`.
    pub(super) fn whole(rows: [Value; KEYS], at_rev: u8) -> Self {
        let newest = at_rev;
        Self { rows, tabled: at_rev, is_read: true, newest, reading: 0, filled: [0; KEYS], absent: (0, 0) }
    }

    /// An empty table that follows the stream from `at_rev` on.
    pub(super) fn empty(at_rev: u8) -> Self {
        Self { is_read: false, newest: 0, ..Self::whole([0; KEYS], at_rev) }
    }

    /// An event comes in.
    pub(super) fn event(&mut self, rev: u8, write: Write) {
        self.tabled = rev;
        if !is_poison(write.value) {
            self.put(write.key.into(), rev, write.value);
        }
    }

    /// Pages come in, without the keys that changed after they were read, of which there is no value here. `through` is the newest
    /// change in the tail.
    pub(super) fn take_pages(&mut self, rule: &Rule, values: [Option<Value>; KEYS], through: u8) {
        self.newest = self.reading.max(self.newest);
        for (key, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                self.put(key, rev_of(value), value);
            }
        }
        if rule.pages_wait {
            self.newest = through.max(self.newest);
        }
        (self.is_read, self.reading) = (true, 0);
    }

    fn put(&mut self, key: usize, rev: u8, value: Value) {
        if rev_of(self.rows[key]) < rev {
            self.rows[key] = value;
        }
    }

    /// A view is about to be shown.
    pub(super) fn fill(&mut self, key: usize, slot: usize, applied: u8, view: &View) {
        if view.wm <= applied {
            return;
        }
        if self.is_whole(applied) && self.rows[key] == view.value {
            if view.value == 0 {
                let (since, through) = self.absent;
                let since = if through <= applied { applied } else { since.min(applied) };
                self.absent = (since, through.max(view.wm));
            }
            return;
        }
        self.filled[slot] = view.wm.max(self.filled[slot]);
    }

    /// What the table answers for a key: 0 is an absence.
    pub(super) fn find(&self, rule: &Rule, key: usize, slot: usize, applied: u8) -> Option<Value> {
        let is_hidden = self.filled[slot] > applied && rule.fills_hide_rows;
        let (row, (since, through)) = (self.rows[key], self.absent);
        let was_absent = through > applied && rev_of(row) > since;
        (self.is_whole(applied) && !is_hidden && !was_absent).then_some(row)
    }

    fn is_whole(&self, applied: u8) -> bool {
        self.is_read && self.newest <= applied
    }
}

impl World {
    /// What the table answers for a key that no entry has. Its record is offered to the entries: that of key 0 by a step of its
    /// own, one at a time.
    pub(super) fn look_up(&mut self, rule: &Rule, places: &Places, key: usize) -> Option<Value> {
        let is_live = self.link.epoch == self.cache.epoch;
        let (slot, applied) = (places.slots[key], self.cache.applied);
        let value = self.cache.listed(rule, key, slot, is_live)?;
        if self.cache.floors[slot] > applied && rule.table_waits {
            // An event may be in the entries and not in the table.
            if !self.cache.is_busy() {
                return Some(value);
            }
            let view = View { epoch: self.cache.epoch, complete: true, wm: applied, value };
            let lifted = self.cache.lift(key, &view)?;
            return Some(self.cache.offer(rule, key, slot, &lifted, false)?.1);
        }
        if value != 0 {
            // Keys are few.
            let offered = Offered { key: key as u8, applied, value };
            if key == 0 {
                self.offered.get_or_insert(offered);
            } else {
                self.offer_listed(rule, places, offered);
            }
        }
        Some(value)
    }

    /// A record of the table is offered to the entries.
    pub(super) fn offer_listed(&mut self, rule: &Rule, places: &Places, offered: Offered) {
        let Offered { key, applied, value } = offered;
        let wm = if rule.offers_are_dated { applied } else { self.cache.applied };
        let view = View { epoch: self.cache.epoch, complete: true, wm, value };
        self.cache.offer(rule, key.into(), places.slots[usize::from(key)], &view, false);
    }

    /// Control reads the pages.
    pub(super) fn read_pages(&mut self) -> Option<()> {
        let replica = self.cache.replica.as_mut()?;
        replica.reading = self.control.log(self.cache.epoch).head;
        Some(())
    }
}
