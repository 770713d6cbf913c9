//! Property tests of the real cache against a plain map, under any order of events, fills, snapshots and evictions.
//!
//! The model writes a log. The edge receives parts of it late, twice or out of order, and reads views that lag. After
//! each step the invariants are checked: what is served is the truth at some revision that is not before what was
//! acknowledged (I3), nor before what was served already (I6); so a deleted id is never served after its ack (I5), and
//! duplicates and reordering change nothing (I8). Redirect rules are always exactly those of the applied revision. Two
//! thirds of the edges hold every link, half of these from the beginning.

mod links;
mod replica;
mod world;

use std::sync::Arc;

use proptest::prelude::*;
use shared::{
    redirect::Redirect,
    rules::AccountRules,
    wire::stream::{Change, Event, Events, Fill},
};

use self::world::{KEYS, RULES, Step, World, account, key, record, rev_of, rules, steps};
use super::{EdgeCache, Held, KeyRef};
use crate::domains::Domains;

/// Cases in the gate, and in `tests/run --long`.
fn cases() -> u32 {
    if std::env::var_os("WAYMARK_TEST_LONG").is_some() { 3_000 } else { 250 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_stale_value_is_ever_served(steps in steps(), kind in 0..3_u8) {
        let is_full = kind > 0;
        let mut world = if is_full { World::over(EdgeCache::full(1 << 20)) } else { World::new() };
        if kind == 2 {
            world.assert_whole();
        }
        for step in steps {
            world.step(step);
            let rules = world.state(world.applied).get(&RULES).copied();
            prop_assert_eq!(world.rules_held(), rules, "the rules are those of {}", world.applied);
            for n in 0..KEYS {
                world.step(Step::Ask { key: n });
            }
        }
        // The cache is of use: a view of the head is always taken.
        for n in 0..KEYS {
            let fill = Fill {
                epoch: world.epoch.clone(),
                complete: true,
                watermark: world.head(),
                value: world.history.last().unwrap().get(&n).map(|rev| (*rev, record(n, *rev))),
            };
            prop_assert!(world.cache.offer(&key(n), &fill).is_some());
        }
        if is_full {
            world.assert_whole();
        }
    }
}

#[test]
fn a_lagging_view_is_completed_by_the_tail() {
    let mut world = World::new();
    world.step(Step::Write { key: 0, delete: false });
    world.step(Step::Read { key: 0, lag: 0, complete: true });
    world.step(Step::Write { key: 0, delete: true });
    world.step(Step::Deliver { count: 2 });
    let (_, fill) = world.flights.pop().unwrap();
    let landing = world.cache.offer(&key(0), &fill).unwrap();
    assert!(landing.found.is_none(), "deleted by an event that the view had not seen");
    assert_eq!(landing.as_of, 2);
}

#[test]
fn a_refused_record_leaves_the_old_value() {
    let mut world = World::new();
    world.step(Step::Write { key: 0, delete: false });
    world.step(Step::Deliver { count: 1 });
    world.step(Step::Read { key: 0, lag: 0, complete: true });
    world.step(Step::Finish { which: 0 });
    let poison = Redirect { target: "javascript:alert(1)".into(), ..(*record(0, 2)).clone() };
    let events = Events {
        prev: 1,
        items: vec![
            Event { rev: 2, change: Change::Redirect(key(0), Some(Arc::new(poison))) },
            Event { rev: 3, change: Change::Redirect(key(1), Some(record(1, 3))) },
        ],
        last: 3,
    };
    let rejected = world.cache.apply(&events, &Domains::default()).unwrap();
    assert_eq!(rejected.iter().map(|item| item.rev).collect::<Vec<_>>(), [2]);
    assert_eq!(world.cache.position().1, 3, "the stream goes on");
    let Held::Present(served) = world.cache.held(KeyRef::of(&key(0))) else {
        panic!("the old value is gone")
    };
    assert_eq!(rev_of(&Some(served)), Some(1));
}

/// An edge of a newer release that starts from the disk may be able to use them.
#[test]
fn refused_rules_leave_the_old_ones_in_use_and_reach_the_disk() {
    let world = World::new();
    let refused = |rev: u64| {
        let mut sets = AccountRules::clone(&rules(Some(rev)));
        sets.lists[0].rules[0].condition = "colour=red".into();
        Arc::new(sets)
    };
    let item = |rev, sets| Event { rev, change: Change::Rules(sets) };
    let apply = |prev, items: Vec<Event>| {
        let events = Events { prev, last: prev + items.len() as u64, items };
        let rejected = world.cache.apply(&events, &Domains::default()).unwrap();
        rejected.into_iter().map(|item| item.rev).collect::<Vec<_>>()
    };
    let kept = || {
        let kept = world.cache.holding().unwrap().rules();
        (kept.as_of, kept.sets.get(&account()).cloned())
    };
    assert_eq!(apply(0, vec![item(1, rules(Some(1))), item(2, refused(2))]), [2]);
    assert_eq!(world.rules_held(), Some(1));
    assert_eq!(kept(), (2, Some(refused(2))));
    // The same by the whole state, which comes after a gap.
    let rejected = world.cache.snapshot(&world.epoch, 2, &[refused(2)]);
    assert_eq!(rejected.into_iter().map(|item| item.rev).collect::<Vec<_>>(), [2]);
    assert_eq!((world.rules_held(), kept()), (Some(1), (2, Some(refused(2)))));
    // Where there was none before, none decides; but the account has rules.
    assert_eq!(apply(2, vec![item(3, rules(None)), item(4, refused(4))]), [4]);
    assert_eq!(kept(), (4, Some(refused(4))));
    assert!(world.cache.with_rules(&account(), |_| ()).is_some());
    assert!(apply(4, vec![item(5, rules(None))]).is_empty());
    assert_eq!(kept(), (5, None));
    assert!(world.cache.with_rules(&account(), |_| ()).is_none());
}

#[test]
fn a_run_of_events_with_a_hole_is_a_gap() {
    let cache = EdgeCache::new(1 << 20);
    cache.snapshot(&"e".into(), 0, &[]);
    let item = |rev| Event { rev, change: Change::Redirect(key(0), None) };
    for (prev, revs, last) in [(0, vec![1, 3], 3), (0, vec![1], 2), (1, vec![2], 2)] {
        let events = Events { prev, items: revs.into_iter().map(item).collect(), last };
        assert!(cache.apply(&events, &Domains::default()).is_err(), "{events:?}");
    }
    assert_eq!(cache.position().1, 0);
}

#[test]
fn an_unreadable_change_is_not_skipped_by_the_tail() {
    let mut world = World::new();
    world.step(Step::Write { key: 0, delete: false });
    world.step(Step::Deliver { count: 1 });
    let view = |watermark, rev| Fill {
        epoch: world.epoch.clone(),
        complete: true,
        watermark,
        value: Some((rev, record(0, rev))),
    };
    assert!(world.cache.offer(&key(0), &view(2, 2)).is_some(), "the view is of a newer release");
    world.cache.evict(&key(0));
    let item = |rev, change| Event { rev, change };
    let items =
        vec![item(2, Change::Unreadable("of a newer release".into())), item(3, Change::Rules(rules(None)))];
    let events = Events { prev: 1, items, last: 3 };
    assert_eq!(world.cache.apply(&events, &Domains::default()).unwrap().len(), 1);
    assert!(world.cache.offer(&key(0), &view(1, 1)).is_none(), "what was served does not go back");
    assert!(world.cache.offer(&key(0), &view(3, 2)).is_some());
}

#[test]
fn a_view_older_than_one_that_was_served_is_refused() {
    let mut world = World::new();
    // The store runs ahead of the stream, which delivers nothing here.
    world.step(Step::Write { key: 0, delete: false });
    world.step(Step::Read { key: 0, lag: 0, complete: true });
    world.step(Step::Write { key: 0, delete: false });
    world.step(Step::Read { key: 0, lag: 0, complete: true });
    world.step(Step::Finish { which: 1 });
    world.step(Step::Evict { key: 0 });
    let (_, old) = world.flights.pop().unwrap();
    assert!(world.cache.offer(&key(0), &old).is_none());
}
