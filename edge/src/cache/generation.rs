//! The entries of one epoch with their floors: the fill rule in one place (README, "Fill rule").

mod links;
mod rules;

use std::{
    hash::BuildHasher,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};
use foldhash::quality::RandomState;
use moka::{ops::compute::Op, sync::Cache};
use replica::{Full, Last, Resolved, Tail};
use shared::{
    availability::Availability,
    redirect::{Redirect, RedirectKey},
    wire::stream::{Epoch, Rev},
};

#[cfg(test)]
pub(super) use self::links::Listed;
pub(crate) use self::{links::PageFit, rules::Sources};
use super::{Found, Held, KeyRef, Leads, Served};
use crate::rules::RuleTable;

/// Floors; keys share them. 65,536 times 8 bytes is 512 KiB; two in tests, so that keys do share.
const FLOORS: usize = if cfg!(test) { 2 } else { 65_536 };
/// Keys of the tail: at 20,000 changes a second, three seconds of a view that lags. Two in tests.
const TAIL_KEYS: usize = if cfg!(test) { 2 } else { 64 << 10 };
/// Memory of a cached absence: key, moka's nodes and queues (measured: 431 bytes at 300,000).
const ABSENT_BYTES: usize = 430;
/// Memory of a redirection besides its texts: measured 1,012 bytes with a target of 63 characters, before two slices
/// were added.
const PRESENT_BYTES: usize = 900;

/// A redirection with the revision that wrote it.
pub(super) type Versioned = (Rev, Arc<Served>);

#[derive(Debug, Clone)]
struct Entry {
    /// The revision that wrote the value; for an absence from a fill: the view's watermark.
    rev: Rev,
    /// The revision at which the value was known to be the newest.
    as_of: Rev,
    found: Found,
}

/// What became of a view that was offered.
#[derive(Debug)]
pub(super) enum Offer {
    /// The key's state at `as_of`: the offered one, or a cached one that is at least as new.
    Taken {
        /// The revision at which `found` was the newest.
        as_of: Rev,
        /// The state.
        found: Found,
    },
    /// The view is older than what the edge has applied.
    Rejected,
}

/// The entries of one epoch.
#[derive(Debug)]
pub(super) struct Generation {
    epoch: Option<Epoch>,
    entries: Cache<RedirectKey, Entry, RandomState>,
    floors: Box<[AtomicU64]>,
    hasher: RandomState,
    /// Entries with an older `as_of` are stale.
    snap_floor: AtomicU64,
    applied: AtomicU64,
    tail: Mutex<Tail>,
    /// The rules of every account, exactly as of `applied`: never a part, so that nothing has to be fetched.
    rules: ArcSwap<RuleTable>,
    /// The same as they were sent, for the disk; written by the task that follows the stream alone.
    sources: Mutex<Sources>,
    /// After a start without control: entries from before this revision wait until it is applied; else 0.
    hold: AtomicU64,
    /// Every link, where the edge holds them all.
    full: ArcSwapOption<Full>,
}

/// A cache entry in the form that is saved to disk.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The key.
    pub(crate) key: RedirectKey,
    /// The revision that wrote the value; for an absence, one at which the key was absent.
    pub(crate) rev: Rev,
    /// The revision at which it was the newest.
    pub(crate) as_of: Rev,
    /// The record; `None` for an absence.
    pub(crate) value: Option<Arc<Redirect>>,
}

impl Generation {
    /// A cache without redirections that continues from `at_rev`, where the rules are these.
    pub(super) fn new(
        epoch: Option<Epoch>,
        at_rev: Rev,
        rules: RuleTable,
        capacity_bytes: u64,
        full: Option<Full>,
    ) -> Self {
        // Randomly seeded, because short ids are chosen by clients.
        let entries = Cache::builder()
            .max_capacity(capacity_bytes)
            .weigher(|_, entry: &Entry| weigh(entry))
            .build_with_hasher(RandomState::default());
        Self {
            epoch,
            entries,
            floors: (0..FLOORS).map(|_| AtomicU64::new(at_rev)).collect(),
            hasher: RandomState::default(),
            snap_floor: AtomicU64::new(at_rev),
            applied: AtomicU64::new(at_rev),
            tail: Mutex::new(Tail::new(at_rev, TAIL_KEYS)),
            rules: ArcSwap::from_pointee(rules),
            sources: Mutex::default(),
            hold: AtomicU64::new(0),
            full: ArcSwapOption::from_pointee(full),
        }
    }

    pub(super) fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    pub(super) fn applied(&self) -> Rev {
        self.applied.load(SeqCst)
    }

    pub(super) fn set_applied(&self, rev: Rev) {
        self.applied.fetch_max(rev, SeqCst);
        if rev >= self.hold.load(SeqCst) {
            self.hold.store(0, SeqCst);
        }
    }

