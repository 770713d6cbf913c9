//! When the replica may answer, and when the fill rule must (README of `edge`, "Full replica").
//!
//! Once all pages are loaded and everything up to the newest of them is applied, the table is the state of `applied`
//! for every key. Only fills can have shown a later state, because a view may be ahead of the stream, and a fill is
//! only made for a key that the table does not answer. So that reads never go back:
//! - a fill that differs from the table raises `filled` of its key's slot to the view's watermark, and the table does
//!   not answer for that slot until this revision is applied;
//! - an absence that the table confirms raises `absent` instead, as guessed ids would otherwise disable every slot
//!   while control is away: until that revision is applied, no link is shown that was created after the state in which
//!   it was absent.
//!
//! While the stream is connected, an absence is answered without asking. While it is not, a key that the table lacks is
//! read like any miss; if nobody answers, the state of `applied` is the answer, as for everything that is held.

use std::{
    collections::HashSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

use serde::Serialize;
use shared::{
    redirect::{Redirect, RedirectKey},
    wire::stream::Rev,
};

use super::{file::Loaded, table::Table};

/// Keys whose link the table cannot hold; with more, no absence is believed.
const MOST_UNFIT: usize = 10_000;

/// How a replica stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplicaState {
    /// Links are being loaded, or what was loaded is not applied yet: it answers nothing.
    Loading,
    /// Every link is loaded.
    Whole,
    /// Every readable link is loaded: unknown ids are read from control.
    Unsure,
}

/// How the links of all stand, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReplicaStatus {
    /// Whether it answers.
    pub state: ReplicaState,
    /// Links in it.
    pub links: usize,
    /// Bytes it takes.
    pub bytes: usize,
}

/// One question to the table.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'k> {
    /// Host of the short domain.
    pub domain: &'k str,
    /// The folded short id.
    pub folded: &'k str,
    /// The slot of the key.
    pub slot: usize,
    /// Everything up to here was applied before the question.
    pub applied: Rev,
}

/// The table's answer for a key.
#[derive(Debug)]
pub enum Answer<T> {
    /// There is such a link.
    Present(T),
    /// There was none at `applied`.
    Absent,
    /// The table cannot answer.
    Unknown,
}

/// All links, with what decides whether they may be shown.
#[derive(Debug)]
pub struct Full {
    table: Table,
    /// Every page is in.
    is_read: AtomicBool,
    /// Nothing newer is in the table, but for what events brought.
    newest: AtomicU64,
    /// Parts may be as new as this, from pages or from disk.
    newest_part: AtomicU64,
    /// A change was not understood: a link may have come of which nothing is known.
    is_unsure: AtomicBool,
    unfit: Mutex<HashSet<RedirectKey>>,
    unfit_count: AtomicUsize,
    filled: Box<[AtomicU64]>,
    absent: Absent,
}

/// Absences of views that are ahead of the stream.
#[derive(Debug, Default)]
struct Absent {
    /// Links of later revisions may have been reported as absent.
    since: AtomicU64,
    /// Until this one is applied.
    through: AtomicU64,
    writing: Mutex<()>,
}

impl Full {
    /// An empty replica with this many slots.
    pub fn new(slots: usize) -> Self {
        Self::over(Table::default(), slots)
    }

    /// A replica as it was on disk.
    pub fn restore(loaded: Loaded, slots: usize) -> Self {
        // Parts of it are later than the start. It serves them all the same, as other held entries before the first
        // contact, after which it waits for the head.
        let full = Self::over(loaded.table, slots);
        full.newest_part.store(loaded.newest, SeqCst);
        loaded.unfit.iter().for_each(|key| full.keep(key));
        full.read();
        full
    }

    fn over(table: Table, slots: usize) -> Self {
        Self {
            table,
            is_read: AtomicBool::new(false),
            newest: AtomicU64::new(0),
            newest_part: AtomicU64::new(0),
            is_unsure: AtomicBool::new(false),
            unfit: Mutex::default(),
            unfit_count: AtomicUsize::new(0),
            filled: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            absent: Absent::default(),
        }
    }

    /// The links.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Whether every page is in.
    pub fn is_read(&self) -> bool {
        self.is_read.load(SeqCst)
    }

    /// Every page is in.
    pub fn read(&self) {
        self.is_read.store(true, SeqCst);
    }

    /// How it stands at `applied`.
    pub fn state(&self, applied: Rev) -> ReplicaState {
        match (self.is_whole(applied), self.is_unsure.load(SeqCst)) {
            (false, _) => ReplicaState::Loading,
            (true, true) => ReplicaState::Unsure,
            (true, false) => ReplicaState::Whole,
        }
    }

