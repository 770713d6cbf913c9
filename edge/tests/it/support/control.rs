//! The reference of what a backing does: one log, one state, one cursor for each boot of an edge.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use edge::backing::BackingError;
use shared::{
    domain_paths::DomainPaths,
    id::AccountId,
    redirect::{Redirect, RedirectKey},
    rules::{AccountRules, Rule, RuleList},
    short_url::{Scheme, ShortDomain},
    wire::{
        scan::ScanRecord,
        stream::{Change, Epoch, Event, Hello, Rev},
        unknown::UnknownReport,
    },
};
use tokio::sync::watch;

use super::{DEADLINE, HOST, record::redirect};

mod backing;
mod certificates;
mod scans;
mod withheld;

/// What goes wrong between control and the edge.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Nothing answers, streams end.
    pub(crate) is_down: bool,
    /// Control is of a release that does not know what is withheld.
    pub(crate) is_older: bool,
    /// Only scans are not taken.
    pub(crate) refuses_scans: bool,
    /// Scans are taken as JSON alone, as by the version before.
    pub(crate) takes_only_json: bool,
    /// Scans are stored, but the answer is lost; counts down.
    pub(crate) lost_receipts: u32,
    /// Reports of unknown ids are taken, but the answer is lost; counts down.
    pub(crate) lost_reports: u32,
    /// So many messages with events are swallowed.
    pub(crate) lost_events: u32,
    /// No heartbeat is sent.
    pub(crate) is_silent: bool,
    /// Views are this many revisions old.
    pub(crate) view_lag: usize,
    /// Reads of keys take this long.
    pub(crate) slow_reads: Duration,
    /// So many pages of links do not come; the edge reads them again.
    pub(crate) lost_pages: u32,
}

struct State {
    epoch: Epoch,
    base: Rev,
    log: Vec<Event>,
    compacted: Rev,
    domains: Vec<ShortDomain>,
    acked: HashMap<Arc<str>, Rev>,
    rejected: Vec<Rev>,
    hellos: Vec<Hello>,
    resyncs: u32,
    reads: u32,
    cursors: HashMap<u64, u64>,
    scans: Vec<(u64, u64, ScanRecord)>,
    spooled: Vec<bool>,
    reports: Vec<UnknownReport>,
    faults: Faults,
    breaks: u32,
}

/// Epoch, records, domains and rules.
pub(crate) type Everything =
    (Epoch, BTreeMap<RedirectKey, (Rev, Arc<Redirect>)>, Vec<ShortDomain>, Vec<Arc<AccountRules>>);

