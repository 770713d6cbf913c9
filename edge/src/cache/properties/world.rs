//! The model: control with its log, an edge that receives parts of it, and the steps that either may take.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proptest::prelude::*;
use scans::Agents;
use shared::{
    availability::Availability,
    geo::NoGeoIp,
    id::AccountId,
    redirect::{Redirect, RedirectKey, ResourceType},
    redirect_status::RedirectStatus,
    rules::{AccountRules, Rule, RuleList},
    time::UnixMillis,
    wire::stream::{Change, Epoch, Event, Events, Fill, Rev},
};

use super::{links, replica};
use crate::{
    cache::{EdgeCache, Found, Gap, Held, KeyRef, Served},
    domains::Domains,
    rules::{AskedLink, RequestFacts, Sources},
};

pub(super) const KEYS: u8 = 5;
/// From here on keys are those of Digital Links: a product and an item of it.
pub(super) const LINKS: u8 = 3;
/// Times that the clock shows.
const CLOCK: i64 = 8;

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Control commits a new target, or a delete.
    Write { key: u8, delete: bool },
    /// Control commits other rules of the account, or none.
    Rules { delete: bool },
    /// The stream sends the next events.
    Deliver { count: u8 },
    /// The stream sends a run that begins elsewhere: a duplicate, a reorder or a gap.
    Stray { back: u8, count: u8 },
    /// A fill reads a view that lags by some revisions.
    Read { key: u8, lag: u8, complete: bool },
    /// A fill that has read comes to its end; any of those under way.
    Finish { which: u8 },
    /// A client asks.
    Ask { key: u8 },
    /// The stream restarts with a snapshot, which may be older than what was applied.
    Snapshot { back: u8 },
    /// History was cut: control begins an epoch with the state of `back` writes ago.
    Epoch { back: u8 },
    /// Memory pressure.
    Evict { key: u8 },
    /// The wall clock jumps.
    Clock { to: i64 },
    /// What happens to the links of all, where they are held.
    Replica(replica::Step),
    /// A client asks for a Digital Link.
    Links(links::Step),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..KEYS;
    let step = prop_oneof![
        6 => (key.clone(), any::<bool>()).prop_map(|(key, delete)| Step::Write { key, delete }),
        2 => prop::bool::weighted(0.3).prop_map(|delete| Step::Rules { delete }),
        3 => (1..4u8).prop_map(|count| Step::Deliver { count }),
        1 => (0..5u8, 1..4u8).prop_map(|(back, count)| Step::Stray { back, count }),
        8 => (key.clone(), 0..5u8, prop::bool::weighted(0.9))
            .prop_map(|(key, lag, complete)| Step::Read { key, lag, complete }),
        10 => any::<u8>().prop_map(|which| Step::Finish { which }),
        6 => key.clone().prop_map(|key| Step::Ask { key }),
        1 => (0..4u8).prop_map(|back| Step::Snapshot { back: back.saturating_sub(1) }),
        1 => (0..4u8).prop_map(|back| Step::Epoch { back }),
        5 => key.prop_map(|key| Step::Evict { key }),
        4 => (0..CLOCK).prop_map(|to| Step::Clock { to }),
        8 => replica::steps().prop_map(Step::Replica),
        12 => links::steps().prop_map(Step::Links),
    ];
    prop::collection::vec(step, 1..120)
}

/// Where the revision of the account's rules stands among those of the keys.
pub(super) const RULES: u8 = KEYS;

pub(super) type State = BTreeMap<u8, Rev>;

/// Control and the edge, with the lower bounds that the edge has promised.
pub(super) struct World {
    pub(super) cache: EdgeCache,
    pub(super) epoch: Epoch,
    pub(super) epochs: u64,
    pub(super) base: Rev,
    /// The state at each revision from `base` on: key to the revision of its value.
    pub(super) history: Vec<State>,
    pub(super) log: Vec<Event>,
    pub(super) applied: Rev,
    /// The revision that the edge may not fall behind, for each key: acked or served.
    pub(super) promised: HashMap<u8, Rev>,
    pub(super) flights: Vec<(u8, Fill)>,
    pub(super) agents: Agents,
    pub(super) replica: replica::World,
    pub(super) links: links::World,
    /// What the edge's clock shows.
    now: UnixMillis,
}

pub(super) fn key(n: u8) -> RedirectKey {
    RedirectKey::new("tn.gg", &short_id(n))
}

fn short_id(n: u8) -> String {
    if n < LINKS { format!("K{n}") } else { links::level(n).to_owned() }
}

/// The window that revision `rev` wrote: most have one, some are paused, and some have an ended page.
fn availability(rev: Rev) -> Option<Box<Availability>> {
    if rev % 4 == 1 {
        return None;
    }
    let at = |n: Rev| (n > 0).then(|| UnixMillis((n % CLOCK as u64) as i64));
    let availability = Availability {
        valid_from: at(rev % 5),
        valid_until: at(rev % 3 * (rev % 5 + 1)),
        is_paused: rev % 7 == 6,
        ended_url: (rev % 4 == 3).then(|| format!("https://example.com/ended/{rev}").into()),
        ..Availability::default()
    };
    (!availability.is_empty()).then(|| Box::new(availability))
}

