//! The true state of a simulation: the log, its view, acknowledgements, and the history.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use shared::{
    id::{AccountId, ProductId},
    redirect::{Redirect, RedirectKey, ResourceType},
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
    wire::stream::{Change, Epoch, Event, Fill, Rejected, Rev, Start, Welcome},
};
use tests::campaign::history::{Boot, DELETED, History, Micros, Outcome, Version, Write};

/// Host of the short domain.
pub(super) const HOST: &str = "tn.gg";

/// How many edges there are.
pub(super) const EDGES: u16 = 3;

/// How long an edge is a member after its last message: the lease of edges.
const LEASE: Duration = Duration::from_secs(10);

/// How the parts behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As in the product.
    Right,
    /// An edge acknowledges what it has received and not yet applied.
    AckBeforeApply,
    /// The view says that it is newer than it is.
    ForgedWatermark,
}

/// All of it; clones are the same one.
#[derive(Clone)]
pub(super) struct Truth(Arc<Mutex<State>>);

pub(super) struct State {
    pub(super) form: Form,
    pub(super) epoch: Epoch,
    /// The logs of all epochs: a view may still be one of an earlier.
    logs: HashMap<Epoch, Vec<Event>>,
    pub(super) compacted: Rev,
    pub(super) view: View,
    members: BTreeMap<u16, Member>,
    /// Changes that were refused by an edge.
    pub(super) rejected: u64,
    pub(super) history: History,
    /// Rules of the protocol that an edge broke.
    pub(super) broken_rules: Vec<String>,
    /// Set when every fault is over: the writers end.
    pub(super) is_ending: bool,
    /// Writers and edges that have done what they should.
    pub(super) ended: u64,
    /// The time of the simulation at its last step.
    pub(super) now: Duration,
    keys: u32,
    /// Set when everything is everywhere: the edges are then read for the last time.
    pub(super) is_over: bool,
    moment: Micros,
}

/// What Redis holds: a prefix of a log, or nothing.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) epoch: Epoch,
    pub(super) watermark: Rev,
    pub(super) is_complete: bool,
    /// No publisher writes to it until then.
    pub(super) rests_until: Duration,
}

#[derive(Debug, Clone)]
struct Member {
    epoch: Epoch,
    acked: Rev,
    lease_until: Duration,
    rejected: Vec<Rev>,
}

