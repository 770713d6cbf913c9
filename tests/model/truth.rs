//! Control: the log of each epoch, and what was true when.

/// Keys; both may share a floor and a shard.
pub(super) const KEYS: usize = 2;
/// Newest revision that a log can reach.
const MAX_REV: usize = 5;
/// No epoch.
pub(super) const NONE: u8 = u8::MAX;

/// A value: 0 is absent, else the revision that wrote it in the low three bits, and its epoch above.
pub(super) type Value = u8;

/// Marks a value that an edge cannot use: it refuses the change, and what it held stays.
const POISON: Value = 0x40;

/// Whether an edge cannot use a value.
pub(super) fn is_poison(value: Value) -> bool {
    value & POISON != 0
}

/// The revision that wrote a value.
pub(super) fn rev_of(value: Value) -> u8 {
    value & 7
}

/// One revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Write {
    pub(super) key: u8,
    pub(super) value: Value,
}

/// The log of one epoch; revision 1 stands for all that was before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Log {
    pub(super) head: u8,
    /// What both keys hold at revision 1.
    first: Value,
    writes: [Write; MAX_REV],
}

impl Log {
    /// A log of one revision, at which both keys hold `first`.
    pub(super) fn new(first: Value) -> Self {
        Self { head: 1, first, writes: [Write::default(); MAX_REV] }
    }

    /// The revision `rev`, from 2 on.
    pub(super) fn write(&self, rev: u8) -> Write {
        self.writes[usize::from(rev)]
    }

    pub(super) fn push(&mut self, epoch: u8, key: u8, put: bool) {
        self.head += 1;
        let value = if put { self.head | epoch << 3 } else { 0 };
        self.writes[usize::from(self.head)] = Write { key, value };
    }

    pub(super) fn push_poison(&mut self, key: u8) {
        self.head += 1;
        self.writes[usize::from(self.head)] = Write { key, value: self.head | POISON };
    }

    /// The log as a backup from `back` revisions ago has it.
    pub(super) fn restored(&self, back: u8) -> Self {
        let mut log = *self;
        while log.head > self.head - back {
            log.writes[usize::from(log.head)] = Write::default();
            log.head -= 1;
        }
        log
    }

    /// What `key` holds at `rev`, for an edge: what that refuses leaves what was before.
    pub(super) fn at(&self, rev: u8, key: usize) -> Value {
        self.newest(rev, key, |value| !is_poison(value))
    }

    /// What `key` holds at `rev`, as it is stored.
    pub(super) fn stored(&self, rev: u8, key: usize) -> Value {
        self.newest(rev, key, |_| true)
    }

    fn newest(&self, rev: u8, key: usize, counts: fn(Value) -> bool) -> Value {
        let mut rev = rev;
        while rev > 1 {
            let write = self.writes[usize::from(rev)];
            if usize::from(write.key) == key && counts(write.value) {
                return write.value;
            }
            rev -= 1;
        }
        self.first
    }

    /// The first revision from `least` on at which `key` held `value`.
    pub(super) fn when(&self, least: u8, key: usize, value: Value) -> Option<u8> {
        (least.max(1)..=self.head).find(|rev| self.at(*rev, key) == value)
    }
}

/// The control plane's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Control {
    pub(super) epoch: u8,
    pub(super) logs: [Log; 2],
}

impl Control {
    pub(super) fn new(first: Value) -> Self {
        Self { epoch: 0, logs: [Log::new(first), Log::default()] }
    }

    pub(super) fn log(&self, epoch: u8) -> &Log {
        &self.logs[usize::from(epoch)]
    }

    /// The log that is written now.
    pub(super) fn now(&self) -> &Log {
        self.log(self.epoch)
    }

    pub(super) fn write(&mut self, key: u8, put: bool) {
        let epoch = self.epoch;
        self.logs[usize::from(epoch)].push(epoch, key, put);
    }

    pub(super) fn poison(&mut self, key: u8) {
        self.logs[usize::from(self.epoch)].push_poison(key);
    }

    /// A restore, or a failover: history may be cut, so the epoch is another one.
    pub(super) fn restore(&mut self, back: u8) {
        self.logs[1] = self.logs[0].restored(back);
        self.epoch = 1;
    }
}
