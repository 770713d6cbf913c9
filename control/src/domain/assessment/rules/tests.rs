use shared::id::ProductId;

use super::*;
use crate::domain::{assessment::agent::AgentHash, commissioning::Taken};

fn code(text: &str) -> CountryCode {
    text.parse().unwrap()
}

fn codes(texts: &[&str]) -> Vec<CountryCode> {
    texts.iter().map(|text| code(text)).collect()
}

fn check(found: &Finding, expected: Match, word: &str) {
    assert_eq!(found.matched, expected, "{found:?}");
    assert!(found.reason.contains(word), "{found:?} does not say {word}");
}

#[test]
fn invalid_by_what_the_item_is() {
    check(&invalid(&Item::NotGiven), Match::Unknown, "Neither");
    check(&invalid(&Item::Malformed("x".to_owned())), Match::True, "MALFORMED_ID");
    check(&invalid(&Item::Absent("x".to_owned())), Match::True, "UNKNOWN_ITEM");
    check(&invalid(&Known::default().into()), Match::False, "known");
}

fn commissioned(steps: &[(i64, CommissionState)], factory: Option<&str>) -> Known {
    let steps: Vec<Taken> = steps.iter().map(|(at, to)| Taken { at: UnixMillis(*at), to: *to }).collect();
    let commission = Commission {
        state: steps.last().map_or(CommissionState::NotCommissioned, |taken| taken.to),
        product: ProductId::new(1, [1; 16]),
        occurred_at: String::new(),
        factory: factory.map(str::to_owned),
        purchase_order: None,
        steps,
    };
    Known { commission: Some(commission), ..Known::default() }
}

#[test]
fn unauthorized_by_commission_factory_and_tags() {
    use CommissionState::{Commissioned, Decommissioned};
    let strict = Settings::default();
    let loose = Settings { require_commissioning: false, ..Settings::default() };
    let of = |factory: Option<&str>| {
        let known = commissioned(&[(10, Commissioned)], Some("F"));
        Known { factory: factory.map(str::to_owned), ..known }
    };
    let tagged = |tag: &str| Known {
        tags: vec!["x".to_owned(), tag.to_owned()],
        ..commissioned(&[(10, Commissioned)], None)
    };
    for (known, at, settings, expected, word) in [
        (Known::default(), 20, &strict, Match::True, "NOT_ACTIVATED"),
        (Known::default(), 20, &loose, Match::Unknown, "need not be"),
        (commissioned(&[(10, Commissioned)], None), 20, &strict, Match::False, "is commissioned"),
        (commissioned(&[(10, Commissioned)], None), 10, &strict, Match::False, "is commissioned"),
        (commissioned(&[(10, Commissioned)], None), 9, &strict, Match::True, "SCANNED_BEFORE_ACTIVATION"),
        (commissioned(&[(10, Commissioned)], None), 9, &loose, Match::True, "SCANNED_BEFORE_ACTIVATION"),
        (
            commissioned(&[(10, Commissioned), (20, Decommissioned)], None),
            20,
            &strict,
            Match::True,
            "DECOMMISSIONED",
        ),
        (
            commissioned(&[(10, Commissioned), (20, Decommissioned)], None),
            19,
            &strict,
            Match::False,
            "is commissioned",
        ),
        (of(Some("F")), 20, &strict, Match::False, "is commissioned"),
        (of(Some("G")), 20, &strict, Match::True, "FACTORY_MISMATCH"),
        (of(None), 20, &strict, Match::True, "FACTORY_MISMATCH"),
        (
            Known { factory: Some("F".to_owned()), ..commissioned(&[(10, Commissioned)], None) },
            20,
            &loose,
            Match::True,
            "names the factory F, its commission none",
        ),
        (tagged("recalled"), 20, &strict, Match::True, "tagged recalled"),
        (tagged("stolen"), 20, &strict, Match::True, "tagged stolen"),
        (tagged("destroyed"), 20, &loose, Match::True, "tagged destroyed"),
        (tagged("demo"), 20, &strict, Match::False, "is commissioned"),
    ] {
        check(&unauthorized(&known, UnixMillis(at), settings), expected, word);
    }
}

/// Sessions before, by country, each by a device of its own.
fn before(countries: &[&str]) -> Spread {
    let one = |text: &&str| (!text.is_empty()).then(|| code(text));
    let previous_countries: Vec<Option<CountryCode>> = countries.iter().map(one).collect();
    let previous_agents = (1..).map(|n| Some(AgentHash(n))).take(previous_countries.len()).collect();
    Spread { previous_countries, previous_agents, agent: Some(AgentHash(99)), ..Spread::default() }
}

