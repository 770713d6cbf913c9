//! Control, Redis and three edges over a simulated network and clock (turmoil): cuts, delays, held packets, kills and
//! restarts by a seed. A history of all reads and writes is checked afterwards.
//!
//! The edge is the real one, from its stream client to its responses; control and Redis are small, and speak the real
//! protocol. `WAYMARK_TEST_SIMULATIONS` sets how many seeds are run.

#![expect(clippy::print_stdout, reason = "what was simulated is the result")]

mod control;
mod edges;
mod faults;
mod truth;

use self::{faults::simulate, truth::Form};

/// Seeds without a word from the environment: each is half a minute of the fleet.
const SEEDS: u64 = 2;

#[test]
fn no_stale_read_under_any_network_fault() {
    let seeds = std::env::var("WAYMARK_TEST_SIMULATIONS").map_or(SEEDS, |text| text.parse().unwrap());
    let (mut acked, mut judged, mut redirects, mut rejected) = (0, 0, 0, 0);
    for seed in 0..seeds {
        let report = simulate(seed, Form::Right);
        println!("{report}");
        assert_eq!(report.verdict.violations, [], "seed {seed}");
        assert_eq!(report.broken_rules, [] as [String; 0], "seed {seed}");
        (acked, judged) = (acked + report.acked, judged + report.verdict.judged);
        (redirects, rejected) = (redirects + report.verdict.redirects, rejected + report.rejected);
    }
    println!(
        "{seeds} seeds: {acked} writes acknowledged by edges, {judged} reads judged, {redirects} of them redirects"
    );
    assert!(acked > 0 && redirects * 2 > judged && rejected > 0, "{acked} {redirects} {judged} {rejected}");
}

/// A broken form is found by one of the seeds, or the simulation proves nothing.
fn is_found(form: Form) {
    let found = (0..8).find_map(|seed| {
        let report = simulate(seed, form);
        println!("{report}");
        report.verdict.violations.first().map(|violation| format!("{violation:?}"))
    });
    println!("found: {}", found.expect("the broken form is found"));
}

#[test]
fn an_early_acknowledgement_is_detected() {
    is_found(Form::AckBeforeApply);
}

#[test]
fn a_forged_watermark_is_detected() {
    is_found(Form::ForgedWatermark);
}
