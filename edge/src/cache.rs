//! The redirections that an edge holds, and the rules by which they change (README, "Fill rule").
//!
//! Invariants: no entry is older than `applied` (I3); a deleted id is never served after the ack (I5); reads never go
//! back (I6); duplicates and reordering change nothing (I8).
//!
//! Start without control: the state that the disk or the view has at revision A is served as it is, which is the one
//! exception to I6 and ends with the first contact. Entries from disk get an `as_of` of at least A, because everything
//! up to A was applied to them, and raise their floor before they become visible. The stream resumes from A. If
//! control's head H is greater than A at the first contact, held entries are stale until H is applied, and fills need a
//! view of at least H: nothing older than what control had acknowledged is read. If the contact ends before that, held
//! entries are served again, except keys that were filled or changed meanwhile, so no key goes back. A snapshot makes
//! all held entries stale; another epoch drops them.
//!
//! An edge may hold every link. Then [`replica`] answers first, with the state of `applied`, once it is complete.
//! Entries are filled and changed beside it for the times when it must not answer.
//!
//! Redirect rules are not filled on demand. A snapshot brings those of all accounts, and events change them, so they
//! are the fold of the log up to `applied`, and the same invariants hold.

mod fill;
mod generation;
mod key;
#[cfg(test)]
mod properties;
mod reading;
mod served;
mod status;

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use arc_swap::ArcSwap;
use replica::{Full, Lead, Loaded, ReplicaStatus};
use shared::{
    id::AccountId,
    rules::AccountRules,
    wire::stream::{Change, Epoch, Events, Rejected, Rev},
};

use self::{fill::Landing, generation::Generation};
pub(crate) use self::{
    generation::{Kept, PageFit, Sources},
    key::KeyRef,
    reading::{Reading, Whole},
    served::Served,
    status::CacheStatus,
};
use crate::{
    backing::Flights,
    domains::Domains,
    rules::{self, RuleSet, RuleTable},
};

/// Fills at the same time; more are refused, so that a miss storm cannot take all memory.
const MAX_FLIGHTS: usize = 4_096;

/// What is cached for a key, without using the backing.
#[derive(Debug, Clone)]
pub(crate) enum Held<T = Arc<Served>> {
    /// A redirection.
    Present(T),
    /// The key is known to be absent.
    Absent,
    /// Something from before a snapshot: not to be served.
    Stale,
    /// Nothing.
    Nothing,
}

impl<T> Held<T> {
    /// The same, with the value converted.
    pub(crate) fn map<U>(self, other: impl FnOnce(T) -> U) -> Held<U> {
        match self {
            Self::Present(present) => Held::Present(other(present)),
            Self::Absent => Held::Absent,
            Self::Stale => Held::Stale,
            Self::Nothing => Held::Nothing,
        }
    }
}

/// The target of a redirection, with or without the rest of the record.
#[derive(Debug, Clone)]
pub(crate) enum Leads {
    /// The whole record.
    Served(Arc<Served>),
    /// The target alone.
    To(Lead),
}

/// A key's state as read through the backing; `None` is a verified absence.
pub(crate) type Found = Option<Arc<Served>>;

/// A run of events does not follow what was applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The revision up to which everything is applied.
    pub(crate) applied: Rev,
    /// The revision before the run.
    pub(crate) prev: Rev,
}

/// A cache that is filled before it is served.
#[derive(Debug)]
pub(crate) struct Booting(Generation);

impl Booting {
    /// Takes an entry of the disk.
    pub(crate) fn restore(&self, kept: Kept) {
        self.0.restore(kept);
    }

    /// Takes all links of the disk.
    pub(crate) fn adopt(&self, loaded: Loaded) {
        self.0.adopt(loaded);
    }
}

/// The state of a cache at `applied` or later.
#[derive(Debug)]
pub(crate) struct Holding {
    /// The epoch.
    pub(crate) epoch: Epoch,
    /// Everything up to this revision is included.
    pub(crate) applied: Rev,
    generation: Arc<Generation>,
}

impl Holding {
    /// The rules of all accounts.
    pub(crate) fn rules(&self) -> Sources {
        self.generation.sources()
    }

    /// Visits every entry until `put` breaks.
    pub(crate) fn walk(&self, put: impl FnMut(Kept) -> ControlFlow<()>) {
        self.generation.walk(put);
    }
}

