//! The edge's cache: mirrors `edge/src/cache/generation.rs` and `edge/replica/src/tail.rs`, step by step.

use super::{
    redis::View,
    replica::Replica,
    rule::{Rule, Taking},
    truth::{KEYS, Log, NONE, Value, Write, is_poison, rev_of},
};

/// Keys that the tail remembers: one fewer than there are, so that it forgets.
const TAIL: usize = 1;

/// One entry; revision 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Entry {
    pub(super) rev: u8,
    pub(super) as_of: u8,
    pub(super) value: Value,
}

/// The newest change of each key, exact from `complete_from` to `through`; revision 0 is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Tail {
    newest: [(u8, Value); KEYS],
    complete_from: u8,
    through: u8,
}

impl Tail {
    fn new(rev: u8) -> Self {
        Self { complete_from: rev, through: rev, ..Self::default() }
    }

    fn push(&mut self, rev: u8, write: Write) {
        self.newest[usize::from(write.key)] = (rev, write.value);
        self.through = rev;
        while self.newest.iter().filter(|(rev, _)| *rev > 0).count() > TAIL {
            let Some(oldest) = self.newest.iter_mut().filter(|(rev, _)| *rev > 0).min_by_key(|(rev, _)| *rev)
            else {
                break;
            };
            self.complete_from = oldest.0;
            *oldest = (0, 0);
        }
    }

    /// The newest change of a key after `rev`, if there is one; `None` if that is not known.
    fn since(&self, key: usize, rev: u8) -> Option<Option<(u8, Value)>> {
        let newest = self.newest[key];
        (rev >= self.complete_from).then_some((newest.0 > rev).then_some(newest))
    }
}

/// What is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Disk {
    pub(super) epoch: u8,
    pub(super) applied: u8,
    pub(super) entries: [Entry; KEYS],
}

/// The cache of one epoch, and how far its stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Cache {
    pub(super) epoch: u8,
    pub(super) applied: u8,
    /// Events that are in the entries, at most two more than `applied` in the midst of a run.
    entered: u8,
    pub(super) entries: [Entry; KEYS],
    pub(super) floors: [u8; KEYS],
    snap_floor: u8,
    /// Head of the first contact after a boot: until `applied` is there, nothing from before it is served or
    /// taken; then 0.
    pub(super) gate: u8,
    /// Booted, and no contact has lasted until the edge had caught up.
    pub(super) booting: bool,
    /// No message of control reaches it while it boots.
    pub(super) alone: bool,
    tail: Tail,
    /// Every link, where the edge holds them all.
    pub(super) replica: Option<Replica>,
}

/// The steps in which events come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EventStep {
    /// The tail has it.
    Tail,
    /// Floor and entry have it.
    Enter,
    /// The full replica has it, if there is one.
    Table,
    /// The run is done: `applied` says so.
    Done,
}

impl EventStep {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 4] = [Self::Tail, Self::Enter, Self::Table, Self::Done];
}

impl Cache {
    /// `Generation::new`: without entries, from `at_rev` on.
    pub(super) fn new(epoch: u8, at_rev: u8) -> Self {
        Self {
            epoch,
            applied: at_rev,
            entered: at_rev,
            entries: [Entry::default(); KEYS],
            floors: [at_rev; KEYS],
            snap_floor: at_rev,
            gate: 0,
            booting: false,
            alone: false,
            tail: Tail::new(at_rev),
            replica: None,
        }
    }

    /// A start from disk, or with nothing.
    pub(super) fn boot(disk: Option<&Disk>, slots: &[usize; KEYS]) -> Self {
        let Some(disk) = disk else { return Self { booting: true, alone: true, ..Self::new(NONE, 0) } };
        let mut cache = Self { booting: true, alone: true, ..Self::new(disk.epoch, disk.applied) };
        for (key, entry) in disk.entries.iter().enumerate().filter(|(_, entry)| entry.rev > 0) {
            // Everything up to `applied` was applied to it when it was written.
            let as_of = entry.as_of.max(disk.applied);
            cache.entries[key] = Entry { as_of, ..*entry };
            let floor = &mut cache.floors[slots[key]];
            *floor = as_of.max(*floor);
        }
        cache
    }

    /// A start from what the view says of itself, with nothing held.
    pub(super) fn boot_from_view(rule: &Rule, view: &View) -> Self {
        let mut cache = Self { booting: true, alone: true, ..Self::new(view.epoch, view.wm) };
        if !rule.view_boot_raises {
            cache.floors = [0; KEYS];
        }
        cache
    }

