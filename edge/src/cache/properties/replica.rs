//! The full replica in the same model: late pages, restarts from disk, a stream that is connected or not.

use std::{ops::RangeInclusive, sync::Arc};

use proptest::prelude::*;
use shared::wire::{
    links::LinksPage,
    stream::{Epoch, Rev},
};
use tempfile::TempDir;

use super::world::{KEYS, key, record};
use crate::cache::{EdgeCache, Held, KeyRef, Leads, PageFit, Reading, Served, Sources};

/// Keys of a page.
const PAGE: u8 = 3;

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A page is read at control: [`PAGE`] keys from this one on.
    Read { from: u8 },
    /// A page that was read is inserted; any of those in flight.
    Take { which: u8 },
    /// A heartbeat confirms that everything is applied, or the stream ends.
    Live { is_live: bool },
    /// The links are written to disk.
    Save,
    /// The edge is killed, boots from its disk, and contacts control.
    Restart,
}

pub(super) fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..KEYS).prop_map(|from| Step::Read { from }),
        10 => any::<u8>().prop_map(|which| Step::Take { which }),
        4 => any::<bool>().prop_map(|is_live| Step::Live { is_live }),
        1 => Just(Step::Save),
        1 => Just(Step::Restart),
    ]
}

/// Pages to read, pages in flight, and the saved state.
#[derive(Default)]
pub(super) struct World {
    reading: Option<Reading>,
    /// Keys of which a page is in.
    taken: Vec<u8>,
    pages: Vec<(u8, LinksPage)>,
    /// The folder, the epoch, and the revisions between which each link on disk is.
    disk: Option<(TempDir, Epoch, RangeInclusive<Rev>)>,
}

impl super::World {
    fn page(&self, from: u8) -> LinksPage {
        let state = self.state(self.head());
        let keys = from..(from + PAGE).min(KEYS);
        let link = |n| state.get(&n).map(|rev| (key(n).folded, *rev, record(n, *rev)));
        LinksPage {
            epoch: self.epoch.clone(),
            at_rev: self.head(),
            more: from + PAGE < KEYS,
            links: keys.filter_map(link).collect(),
        }
    }

    pub(super) fn replica_step(&mut self, step: Step) {
        match step {
            Step::Read { from } => {
                let is_old = |reading: &Reading| !reading.is_current(&self.cache);
                if self.replica.reading.as_ref().is_none_or(is_old) {
                    self.replica.reading = self.cache.unread();
                    self.replica.pages.clear();
                    self.replica.taken.clear();
                }
                if self.replica.reading.is_some() {
                    let page = self.page(from);
                    self.replica.pages.push((from, page));
                }
            }
            Step::Take { which } => self.take(which),
            // An earlier heartbeat may have said so: later writes are unknown.
            Step::Live { is_live } => self.cache.set_live(is_live && self.applied == self.head()),
            Step::Save => {
                let Some(whole) = self.cache.whole() else { return };
                let folder = tempfile::tempdir().unwrap();
                let (epoch, applied) = (whole.epoch(), whole.applied());
                replica::save(folder.path(), whole.table(), epoch, applied, || whole.last(), |_| Ok(()))
                    .unwrap();
                self.replica.disk = Some((folder, epoch.clone(), applied..=whole.last().0.max(applied)));
            }
            Step::Restart => self.restart(),
        }
    }

    fn take(&mut self, which: u8) {
        let Some(reading) = &self.replica.reading else { return };
        if self.replica.pages.is_empty() {
            return;
        }
        let (from, page) = self.replica.pages.swap_remove(usize::from(which) % self.replica.pages.len());
        if page.epoch != reading.epoch || reading.take("tn.gg", &page) == PageFit::TooOld {
            return;
        }
        self.replica.taken.extend(from..from + PAGE);
        if (0..KEYS).all(|n| self.replica.taken.contains(&n)) {
            self.replica.reading.take().unwrap().end();
        }
    }