fn read_rules(sets: &[Arc<AccountRules>], rev: Rev) -> (RuleTable, Vec<Rejected>) {
    let (mut table, mut rejected) = (RuleTable::new(), Vec::new());
    for set in sets {
        match rules::read(set) {
            Ok(Some(ready)) => drop(table.insert(set.account, Arc::new(ready))),
            Ok(None) => {}
            Err(reason) => {
                table.insert(set.account, Arc::new(RuleSet::refused()));
                rejected.push(Rejected { rev, reason });
            }
        }
    }
    (table, rejected)
}

/// The cache of one edge.
#[derive(Debug)]
pub(crate) struct EdgeCache {
    generation: ArcSwap<Generation>,
    flights: Flights<Landing>,
    capacity_bytes: u64,
    /// Whether every link is held, and not only those that are asked for.
    is_full: bool,
    /// Whether everything is applied that control has, as of a heartbeat ago.
    is_live: AtomicBool,
}

impl EdgeCache {
    /// An empty cache of no epoch: it holds nothing until the first contact.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let empty = Generation::new(None, 0, RuleTable::new(), capacity_bytes, None);
        Self {
            generation: ArcSwap::from_pointee(empty),
            flights: Flights::new(MAX_FLIGHTS),
            capacity_bytes,
            is_full: false,
            is_live: AtomicBool::new(false),
        }
    }

    /// An empty cache that is to hold every link once it was read.
    pub(crate) fn full(capacity_bytes: u64) -> Self {
        Self { is_full: true, ..Self::new(capacity_bytes) }
    }

    /// Whether it is to hold every link.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The stream became live, or is no more.
    pub(crate) fn set_live(&self, is_live: bool) {
        self.is_live.store(is_live, SeqCst);
    }

    /// The cached state of a key; all that a hit needs.
    pub(crate) fn held(&self, key: KeyRef<'_>) -> Held {
        self.generation.load().held(key, self.is_live.load(SeqCst))
    }

    /// The cached state of the key of a Digital Link. Where every link is held, its record is decoded once and not for each
    /// request.
    pub(crate) fn held_links(&self, key: KeyRef<'_>) -> Held {
        self.generation.load().held_links(key, self.is_live.load(SeqCst))
    }

    /// Where a key leads; the whole of a hit for a request that needs nothing else of a redirection.
    pub(crate) fn leads(&self, key: KeyRef<'_>) -> Held<Leads> {
        let generation = self.generation.load();
        let is_live = self.is_live.load(SeqCst);
        if self.is_full {
            generation.leads(key, is_live)
        } else {
            generation.held(key, is_live).map(Leads::Served)
        }
    }

    /// How the links of all stand, where they are held.
    pub(crate) fn replica(&self) -> Option<ReplicaStatus> {
        self.generation.load().replica()
    }

    /// Whether everything is applied that control has, as of a heartbeat ago.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live.load(SeqCst)
    }

    /// The links of all, when they are a state that may be kept: all read, and with nothing that was not understood.
    pub(crate) fn whole(&self) -> Option<Whole> {
        Whole::of(self.generation.load_full())
    }

    /// The links of all that are to be read still.
    pub(crate) fn unread(&self) -> Option<Reading> {
        Reading::of(self.generation.load_full())
    }

    /// The epoch, if there was a contact, and the revision up to which everything is applied.
    pub(crate) fn position(&self) -> (Option<Epoch>, Rev) {
        let generation = self.generation.load();
        (generation.epoch().cloned(), generation.applied())
    }

    /// Entries and bytes held, roughly.
    pub(crate) fn size(&self) -> (u64, u64) {
        self.generation.load().size()
    }

    /// Calls `look` with the rules of an account, if it has some; never waits, because all rules are held.
    pub(crate) fn with_rules<R>(&self, account: &AccountId, look: impl FnOnce(&RuleSet) -> R) -> Option<R> {
        self.generation.load().with_rules(account, look)
    }

    /// Accounts of whose rules this edge can use none.
    pub(crate) fn refused_rules(&self) -> usize {
        self.generation.load().refused_rules()
    }

    /// Goes on in `epoch` from `at_rev`, where `sets` are the rules of all accounts: in the same epoch all older
    /// entries become stale, else the cache is replaced by an empty one.
    ///
    /// Rules that cannot be used are refused: those that the account had in this epoch stay in use; where there are none, none
    /// decides until the next change, and nobody may keep what its links answer.
    pub(crate) fn snapshot(&self, epoch: &Epoch, at_rev: Rev, sets: &[Arc<AccountRules>]) -> Vec<Rejected> {
        let (table, rejected) = read_rules(sets, at_rev);
        let generation = self.generation.load();
        if generation.epoch() == Some(epoch) {
            // Before `applied` rises, so that the disk never has older rules than it claims.
            generation.keep_rules(at_rev, sets);
            generation.snapshot(at_rev, table);
        } else {
            let fresh = Generation::new(
                Some(epoch.clone()),
                at_rev,
                table,
                self.capacity_bytes,
                self.empty_replica(),
            );
            fresh.keep_rules(at_rev, sets);
            self.generation.store(Arc::new(fresh));
        }
        rejected
    }

    /// Begins where an earlier start, or a view, left off: the state at `applied` of `epoch`, with rules that may
    /// be newer. Nothing of it is served before [`Self::boot`].
    pub(crate) fn prepare(&self, epoch: &Epoch, applied: Rev, rules: &Sources) -> Booting {
        let sets: Vec<_> = rules.sets.values().cloned().collect();
        let (table, rejected) = read_rules(&sets, rules.as_of);
        for Rejected { reason, .. } in rejected {
            tracing::error!(%reason, "rules of the start cannot be used");
        }
        let generation =
            Generation::new(Some(epoch.clone()), applied, table, self.capacity_bytes, self.empty_replica());
        generation.keep_rules(rules.as_of, &sets);
        Booting(generation)
    }

    fn empty_replica(&self) -> Option<Full> {
        self.is_full.then(Generation::empty_replica)
    }

    /// Starts serving what was loaded.
    pub(crate) fn boot(&self, booting: Booting) {
        self.generation.store(Arc::new(booting.0));
    }

    /// The first contact with control since [`Self::boot`]: see [`Generation::confirm`].
    pub(crate) fn confirm(&self, head: Rev) {
        self.generation.load().confirm(head);
    }

    /// The contact ended before everything was applied: see [`Generation::release`].
    pub(crate) fn release(&self) {
        self.generation.load().release();
    }

    /// The present state, for the disk; `None` before any contact.
    pub(crate) fn holding(&self) -> Option<Holding> {
        let generation = self.generation.load_full();
        let epoch = generation.epoch()?.clone();
        // Read before rules and entries, which are then at least as new.
        let applied = generation.applied();
        Some(Holding { epoch, applied, generation })
    }

    /// Applies a run of events; a run seen before changes nothing.
    ///
    /// # Errors
    /// The run does not begin where the cache is: nothing was applied.
    pub(crate) fn apply(&self, events: &Events, domains: &Domains) -> Result<Vec<Rejected>, Gap> {
        let generation = self.generation.load();
        let applied = generation.applied();
        if events.last <= applied {
            return Ok(Vec::new());
        }
        let gapless = events.items.iter().zip(events.prev + 1..).all(|(event, rev)| event.rev == rev)
            && events.prev + events.items.len() as Rev == events.last;
        if events.prev != applied || !gapless {
            return Err(Gap { applied, prev: events.prev });
        }
        let mut rejected = Vec::new();
        for event in &events.items {
            match &event.change {
                Change::Domain(domain) => {
                    domains.upsert(event.rev, domain);
                    generation.pass(event.rev);
                }
                Change::Withhold(what, is_withheld) => {
                    domains.withhold(event.rev, what, *is_withheld);
                    generation.pass(event.rev);
                }
                // The certificates of an edge are no part of its cache.
                Change::Certificate(..) | Change::Challenge(_) => generation.pass(event.rev),
                Change::Rules(sets) => {
                    if let Err(reason) = generation.change_rules(event.rev, sets) {
                        rejected.push(Rejected { rev: event.rev, reason });
                    }
                }
                Change::Unreadable(reason) => {
                    generation.pass_unread(event.rev);
                    rejected.push(Rejected { rev: event.rev, reason: reason.clone() });
                }
                Change::Redirect(key, value) => {
                    if let Err(reason) = generation.event(event.rev, key, value.as_ref()) {
                        rejected.push(Rejected { rev: event.rev, reason });
                    }
                }
            }
        }
        generation.set_applied(events.last);
        Ok(rejected)
    }
}
