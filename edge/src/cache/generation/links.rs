//! The full replica beside the entries: when it answers, and how pages are inserted.

use std::sync::{Arc, PoisonError, atomic::Ordering::SeqCst};

use shared::{
    redirect::RedirectKey,
    wire::{links::LinksPage, stream::Rev},
};

use super::{FLOORS, Generation, Held, KeyRef, Leads, Offer, Resolved, Served, Versioned};
use replica::{Answer, Asked, Full, Loaded, ReplicaState, ReplicaStatus, Table};

/// Links of a page that are taken in one step, while events wait.
const STEP: usize = 64;

/// What became of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageFit {
    /// It is in.
    Taken,
    /// It is older than the tail of recent changes reaches back.
    TooOld,
}

/// The record of a Digital Link as the full replica had it.
#[derive(Debug)]
pub(in crate::cache) struct Listed {
    /// What was applied before it was read.
    applied: Rev,
    value: Versioned,
}

impl Generation {
    /// A place for every link.
    pub(in crate::cache) fn empty_replica() -> Full {
        Full::new(FLOORS)
    }

    /// Every link, where the edge holds them all.
    pub(in crate::cache) fn full(&self) -> Option<Arc<Full>> {
        self.full.load_full()
    }

    /// The state of a key; the full replica's absences count only while the stream is live.
    pub(in crate::cache) fn held(&self, key: KeyRef<'_>, is_live: bool) -> Held {
        match self.among_all(key, Table::find) {
            Answer::Absent if is_live => Held::Absent,
            Answer::Absent | Answer::Unknown => self.remembered(key),
            Answer::Present(link) => {
                let owned = RedirectKey::new(key.domain, key.folded);
                // It was validated by the same conversion when it was inserted.
                match Served::new(&owned, Arc::new(link)) {
                    Ok(served) => Held::Present(Arc::new(served)),
                    Err(_) => self.remembered(key),
                }
            }
        }
    }

    /// The same as [`Self::held`], from the entries first. What only the full replica holds is offered to them, as a view of
    /// `applied`.
    pub(in crate::cache) fn held_links(&self, key: KeyRef<'_>, is_live: bool) -> Held {
        let (held, listed) = self.look_up_links(key, is_live);
        if let Some(listed) = listed {
            self.take_listed(listed);
        }
        held
    }

    /// The state of the key of a Digital Link, and what is to be offered to the entries.
    pub(in crate::cache) fn look_up_links(&self, key: KeyRef<'_>, is_live: bool) -> (Held, Option<Listed>) {
        let held = self.remembered(key);
        if matches!(held, Held::Present(_) | Held::Absent) {
            return (held, None);
        }
        let full = self.full.load();
        let Some(full) = full.as_ref() else { return (held, None) };
        let asked = self.asked(key);
        let find = |table: &Table, domain: &str, folded: &str| {
            table.find(domain, folded).map(|(rev, link)| (rev, (rev, link)))
        };
        let answer = self.ask(full, asked, find);
        // An event is in the entries before it is in the table. An entry that it changed may have been served and thrown out
        // since; its floor was raised before that.
        let is_behind = self.floors[asked.slot].load(SeqCst) > asked.applied;
        let value = match answer {
            Answer::Absent if is_live && !is_behind => return (Held::Absent, None),
            Answer::Absent if is_live => None,
            Answer::Absent | Answer::Unknown => return (held, None),
            Answer::Present((rev, link)) => {
                let owned = RedirectKey::new(key.domain, key.folded);
                let Ok(served) = Served::new(&owned, Arc::new(link)) else {
                    return (held, None);
                };
                Some((rev, Arc::new(served)))
            }
        };
        if is_behind {
            let owned = RedirectKey::new(key.domain, key.folded);
            return (self.catch_up(&owned, asked.applied, value).unwrap_or(held), None);
        }
        let listed = value.map(|value| Listed { applied: asked.applied, value });
        (listed.as_ref().map_or(Held::Absent, |listed| Held::Present(listed.value.1.clone())), listed)
    }

    /// Offers what the full replica had.
    pub(in crate::cache) fn take_listed(&self, listed: Listed) {
        let Listed { applied, value } = listed;
        self.offer(&value.1.key.clone(), applied, Some(value));
    }

    /// Offers what the table has for a key, lifted over events that may be on their way to it; `None` if it cannot be verified.
    fn catch_up(&self, key: &RedirectKey, applied: Rev, value: Option<Versioned>) -> Option<Held> {
        let through = self.tail.lock().unwrap_or_else(PoisonError::into_inner).through();
        let found = if through > applied {
            match self.offer_lifted(key, applied, value) {
                Offer::Taken { found, .. } => found,
                Offer::Rejected => return None,
            }
        } else {
            value.map(|(_, served)| served)
        };
        Some(found.map_or(Held::Absent, Held::Present))
    }

