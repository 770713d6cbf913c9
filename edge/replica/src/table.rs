//! The table: shards that grow, shrink and are read one by one, so that no change blocks the whole table.

use std::{
    hash::BuildHasher as _,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use foldhash::quality::FixedState;
use shared::{
    redirect::{Redirect, RedirectKey},
    wire::stream::Rev,
};

use super::{
    record::{self, Dictionary, Lead},
    shard::{Form, Shard},
};

/// Shards of a real table, as a power of two: at 100 million links one holds 12,000, which is what the longest
/// step (growth or compaction) copies while its readers wait.
const SHARDS: u32 = if cfg!(test) { 2 } else { 13 };
/// Most shards, as a power of two.
const MOST_SHARDS: u32 = 16;

/// Links by domain and folded short id.
#[derive(Debug)]
pub struct Table {
    shards: Box<[RwLock<Shard>]>,
    dictionary: Dictionary,
    /// Short ids are chosen by clients, so the hash has a secret random seed, which is saved with the table.
    seed: u64,
    hasher: FixedState,
}

/// How the shards read records.
struct Reading<'t>(&'t Table);

impl Form for Reading<'_> {
    fn length(&self, record: &[u8]) -> usize {
        record::length(record)
    }

    fn hash(&self, record: &[u8]) -> u64 {
        let key = record::key(record);
        let named = key.and_then(|(domain, folded)| Some((self.0.dictionary.domains.text(domain)?, folded)));
        named.map_or(0, |(domain, folded)| self.0.hash(domain, folded))
    }
}

/// A link cannot be held in this form: its domain is one too many, or its shard is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit;

impl Default for Table {
    fn default() -> Self {
        Self::with_shards(SHARDS)
    }
}

impl Table {
    /// An empty table of `1 << bits` shards.
    pub(super) fn with_shards(bits: u32) -> Self {
        Self::seeded(bits, getrandom::u64().unwrap_or_default(), Dictionary::new())
    }

    fn seeded(bits: u32, seed: u64, dictionary: Dictionary) -> Self {
        let shards = (0..1_usize << bits).map(|_| RwLock::default()).collect();
        Self { shards, dictionary, seed, hasher: FixedState::with_seed(seed) }
    }

    /// A table as it was written: the numbers of its shards (as a power of two), its seed and its texts.
    pub(super) fn restore(bits: u32, seed: u64, texts: &[Vec<Box<str>>; 3]) -> Option<Self> {
        let dictionary = Dictionary::new();
        for (names, texts) in
            [&dictionary.domains, &dictionary.templates, &dictionary.ids].into_iter().zip(texts)
        {
            for (number, text) in (0..).zip(texts) {
                // Numbers must be reproduced exactly: a duplicate text, or one that does not fit, means damage.
                (names.number(text) == Some(number)).then_some(())?;
            }
        }
        (bits <= MOST_SHARDS).then(|| Self::seeded(bits, seed, dictionary))
    }

    /// Fills an empty shard with `count` records as [`Self::copy_shard`] gave them.
    pub(super) fn restore_shard(&mut self, number: usize, records: Vec<u8>, count: usize) -> Option<()> {
        let mask = self.shards.len() - 1;
        let shard = Shard::restore(&Reading(self), records, count, |hash| place(hash, mask) == number)?;
        *self.shards.get_mut(number)?.get_mut().unwrap_or_else(PoisonError::into_inner) = shard;
        Some(())
    }

    /// Inserts a link, unless the existing one is at least as new.
    ///
    /// # Errors
    /// There is no room for it; the old link stays.
    pub fn put(&self, key: &RedirectKey, rev: Rev, link: &Redirect) -> Result<(), Unfit> {
        let bytes = record::encode(&self.dictionary, key, rev, link).ok_or(Unfit)?;
        let hash = self.hash(&key.domain, key.folded.as_bytes());
        let is_it = |record: &[u8]| self.is_it(record, &key.domain, &key.folded);
        let mut shard = self.write(hash);
        if shard.find(hash, is_it).and_then(record::rev).is_some_and(|there| there >= rev) {
            return Ok(());
        }
        shard.put(&Reading(self), hash, &bytes, is_it).map_err(|_| Unfit)
    }

    /// Takes a link out that is older than `rev`.
    pub fn remove(&self, key: &RedirectKey, rev: Rev) {
        let hash = self.hash(&key.domain, key.folded.as_bytes());
        let is_it = |record: &[u8]| self.is_it(record, &key.domain, &key.folded);
        let mut shard = self.write(hash);
        if shard.find(hash, is_it).and_then(record::rev).is_some_and(|there| there < rev) {
            shard.remove(&Reading(self), hash, is_it);
        }
    }

    /// A link with the revision that wrote it.
    #[must_use]
    pub fn find(&self, domain: &str, folded: &str) -> Option<(Rev, Redirect)> {
        self.look(domain, folded, |record| record::decode(&self.dictionary, record))
    }

    /// The target of a link, with the revision that wrote it; no target if it has tags.
    #[must_use]
    pub fn find_lead(&self, domain: &str, folded: &str) -> Option<(Rev, Option<Lead>)> {
        self.look(domain, folded, |record| record::lead(&self.dictionary, record))
    }

    /// The revision that wrote a link.
    #[must_use]
    pub fn find_rev(&self, domain: &str, folded: &str) -> Option<Rev> {
        self.look(domain, folded, record::rev)
    }

    fn look<T>(&self, domain: &str, folded: &str, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let hash = self.hash(domain, folded.as_bytes());
        let shard = self.read(hash);
        read(shard.find(hash, |record| self.is_it(record, domain, folded))?)
    }