#[test]
fn what_one_device_saw_inside_and_outside_travels_with_its_owner() {
    let known = Known { markets: codes(&["DE"]), ..Known::default() };
    let place = Place { countries: &codes(&["FR"]), precision: Precision::GeoIpCity, is_professional: false };
    let with = |countries: &[&str], agents: &[u64], own: u64| {
        let agent = |n: u64| Some(AgentHash(n)).filter(|_| n > 0);
        let previous_agents = agents.iter().map(|n| agent(*n)).collect();
        Spread { previous_agents, agent: agent(own), ..before(countries) }
    };
    for (countries, agents, own, expected, word) in [
        (vec!["FR", "DE", "FR"], vec![2, 1, 2], 2, Risk::Confirmed, "1 sessions inside"),
        (vec!["FR", "DE", "FR"], vec![2, 1, 2], 1, Risk::Suspected, "a device outside saw it inside, too"),
        (vec!["FR", "DE", "FR"], vec![1, 1, 2], 2, Risk::Suspected, "a device outside saw it inside, too"),
        (vec!["FR", "DE", "FR"], vec![0, 0, 0], 0, Risk::Confirmed, "1 sessions inside"),
        (vec!["", "FR", "FR"], vec![1, 1, 1], 1, Risk::Confirmed, "0 sessions inside"),
        (vec!["FR", "FR"], vec![1, 1], 1, Risk::Confirmed, "0 sessions inside"),
    ] {
        let (finding, found) =
            diversion(&known, place, &with(&countries, &agents, own), DiversionMode::Profile);
        check(&finding, Match::True, word);
        assert_eq!(found, expected, "{countries:?} {agents:?} {own}");
    }
}

#[test]
fn diversion_by_market_home_and_place() {
    use DiversionMode::{Profile, Trigger};
    use Precision::{GeoIpCity as City, Sensor};
    let known = Known { markets: codes(&["DE", "AT"]), ..Known::default() };
    let none = Known::default();
    for (known, countries, precision, professional, history, mode, expected, risk, word) in [
        (&none, vec!["FR"], City, false, vec![], Profile, Match::Unknown, Risk::Unknown, "NO_MARKETS"),
        (&known, vec![], City, false, vec![], Profile, Match::Unknown, Risk::Unknown, "NO_COUNTRY"),
        (
            &known,
            vec!["DE", "FR"],
            Sensor,
            false,
            vec![],
            Profile,
            Match::Unknown,
            Risk::Unknown,
            "border of DE, FR",
        ),
        (&known, vec!["DE"], City, false, vec![], Profile, Match::False, Risk::None, "permitted"),
        (
            &known,
            vec!["DE", "AT"],
            Sensor,
            false,
            vec![],
            Profile,
            Match::Unknown,
            Risk::Unknown,
            "border of DE, AT",
        ),
        (&known, vec!["DE"], City, false, vec!["FR", "FR"], Trigger, Match::False, Risk::None, "permitted"),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec![],
            Profile,
            Match::True,
            Risk::Suspected,
            "FIRST_OUTSIDE_SCAN",
        ),
        (
            &known,
            vec!["FR", "CH"],
            Sensor,
            false,
            vec![],
            Profile,
            Match::Unknown,
            Risk::Unknown,
            "border of FR, CH",
        ),
        (&known, vec!["FR"], City, true, vec![], Profile, Match::True, Risk::Confirmed, "OUTSIDE_MARKET"),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec!["FR"],
            Profile,
            Match::True,
            Risk::Confirmed,
            "0 sessions inside before, 1 outside",
        ),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec!["", ""],
            Profile,
            Match::True,
            Risk::Suspected,
            "FIRST_OUTSIDE_SCAN",
        ),
        // At home: inside before outside, and not more than four times as often outside.
        (
            &known,
            vec!["FR"],
            Sensor,
            true,
            vec!["DE", "AT"],
            Profile,
            Match::True,
            Risk::Suspected,
            "HOME_IN_MARKET",
        ),
        (
            &known,
            vec!["FR"],
            Sensor,
            true,
            vec!["DE", "FR"],
            Profile,
            Match::True,
            Risk::Suspected,
            "HOME_IN_MARKET",
        ),
        (
            &known,
            vec!["FR"],
            Sensor,
            true,
            vec!["DE"],
            Profile,
            Match::True,
            Risk::Suspected,
            "HOME_IN_MARKET",
        ),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec!["FR", "DE", "IT"],
            Profile,
            Match::True,
            Risk::Confirmed,
            "1 sessions inside",
        ),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec!["DE", "FR", "FR", "FR", "FR", "FR"],
            Profile,
            Match::True,
            Risk::Confirmed,
            "1 sessions inside before, 5 outside",
        ),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec!["DE", "DE", "FR", "FR", "FR"],
            Profile,
            Match::True,
            Risk::Suspected,
            "HOME",
        ),
        (
            &known,
            vec!["FR"],
            City,
            false,
            vec!["DE", "AT"],
            Trigger,
            Match::True,
            Risk::Confirmed,
            "OUTSIDE_MARKET",
        ),
    ] {
        let countries = codes(&countries);
        let place = Place { countries: &countries, precision, is_professional: professional };
        let (finding, found) = diversion(known, place, &before(&history), mode);
        check(&finding, expected, word);
        assert_eq!(found, risk, "{history:?} {finding:?}");
    }
}