    /// The target of a key: the same as [`Self::held`], for callers that need nothing else of a redirection.
    ///
    /// One allocation, that of the target, if the full replica answers.
    pub(in crate::cache) fn leads(&self, key: KeyRef<'_>, is_live: bool) -> Held<Leads> {
        let held = match self.among_all(key, Table::find_lead) {
            Answer::Present(Some(lead)) => return Held::Present(Leads::To(lead)),
            Answer::Absent if is_live => return Held::Absent,
            Answer::Absent | Answer::Unknown => self.remembered(key),
            // Its tags are filled in from the whole link.
            Answer::Present(None) => self.held(key, is_live),
        };
        held.map(Leads::Served)
    }

    /// The full replica's answer for a key; also unknown while it must not answer.
    fn among_all<T>(
        &self,
        key: KeyRef<'_>,
        find: impl FnOnce(&Table, &str, &str) -> Option<(Rev, T)>,
    ) -> Answer<T> {
        let full = self.full.load();
        let Some(full) = full.as_ref() else { return Answer::Unknown };
        self.ask(full, self.asked(key), find)
    }

    fn ask<T>(
        &self,
        full: &Full,
        asked: Asked<'_>,
        find: impl FnOnce(&Table, &str, &str) -> Option<(Rev, T)>,
    ) -> Answer<T> {
        if self.hold.load(SeqCst) > asked.applied {
            return Answer::Unknown;
        }
        full.find(asked, find)
    }

    /// Whether a key, for which no backend answers, was absent in the last known state.
    pub(in crate::cache) fn was_absent(&self, key: KeyRef<'_>) -> bool {
        matches!(
            self.among_all(key, |table, domain, folded| {
                table.find_rev(domain, folded).map(|rev| (rev, ()))
            }),
            Answer::Absent
        )
    }

    fn asked<'k>(&self, key: KeyRef<'k>) -> Asked<'k> {
        // Read first, so that what is found is at least as new.
        let applied = self.applied();
        Asked { domain: key.domain, folded: key.folded, slot: self.slot_number(key), applied }
    }

    /// A view is about to be shown, in which the key has a value of this revision or none.
    pub(super) fn shows(&self, key: &RedirectKey, watermark: Rev, rev: Option<Rev>) {
        if let Some(full) = &*self.full.load() {
            full.fill(self.asked(KeyRef::of(key)), watermark, rev);
        }
    }

    /// Inserts a page into `full`. Events continue meanwhile, and keys that they changed after the page was read are
    /// skipped.
    pub(in crate::cache) fn take_page(&self, full: &Full, domain: &str, page: &LinksPage) -> PageFit {
        let links: Vec<_> = page
            .links
            .iter()
            .map(|(folded, rev, link)| {
                let key = RedirectKey::new(domain, folded);
                let is_usable = Served::new(&key, link.clone()).is_ok();
                (key, *rev, link, is_usable)
            })
            .collect();
        // Before the links: from here on, the table is not asked below this revision.
        full.pass(page.at_rev);
        for step in links.chunks(STEP) {
            // An event enters the tail before it is applied: with this lock held, either the page's value is inserted
            // before the event's, or the newer one is seen here.
            let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, rev, link, is_usable) in step {
                match tail.since(key, page.at_rev) {
                    None => return PageFit::TooOld,
                    Some(Resolved::Changed(..)) => {}
                    Some(Resolved::Unchanged) if *is_usable => full.put(key, *rev, link),
                    Some(Resolved::Unchanged) => {
                        tracing::error!(domain, short_id = %key.folded, "unusable record");
                        full.keep(key);
                    }
                }
            }
        }
        PageFit::Taken
    }

    /// Every page is in `full`. Changes that came meanwhile may be in the tail alone so far: it answers once they are applied.
    pub(in crate::cache) fn end_pages(&self, full: &Full) {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        full.pass(tail.through());
        full.read();
    }

    /// The newest revision of which anything is held.
    pub(in crate::cache) fn newest(&self) -> Rev {
        // An event is remembered before it is applied.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).through().max(self.applied())
    }

    /// How the links of all stand.
    pub(in crate::cache) fn replica(&self) -> Option<ReplicaStatus> {
        let full = self.full()?;
        let state = match full.state(self.applied()) {
            ReplicaState::Whole | ReplicaState::Unsure if self.hold.load(SeqCst) > self.applied() => {
                ReplicaState::Loading
            }
            state => state,
        };
        Some(ReplicaStatus { state, links: full.table().count(), bytes: full.table().bytes() })
    }

    /// Takes the links that an earlier start left, before this generation is shown to anybody.
    pub(in crate::cache) fn adopt(&self, loaded: Loaded) {
        // Parts of it are as new as this: no view from before may follow them.
        for floor in &self.floors {
            floor.fetch_max(loaded.newest, SeqCst);
        }
        self.full.store(Some(Arc::new(Full::restore(loaded, FLOORS))));
    }
}