    /// The first contact with control since a start without it; control is at `head`. Older entries are stale until
    /// `head` is applied, so that reads never go back from here on.
    ///
    /// Only the task that follows the stream calls this and [`Self::set_applied`].
    pub(super) fn confirm(&self, head: Rev) {
        if head > self.applied() {
            self.hold.store(head, SeqCst);
        }
    }

    /// Control is unreachable again: held-back entries are served as before the contact.
    pub(super) fn release(&self) {
        self.hold.store(0, SeqCst);
    }

    /// Entries with an older `as_of` are stale.
    fn oldest(&self) -> Rev {
        self.snap_floor.load(SeqCst).max(self.hold.load(SeqCst))
    }

    pub(super) fn size(&self) -> (u64, u64) {
        (self.entries.entry_count(), self.entries.weighted_size())
    }

    pub(super) fn floor(&self, key: &RedirectKey) -> Rev {
        self.slot(key).load(SeqCst).max(self.hold.load(SeqCst))
    }

    fn slot(&self, key: &RedirectKey) -> &AtomicU64 {
        &self.floors[self.slot_number(KeyRef::of(key))]
    }

    fn slot_number(&self, key: KeyRef<'_>) -> usize {
        // The remainder is below the number of slots.
        (self.hasher.hash_one(key) % FLOORS as u64) as usize
    }

    fn remembered(&self, key: KeyRef<'_>) -> Held {
        match self.entries.get(&key) {
            None => Held::Nothing,
            Some(entry) if entry.as_of < self.oldest() => Held::Stale,
            Some(Entry { found: Some(served), .. }) => Held::Present(served),
            Some(Entry { found: None, .. }) => Held::Absent,
        }
    }

    /// Applies one event; a record that cannot be served is refused and leaves the old value.
    pub(super) fn event(
        &self,
        rev: Rev,
        key: &RedirectKey,
        value: Option<&Arc<Redirect>>,
    ) -> Result<(), String> {
        let served = match value.map(|record| Served::new(key, record.clone())).transpose() {
            Ok(served) => served.map(Arc::new),
            Err(reason) => {
                self.remember(rev, key, Last::Refused);
                if let Some(full) = &*self.full.load() {
                    full.keep(key);
                }
                return Err(reason);
            }
        };
        self.enter(rev, key, served);
        // After the entry: a reader that gets no answer from the table a moment later finds nothing older there.
        if let Some(full) = &*self.full.load() {
            match value {
                Some(link) => full.put(key, rev, link),
                None => full.remove(key, rev),
            }
        }
        Ok(())
    }

    /// Applies one event to everything but the full replica.
    pub(super) fn enter(&self, rev: Rev, key: &RedirectKey, served: Found) {
        // First the tail, then the floor: a reader that sees the raised floor finds the tail complete.
        let last = served.as_ref().map_or(Last::Absent, |served| Last::Value(served.record.clone()));
        self.remember(rev, key, last);
        let slot = self.slot(key);
        self.entries.entry(key.clone()).and_compute_with(|current| {
            let floor = slot.fetch_max(rev, SeqCst);
            match current.map(moka::Entry::into_value) {
                Some(entry) if entry.rev < rev && rev >= floor => {
                    Op::Put(Entry { rev, as_of: rev, found: served })
                }
                Some(entry) if entry.rev < rev => Op::Remove,
                Some(_) | None => Op::Nop,
            }
        });
    }

