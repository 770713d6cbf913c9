//! Counts of links in memory.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
};

use foldhash::quality::RandomState;
use shared::{
    redirect::RedirectKey,
    time::UnixMillis,
    wire::limits::{LimitedScans, MAX_COUNTS},
};

/// Links in each of the two maps; a link takes some 150 bytes.
const MAX_LINKS: usize = 128 * 1_024;

/// A report is due when more than this part of what is left is not reported.
const PART: u64 = 1_024;

/// What an edge counted of one link.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    /// When the link was made.
    created_at: UnixMillis,
    /// All scans that this edge ever counted of it.
    pub(super) scans: u32,
    /// How many of them control has.
    known: u32,
}

impl Count {
    /// Takes what control knows of this edge: more, if the edge was restarted without its file.
    pub(super) fn see(&mut self, known: u32) {
        self.known = self.known.max(known);
        self.scans = self.scans.max(known);
    }

    /// As reports and the file have it.
    pub(super) fn report_of(&self, key: &RedirectKey) -> LimitedScans {
        LimitedScans {
            domain: (&*key.domain).into(),
            folded: (&*key.folded).into(),
            created_at: self.created_at,
            scans: self.scans,
        }
    }

    /// Whether control should hear of it now, while so many scans of the link are left.
    pub(super) fn is_due(&self, left: u64) -> bool {
        u64::from(self.scans.saturating_sub(self.known)) > left / PART
    }
}

/// Counts by link, in two maps: the older one is forgotten when the newer one is full.
#[derive(Debug, Default)]
pub(super) struct Counts {
    newer: HashMap<RedirectKey, Count, RandomState>,
    older: HashMap<RedirectKey, Count, RandomState>,
    /// Links of which a report is due.
    due: BTreeSet<RedirectKey>,
    /// Whether something was counted since it was saved.
    is_changed: bool,
}

impl Counts {
    /// The count of a link; another link of this short id begins anew.
    pub(super) fn entry(&mut self, key: &RedirectKey, created_at: UnixMillis) -> &mut Count {
        let is_newer = self.newer.contains_key(key);
        if !is_newer {
            let count = self.older.remove(key).unwrap_or_default();
            if self.newer.len() >= MAX_LINKS {
                self.older = mem::take(&mut self.newer);
            }
            self.newer.insert(key.clone(), count);
        }
        let count = self.newer.entry(key.clone()).or_default();
        if count.created_at != created_at {
            *count = Count { created_at, ..Count::default() };
        }
        count
    }

    /// What is counted of a link.
    pub(super) fn find(&self, key: &RedirectKey, created_at: UnixMillis) -> u32 {
        let count = self.newer.get(key).or_else(|| self.older.get(key));
        count.filter(|count| count.created_at == created_at).map_or(0, |count| count.scans)
    }

    /// Notes that something was counted, and the link of which a report is due.
    pub(super) fn changed(&mut self, due: Option<&RedirectKey>) {
        self.is_changed = true;
        // While control is away, links that are forgotten stay due: they are bounded, too. A sweep finds the others.
        if let Some(key) = due.filter(|key| self.due.len() < MAX_LINKS && !self.due.contains(*key)) {
            self.due.insert(key.clone());
        }
    }

    /// Makes a report due of each link of which control does not have all.
    pub(super) fn sweep(&mut self) {
        let counts = self.newer.iter().chain(&self.older);
        let behind = counts.filter(|(_, count)| count.scans > count.known).map(|(key, _)| key.clone());
        self.due.extend(behind);
    }

    /// What the next report says; what is due beyond it stays so.
    pub(super) fn take_due(&mut self) -> Vec<LimitedScans> {
        let mut taken = Vec::new();
        while taken.len() < MAX_COUNTS
            && let Some(key) = self.due.pop_first()
        {
            let Some(count) = self.newer.get(&key).or_else(|| self.older.get(&key)) else { continue };
            taken.push(count.report_of(&key));
        }
        taken
    }

    /// Control has what a report had.
    pub(super) fn reported(&mut self, counts: &[LimitedScans]) {
        for entry in counts {
            let key = RedirectKey::new(&entry.domain, &entry.folded);
            let count = match self.newer.get_mut(&key) {
                None => self.older.get_mut(&key),
                newer => newer,
            };
            if let Some(count) = count.filter(|count| count.created_at == entry.created_at) {
                count.known = count.known.max(entry.scans);
            }
        }
    }

    /// A report did not reach control: it is due again.
    pub(super) fn not_reported(&mut self, counts: &[LimitedScans]) {
        self.due.extend(counts.iter().map(|entry| RedirectKey::new(&entry.domain, &entry.folded)));
    }

    /// Whether something was counted since it was saved.
    pub(super) fn has_changed(&self) -> bool {
        self.is_changed
    }

    /// Everything that is counted, if something was since the last time; the links scanned last come last.
    pub(super) fn take_changed(&mut self) -> Option<Vec<(RedirectKey, Count)>> {
        if !mem::take(&mut self.is_changed) {
            return None;
        }
        let counts = self.older.iter().chain(&self.newer);
        Some(counts.map(|(key, count)| (key.clone(), *count)).collect())
    }

    /// Saving failed.
    pub(super) fn not_saved(&mut self) {
        self.is_changed = true;
    }

    /// Takes what an earlier start counted. How much of it control has is not known: it is reported once more.
    pub(super) fn restore(counts: impl IntoIterator<Item = LimitedScans>) -> Self {
        let mut restored = Self::default();
        for entry in counts {
            let key = RedirectKey::new(&entry.domain, &entry.folded);
            restored.entry(&key, entry.created_at).scans = entry.scans;
        }
        restored
    }
}
