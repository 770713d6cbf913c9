use shared::id::ProductId;

use super::*;
use crate::domain::{assessment::agent::AgentHash, commissioning::Taken};

mod duplicates;

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
fn a_device_seen_inside_and_outside_is_a_traveller() {
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

/// One scan inside does not outweigh 39 outside, whichever device made it.
#[test]
fn one_scan_inside_the_market_does_not_outweigh_many_outside() {
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