    fn is_it(&self, record: &[u8], domain: &str, folded: &str) -> bool {
        record::key(record).is_some_and(|(number, text)| {
            text == folded.as_bytes() && self.dictionary.domains.text(number) == Some(domain)
        })
    }

    fn hash(&self, domain: &str, folded: &[u8]) -> u64 {
        self.hasher.hash_one((domain, folded))
    }

    /// Number of links; visits every shard.
    #[must_use]
    pub fn count(&self) -> usize {
        (0..self.shards.len()).map(|number| self.shard(number).count()).sum()
    }

    /// Total bytes; visits every shard.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let shards: usize = (0..self.shards.len()).map(|number| self.shard(number).bytes()).sum();
        // The lock of a shard.
        shards
            + self.shards.len() * (size_of::<RwLock<Shard>>() - size_of::<Shard>())
            + self.dictionary.bytes()
    }

    /// How many shards there are, and the seed of their hash.
    pub(super) fn form(&self) -> (usize, u64) {
        (self.shards.len(), self.seed)
    }

    /// The texts that records name by number; those of records that are copied before are among them.
    pub(super) fn texts(&self) -> [Vec<&str>; 3] {
        [&self.dictionary.domains, &self.dictionary.templates, &self.dictionary.ids].map(|names| names.all())
    }

    /// Appends the records of a shard to `out`, in the arena's format; returns how many.
    pub(super) fn copy_shard(&self, number: usize, out: &mut Vec<u8>) -> usize {
        self.shard(number).copy(&Reading(self), out)
    }

    fn shard(&self, number: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[number].read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self, hash: u64) -> &RwLock<Shard> {
        // Below the number of shards, which is a power of two.
        &self.shards[place(hash, self.shards.len() - 1)]
    }

    fn read(&self, hash: u64) -> RwLockReadGuard<'_, Shard> {
        self.lock(hash).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Shard> {
        self.lock(hash).write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shard of a hash, by its highest bits, which choose neither slot nor tag.
fn place(hash: u64, mask: usize) -> usize {
    (hash >> 41) as usize & mask
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use shared::time::UnixMillis;

    use super::*;

    pub(crate) fn link(domain: &str, n: u32, target: u32) -> Redirect {
        let platform_id: String = shared::id::compose(i64::from(n), [7; 16]).map(char::from).iter().collect();
        Redirect::plain(
            domain.parse().unwrap(),
            format!("K{n:09}").parse().unwrap(),
            platform_id.parse().unwrap(),
            format!("https://shop{}.example.com/products/view?item=47110000{target:08}", n % 3),
            UnixMillis(1_790_000_000_000),
        )
    }

    pub(crate) fn key(domain: &str, n: u32) -> RedirectKey {
        RedirectKey::new(domain, &format!("K{n:09}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_table_behaves_like_a_map_of_the_newest_values(
            steps in prop::collection::vec((any::<bool>(), 0..400_u32, 1..5_000_u64, any::<bool>()), 1..3_000),
        ) {
            let (table, mut map) = (Table::with_shards(1), BTreeMap::<(bool, u32), (Rev, Redirect)>::new());
            for (domain, n, rev, is_put) in steps {
                let (host, entry) = (if domain { "tn.gg" } else { "a.gg" }, map.get(&(domain, n)));
                let there = entry.map(|entry| entry.0);
                if is_put {
                    let link = link(host, n, rev as u32);
                    table.put(&key(host, n), rev, &link).unwrap();
                    if there.is_none_or(|there| there < rev) {
                        map.insert((domain, n), (rev, link));
                    }
                } else {
                    table.remove(&key(host, n), rev);
                    if there.is_some_and(|there| there < rev) {
                        map.remove(&(domain, n));
                    }
                }
            }
            prop_assert_eq!(table.count(), map.len());
            for (domain, host) in [(true, "tn.gg"), (false, "a.gg"), (true, "b.gg")] {
                for n in 0..400 {
                    let expected = map.get(&(domain, n)).filter(|_| host != "b.gg");
                    let found = table.find(host, &key(host, n).folded);
                    prop_assert_eq!(found.as_ref(), expected);
                    let rev = table.find_rev(host, &key(host, n).folded);
                    prop_assert_eq!(rev, expected.map(|(rev, _)| *rev));
                }
            }
        }
    }

    #[test]
    fn concurrent_readers_see_whole_changes() {
        let table = Table::with_shards(2);
        let (keys, rounds) = (64, 200);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = vec![0; keys as usize];
                    while last[0] < rounds {
                        for n in 0..keys {
                            let Some((rev, found)) = table.find("tn.gg", &key("tn.gg", n).folded) else {
                                continue;
                            };
                            assert_eq!(found, link("tn.gg", n, rev as u32), "torn");
                            assert!(last[n as usize] <= rev, "gone back");
                            last[n as usize] = rev;
                        }
                    }
                });
            }
            for rev in 1..=rounds {
                for n in (0..keys).rev() {
                    table.put(&key("tn.gg", n), rev, &link("tn.gg", n, rev as u32)).unwrap();
                }
            }
        });
    }

    #[test]
    fn a_link_takes_less_than_90_bytes_and_a_deleted_one_none() {
        let (table, count) = (Table::with_shards(6), 100_000);
        for n in 0..count {
            table.put(&key("tn.gg", n), u64::from(n) + 1, &link("tn.gg", n, n)).unwrap();
        }
        let each = table.bytes() / table.count();
        assert!(each <= 90, "{each} bytes a link");
        for n in 0..count {
            table.remove(&key("tn.gg", n), u64::MAX);
        }
        assert_eq!(table.count(), 0);
        assert!(table.bytes() < 400_000, "{} bytes for nothing", table.bytes());
    }
}
