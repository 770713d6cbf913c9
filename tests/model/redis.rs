//! Redis: shards with a watermark, their older copies, and the publishers that write them.

use super::{
    rule::Rule,
    truth::{Control, KEYS, NONE, Value, rev_of},
};

/// One shard: `meta` and its rows. Without `meta` the epoch is [`NONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Shard {
    pub(super) epoch: u8,
    pub(super) wm: u8,
    pub(super) complete: bool,
    term: u8,
    /// Rows written by the rebuild under way.
    rebuilt: u8,
    rows: [Value; KEYS],
}

/// What one atomic read of `meta` and a key shows; also control's answer to a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) epoch: u8,
    pub(super) complete: bool,
    pub(super) wm: u8,
    pub(super) value: Value,
}

impl View {
    /// The revision of what is seen; a negative's is the watermark.
    pub(super) fn rev(&self) -> u8 {
        if self.value == 0 { self.wm } else { rev_of(self.value) }
    }
}

impl Shard {
    pub(super) const FLUSHED: Self =
        Self { epoch: NONE, wm: 0, complete: false, term: 0, rebuilt: 0, rows: [0; KEYS] };

    /// A shard with everything up to the head, by the publisher of term 1.
    pub(super) fn new(control: &Control, keys: &[usize]) -> Self {
        let mut shard = Self { epoch: control.epoch, wm: 1, complete: true, term: 1, ..Self::FLUSHED };
        for key in keys {
            shard.rows[*key] = control.now().at(1, *key);
        }
        shard
    }

    /// `MGET meta key`.
    pub(super) fn read(&self, key: usize) -> View {
        View { epoch: self.epoch, complete: self.complete, wm: self.wm, value: self.rows[key] }
    }
}

/// What a publisher knows of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// It has to look.
    Unknown,
    /// It wrote, or saw, everything up to `wm`.
    At { epoch: u8, wm: u8 },
    /// It rebuilds the shard as of `at_rev`; `next` rows are written.
    Rebuilding { epoch: u8, at_rev: u8, next: u8 },
}

/// The leader of a region, or one that was deposed and does not know. Term 0 does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Publisher {
    pub(super) term: u8,
    pub(super) works: [Work; 2],
}

impl Publisher {
    pub(super) const DOWN: Self = Self { term: 0, works: [Work::Unknown; 2] };

    /// The next step on a shard that holds `keys`; `None` when there is nothing to do.
    ///
    /// Every step is one script: it checks and writes in one go, or refuses.
    pub(super) fn step(
        &self,
        rule: &Rule,
        control: &Control,
        shard: &Shard,
        number: usize,
        keys: &[usize],
    ) -> Option<(Self, Shard)> {
        let (mut next, mut after) = (*self, *shard);
        let deposed = rule.terms_fence && shard.epoch != NONE && shard.term > self.term;
        let work = match self.works[number] {
            Work::Unknown if deposed => return Some((Self::DOWN, after)),
            Work::Unknown => {
                let head = control.now().head;
                if shard.epoch == control.epoch && shard.complete && shard.wm <= head {
                    Work::At { epoch: control.epoch, wm: shard.wm }
                } else {
                    let (epoch, term) = (control.epoch, self.term);
                    after = Shard { epoch, wm: head, complete: false, term, rebuilt: 0, rows: [0; KEYS] };
                    Work::Rebuilding { epoch, at_rev: head, next: 0 }
                }
            }
            // It reads the log of its own epoch until it sees that there is another one.
            Work::At { epoch, wm } if wm == control.log(epoch).head => {
                if epoch == control.epoch && shard.epoch == epoch && shard.complete && shard.wm == wm {
                    return None;
                }
                Work::Unknown
            }
            Work::At { epoch, wm } => {
                if deposed || shard.epoch != epoch || shard.wm != wm || !shard.complete {
                    Work::Unknown
                } else {
                    let write = control.log(epoch).write(wm + 1);
                    if keys.contains(&usize::from(write.key)) {
                        after.rows[usize::from(write.key)] = write.value;
                    }
                    (after.wm, after.term) = (wm + 1, self.term);
                    Work::At { epoch, wm: wm + 1 }
                }
            }
            Work::Rebuilding { epoch, at_rev, next: row } => {
                // The count binds a rebuild to the copy it began on, and to all that it wrote there.
                let continues = !rule.rebuild_counts || (shard.rebuilt == row && shard.wm == at_rev);
                let is_mine = !rule.terms_fence || shard.term == self.term;
                if shard.epoch != epoch || shard.complete || !is_mine || !continues {
                    Work::Unknown
                } else if let Some(key) = keys.get(usize::from(row)) {
                    after.rows[*key] = control.log(epoch).stored(at_rev, *key);
                    after.rebuilt = row + 1;
                    Work::Rebuilding { epoch, at_rev, next: row + 1 }
                } else {
                    (after.complete, after.wm, after.rebuilt) = (true, at_rev, 0);
                    Work::At { epoch, wm: at_rev }
                }
            }
        };
        next.works[number] = work;
        Some((next, after))
    }
}