impl Truth {
    pub(super) fn new(form: Form) -> Self {
        let epoch: Epoch = "epoch-0".into();
        Self(Arc::new(Mutex::new(State {
            form,
            logs: HashMap::from([(epoch.clone(), Vec::new())]),
            compacted: 0,
            view: View { epoch: epoch.clone(), watermark: 0, is_complete: true, rests_until: Duration::ZERO },
            epoch,
            members: BTreeMap::new(),
            rejected: 0,
            history: History::default(),
            broken_rules: Vec::new(),
            is_ending: false,
            ended: 0,
            now: Duration::ZERO,
            keys: 0,
            is_over: false,
            moment: 0,
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The next moment: all hosts share one thread, so that this is the order of everything.
    pub(super) fn moment(&self) -> Micros {
        let mut state = self.state();
        state.moment += 1;
        state.moment
    }

    /// Records a write that was begun at `start`.
    pub(super) fn wrote(&self, key: u32, version: Version, start: Micros, outcome: Outcome) {
        let end = self.moment();
        self.state().history.writes.push(Write { key, version, start, end, outcome });
    }

    /// The edge begins anew: until it is live, what its disk had is excused.
    pub(super) fn boots(&self, edge: u16) {
        let start = self.moment();
        self.state().history.boots.push(Boot { edge, start, end: u64::MAX });
    }

    /// The edge is live: its last boot is over.
    pub(super) fn is_live(&self, edge: u16) {
        let now = self.moment();
        let mut state = self.state();
        if let Some(boot) = state.history.boots.iter_mut().rev().find(|boot| boot.edge == edge) {
            boot.end = boot.end.min(now);
        }
    }
}

impl State {
    pub(super) fn log(&self) -> &[Event] {
        &self.logs[&self.epoch]
    }

    pub(super) fn head(&self) -> Rev {
        self.log().len() as Rev
    }

    /// How many keys there were.
    pub(super) fn keys(&self) -> u32 {
        self.keys
    }

    /// A key that nobody had.
    pub(super) fn new_key(&mut self) -> u32 {
        self.keys += 1;
        self.keys - 1
    }

    /// Whether every edge is a member that has everything.
    pub(super) fn is_everywhere(&self, now: Duration) -> bool {
        let (epoch, head) = (&self.epoch, self.head());
        let has =
            |member: &Member| member.lease_until > now && member.epoch == *epoch && member.acked == head;
        self.members.len() == usize::from(EDGES) && self.members.values().all(has)
    }

    /// Commits a change; gives its revision.
    pub(super) fn commit(&mut self, change: Change) -> Rev {
        let rev = self.head() + 1;
        self.logs.get_mut(&self.epoch).unwrap().push(Event { rev, change });
        rev
    }

    /// Another history with the same state, as a restored database has it.
    pub(super) fn begin_epoch(&mut self) {
        let state = as_of(self.log(), self.head());
        let epoch: Epoch = format!("epoch-{}", self.logs.len()).into();
        let log = (1..)
            .zip(state)
            .map(|(rev, (key, (_, value)))| Event { rev, change: Change::Redirect(key, Some(value)) });
        self.logs.insert(epoch.clone(), log.collect());
        self.epoch = epoch;
        self.compacted = 0;
    }

    /// How the stream of an edge begins.
    pub(super) fn welcome(&self, epoch: Option<&Epoch>, applied: Rev) -> (Welcome, Rev) {
        let head = self.head();
        let may_resume = epoch == Some(&self.epoch) && (self.compacted..=head).contains(&applied);
        let (start, cursor) =
            if may_resume { (Start::Resume, applied) } else { (Start::Snapshot { at_rev: head }, head) };
        let domain =
            ShortDomain { account: Some(account()), ..ShortDomain::new(Scheme::Https, HOST).unwrap() };
        let welcome = Welcome {
            epoch: self.epoch.clone(),
            head,
            compacted: self.compacted,
            start,
            domains: vec![domain],
            rules: Vec::new(),
            withheld: Some(Vec::new()),
            kept: Vec::new(),
            kept_certificates: None,
            certificates: Vec::new(),
            challenges: Vec::new(),
        };
        (welcome, cursor)
    }

    /// An edge said where it is.
    pub(super) fn acked(
        &mut self,
        edge: u16,
        epoch: &Epoch,
        acked: Rev,
        rejected: &[Rejected],
        now: Duration,
    ) {
        if *epoch != self.epoch {
            return;
        }
        let head = self.head();
        if acked > head {
            self.broken_rules.push(format!("edge {edge} acknowledged {acked} of {head}"));
        }
        self.rejected += rejected.len() as u64;
        let member = self.members.entry(edge).or_insert_with(|| Member {
            epoch: epoch.clone(),
            acked: 0,
            lease_until: now,
            rejected: Vec::new(),
        });
        if member.epoch != *epoch {
            (member.epoch, member.acked) = (epoch.clone(), 0);
            member.rejected.clear();
        }
        member.rejected.extend(rejected.iter().map(|item| item.rev));
        (member.acked, member.lease_until) = (acked, now + LEASE);
    }

    /// Which edges have a revision, once no member is still without it (`wait=edges`).
    pub(super) fn waited(&self, epoch: &str, rev: Rev, now: Duration) -> Option<Outcome> {
        if *epoch != *self.epoch {
            return Some(Outcome::Stored);
        }
        let mut have = Vec::new();
        for (edge, member) in self.members.iter().filter(|(_, member)| member.lease_until > now) {
            if *member.epoch != *epoch || member.acked < rev {
                return None;
            }
            if !member.rejected.contains(&rev) {
                have.push(*edge);
            }
        }
        Some(Outcome::Acked(have))
    }

    /// The publisher takes what is committed into the view, or builds it anew.
    pub(super) fn publish(&mut self, now: Duration) {
        if now >= self.view.rests_until {
            let (epoch, watermark) = (self.epoch.clone(), self.head());
            self.view = View { epoch, watermark, is_complete: true, ..self.view };
        }
    }

    /// What the view says of a key.
    pub(super) fn view_of(&self, key: &RedirectKey) -> Fill {
        let View { epoch, watermark, is_complete, .. } = self.view.clone();
        if !is_complete {
            return Fill { epoch, complete: false, watermark: 0, value: None };
        }
        let value = as_of(&self.logs[&epoch], watermark).remove(key);
        let forged = self.form == Form::ForgedWatermark;
        Fill {
            watermark: if forged { self.head() } else { watermark },
            epoch: if forged { self.epoch.clone() } else { epoch },
            complete: true,
            value,
        }
    }

    /// What control says of a key.
    pub(super) fn look_up(&self, key: &RedirectKey) -> Fill {
        let (epoch, watermark) = (self.epoch.clone(), self.head());
        Fill { epoch, complete: true, watermark, value: as_of(self.log(), watermark).remove(key) }
    }
}

/// The state after a revision.
fn as_of(log: &[Event], rev: Rev) -> BTreeMap<RedirectKey, (Rev, Arc<Redirect>)> {
    let mut state = BTreeMap::new();
    for event in log.iter().filter(|event| event.rev <= rev) {
        match &event.change {
            Change::Redirect(key, Some(value)) => drop(state.insert(key.clone(), (event.rev, value.clone()))),
            Change::Redirect(key, None) => drop(state.remove(key)),
            Change::Domain(_)
            | Change::Rules(_)
            | Change::Withhold(..)
            | Change::Certificate(..)
            | Change::Challenge(_)
            | Change::Unreadable(_) => {}
        }
    }
    state
}

fn account() -> AccountId {
    "U0000000000000000000000a".parse().unwrap()
}

/// The change that makes a version of a key.
pub(super) fn change(key: u32, version: Version) -> Change {
    let value = (version != DELETED).then(|| redirect(&short_id(key), &target(key, version)));
    Change::Redirect(RedirectKey::new(HOST, &short_id(key)), value.map(Arc::new))
}

/// A change that every edge refuses.
pub(super) fn poison() -> Change {
    let value = redirect("POISON", "javascript:alert(1)");
    Change::Redirect(RedirectKey::new(HOST, "POISON"), Some(Arc::new(value)))
}

/// The short id of a key.
pub(super) fn short_id(key: u32) -> String {
    format!("C{key:07}")
}

fn target(key: u32, version: Version) -> String {
    format!("https://example.com/{key}/{version}")
}

/// The version in an answer's `Location`.
pub(super) fn version_in(location: &str, key: u32) -> Option<Version> {
    let (of, version) = location.strip_prefix("https://example.com/")?.split_once('/')?;
    // Of another key, it is none that anybody wrote.
    if of == key.to_string() { version.parse().ok() } else { Some(DELETED - 1) }
}

fn redirect(short_id: &str, target: &str) -> Redirect {
    let product: ProductId = "U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap();
    Redirect {
        resource_type: ResourceType::Product,
        product_id: Some(product),
        updated_at: UnixMillis(1_700_000_000_001),
        ..Redirect::plain(
            HOST.parse().unwrap(),
            short_id.parse().unwrap(),
            "U5Gq8sKVBfgRtKRaagBefgwk".parse().unwrap(),
            target,
            UnixMillis(1_700_000_000_000),
        )
    }
}
