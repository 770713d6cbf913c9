//! The check for duplicates: its points, its gate, and what its reasons name.

use super::{super::*, check, code};
use crate::domain::assessment::{
    agent::AgentHash,
    client::Language,
    explain,
    spread::{Home, People, Spread},
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

/// A spread of sessions whose languages are known, with so many languages, unlinked people and days, without a home.
fn told_apart(languages: usize, unlinked: usize, days: usize) -> Spread {
    let tags = ["de", "en", "fr", "it", "ja"];
    let languages = tags.into_iter().take(languages).filter_map(Language::of_tag).collect();
    let people = People { languages, unlinked, days, is_known: true };
    let home = Some(Home { region: "CH-Bern".to_owned(), sessions: 2, of: 5 });
    Spread { people, home, ..spread(1, 1, 1) }
}

#[test]
fn each_point_of_languages_people_and_days() {
    let at_home = Some(Home { region: "CH-Bern".to_owned(), sessions: 3, of: 5 });
    let unknown = |one: Spread| Spread { people: People { is_known: false, ..one.people.clone() }, ..one };
    for (one, expected, what) in [
        (told_apart(1, 1, 1), 0, "an owner"),
        (told_apart(1, 4, 90), 8, "four people on many days, which count as eight"),
        (told_apart(1, 3, 90), 0, "a family on many days"),
        (told_apart(1, 4, 6), 0, "four people on six days"),
        (told_apart(1, 4, 7), 1, "on seven days"),
        (told_apart(1, 5, 1), 1, "five people"),
        (told_apart(1, 8, 1), 4, "eight people"),
        (told_apart(1, 30, 1), 4, "more people count no more"),
        (told_apart(2, 2, 2), 3, "two languages"),
        (told_apart(3, 3, 3), 6, "three languages"),
        (told_apart(5, 4, 5), 6, "more languages count no more"),
        (
            Spread { home: at_home.clone(), ..told_apart(3, 3, 3) },
            0,
            "languages mostly in one region: a shop",
        ),
        (Spread { home: None, ..told_apart(3, 3, 3) }, 0, "languages where no region is known"),
        (Spread { home: at_home, ..told_apart(1, 8, 9) }, 7, "people and days mostly in one region"),
        (unknown(told_apart(5, 30, 90)), 0, "most languages are not known"),
    ] {
        assert_eq!(sum(&one), expected, "{what}");
    }
}

#[test]
fn bars_are_half_again_as_high_where_languages_are_known() {
    let settings = Settings { suspected_points: 7, duplicate_points: 9, ..Settings::default() };
    // Eight points by countries and overlap, and by people what is said.
    let with = |unlinked: usize, is_known: bool| {
        let told = told_apart(1, unlinked, 1);
        let people = People { is_known, ..told.people.clone() };
        Spread {
            people,
            overlap: true,
            ..Spread { countries: spread(4, 1, 1).countries, country_halves: 8, ..told }
        }
    };
    for (one, expected, words) in [
        (with(4, false), (Match::False, true), "8 points, the bar is 7 (9 for a duplicate)"),
        (with(4, true), (Match::False, false), "8 points, the bar is 11 (14 for a duplicate)"),
        (with(7, true), (Match::False, true), "11 points, the bar is 11 (14 for a duplicate)"),
        (with(7, false), (Match::False, true), "8 points, the bar is 7"),
    ] {
        let (found, is_suspected) = duplicate(&one, &settings);
        assert_eq!((found.matched, is_suspected), expected, "{found:?}");
        assert!(found.reason.contains(words), "{words}: {found:?}");
    }
    let called = Spread { sensor_spread_km: 400.0, independent_places: 3, ..with(8, true) };
    let (found, _) = duplicate(&called, &settings);
    assert_eq!(found.matched, Match::True, "{found:?}");
    assert!(found.reason.contains("15 points, the bar is 14"), "{found:?}");
    assert!(found.reason.contains("4 for 8 people who share neither"), "{found:?}");
}
