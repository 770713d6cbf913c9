//! The push and the fill as a model: every order of steps of control, Redis, the stream, the disk and one edge, within
//! bounds, against the invariants I1 to I8 of `edge/README.md`; and broken variants of the rule, which must fail.
//!
//! `edge.rs` mirrors `edge/src/cache/generation.rs` and `edge/replica/src/tail.rs`: a change of one is a change of the other. With
//! `WAYMARK_TEST_MODEL_LONG` set, wider bounds are explored too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "what was explored, and how a broken form was found, is the result")]

mod edge;
mod explore;
mod extra;
mod lease;
mod redis;
mod replica;
mod rule;
mod scenarios;
mod truth;
mod watch;
mod world;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use self::{
    explore::{Push, Scenario},
    rule::{Rule, Taking},
    scenarios::{
        ALL, CORE, DISK, DISK_AND_SNAPSHOT, DISK_ONE_WRITE, EPOCHS, EPOCHS_AT_ONCE, EPOCHS_ONE_WRITE, FAULTS,
        LEASE, LEASES, LEASES_ONE_WRITE, LONG, POISONED, REDIS, REPLICA, STEPS, VIEW_BOOT,
        VIEW_BOOT_ONE_WRITE,
    },
};

/// Explores a scenario until something fails, or all is seen; what failed, with the way there.
fn explore(scenario: Scenario, rule: Rule) -> Option<(&'static str, String)> {
    let begun = Instant::now();
    let checker = Push::new(scenario, rule)
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    println!(
        "{}: {} states, {} of them different, {} steps deep, {:.1} s",
        scenario.name,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    );
    let failed = checker.discoveries().into_iter().next().map(|(name, path)| (name, path.to_string()));
    if failed.is_none() {
        assert_eq!(checker.model().missed(), [], "{}: never met", scenario.name);
    }
    failed
}

fn holds(scenario: Scenario) {
    if let Some((name, path)) = explore(scenario, Rule::HELD) {
        panic!("{}: {name}\n{path}", scenario.name);
    }
}

/// A broken form must be found out; tells how.
fn fails(scenario: Scenario, rule: Rule) {
    let Some((name, path)) = explore(scenario, rule) else {
        panic!("the model holds with {rule:?}");
    };
    println!("found: {name}\n{path}");
}

#[test]
fn core_holds() {
    holds(CORE);
}

#[test]
fn faults_hold() {
    holds(FAULTS);
}

#[test]
fn steps_hold() {
    holds(STEPS);
}

#[test]
fn redis_holds() {
    holds(REDIS);
}

#[test]
fn epochs_hold() {
    holds(EPOCHS_AT_ONCE);
    holds(EPOCHS_ONE_WRITE);
}

#[test]
fn disk_holds() {
    holds(DISK_ONE_WRITE);
}

#[test]
fn all_hold() {
    holds(ALL);
}

#[test]
fn disk_and_snapshot_hold() {
    holds(DISK_AND_SNAPSHOT);
}

#[test]
fn poison_holds() {
    holds(POISONED);
}

#[test]
fn boot_from_the_view_holds() {
    holds(VIEW_BOOT_ONE_WRITE);
}

#[test]
fn leases_and_heartbeats_hold() {
    holds(LEASES_ONE_WRITE);
}

#[test]
fn replica_holds() {
    holds(REPLICA);
}

/// Where no copy takes over, the term alone fences a rebuild.
#[test]
fn terms_fence_rebuilds() {
    let rule = Rule { rebuild_counts: false, ..Rule::HELD };
    assert_eq!(explore(LEASE, rule), None);
}

#[test]
fn wider_bounds_hold() {
    if std::env::var_os("WAYMARK_TEST_MODEL_LONG").is_some() {
        LONG.iter().for_each(|scenario| holds(*scenario));
    }
}

/// Each broken form with the scenario in which it shows.
macro_rules! broken {
    ($($name:ident: $scenario:ident, $($switch:ident: $value:expr),+;)*) => {
        mod broken {
            use super::*;

            $(#[test]
            fn $name() {
                fails($scenario, Rule { $($switch: $value),+, ..Rule::HELD });
            })*
        }
    };
}

broken! {
    plain_fill: CORE, taking: Taking::Plain;
    version_compare_alone: CORE, taking: Taking::Versions;
    leases_as_memcache: CORE, taking: Taking::Leases;
    events_below_the_floor_ignored: CORE, low_events_remove: false;
    floor_not_raised_by_negatives: CORE, negatives_raise: false;
    flushed_redis_read_as_404: FAULTS, flushed_is_unknown: false;
    complete_ignored: FAULTS, complete_counts: false;
    snapshot_that_sweeps_one_cache: FAULTS, snapshot_sweeps_all: false;
    older_entries_kept: CORE, older_are_replaced: false;
    what_redis_has_when_control_is_down: CORE, only_verified: false;
    joined_fill_taken_as_it_comes: CORE, joined_are_checked: false;
    gap_ignored: CORE, gaps_are_refused: false;
    stream_that_does_not_see_the_epoch: EPOCHS, stream_keeps_epoch: false;
    lookup_without_epoch: EPOCHS, lookup_tells_epoch: false;
    deposed_publisher_goes_on: LEASE, terms_fence: false, rebuild_counts: false;
    rebuild_that_does_not_count: REDIS, rebuild_counts: false;
    disk_counts_what_came_after: DISK, disk_applied_first: false;
    disk_keeps_what_is_stale: DISK_AND_SNAPSHOT, disk_skips_stale: false;
    disk_served_after_the_contact: DISK, contact_ends_disk: false;
    garbled_record_read_as_404: POISONED, garbled_is_unknown: false;
    refused_change_taken_as_a_deletion: POISONED, refused_keep: false;
    view_boot_takes_what_is_older: VIEW_BOOT, view_boot_raises: false;
    view_boot_served_after_the_contact: VIEW_BOOT, contact_ends_disk: false;
    what_was_sent_counts_as_acknowledged: LEASES, acks_are_applied: false;
    expired_lease_counts_as_acknowledged: LEASES, expired_are_unreachable: false;
    any_heartbeat_makes_live: LEASES, beats_tell_head: false;
    offer_dated_when_it_comes: REPLICA, offers_are_dated: false;
    table_behind_the_entries: REPLICA, table_waits: false;
    page_that_skips_a_change: REPLICA, pages_wait: false;
    table_shown_behind_a_newer_view: REPLICA, fills_hide_rows: false;
}