/// A control plane in memory; clones are the same one.
#[derive(Clone)]
pub(crate) struct Control {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

impl Control {
    pub(crate) fn new() -> Self {
        let state = State {
            epoch: "first".into(),
            base: 0,
            log: Vec::new(),
            compacted: 0,
            domains: vec![ShortDomain {
                account: Some(account()),
                ..ShortDomain::new(Scheme::Https, HOST).unwrap()
            }],
            acked: HashMap::new(),
            rejected: Vec::new(),
            hellos: Vec::new(),
            resyncs: 0,
            reads: 0,
            cursors: HashMap::new(),
            scans: Vec::new(),
            spooled: Vec::new(),
            reports: Vec::new(),
            faults: Faults::default(),
            breaks: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), changed: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn touch(&self) {
        self.changed.send_modify(|n| *n += 1);
    }

    /// Commits changes as one run of revisions; returns the last.
    pub(crate) fn commit(&self, changes: impl IntoIterator<Item = Change>) -> Rev {
        let mut state = self.state();
        for change in changes {
            let rev = state.head() + 1;
            if let Change::Domain(domain) = &change {
                state.domains.retain(|known| known.host != domain.host);
                if !domain.removed {
                    state.domains.push(domain.clone());
                }
            }
            state.log.push(Event { rev, change });
        }
        let head = state.head();
        drop(state);
        self.touch();
        head
    }

    /// Gives the test domain the prefix `shop/go`, which its URLs have, and short ids of several segments.
    pub(crate) fn put_paths(&self) -> Rev {
        let mut domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
        domain.account = Some(account());
        domain.paths =
            DomainPaths { path_prefix: "shop/go".parse().ok(), prefix_in_urls: true, multi_segment: true };
        self.commit([Change::Domain(domain)])
    }

    /// Lets a short id lead to a target.
    pub(crate) fn put(&self, short_id: &str, target: &str) -> Rev {
        self.put_record(redirect(short_id, target))
    }

    /// Writes a record.
    pub(crate) fn put_record(&self, record: Redirect) -> Rev {
        let key = RedirectKey::new(HOST, &record.short_id.folded());
        self.commit([Change::Redirect(key, Some(Arc::new(record)))])
    }

    /// Deletes a short id.
    pub(crate) fn delete(&self, short_id: &str) -> Rev {
        self.commit([Change::Redirect(key(short_id), None)])
    }

    /// Replaces the rules of the test domain's account: condition and target of each.
    pub(crate) fn put_rules(&self, rules: &[(&str, Option<&str>)]) -> Rev {
        let rules = rules
            .iter()
            .map(|(condition, url)| Rule {
                name: None,
                condition: (*condition).into(),
                redirect_url: url.map(Into::into),
            })
            .collect();
        self.put_lists(vec![RuleList { owner: None, rules }])
    }

    /// Replaces every list of rules of the test domain's account.
    pub(crate) fn put_lists(&self, lists: Vec<RuleList>) -> Rev {
        self.commit([Change::Rules(Arc::new(AccountRules::new(account(), lists)))])
    }

    /// Waits until the edge has acknowledged a revision.
    pub(crate) async fn acked(&self, rev: Rev) {
        let mut changed = self.changed.subscribe();
        let acked = async {
            while self.state().acked.get("edge-1").is_none_or(|acked| *acked < rev) {
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(DEADLINE, acked).await.expect("the edge acknowledges");
    }

    /// The revision that the edge has acknowledged.
    pub(crate) fn acked_rev(&self) -> Rev {
        self.state().acked.get("edge-1").copied().unwrap_or_default()
    }

    /// The newest revision.
    pub(crate) fn head(&self) -> Rev {
        self.state().head()
    }

    /// The revision that made the value a short id had at `rev`.
    pub(crate) fn value_at(&self, short_id: &str, rev: Rev) -> Option<Rev> {
        self.state().view(rev).get(&key(short_id)).map(|(rev, _)| *rev)
    }

    /// The revision that made the rules which held at `rev`; `None` where none held.
    pub(crate) fn rules_at(&self, rev: Rev) -> Option<Rev> {
        let state = self.state();
        let mut events = state.log.iter().rev().skip_while(|event| event.rev > rev);
        let last = events.find_map(|event| match &event.change {
            Change::Rules(sets) => Some((event.rev, !sets.lists.is_empty())),
            Change::Redirect(..)
            | Change::Domain(_)
            | Change::Withhold(..)
            | Change::Certificate(..)
            | Change::Challenge(_)
            | Change::Unreadable(_) => None,
        });
        last.filter(|(_, has_rules)| *has_rules).map(|(rev, _)| rev)
    }

    /// Ends every stream.
    pub(crate) fn break_streams(&self) {
        self.state().breaks += 1;
        self.touch();
    }

    /// Changes what goes wrong.
    pub(crate) fn faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
        self.touch();
    }

    /// Begins another history with the state as it is, as a restored database does.
    pub(crate) fn new_epoch(&self, epoch: &str) {
        let mut state = self.state();
        let everything: Vec<_> = state.view(state.head()).into_iter().collect();
        let rules = state.rules(state.head());
        state.epoch = epoch.into();
        state.base = 0;
        state.log.clear();
        for (rev, (key, (_, record))) in (1..).zip(everything) {
            state.log.push(Event { rev, change: Change::Redirect(key, Some(record)) });
        }
        for set in rules {
            let rev = state.head() + 1;
            state.log.push(Event { rev, change: Change::Rules(set) });
        }
        state.acked.clear();
        drop(state);
        self.touch();
    }

    /// Forgets the log up to now: an edge behind it must start over.
    pub(crate) fn compact(&self) {
        let mut state = self.state();
        state.compacted = state.head();
    }

    /// Epoch, records, domains and rules as of a revision: what a view of it holds.
    pub(crate) fn everything(&self, rev: Rev) -> Everything {
        let state = self.state();
        (state.epoch.clone(), state.view(rev), state.domains.clone(), state.rules(rev))
    }

    pub(crate) fn rejected(&self) -> Vec<Rev> {
        self.state().rejected.clone()
    }

    pub(crate) fn hellos(&self) -> Vec<Hello> {
        self.state().hellos.clone()
    }

    pub(crate) fn resyncs(&self) -> u32 {
        self.state().resyncs
    }

    /// Reads of single keys so far.
    pub(crate) fn reads(&self) -> u32 {
        self.state().reads
    }

    /// How many scans were taken.
    pub(crate) fn count_scans(&self) -> usize {
        self.state().scans.len()
    }

    /// Every scan taken: boot, number, record.
    pub(crate) fn scans(&self) -> Vec<(u64, u64, ScanRecord)> {
        self.state().scans.clone()
    }
}

impl State {
    fn head(&self) -> Rev {
        self.base + self.log.len() as Rev
    }

    /// The rules of all accounts at a revision.
    fn rules(&self, rev: Rev) -> Vec<Arc<AccountRules>> {
        let mut sets = BTreeMap::new();
        for event in self.log.iter().filter(|event| event.rev <= rev) {
            if let Change::Rules(set) = &event.change {
                sets.insert(set.account, set.clone());
            }
        }
        sets.into_values().filter(|set| !set.lists.is_empty()).collect()
    }

    fn view(&self, rev: Rev) -> BTreeMap<RedirectKey, (Rev, Arc<Redirect>)> {
        let mut view = BTreeMap::new();
        for event in self.log.iter().filter(|event| event.rev <= rev) {
            match &event.change {
                Change::Redirect(key, Some(record)) => {
                    view.insert(key.clone(), (event.rev, record.clone()));
                }
                Change::Redirect(key, None) => drop(view.remove(key)),
                Change::Domain(_)
                | Change::Rules(_)
                | Change::Withhold(..)
                | Change::Certificate(..)
                | Change::Challenge(_)
                | Change::Unreadable(_) => {}
            }
        }
        view
    }
}

/// The account of the test domain.
pub(crate) fn account() -> AccountId {
    "U0000000000000000000000a".parse().unwrap()
}

fn down() -> BackingError {
    BackingError::Unreachable("down, as the test wants it".into())
}

/// The key of a short id on the test domain.
fn key(short_id: &str) -> RedirectKey {
    RedirectKey::new(HOST, &short_id.to_ascii_uppercase())
}
