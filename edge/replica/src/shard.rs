//! A shard of the table: open addressing over one arena of records.
//!
//! A slot has four bytes: eight bits of the hash, and the start of the record in units of four bytes, counted from one;
//! zero is a free slot. Deletion shifts back the entries behind it, so there are no tombstones.

/// Bytes that records are aligned to.
const UNIT: usize = 4;
/// Bits of a slot that say where the record is: 64 MiB of records a shard.
const PLACE_BITS: u32 = 24;
/// Maximum load in percent: a look-up then visits four slots on average, all on one cache line.
const FULL: usize = 85;
/// Least slots.
const LEAST: usize = 8;
/// Bytes of dead records that are not worth a compaction.
const WASTE: usize = 1 << 10;

/// What a shard needs to know about its records.
pub(super) trait Form {
    /// Bytes of the record that begins here.
    fn length(&self, record: &[u8]) -> usize;
    /// Its hash.
    fn hash(&self, record: &[u8]) -> u64;
}

/// Some of the records.
#[derive(Debug, Default)]
pub(super) struct Shard {
    slots: Box<[u32]>,
    live: usize,
    arena: Vec<u8>,
    dead: usize,
}

/// A shard takes no more: its records would not be addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

const fn padded(length: usize) -> usize {
    length.next_multiple_of(UNIT)
}

/// A quarter more slots than are needed: three in four are in use on average.
fn slots_for(records: usize) -> usize {
    (records * 5 / 4 * 100 / FULL + 1).max(LEAST)
}

fn tag(hash: u64) -> u32 {
    // Eight bits that choose neither the shard nor the slot.
    ((hash >> 32) as u32 & 0xff) << PLACE_BITS
}

fn place(slot: u32) -> usize {
    ((slot & ((1 << PLACE_BITS) - 1)) as usize - 1) * UNIT
}

impl Shard {
    /// A shard of `count` records that stand one behind the other, as [`Self::copy`] gave them; `None` when they
    /// are not such records, or not all of this shard.
    pub(super) fn restore(
        form: &impl Form,
        mut records: Vec<u8>,
        count: usize,
        is_mine: impl Fn(u64) -> bool,
    ) -> Option<Self> {
        if records.len() / UNIT >= (1 << PLACE_BITS) - 1
            || !records.len().is_multiple_of(UNIT)
            || count > records.len() / UNIT
        {
            return None;
        }
        records.shrink_to_fit();
        let mut shard = Self { arena: records, ..Self::default() };
        if count > 0 {
            shard.slots = vec![0; slots_for(count)].into();
        }
        let mut at = 0;
        while at < shard.arena.len() {
            let record = &shard.arena[at..];
            let (length, hash) = (padded(form.length(record)), form.hash(record));
            if length == 0 || length > record.len() || shard.live == count || !is_mine(hash) {
                return None;
            }
            // Below 2^24, as was checked before.
            shard.store(hash, tag(hash) | ((at / UNIT) as u32 + 1));
            shard.live += 1;
            at += length;
        }
        (shard.live == count).then_some(shard)
    }

    /// Records in it.
    pub(super) fn count(&self) -> usize {
        self.live
    }