    fn restart(&mut self) {
        let Some((folder, epoch, revs)) = &self.replica.disk else { return };
        if *epoch != self.epoch {
            return;
        }
        let applied = revs.start();
        let cache = EdgeCache::full(1 << 20);
        let sets = self.sets(*applied).into_iter().map(|set| (set.account, set)).collect();
        let booting = cache.prepare(epoch, *applied, &Sources { as_of: *applied, sets });
        booting.adopt(replica::load(folder.path()).unwrap());
        cache.boot(booting);
        // Before the first contact a link must be as it was at some revision of the saved state.
        for n in 0..KEYS {
            let past: Vec<Option<Rev>> = revs.clone().map(|rev| self.state(rev).get(&n).copied()).collect();
            assert_agree(&cache, n);
            let shown = match cache.held(KeyRef::of(&key(n))) {
                Held::Present(served) => super::rev_of(&Some(served)),
                Held::Absent | Held::Stale | Held::Nothing => None,
            };
            assert!(past.contains(&shown), "key {n} is shown as of {shown:?}, but was {past:?}");
        }
        cache.confirm(self.head());
        self.applied = *applied;
        self.cache = cache;
    }

    /// When all is applied and read, every key is answered, and from memory.
    pub(super) fn assert_whole(&mut self) {
        while self.applied < self.head() {
            self.step(super::Step::Deliver { count: 100 });
        }
        if let Some(reading) = self.cache.unread() {
            for from in (0..KEYS).step_by(PAGE.into()) {
                assert_eq!(reading.take("tn.gg", &self.page(from)), PageFit::Taken);
            }
            reading.end();
        }
        self.cache.set_live(true);
        for n in 0..KEYS {
            let expected = self.state(self.head()).get(&n).copied();
            assert_agree(&self.cache, n);
            let found = match self.cache.held(KeyRef::of(&key(n))) {
                Held::Present(served) => super::rev_of(&Some(served)),
                Held::Absent => None,
                other => panic!("key {n} is {other:?}"),
            };
            assert_eq!(found, expected, "key {n}");
        }
        assert_eq!(
            self.cache.replica().unwrap().links,
            self.state(self.head()).keys().filter(|n| **n < KEYS).count()
        );
    }
}

/// What needs the location alone is led where the whole redirection leads.
fn assert_agree(cache: &EdgeCache, n: u8) {
    let key = key(n);
    let (held, leads) = (cache.held(KeyRef::of(&key)), cache.leads(KeyRef::of(&key)));
    let agree = match (&held, &leads) {
        (Held::Present(served), Held::Present(Leads::To(lead))) => {
            // The location alone is enough for links that always lead there.
            served.record.availability.is_none()
                && (&served.location, served.record.forward_query) == (&lead.location, lead.forward_query)
                && served.record.status_code == lead.status_code
        }
        (Held::Present(served), Held::Present(Leads::Served(other))) => {
            (&served.location, &served.record.status_code, &served.record.availability)
                == (&other.location, &other.record.status_code, &other.record.availability)
        }
        (Held::Absent, Held::Absent) | (Held::Stale, Held::Stale) | (Held::Nothing, Held::Nothing) => true,
        _ => false,
    };
    assert!(agree, "key {n}: {held:?}, but {leads:?}");
}

/// A world whose edge has read every link; key 2 is absent.
pub(super) fn whole() -> super::World {
    let mut world = super::World::over(EdgeCache::full(1 << 20));
    for n in 0..KEYS {
        world.step(super::Step::Write { key: n, delete: n == 2 });
    }
    world.assert_whole();
    world
}

fn ask(world: &super::World, n: u8) -> Held {
    world.cache.held(KeyRef::of(&key(n)))
}

#[test]
fn absences_are_trusted_while_the_stream_is_live() {
    let world = whole();
    assert!(matches!(ask(&world, 2), Held::Absent));
    world.cache.set_live(false);
    assert!(matches!(ask(&world, 2), Held::Nothing));
    assert!(matches!(ask(&world, 1), Held::Present(_)));
}

#[test]
fn the_replica_does_not_answer_where_a_newer_view_differs() {
    let mut world = whole();
    world.cache.set_live(false);
    world.step(super::Step::Write { key: 0, delete: true });
    world.step(super::Step::Read { key: 0, lag: 0, complete: true });
    world.step(super::Step::Finish { which: 0 });
    assert!(matches!(ask(&world, 0), Held::Absent), "remembered as the view had it");
    world.cache.evict(&key(0));
    assert!(matches!(ask(&world, 0), Held::Nothing), "the table would go back");
    world.step(super::Step::Deliver { count: 1 });
    world.cache.set_live(true);
    assert!(matches!(ask(&world, 0), Held::Absent));
}

