//! The check for duplicates: its points, its gate, and what its reasons name.

use super::{super::*, check, code};
use crate::domain::assessment::{
    agent::AgentHash,
    explain,
    spread::{Home, Spread},
};

/// A spread with this many countries, places and devices, after four sessions.
fn spread(countries: usize, places: usize, agents: usize) -> Spread {
    let letters = ["AT", "BE", "CH", "DE", "FR", "GB"];
    Spread {
        countries: letters.iter().take(countries).map(|text| code(text)).collect(),
        country_halves: 2 * countries.min(letters.len()),
        regions: (0..3).map(|n| format!("R{n}")).collect(),
        agents: (1..=agents as u64).map(AgentHash).collect(),
        independent_places: places,
        previous_countries: vec![None; 4],
        ..Spread::default()
    }
}

fn sum(spread: &Spread) -> u32 {
    explain::sum(&explain::signs(spread, &Settings::default()))
}

#[test]
fn each_point_of_a_duplicate() {
    let base = || spread(1, 1, 1);
    for (one, expected, what) in [
        (spread(0, 0, 0), 0, "nothing"),
        (base(), 0, "one of each"),
        (spread(2, 1, 1), 2, "two countries"),
        (spread(4, 1, 1), 6, "four countries"),
        (spread(6, 1, 1), 6, "more countries count no more"),
        (spread(1, 2, 1), 1, "two places"),
        (spread(1, 4, 1), 3, "four places"),
        (spread(1, 9, 1), 3, "more places count no more"),
        (Spread { overlap: true, ..base() }, 2, "overlap"),
        (spread(1, 1, 4), 0, "as many devices as allowed"),
        (spread(1, 1, 5), 1, "one device more"),
        (Spread { sensor_spread_km: 300.0, ..base() }, 0, "sensors at the threshold"),
        (Spread { sensor_spread_km: 300.001, ..base() }, 1, "sensors above it"),
        (Spread { kinematic: true, ..base() }, 1, "too fast"),
        (Spread { alike: 2, ..base() }, 0, "a phone and its VPN"),
        (Spread { alike: 3, ..base() }, 2, "three phones with one user agent"),
        (Spread { alike: 4, ..base() }, 4, "four, as many as are told apart"),
        (Spread { geo_ip_spread_km: 1_000.001, ..base() }, 0, "far, and few devices and sessions"),
        (
            Spread { geo_ip_spread_km: 1_000.001, previous_countries: vec![None; 10], ..spread(1, 1, 5) },
            5,
            "far, with many devices and ten sessions",
        ),
        (
            Spread { geo_ip_spread_km: 1_000.0, previous_countries: vec![None; 10], ..spread(1, 1, 5) },
            3,
            "not far enough",
        ),
        (
            Spread { geo_ip_spread_km: 1_000.001, previous_countries: vec![None; 9], ..spread(1, 1, 5) },
            2,
            "one session too few",
        ),
        (Spread { previous_countries: vec![None; 64], ..spread(1, 1, 2) }, 0, "a household that comes back"),
        (Spread { previous_countries: vec![None; 4], ..spread(1, 1, 3) }, 0, "several devices, few sessions"),
        (
            Spread { previous_countries: vec![None; 5], ..spread(1, 1, 3) },
            1,
            "five sessions of several devices",
        ),
        (Spread { previous_countries: vec![None; 9], ..spread(1, 1, 3) }, 1, "nine"),
        (Spread { previous_countries: vec![None; 10], ..spread(1, 1, 3) }, 2, "ten"),
        (Spread { previous_countries: vec![None; 19], ..spread(1, 1, 3) }, 2, "nineteen"),
        (Spread { previous_countries: vec![None; 20], ..spread(1, 1, 3) }, 3, "twenty"),
        (Spread { previous_countries: vec![None; 64], ..spread(1, 1, 3) }, 3, "more sessions count no more"),
    ] {
        assert_eq!(sum(&one), expected, "{what}");
    }
}

/// Devices that are seen in many regions count where no region is their home: most phones share a few user agents.
#[test]
fn pairs_of_device_and_region_count_where_no_region_has_most_sessions() {
    let of = |device_regions: usize, agents: usize, (sessions, of): (usize, usize)| Spread {
        device_regions,
        home: Some(Home { region: "CH-Bern".to_owned(), sessions, of }),
        ..spread(1, 1, agents)
    };
    for (one, expected, what) in [
        (of(4, 3, (2, 6)), 0, "four pairs"),
        (of(5, 3, (2, 6)), 1, "five"),
        (of(6, 3, (2, 6)), 1, "six"),
        (of(7, 3, (2, 7)), 2, "seven"),
        (of(9, 3, (2, 9)), 3, "nine"),
        (of(11, 3, (2, 11)), 4, "eleven"),
        (of(60, 3, (2, 60)), 4, "more pairs count no more"),
        (of(60, 2, (2, 60)), 0, "a household on journeys"),
        (of(11, 3, (5, 10)), 4, "half of the sessions in one region"),
        (of(11, 3, (6, 10)), 0, "most sessions in one region"),
        (Spread { home: None, ..of(11, 3, (1, 1)) }, 0, "no region is known"),
    ] {
        assert_eq!(sum(&one), expected, "{what}");
    }
    let (finding, _) = duplicate(&of(7, 3, (2, 7)), &Settings::default());
    check(
        &finding,
        Match::False,
        "2 for 7 pairs of device and region, with no region that has most sessions",
    );
}