    /// Bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.slots.len() * size_of::<u32>() + self.arena.capacity()
    }

    /// The record with this hash for which `is_it` holds.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&[u8]) -> bool) -> Option<&[u8]> {
        let at = self.position(hash, is_it)?;
        self.arena.get(place(self.slots[at])..)
    }

    /// Puts a record in, in place of the one for which `is_it` holds.
    pub(super) fn put(
        &mut self,
        form: &impl Form,
        hash: u64,
        record: &[u8],
        is_it: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Full> {
        let old = self.position(hash, is_it);
        if (self.arena.len() + padded(record.len())) / UNIT >= (1 << PLACE_BITS) - 1 {
            self.compact(form);
            if (self.arena.len() + padded(record.len())) / UNIT >= (1 << PLACE_BITS) - 1 {
                return Err(Full);
            }
            // Compaction moves records, not slots: `old` stands.
        }
        let slot = tag(hash) | self.append(record);
        if let Some(at) = old {
            self.count_dead(form, self.slots[at]);
            self.slots[at] = slot;
        } else {
            if (self.live + 1) * 100 > self.slots.len() * FULL {
                self.grow(form, self.live + 1);
            }
            self.store(hash, slot);
            self.live += 1;
        }
        self.tidy(form);
        Ok(())
    }

    /// Takes the record out for which `is_it` holds; whether there was one.
    pub(super) fn remove(&mut self, form: &impl Form, hash: u64, is_it: impl Fn(&[u8]) -> bool) -> bool {
        let Some(mut hole) = self.position(hash, is_it) else { return false };
        self.count_dead(form, self.slots[hole]);
        let count = self.slots.len();
        let mut at = hole;
        loop {
            at = (at + 1) % count;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = self.home(form.hash(&self.arena[place(slot)..]));
            // The entry behind the hole moves into it, unless its home slot lies between.
            if (at + count - home) % count >= (at + count - hole) % count {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.live -= 1;
        self.tidy(form);
        true
    }

    /// Copies every record, padded; returns how many there are.
    pub(super) fn copy(&self, form: &impl Form, out: &mut Vec<u8>) -> usize {
        out.reserve(self.arena.len() - self.dead);
        for slot in self.slots.iter().filter(|slot| **slot != 0) {
            let record = &self.arena[place(*slot)..];
            out.extend_from_slice(&record[..padded(form.length(record)).min(record.len())]);
        }
        self.live
    }

    fn home(&self, hash: u64) -> usize {
        // The low half of the hash, mapped onto any number of slots.
        (((hash & 0xffff_ffff) * self.slots.len() as u64) >> 32) as usize
    }

    fn position(&self, hash: u64, is_it: impl Fn(&[u8]) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let (tag, mut at) = (tag(hash), self.home(hash));
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot & (0xff << PLACE_BITS) == tag && is_it(&self.arena[place(slot)..]) {
                return Some(at);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    fn store(&mut self, hash: u64, slot: u32) {
        let mut at = self.home(hash);
        // One slot is always free.
        while self.slots[at] != 0 {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        self.slots[at] = slot;
    }

    fn append(&mut self, record: &[u8]) -> u32 {
        let (begin, length) = (self.arena.len(), padded(record.len()));
        if self.arena.capacity() < begin + length {
            // An eighth at a time: doubling would leave a third of the memory unused.
            self.arena.reserve_exact(length.max(begin / 8));
        }
        self.arena.extend_from_slice(record);
        self.arena.resize(begin + length, 0);
        // Below 2^24, as was checked before.
        (begin / UNIT) as u32 + 1
    }

    fn count_dead(&mut self, form: &impl Form, slot: u32) {
        self.dead += padded(form.length(&self.arena[place(slot)..]));
    }

    fn grow(&mut self, form: &impl Form, records: usize) {
        let old = std::mem::replace(&mut self.slots, vec![0; slots_for(records)].into());
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            self.store(form.hash(&self.arena[place(slot)..]), slot);
        }
    }

    fn tidy(&mut self, form: &impl Form) {
        if self.dead > WASTE && self.dead * 8 > self.arena.len() {
            self.compact(form);
        }
        // After many deletions.
        if self.slots.len() > LEAST && self.live * 4 < self.slots.len() {
            self.grow(form, self.live);
        }
    }

    fn compact(&mut self, form: &impl Form) {
        let old = std::mem::take(&mut self.arena);
        self.arena.reserve_exact(old.len() - self.dead);
        self.dead = 0;
        for at in 0..self.slots.len() {
            let slot = self.slots[at];
            if slot != 0 {
                let record = &old[place(slot)..];
                let place = self.append(&record[..form.length(record)]);
                self.slots[at] = slot & (0xff << PLACE_BITS) | place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// `length | key | value…`, with a hash that causes many collisions.
    struct Bytes;

    fn hash_of(key: u8) -> u64 {
        (u64::from(key / 16) << 28) | (u64::from(key % 2) << 32)
    }

    impl Form for Bytes {
        fn length(&self, record: &[u8]) -> usize {
            usize::from(record[0])
        }

        fn hash(&self, record: &[u8]) -> u64 {
            hash_of(record[1])
        }
    }

    fn record(key: u8, value: u8) -> Vec<u8> {
        let mut record = vec![value; 2 + usize::from(value % 90)];
        (record[0], record[1]) = (record.len() as u8, key);
        record
    }

    proptest! {
        #[test]
        fn a_shard_behaves_like_a_map(
            steps in prop::collection::vec((any::<u8>(), prop::option::weighted(0.6, any::<u8>())), 1..2_000),
        ) {
            let (mut shard, mut map) = (Shard::default(), BTreeMap::new());
            for (key, value) in steps {
                let is_it = |record: &[u8]| record[1] == key;
                match value {
                    Some(value) => {
                        shard.put(&Bytes, hash_of(key), &record(key, value), is_it).unwrap();
                        map.insert(key, record(key, value));
                    }
                    None => {
                        let was = shard.remove(&Bytes, hash_of(key), is_it);
                        prop_assert_eq!(was, map.remove(&key).is_some());
                    }
                }
                prop_assert_eq!(shard.count(), map.len());
                prop_assert!(shard.dead <= WASTE.max(shard.arena.len() / 8));
            }
            for key in 0..=u8::MAX {
                let found = shard.find(hash_of(key), |record| record[1] == key);
                prop_assert_eq!(found.map(|found| &found[..Bytes.length(found)]), map.get(&key).map(Vec::as_slice));
            }
            let mut copy = Vec::new();
            let count = shard.copy(&Bytes, &mut copy);
            let again = Shard::restore(&Bytes, copy.clone(), count, |_| true).unwrap();
            for key in 0..=u8::MAX {
                let found = again.find(hash_of(key), |record| record[1] == key);
                prop_assert_eq!(found.map(|found| &found[..Bytes.length(found)]), map.get(&key).map(Vec::as_slice));
            }
            prop_assert!(Shard::restore(&Bytes, copy.clone(), count + 1, |_| true).is_none());
            prop_assert!(count == 0 || Shard::restore(&Bytes, copy.clone(), count - 1, |_| true).is_none());
            prop_assert!(count == 0 || Shard::restore(&Bytes, copy, count, |_| false).is_none());
        }
    }
}