    fn is_whole(&self, applied: Rev) -> bool {
        self.is_read() && self.newest.load(SeqCst) <= applied
    }

    /// The state of a key at `applied` or later, as `find` reads it from the table.
    pub fn find<T>(
        &self,
        asked: Asked<'_>,
        find: impl FnOnce(&Table, &str, &str) -> Option<(Rev, T)>,
    ) -> Answer<T> {
        let Asked { domain, folded, slot, applied } = asked;
        // The slot is less than the number of slots by construction.
        if !self.is_whole(applied) || self.filled[slot].load(SeqCst) > applied {
            return Answer::Unknown;
        }
        // Read before the table, because the writer that raises it looks at the table first.
        let is_behind_absences = self.absent.through.load(SeqCst) > applied;
        match find(&self.table, domain, folded) {
            Some((rev, _)) if is_behind_absences && rev > self.absent.since.load(SeqCst) => Answer::Unknown,
            Some((_, link)) => Answer::Present(link),
            None if self.is_unsure.load(SeqCst) || self.is_unfit(domain, folded) => Answer::Unknown,
            None => Answer::Absent,
        }
    }

    /// A view of `watermark` is about to be shown, in which the key has a value of this revision or none.
    pub fn fill(&self, asked: Asked<'_>, watermark: Rev, rev: Option<Rev>) {
        let Asked { domain, folded, slot, applied } = asked;
        if watermark <= applied {
            return;
        }
        if self.is_whole(applied) {
            match (rev, self.table.find_rev(domain, folded)) {
                (None, None) => return self.absent.raise(applied, watermark),
                // It does not change up to the watermark.
                (Some(rev), Some(there)) if rev == there => return,
                (Some(_) | None, Some(_) | None) => {}
            }
        }
        self.filled[slot].fetch_max(watermark, SeqCst);
    }

    /// Takes a link that a page or an event brought; one that cannot be held is not absent for that.
    pub fn put(&self, key: &RedirectKey, rev: Rev, link: &Redirect) {
        if self.table.put(key, rev, link).is_ok() {
            self.fits(key);
        } else {
            self.refuse(key, rev);
        }
    }

    /// A link is gone.
    pub fn remove(&self, key: &RedirectKey, rev: Rev) {
        self.table.remove(key, rev);
        self.fits(key);
    }

    /// A link cannot be held from this revision on; nothing older is shown.
    pub fn refuse(&self, key: &RedirectKey, rev: Rev) {
        self.keep(key);
        self.table.remove(key, rev);
    }

    /// A link cannot be served: the old one stays, and an unknown one is not absent.
    pub fn keep(&self, key: &RedirectKey) {
        let mut unfit = self.unfit();
        if unfit.len() >= MOST_UNFIT {
            self.doubt();
        } else if unfit.insert(key.clone()) {
            self.unfit_count.store(unfit.len(), SeqCst);
        }
    }

    /// Pages up to this revision are in, or changes up to it were left out of pages, as events bring them.
    pub fn pass(&self, at_rev: Rev) {
        self.newest.fetch_max(at_rev, SeqCst);
        self.newest_part.fetch_max(at_rev, SeqCst);
    }

    /// Nothing that pages or the disk brought is newer.
    pub fn newest_part(&self) -> Rev {
        self.newest_part.load(SeqCst)
    }

    /// Whether a change was not understood.
    pub fn is_doubted(&self) -> bool {
        self.is_unsure.load(SeqCst)
    }

    /// A change was not understood.
    pub fn doubt(&self) {
        self.is_unsure.store(true, SeqCst);
    }

    /// Keys whose link is not held.
    pub fn list_unfit(&self) -> Vec<RedirectKey> {
        self.unfit().iter().cloned().collect()
    }

    fn fits(&self, key: &RedirectKey) {
        if self.unfit_count.load(SeqCst) > 0 {
            let mut unfit = self.unfit();
            unfit.remove(key);
            self.unfit_count.store(unfit.len(), SeqCst);
        }
    }

    fn is_unfit(&self, domain: &str, folded: &str) -> bool {
        self.unfit_count.load(SeqCst) > 0 && self.unfit().contains(&RedirectKey::new(domain, folded))
    }

    fn unfit(&self) -> MutexGuard<'_, HashSet<RedirectKey>> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Absent {
    fn raise(&self, applied: Rev, watermark: Rev) {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.through.load(SeqCst) <= applied {
            // Earlier reports are obsolete; `since` first, because readers check `through` first.
            self.since.store(applied, SeqCst);
        } else {
            self.since.fetch_min(applied, SeqCst);
        }
        self.through.fetch_max(watermark, SeqCst);
    }
}