#[test]
fn guessed_ids_do_not_disable_known_ones() {
    let mut world = whole();
    world.cache.set_live(false);
    world.step(super::Step::Rules { delete: true });
    for _ in 0..10 {
        world.step(super::Step::Read { key: 2, lag: 0, complete: true });
        world.step(super::Step::Finish { which: 0 });
    }
    assert!([0, 1].iter().all(|n| matches!(ask(&world, *n), Held::Present(_))));
    // Created and deleted before the view: the events in between must not show it.
    world.cache.evict(&key(2));
    world.step(super::Step::Write { key: 2, delete: false });
    world.step(super::Step::Write { key: 2, delete: true });
    world.step(super::Step::Read { key: 2, lag: 0, complete: true });
    world.step(super::Step::Finish { which: 0 });
    world.cache.evict(&key(2));
    world.step(super::Step::Deliver { count: 2 });
    assert!(matches!(ask(&world, 2), Held::Nothing));
    world.step(super::Step::Deliver { count: 1 });
    world.cache.set_live(true);
    assert!(matches!(ask(&world, 2), Held::Absent));
}

#[test]
fn an_unreadable_change_ends_trust_in_absences() {
    let world = whole();
    let at = world.head();
    let change = super::Change::Unreadable("of a newer release".into());
    let items = vec![super::Event { rev: at + 1, change }];
    let events = super::Events { prev: at, items, last: at + 1 };
    assert_eq!(world.cache.apply(&events, &super::Domains::default()).unwrap().len(), 1);
    assert!(matches!(ask(&world, 2), Held::Nothing), "it may have been created");
    assert!(matches!(ask(&world, 1), Held::Present(_)), "the old value stays");
    assert!(world.cache.whole().is_none(), "such a state is not kept");
}

#[test]
fn a_link_that_cannot_be_served_is_not_absent() {
    let world = whole();
    let at = world.head();
    let poison = super::Redirect { target: "javascript:alert(1)".into(), ..(*record(2, at + 1)).clone() };
    let change = super::Change::Redirect(key(2), Some(Arc::new(poison)));
    let items = vec![super::Event { rev: at + 1, change }];
    let events = super::Events { prev: at, items, last: at + 1 };
    assert_eq!(world.cache.apply(&events, &super::Domains::default()).unwrap().len(), 1);
    assert!(matches!(ask(&world, 2), Held::Nothing));
    let change = super::Change::Redirect(key(2), None);
    let events =
        super::Events { prev: at + 1, items: vec![super::Event { rev: at + 2, change }], last: at + 2 };
    assert_eq!(world.cache.apply(&events, &super::Domains::default()).unwrap().len(), 0);
    assert!(matches!(ask(&world, 2), Held::Absent));
}

#[test]
fn a_page_without_a_key_that_is_changing_shows_no_absence() {
    // The first key is on the page, the second one is made by the change.
    for changed in [0, 1] {
        let mut world = super::World::over(EdgeCache::full(1 << 20));
        world.step(super::Step::Write { key: 0, delete: false });
        world.step(super::Step::Deliver { count: 1 });
        world.step(super::Step::Snapshot { back: 0 });
        let reading = world.cache.unread().unwrap();
        let served = Served::new(&key(changed), record(changed, 2)).unwrap();
        let generation = world.cache.generation.load_full();
        generation.enter(2, &key(changed), Some(Arc::new(served)));
        for from in (0..KEYS).step_by(PAGE.into()) {
            assert_eq!(reading.take("tn.gg", &world.page(from)), PageFit::Taken);
        }
        reading.end();
        world.cache.set_live(true);
        assert!(matches!(ask(&world, changed), Held::Nothing), "the table will have it with its event");
        generation.event(2, &key(changed), Some(&record(changed, 2))).unwrap();
        generation.set_applied(2);
        let Held::Present(served) = ask(&world, changed) else { panic!("it is not there") };
        assert_eq!(super::rev_of(&Some(served)), Some(2));
    }
}