    /// Notes a revision that changed no key.
    pub(super) fn pass(&self, rev: Rev) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).pass(rev);
    }

    /// Notes a revision that may have changed any key: no view from before it can be lifted over it.
    pub(super) fn pass_unread(&self, rev: Rev) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).restart(rev);
        if let Some(full) = &*self.full.load() {
            full.doubt();
        }
    }

    fn remember(&self, rev: Rev, key: &RedirectKey, last: Last) {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(rev, key, last);
    }

    /// Continues from `at_rev` without the events before it; `applied` never falls, and with a snapshot
    /// older than it the rules stay as well. A set that cannot be used leaves the old one in use, as a single change does.
    pub(super) fn snapshot(&self, at_rev: Rev, mut rules: RuleTable) {
        if at_rev >= self.applied() {
            let before = self.rules.load_full();
            for (account, set) in rules.iter_mut().filter(|(_, set)| set.is_refused()) {
                if let Some(old) = before.get(account) {
                    *set = old.clone();
                }
            }
            self.rules.store(Arc::new(rules));
        }
        let at_rev = at_rev.max(self.applied());
        for floor in &self.floors {
            floor.fetch_max(at_rev, SeqCst);
        }
        self.snap_floor.fetch_max(at_rev, SeqCst);
        // The changes in between are unknown, so all links are loaded again.
        if self.full.load().is_some() {
            self.full.store(Some(Arc::new(Self::empty_replica())));
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).restart(at_rev);
        self.set_applied(at_rev);
    }

    /// Visits every entry that is not stale, until `put` breaks.
    ///
    /// Each entry is true at the `applied` that was read before, or at a later revision.
    pub(super) fn walk(&self, mut put: impl FnMut(Kept) -> ControlFlow<()>) {
        for (key, entry) in &self.entries {
            // Read again for each entry, because one may be inserted late, from before a snapshot.
            if entry.as_of < self.oldest() {
                continue;
            }
            let value = entry.found.map(|served| served.record.clone());
            let kept = Kept { key: RedirectKey::clone(&key), rev: entry.rev, as_of: entry.as_of, value };
            if put(kept).is_break() {
                break;
            }
        }
    }

    /// Takes an entry from the disk, before this generation is shown to anybody; one that cannot be served is
    /// left out.
    pub(super) fn restore(&self, kept: Kept) {
        let Kept { key, rev, as_of, value } = kept;
        let found = match value.map(|record| Served::new(&key, record)).transpose() {
            Ok(found) => found.map(Arc::new),
            Err(_) => return,
        };
        // Everything up to `applied` was applied to it when it was written.
        let as_of = as_of.max(self.applied());
        self.slot(&key).fetch_max(as_of, SeqCst);
        self.entries.insert(key, Entry { rev, as_of, found });
    }

    /// Offers the state of a key in a view that holds everything up to `watermark`.
    pub(super) fn offer(&self, key: &RedirectKey, watermark: Rev, value: Option<Versioned>) -> Offer {
        let (rev, found) = match value {
            Some((rev, served)) => (rev, Some(served)),
            None => (watermark, None),
        };
        let slot = self.slot(key);
        let mut offer = Offer::Rejected;
        self.entries.entry(key.clone()).and_compute_with(|current| {
            let oldest = self.oldest();
            let fresh = current.map(moka::Entry::into_value).filter(|entry| entry.as_of >= oldest);
            let fits = watermark >= slot.load(SeqCst).max(self.hold.load(SeqCst));
            match fresh {
                Some(entry) if !fits => {
                    offer = Offer::Taken { as_of: entry.as_of, found: entry.found };
                    Op::Nop
                }
                None if !fits => Op::Nop,
                Some(entry) if entry.rev >= rev => {
                    offer = Offer::Taken { as_of: entry.as_of.max(watermark), found: entry.found };
                    Op::Nop
                }
                Some(_) | None => {
                    // The floor rises before the entry becomes visible: no older view gets in after it.
                    slot.fetch_max(watermark, SeqCst);
                    self.shows(key, watermark, found.as_ref().map(|_| rev));
                    offer = Offer::Taken { as_of: watermark, found: found.clone() };
                    Op::Put(Entry { rev, as_of: watermark, found })
                }
            }
        });
        offer
    }

    /// The same; a view that lags is lifted first, if it can be.
    pub(super) fn offer_lifted(&self, key: &RedirectKey, watermark: Rev, value: Option<Versioned>) -> Offer {
        let offer = self.offer(key, watermark, value.clone());
        if matches!(offer, Offer::Taken { .. }) {
            return offer;
        }
        self.lift(key, watermark, value)
            .map_or(Offer::Rejected, |(through, value)| self.offer(key, through, value))
    }

    /// Lifts a view that lags up to what this edge has seen itself, if the tail covers the difference.
    fn lift(
        &self,
        key: &RedirectKey,
        watermark: Rev,
        value: Option<Versioned>,
    ) -> Option<(Rev, Option<Versioned>)> {
        let (through, resolved) =
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).resolve(key, watermark)?;
        match resolved {
            Resolved::Unchanged => Some((through, value)),
            Resolved::Changed(_, Last::Absent) => Some((through, None)),
            Resolved::Changed(_, Last::Refused) => None,
            Resolved::Changed(rev, Last::Value(record)) => {
                let served = Served::new(key, record).ok()?;
                Some((through, Some((rev, Arc::new(served)))))
            }
        }
    }

    /// Throws entries out, as memory pressure would.
    #[cfg(test)]
    pub(super) fn evict(&self, key: &RedirectKey) {
        self.entries.invalidate(key);
    }
}

fn weigh(entry: &Entry) -> u32 {
    let bytes = match &entry.found {
        None => ABSENT_BYTES,
        Some(served) => {
            let record = &served.record;
            let scope = record.thng_name.as_ref().map_or(0, |name| name.len()) + 24 * record.projects.len();
            let availability = record.availability.as_deref();
            let window = availability.map_or(0, |availability| {
                let url = availability.ended_url.as_ref().map_or(0, |url| url.len());
                size_of::<Availability>() + url + 64 * availability.scans.len()
            });
            let links = record.digital_link.as_deref().map_or(0, resolver::size_bytes);
            PRESENT_BYTES + served.location.len() + record.target.len() + scope + window + links
        }
    };
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