/// A spread with so many countries, places and devices, after four sessions.
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
    super::sum(&signs(spread, &Settings::default()))
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
        (spread(4, 4, 1), Match::False, true, "may be a DUPLICATE: 9 of 10"),
        (spread(4, 3, 1), Match::False, true, "may be a DUPLICATE: 8 of 10"),
        (spread(4, 2, 1), Match::False, false, "No duplicate: 7 of 10"),
        (spread(1, 1, 1), Match::False, false, "No duplicate: 0 of 10 points."),
        (closed(spread(4, 4, 5)), Match::False, true, "may be a DUPLICATE: 10"),
        (Spread { geo_ip_spread_km: 1_000.0, ..closed(spread(4, 4, 5)) }, Match::False, true, "may be"),
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

/// Most sessions in one region: suspected, with the figures, whatever the points.
#[test]
fn what_is_mostly_in_one_region_is_suspected() {
    let at_home = |sessions: usize, of: usize| Spread {
        home: Some(Home { region: "CH-Bern".to_owned(), sessions, of }),
        ..spread(4, 4, 5)
    };
    let share = |share: f64| Settings { region_share_threshold: share, ..Settings::default() };
    for (one, settings, expected, suspected, word) in [
        (spread(4, 4, 5), share(0.5), Match::True, false, "DUPLICATE with 10"),
        (at_home(5, 10), share(0.5), Match::True, false, "DUPLICATE with 10"),
        (at_home(6, 10), share(0.5), Match::False, true, "6 of 10 sessions are in CH-Bern"),
        (at_home(6, 10), share(0.6), Match::True, false, "DUPLICATE with 10"),
        (at_home(10, 10), share(1.0), Match::True, false, "DUPLICATE with 10"),
        (at_home(1, 10), share(0.0), Match::False, true, "MOSTLY_IN_ONE_REGION"),
        // It says nothing where there is nothing to suspect.
        (
            Spread { countries: BTreeSet::new(), country_halves: 0, ..at_home(9, 10) },
            share(0.5),
            Match::False,
            false,
            "No duplicate: 4 of 10",
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
fn what_may_be_on_display_is_named() {
    let cases = [(9, 10, 5, true), (9, 9, 5, false), (9, 10, 4, false), (5, 10, 5, false)];
    for (sessions, previous, agents, is_named) in cases {
        let home = Some(Home { region: "CH-Bern".to_owned(), sessions, of: 11 });
        let one = Spread { home, previous_countries: vec![None; previous], ..spread(4, 4, agents) };
        let reason = duplicate(&one, &Settings::default()).0.reason;
        assert_eq!(reason.contains("LOOKS_LIKE_DISPLAY: 5 devices"), is_named, "{reason}");
    }
}

#[test]
fn evidence_of_inspectors() {
    let seen = |inspected| Evidence { inspected, ..Evidence::default() };
    assert_eq!(physical(None), None);
    assert_eq!(physical(Some(&seen(None))), None);
    check(&physical(Some(&seen(Some(false)))).unwrap(), Match::True, "does not match");
    check(&physical(Some(&seen(Some(true)))).unwrap(), Match::False, "matches");

    let known = Known {
        watermark: Some("W".to_owned()),
        markings: vec!["a".to_owned(), "b".to_owned()],
        ..Known::default()
    };
    let read = |text: Option<&str>| Evidence { watermark: text.map(str::to_owned), ..Evidence::default() };
    assert_eq!(watermark(&known, None), None);
    assert_eq!(watermark(&Known::default(), Some(&read(Some("W")))), None);
    check(&watermark(&known, Some(&read(Some("W")))).unwrap(), Match::False, "expected one");
    check(&watermark(&known, Some(&read(Some("w")))).unwrap(), Match::True, "WATERMARK_MISMATCH");
    check(&watermark(&known, Some(&read(None))).unwrap(), Match::True, "WATERMARK_MISSING");

    let marked = |texts: &[&str]| Evidence {
        markings: texts.iter().map(|text| (*text).to_owned()).collect(),
        ..Evidence::default()
    };
    assert_eq!(markings(&known, None), None);
    assert_eq!(markings(&Known::default(), Some(&marked(&["a"]))), None);
    check(&markings(&known, Some(&marked(&["c", "b", "a"]))).unwrap(), Match::False, "Every");
    check(&markings(&known, Some(&marked(&["a"]))).unwrap(), Match::True, "MARKING_MISSING: b");
    check(&markings(&known, Some(&marked(&[]))).unwrap(), Match::True, "MARKING_MISSING: a, b");
}

/// One scan inside does not undo 39 outside, whichever device made it.
#[test]
fn one_scan_inside_does_not_undo_many_outside() {
    let known = Known { markets: codes(&["DE"]), ..Known::default() };
    let place = Place { countries: &codes(&["FR"]), precision: Precision::GeoIpCity, is_professional: false };
    for inside_at in [0, 20, 39] {
        let mut countries = vec!["FR"; 39];
        countries.insert(inside_at, "DE");
        let all_alike = vec![Some(AgentHash(1)); 40];
        let spread = Spread { previous_agents: all_alike, agent: Some(AgentHash(1)), ..before(&countries) };
        let (finding, found) = diversion(&known, place, &spread, DiversionMode::Profile);
        assert_eq!(found, Risk::Confirmed, "{finding:?}");
    }
}