    /// The least watermark that a fill must have.
    pub(super) fn floor(&self, slot: usize) -> u8 {
        self.floors[slot].max(self.gate)
    }

    /// Whether an entry is no longer to be served.
    pub(super) fn is_stale(&self, rule: &Rule, entry: &Entry) -> bool {
        let swept = entry.as_of < self.snap_floor && (rule.snapshot_sweeps_all || entry.value != 0);
        swept || entry.as_of < self.gate
    }

    /// What would be served without asking anybody.
    pub(super) fn held(&self, rule: &Rule, key: usize) -> Option<Entry> {
        let entry = self.entries[key];
        (entry.rev > 0 && !self.is_stale(rule, &entry)).then_some(entry)
    }

    /// Whether a run of events is being applied: the one task of the stream does nothing else meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        self.tail.through > self.applied
    }

    /// The next event, if `step` may come now and the stream has one.
    pub(super) fn next_event(&self, step: EventStep, head: u8) -> Option<u8> {
        let through = self.tail.through;
        let tabled = self.replica.map_or(self.entered, |replica| replica.tabled);
        match step {
            EventStep::Tail if through == tabled && through < head.min(self.applied + 2) => Some(through + 1),
            EventStep::Enter if through == self.entered + 1 => Some(through),
            EventStep::Table if self.entered > tabled => Some(self.entered),
            EventStep::Done if through == tabled && through > self.applied => Some(through),
            EventStep::Tail | EventStep::Enter | EventStep::Table | EventStep::Done => None,
        }
    }

    /// Applies a step of the event `rev`; returns the key whose lease ends.
    pub(super) fn event(
        &mut self,
        rule: &Rule,
        step: EventStep,
        rev: u8,
        write: Write,
        slots: &[usize; KEYS],
    ) {
        match step {
            EventStep::Tail => self.tail.push(rev, write),
            EventStep::Enter => {
                self.entered = rev;
                let (key, slot) = (usize::from(write.key), slots[usize::from(write.key)]);
                if is_poison(write.value) {
                    if !rule.refused_keep && self.entries[key].rev > 0 {
                        self.entries[key] = Entry { rev, as_of: rev, value: 0 };
                        self.floors[slot] = self.floors[slot].max(rev);
                    }
                    return;
                }
                let floor = self.floors[slot];
                self.floors[slot] = floor.max(rev);
                let entry = &mut self.entries[key];
                if entry.rev == 0 || entry.rev >= rev {
                    return;
                }
                if rule.taking == Taking::Leases {
                    *entry = Entry::default();
                } else if rev >= floor {
                    *entry = Entry { rev, as_of: rev, value: write.value };
                } else if rule.low_events_remove {
                    *entry = Entry::default();
                }
            }
            EventStep::Table => {
                if let Some(replica) = &mut self.replica {
                    replica.event(rev, write);
                }
            }
            EventStep::Done => {
                self.applied = rev;
                self.catch_up();
            }
        }
    }

    fn catch_up(&mut self) {
        if !self.alone && self.applied >= self.gate {
            (self.gate, self.booting) = (0, false);
        }
    }

    /// A welcome that resumes; `head` is control's when it was dialled.
    pub(super) fn resume(&mut self, rule: &Rule, head: u8) {
        if self.booting && rule.contact_ends_disk && head > self.applied {
            self.gate = head;
        }
        self.alone = false;
        self.catch_up();
    }

    /// The stream ends: before the edge has caught up, what waits is served again.
    pub(super) fn cut(&mut self) {
        self.gate = 0;
        self.alone = self.booting;
    }

    /// A welcome with a snapshot.
    pub(super) fn snapshot(&mut self, epoch: u8, at_rev: u8) {
        if self.epoch != epoch {
            let replica = self.replica.map(|_| Replica::empty(at_rev));
            *self = Self { replica, ..Self::new(epoch, at_rev) };
            return;
        }
        let at_rev = at_rev.max(self.applied);
        for floor in &mut self.floors {
            *floor = at_rev.max(*floor);
        }
        self.snap_floor = at_rev.max(self.snap_floor);
        self.tail = Tail::new(at_rev);
        self.replica = self.replica.map(|_| Replica::empty(at_rev));
        (self.applied, self.entered) = (at_rev, at_rev);
        self.alone = false;
        self.catch_up();
    }

    /// Offers a view: the verified answer with its moment, or `None`.
    pub(super) fn offer(
        &mut self,
        rule: &Rule,
        key: usize,
        slot: usize,
        view: &View,
        leased: bool,
    ) -> Option<(u8, Value)> {
        let mut view = *view;
        if view.epoch == NONE && !rule.flushed_is_unknown {
            view = View { epoch: self.epoch, complete: true, wm: self.floor(slot), value: 0 };
        }
        if is_poison(view.value) {
            if rule.garbled_is_unknown {
                return None;
            }
            view.value = 0;
        }
        let is_ours = view.epoch != NONE && view.epoch == self.epoch;
        if !is_ours || (!view.complete && rule.complete_counts) {
            return None;
        }
        let put = Entry { rev: view.rev(), as_of: view.wm, value: view.value };
        let fresh = self.held(rule, key);
        let fits = match rule.taking {
            Taking::Floors => view.wm >= self.floor(slot),
            Taking::Versions => true,
            Taking::Plain | Taking::Leases => {
                if leased || rule.taking == Taking::Plain {
                    self.entries[key] = put;
                }
                return Some((u8::MAX, put.value));
            }
        };
        match fresh {
            Some(entry) if !fits => Some((entry.as_of, entry.value)),
            None if !fits => None,
            Some(entry) if entry.rev >= put.rev => Some((entry.as_of.max(view.wm), entry.value)),
            Some(_) | None => {
                if rule.taking == Taking::Floors && (rule.negatives_raise || put.value != 0) {
                    self.floors[slot] = view.wm.max(self.floors[slot]);
                }
                if let Some(replica) = &mut self.replica {
                    replica.fill(key, slot, self.applied, &view);
                }
                if rule.older_are_replaced || self.entries[key].rev == 0 {
                    self.entries[key] = put;
                }
                Some((view.wm, put.value))
            }
        }
    }

    /// Lifts a view by the tail, if that covers the difference.
    pub(super) fn lift(&self, key: usize, view: &View) -> Option<View> {
        let covered = (self.tail.complete_from..=self.tail.through).contains(&view.wm);
        if view.epoch != self.epoch || !view.complete || !covered {
            return None;
        }
        let (rev, newest) = self.tail.newest[key];
        let value = if rev > view.wm { newest } else { view.value };
        if is_poison(value) || is_poison(view.value) {
            return None;
        }
        Some(View { wm: self.tail.through, value, ..*view })
    }

    /// What the full replica answers for a key.
    pub(super) fn listed(&self, rule: &Rule, key: usize, slot: usize, is_live: bool) -> Option<Value> {
        if self.gate > self.applied {
            return None;
        }
        let value = self.replica?.find(rule, key, slot, self.applied)?;
        (value != 0 || is_live).then_some(value)
    }

    /// Pages that were read come in. Where the tail has forgotten what changed since, they are read again.
    pub(super) fn take_pages(&mut self, rule: &Rule, log: &Log) -> Option<()> {
        let replica = self.replica.as_mut()?;
        let at_rev = replica.reading;
        let since = [0, 1].map(|key| self.tail.since(key, at_rev));
        match since {
            [Some(one), Some(other)] => {
                let of_page =
                    |(key, change): (usize, Option<_>)| change.is_none().then(|| log.at(at_rev, key));
                replica.take_pages(rule, [(0, one), (1, other)].map(of_page), self.tail.through);
            }
            [None, _] | [_, None] => replica.reading = 0,
        }
        Some(())
    }

    /// Memory pressure.
    pub(super) fn evict(&mut self, key: usize) {
        self.entries[key] = Entry::default();
    }

    /// What a disk snapshot writes of a key.
    pub(super) fn on_disk(&self, rule: &Rule, key: usize) -> Entry {
        let entry = self.entries[key];
        let stale = entry.as_of < self.snap_floor.max(self.gate);
        if stale && rule.disk_skips_stale { Entry::default() } else { entry }
    }

    /// The floor under every entry: what is visible was known to the floor first.
    pub(super) fn floors_hold(&self, slots: &[usize; KEYS]) -> bool {
        let below = |(key, entry): (usize, &Entry)| entry.as_of <= self.floors[slots[key]];
        self.entries.iter().enumerate().all(below)
            && self.entries.iter().all(|entry| rev_of(entry.value) <= entry.as_of)
    }
}