/// The status code that revision `rev` wrote; those without a window have each of them, too.
fn status_code(rev: Rev) -> RedirectStatus {
    RedirectStatus::ALL[(rev % 7 % 4) as usize]
}

/// Where whoever scans at a moment what revision `rev` wrote is led, by the rule in words: before its start, from its end on, and
/// while it is paused to its ended page, if it has one.
fn expected(rev: Rev, now: UnixMillis) -> Option<String> {
    let Availability { valid_from, valid_until, is_paused, ended_url, .. } =
        availability(rev).map(|availability| *availability).unwrap_or_default();
    let is_open = !is_paused
        && valid_from.unwrap_or(UnixMillis(i64::MIN)) <= now
        && now < valid_until.unwrap_or(UnixMillis(i64::MAX));
    if is_open { Some(format!("https://example.com/{rev}")) } else { ended_url.map(Into::into) }
}

/// The record that revision `rev` wrote; its target contains the revision.
pub(super) fn record(n: u8, rev: Rev) -> Arc<Redirect> {
    Arc::new(Redirect {
        domain: "tn.gg".parse().unwrap(),
        short_id: short_id(n).parse().unwrap(),
        resource_type: ResourceType::Thng,
        platform_id: "0".repeat(24).parse().unwrap(),
        thng_id: None,
        product_id: None,
        target: format!("https://example.com/{rev}").into(),
        thng_name: None,
        standing: shared::standing::Standing::default(),
        projects: Box::default(),
        forward_query: false,
        status_code: status_code(rev),
        availability: availability(rev),
        digital_link: (n >= LINKS).then(|| Box::new(links::set(rev))),
        created_at: UnixMillis(0),
        updated_at: UnixMillis(0),
    })
}

pub(super) fn account() -> AccountId {
    "U0000000000000000000000a".parse().unwrap()
}

/// The rules that revision `rev` wrote; their target contains the revision.
pub(super) fn rules(rev: Option<Rev>) -> Arc<AccountRules> {
    let rule = |rev| Rule {
        name: None,
        condition: "hour>=0".into(),
        redirect_url: Some(format!("https://example.com/{rev}").into()),
    };
    let rules = rev.map(rule).into_iter().collect();
    Arc::new(AccountRules::new(account(), vec![RuleList { owner: None, rules }]))
}

pub(super) fn rev_of(found: &Found) -> Option<Rev> {
    found.as_ref().map(|served| served.record.target.rsplit('/').next().unwrap().parse().unwrap())
}

impl World {
    pub(super) fn new() -> Self {
        Self::over(EdgeCache::new(1 << 20))
    }

    pub(super) fn over(cache: EdgeCache) -> Self {
        let epoch: Epoch = "e0".into();
        cache.snapshot(&epoch, 0, &[]);
        Self {
            cache,
            epoch,
            epochs: 0,
            base: 0,
            history: vec![State::new()],
            log: Vec::new(),
            applied: 0,
            promised: HashMap::new(),
            flights: Vec::new(),
            agents: Agents::default(),
            replica: replica::World::default(),
            links: links::World::default(),
            now: UnixMillis(0),
        }
    }

    pub(super) fn head(&self) -> Rev {
        self.base + self.log.len() as Rev
    }

    pub(super) fn state(&self, rev: Rev) -> &State {
        &self.history[(rev - self.base) as usize]
    }

    pub(super) fn run(&self, prev: Rev, count: u8) -> Events {
        let start = (prev - self.base) as usize;
        let end = (start + usize::from(count)).min(self.log.len());
        let items = self.log[start..end].to_vec();
        Events { prev, last: prev + items.len() as Rev, items }
    }

    pub(super) fn ack(&mut self, rev: Rev) {
        self.applied = rev;
        for n in 0..KEYS {
            let promised = self.promised.entry(n).or_default();
            *promised = rev.max(*promised);
        }
    }

    pub(super) fn sets(&self, rev: Rev) -> Vec<Arc<AccountRules>> {
        self.state(rev).get(&RULES).map(|rev| rules(Some(*rev))).into_iter().collect()
    }

    /// The revision whose rules hold on the edge.
    pub(super) fn rules_held(&self) -> Option<Rev> {
        let served = Served::new(&key(0), record(0, 0)).unwrap();
        let headers = http::HeaderMap::new();
        let sources = Sources { agents: &self.agents, geo: &NoGeoIp };
        let (account, ip) = (account(), [127, 0, 0, 1].into());
        let asked = AskedLink { account: &account, headers: &headers, query: None, ip, at: UnixMillis(0) };
        let facts = RequestFacts::new(&served, asked, sources);
        let location = self.cache.with_rules(&account, |rules| rules.decide(&facts).unwrap().1)?;
        location.to_str().unwrap().rsplit('/').next().unwrap().parse().ok()
    }

    pub(super) fn commit(&mut self, entry: u8, delete: bool, change: Change) {
        let rev = self.head() + 1;
        let mut state = self.history.last().unwrap().clone();
        if delete {
            state.remove(&entry);
        } else {
            state.insert(entry, rev);
        }
        self.history.push(state);
        self.log.push(Event { rev, change });
    }