#[test]
fn a_duplicate_has_enough_scans_points_and_an_open_gate() {
    let settings = Settings::default();
    let closed = |spread: Spread| Spread { regions: BTreeSet::new(), ..spread };
    for (one, expected, suspected, word) in [
        (
            Spread { previous_countries: vec![None; 2], ..spread(4, 4, 5) },
            Match::Unknown,
            false,
            "TOO_FEW_SCANS: 2",
        ),
        (
            Spread { previous_countries: vec![None; 3], ..spread(4, 4, 5) },
            Match::True,
            false,
            "DUPLICATE with 10",
        ),
        (Spread { overlap: true, ..spread(4, 3, 1) }, Match::True, false, "DUPLICATE with 10"),
        (
            spread(4, 4, 1),
            Match::False,
            true,
            "may be a DUPLICATE: 9 points, the bar is 8 (10 for a duplicate)",
        ),
        (
            spread(4, 3, 1),
            Match::False,
            true,
            "may be a DUPLICATE: 8 points, the bar is 8 (10 for a duplicate)",
        ),
        (spread(4, 2, 1), Match::False, false, "No duplicate: 7 points, the bar is 8 (10 for a duplicate)"),
        (spread(1, 1, 1), Match::False, false, "No duplicate: 0 points, the bar is 8 (10 for a duplicate)."),
        (closed(spread(4, 4, 5)), Match::False, true, "may be a DUPLICATE: 10 points, the bar is 10:"),
        (
            Spread { geo_ip_spread_km: 1_000.0, ..closed(spread(4, 4, 5)) },
            Match::False,
            true,
            "GATE_CLOSED, not called a duplicate: 0 regions (more than 2 needed), 1,000 km by addresses (1,000), \
             0 km by sensors (300).",
        ),
        (
            Spread { geo_ip_spread_km: 1_000.1, ..closed(spread(4, 4, 5)) },
            Match::True,
            false,
            "DUPLICATE with",
        ),
        (Spread { sensor_spread_km: 300.1, ..closed(spread(4, 4, 5)) }, Match::True, false, "DUPLICATE with"),
    ] {
        let (finding, found) = duplicate(&one, &settings);
        check(&finding, expected, word);
        assert_eq!(found, suspected, "{finding:?}");
    }
    // More regions than two open the gate, two do not.
    let two = Spread { regions: ["a".to_owned(), "b".to_owned()].into(), ..spread(4, 4, 5) };
    assert_eq!(duplicate(&two, &settings).0.matched, Match::False);
}

/// With most sessions in one region the item is only suspected, whatever the points.
#[test]
fn a_majority_in_one_region_limits_the_verdict_to_suspected() {
    let at_home = |sessions: usize, of: usize| Spread {
        home: Some(Home { region: "CH-Bern".to_owned(), sessions, of }),
        ..spread(4, 4, 5)
    };
    let share = |share: f64| Settings { region_share_threshold: share, ..Settings::default() };
    for (one, settings, expected, suspected, word) in [
        (spread(4, 4, 5), share(0.5), Match::True, false, "DUPLICATE with 10"),
        (at_home(5, 10), share(0.5), Match::True, false, "DUPLICATE with 10"),
        (
            at_home(6, 10),
            share(0.5),
            Match::False,
            true,
            "6 of 10 sessions are in CH-Bern, a share of 0.6; with more than 0.5",
        ),
        (at_home(6, 10), share(0.6), Match::True, false, "DUPLICATE with 10"),
        (at_home(10, 10), share(1.0), Match::True, false, "DUPLICATE with 10"),
        (at_home(1, 10), share(0.0), Match::False, true, "MOSTLY_IN_ONE_REGION"),
        // It has no effect if there is nothing to suspect.
        (
            Spread { countries: BTreeSet::new(), country_halves: 0, ..at_home(9, 10) },
            share(0.5),
            Match::False,
            false,
            "No duplicate: 4 points",
        ),
    ] {
        let (finding, found) = duplicate(&one, &settings);
        check(&finding, expected, word);
        assert_eq!(found, suspected, "{finding:?}");
        assert_eq!(finding.reason.contains("MOSTLY"), suspected, "{finding:?}");
    }
}

/// Many devices at one place are visitors of a shop window, or copies that one town buys: the reason names what settles it.
#[test]
fn a_possible_display_piece_is_named_in_the_reason() {
    let cases = [(9, 10, 5, true), (9, 9, 5, false), (9, 10, 4, false), (5, 10, 5, false)];
    for (sessions, previous, agents, is_named) in cases {
        let home = Some(Home { region: "CH-Bern".to_owned(), sessions, of: 11 });
        let one = Spread { home, previous_countries: vec![None; previous], ..spread(4, 4, agents) };
        let reason = duplicate(&one, &Settings::default()).0.reason;
        assert_eq!(reason.contains("LOOKS_LIKE_DISPLAY: 5 devices"), is_named, "{reason}");
    }
    // Also where the points reach the bar of a duplicate, and the gate is open.
    let home = Some(Home { region: "CH-Bern".to_owned(), sessions: 9, of: 11 });
    let one = Spread { home, previous_countries: vec![None; 20], overlap: true, ..spread(4, 4, 8) };
    let (finding, is_suspected) = duplicate(&one, &Settings::default());
    check(&finding, Match::False, "It may be a DUPLICATE: 15 points, the bar is 10:");
    check(&finding, Match::False, "LOOKS_LIKE_DISPLAY: 8 devices");
    assert!(is_suspected);
}