    /// Checks an answer: it must be the truth at some revision from the promised one on.
    pub(super) fn serve(&mut self, n: u8, found: &Found, promised: Rev) {
        let shown = rev_of(found);
        let newest = (promised..=self.head()).rev().find(|rev| self.state(*rev).get(&n).copied() == shown);
        let first = (promised..=self.head()).find(|rev| self.state(*rev).get(&n).copied() == shown);
        assert!(newest.is_some(), "key {n} shows {shown:?}, which was never true from {promised} on");
        // The lower bound that this implies: later reads may not see anything older.
        let promise = self.promised.entry(n).or_default();
        *promise = (*promise).max(first.unwrap());
        if let (Some(served), Some(rev)) = (found, shown) {
            assert_eq!(served.record, record(n, rev), "key {n} of {rev}");
            if n >= LINKS {
                return;
            }
            // The edge holds bounds, so the answer is that of this moment, however the record came and whenever.
            let led = match served.closed(self.now) {
                None => Some(served.location.clone()),
                Some(_) => served.ended_location().unwrap(),
            };
            let led = led.as_ref().map(|location| location.to_str().unwrap());
            assert_eq!(led, expected(rev, self.now).as_deref(), "key {n} of {rev} at {:?}", self.now);
        }
    }

    /// Checks what is held, where anything is.
    pub(super) fn serve_held(&mut self, n: u8, held: Held) {
        let promised = self.promised.get(&n).copied().unwrap_or_default();
        match held {
            Held::Present(served) => self.serve(n, &Some(served), promised),
            Held::Absent => self.serve(n, &None, promised),
            Held::Stale | Held::Nothing => {}
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Write { key: n, delete } => {
                let value = (!delete).then(|| record(n, self.head() + 1));
                self.commit(n, delete, Change::Redirect(key(n), value));
            }
            Step::Rules { delete } => {
                let sets = rules((!delete).then(|| self.head() + 1));
                self.commit(RULES, delete, Change::Rules(sets));
            }
            Step::Deliver { count } => {
                let events = self.run(self.applied, count);
                assert_eq!(self.cache.apply(&events, &Domains::default()).unwrap(), []);
                self.ack(events.last.max(self.applied));
                assert_eq!(self.cache.position(), (Some(self.epoch.clone()), self.applied));
            }
            Step::Stray { back, count } => {
                let prev = self.head().saturating_sub(back.into()).max(self.base);
                let events = self.run(prev, count);
                match self.cache.apply(&events, &Domains::default()) {
                    Ok(_) if prev == self.applied => self.ack(events.last.max(self.applied)),
                    Ok(_) => assert!(events.last <= self.applied, "a run that does not fit was taken"),
                    Err(Gap { applied, .. }) => {
                        assert_eq!(applied, self.applied);
                        assert!(prev != self.applied);
                    }
                }
            }
            Step::Read { key: n, lag, complete } => {
                let watermark = self.head().saturating_sub(lag.into()).max(self.base);
                let value = self.state(watermark).get(&n).map(|rev| (*rev, record(n, *rev)));
                // A view that is being rebuilt lacks keys.
                let value = value.filter(|_| complete);
                self.flights.push((n, Fill { epoch: self.epoch.clone(), complete, watermark, value }));
            }
            Step::Finish { which } => {
                if self.flights.is_empty() {
                    return;
                }
                let (n, fill) = self.flights.swap_remove(usize::from(which) % self.flights.len());
                let promised = self.promised.get(&n).copied().unwrap_or_default();
                if let Some(landing) = self.cache.offer(&key(n), &fill) {
                    assert_eq!(landing.epoch, self.epoch);
                    assert!(fill.complete, "a view without all keys was taken");
                    self.serve(n, &landing.found, promised);
                }
            }
            Step::Ask { key: n } => self.serve_held(n, self.cache.held(KeyRef::of(&key(n)))),
            Step::Snapshot { back } => {
                let at_rev = self.head().saturating_sub(back.into()).max(self.base);
                assert_eq!(self.cache.snapshot(&self.epoch, at_rev, &self.sets(at_rev)), []);
                self.ack(at_rev.max(self.applied));
            }
            Step::Epoch { back } => {
                // A database that was restored: its head is lower, its history another one.
                let head = self.head().saturating_sub(back.into()).max(self.base);
                let state = self.state(head).clone();
                self.epochs += 1;
                self.epoch = format!("e{}", self.epochs).into();
                (self.base, self.history, self.log) = (head, vec![state], Vec::new());
                self.promised.clear();
                assert_eq!(self.cache.snapshot(&self.epoch, head, &self.sets(head)), []);
                self.ack(head);
            }
            Step::Evict { key: n } => self.cache.evict(&key(n)),
            Step::Clock { to } => self.now = UnixMillis(to),
            Step::Replica(step) => self.replica_step(step),
            Step::Links(step) => self.links_step(step),
        }
    }
}

impl EdgeCache {
    pub(super) fn evict(&self, key: &RedirectKey) {
        self.generation.load().evict(key);
    }
}
