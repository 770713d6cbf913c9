use proptest::prelude::*;
use serde_json::Value;
use shared::{id::ActionId, time::UnixMillis};

use super::*;
use crate::domain::assessment::{
    agent::AgentHash,
    client::Language,
    peak::ByScan,
    rules::{self, Place},
    settings::DiversionMode,
    spread::{Home, People},
};

/// Every number of a text; commas between digits keep thousands apart.
fn numbers_of(text: &str) -> Vec<f64> {
    let letters: Vec<char> = text.chars().collect();
    let is_digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < letters.len() {
        let mut number = String::new();
        while is_digit(at)
            || !number.is_empty() && ",.".contains(*letters.get(at).unwrap_or(&' ')) && is_digit(at + 1)
        {
            number.extend(letters.get(at).filter(|letter| **letter != ','));
            at += 1;
        }
        found.extend(number.parse::<f64>().ok());
        at += 1;
    }
    found
}

/// Every number of a document.
fn figures_of(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => number.as_f64().into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(figures_of).collect(),
        Value::Object(members) => members.values().flat_map(figures_of).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) => Vec::new(),
    }
}

fn code(n: u8) -> CountryCode {
    CountryCode::new([b'A' + n % 26, b'A']).unwrap()
}

prop_compose! {
    fn spreads()(
        countries in 0..6_u8, halves in 0..12_usize, regions in 0..5_usize, agents in 0..9_u64,
        places in 0..6_usize, alike in 0..5_usize, device_regions in 0..12_usize, overlap in any::<bool>(), kinematic in any::<bool>(),
        geo_ip_spread_km in prop_oneof![Just(0.0), 990.0..1_010.0, 0.0..20_000.0],
        sensor_spread_km in prop_oneof![Just(0.0), 299.0..301.0, 0.0..20_000.0],
        previous in prop::collection::vec((prop::option::of(0..4_u8), prop::option::of(0..4_u64)), 0..30),
        home in prop::option::of((1..40_usize, 0..40_usize)),
        agent in prop::option::of(0..4_u64),
        (languages, unlinked, days, is_known) in (0..5_usize, 0..12_usize, 0..20_usize, any::<bool>()),
    ) -> Spread {
        let tags = ["de", "en", "fr", "it", "ja"];
        let people = People {
            languages: tags.into_iter().take(languages).filter_map(Language::of_tag).collect(),
            unlinked,
            days,
            is_known,
        };
        Spread {
            countries: (0..countries).map(code).collect(),
            country_halves: halves,
            regions: (0..regions).map(|n| format!("CH-{}", "x".repeat(n))).collect(),
            agents: (1..=agents).map(AgentHash).collect(),
            geo_ip_spread_km,
            sensor_spread_km,
            independent_places: places,
            overlap,
            kinematic,
            alike,
            device_regions,
            people,
            home: home.map(|(sessions, others)| Home {
                region: "CH-Bern".to_owned(), sessions, of: sessions + others,
            }),
            previous_countries: previous.iter().map(|(country, _)| country.map(code)).collect(),
            previous_agents: previous.iter().map(|(_, agent)| agent.map(|n| AgentHash(n + 1))).collect(),
            agent: agent.map(|n| AgentHash(n + 1)),
            ..Spread::default()
        }
    }
}

prop_compose! {
    fn settings()(
        suspected in 1..12_u32, more in 0..4_u32, regions_threshold in 0..4_u32, user_agents in 0..6_u32,
        share in 0.0..1.0_f64, geo_ip in prop_oneof![Just(1_000.0), 0.0..5_000.0],
    ) -> Settings {
        Settings {
            suspected_points: suspected,
            duplicate_points: suspected + more,
            regions_threshold,
            user_agents_threshold: user_agents,
            region_share_threshold: share,
            geo_ip_spread_threshold_km: geo_ip,
            ..Settings::default()
        }
    }
}

/// A duplicate with this many points from some earlier scan.
fn peak(points: u32) -> Peak {
    let by = ByScan { scan: ActionId::new(1, [1; 16]), at: UnixMillis(1) };
    Peak::of_scan(points, Level::Duplicate, by, None)
}

proptest! {
    /// The reason of a duplicate states what decided: each of its numbers is among the figures, in both forms.
    #[test]
    fn each_number_of_a_reason_is_a_figure(spread in spreads(), settings in settings()) {
        let certainty = Certainty::of(&spread, &settings);
        let (finding, _) = rules::duplicate(&spread, &settings);
        let figures = figures_of(&form::duplicate(&certainty));
        for number in numbers_of(&finding.reason) {
            prop_assert!(figures.contains(&number), "{number} of {:?} is not in {figures:?}", finding.reason);
        }
        // And they do decide: the named threshold is reached or not, as the finding says.
        let is_reached = certainty.points >= certainty.bar;
        if finding.matched != Match::Unknown {
            let is_worse = finding.matched == Match::True || finding.reason.starts_with("It may be");
            prop_assert_eq!(is_reached, is_worse, "{:?}", finding.reason);
        }
        prop_assert_eq!(certainty.gate.is_open, certainty.gate.regions > settings.regions_threshold as usize
            || certainty.gate.geo_ip_km > certainty.gate.geo_ip_threshold_km
            || certainty.gate.sensor_km > certainty.gate.sensor_threshold_km);
        for sign in &certainty.signs {
            prop_assert!(sign.figure > sign.threshold, "{sign:?}");
        }
        prop_assert!(certainty.share.as_ref().is_none_or(|one| one.is_above == (one.share > one.threshold)));
    }

    /// The same of the market.
    #[test]
    fn each_number_of_a_reason_of_the_market_is_a_figure(
        spread in spreads(), at in 0..4_u8, markets in prop::collection::vec(0..4_u8, 1..3),
    ) {
        let known = Known { markets: markets.into_iter().map(code).collect(), ..Known::default() };
        let here = [code(at)];
        let place = Place { countries: &here, precision: Precision::GeoIpCity, is_professional: false };
        let (finding, risk) = rules::diversion(&known, place, &spread, DiversionMode::Profile);
        let found = Sightings::of(&known.markets, &spread);
        let figures = figures_of(&form::diversion(Some(&found), &[]));
        for number in numbers_of(&finding.reason) {
            prop_assert!(figures.contains(&number), "{number} of {:?} is not in {figures:?}", finding.reason);
        }
        if finding.matched == Match::True {
            let is_confirmed = risk == shared::standing::Risk::Confirmed;
            prop_assert_eq!(is_confirmed, !found.is_at_home() && found.outside > 0);
        }
    }

    /// The packed form holds everything that does not follow from the thresholds of a result.
    #[test]
    fn packed_certainty_round_trips(
        spread in spreads(), settings in settings(), kept in prop::option::of(0..30_u32),
    ) {
        let peak = kept.map(peak);
        let certainty = Certainty::of(&spread, &settings).settled(Level::Suspected, peak.as_ref());
        let thresholds = crate::domain::assessment::document::judged_by(&settings, &[]);
        let sightings = Sightings::of(&[code(1)], &spread);
        for whole in [
            form::duplicate(&certainty),
            form::diversion(Some(&sightings), &[Settle::AskForPlace]),
            form::diversion(None, &[Settle::SetMarkets]),
            serde_json::json!({"settles": form::settles(&Settle::ALL)}),
        ] {
            let short = form::shorten(&whole);
            prop_assert_eq!(form::expand(&short, &thresholds), whole.clone());
            prop_assert!(short.to_string().len() < whole.to_string().len());
        }
    }
}

#[test]
fn settling_steps_match_the_check() {
    let codes = |settles: &[Settle]| settles.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(" ");
    let home = |sessions| Some(Home { region: "CH-Bern".to_owned(), sessions, of: 11 });
    let spread = |sessions| Spread {
        home: home(sessions),
        previous_countries: vec![None; 10],
        agents: (1..=5).map(AgentHash).collect(),
        ..Spread::default()
    };
    let of = |sessions, level, kept: Option<Peak>| {
        codes(&Certainty::of(&spread(sessions), &Settings::default()).settled(level, kept.as_ref()).settles)
    };
    let peak = peak(12);
    assert_eq!(of(9, Level::Suspected, None), "TAG_DISPLAY ALLOW_PLACE INSPECT DECIDE_CASE");
    assert_eq!(of(2, Level::Duplicate, None), "INSPECT DECIDE_CASE");
    assert_eq!(of(2, Level::None, Some(peak)), "INSPECT DECIDE_CASE", "it goes by what was kept");
    assert_eq!(of(9, Level::None, None), "");

    let found = |matched| Finding { matched, reason: String::new() };
    let explained = |known: &Known, precision, diversion, unauthorized| {
        let certainty = Certainty::of(&Spread::default(), &Settings::default());
        let by_rule = (certainty, &found(diversion), &found(unauthorized));
        let found = Explained::of(known, &Spread::default(), precision, by_rule);
        (codes(&found.diversion), codes(&found.unauthorized))
    };
    let sold = Known { markets: vec![code(1)], ..Known::default() };
    let stolen = Known { tags: vec!["stolen".to_owned()], ..Known::default() };
    for (known, precision, diversion, unauthorized, expected) in [
        (&Known::default(), Precision::Sensor, Match::Unknown, Match::False, ("SET_MARKETS", "")),
        (&sold, Precision::None, Match::Unknown, Match::False, ("ASK_FOR_PLACE", "")),
        (&sold, Precision::GeoIpCity, Match::True, Match::False, ("ASK_FOR_PLACE DECIDE_CASE", "")),
        (&sold, Precision::Sensor, Match::True, Match::Unknown, ("DECIDE_CASE", "COMMISSION")),
        (&sold, Precision::GeoIpCity, Match::False, Match::True, ("", "COMMISSION")),
        (&stolen, Precision::Sensor, Match::Unknown, Match::True, ("SET_MARKETS", "")),
    ] {
        let (of_market, of_factory) = explained(known, precision, diversion, unauthorized);
        assert_eq!((of_market.as_str(), of_factory.as_str()), expected, "{known:?} {precision:?}");
    }
}

#[test]
fn figures_stay_on_their_side_of_a_threshold() {
    for (figure, threshold, expected) in [
        (812.4, 1_000.0, "812"),
        (1_000.4, 1_000.0, "1,000.4"),
        (999.7, 1_000.0, "1,000"),
        (1_000.000_04, 1_000.0, "1,000.00004"),
        (1_234_567.0, 0.0, "1,234,567"),
        (0.2, 0.0, "0.2"),
    ] {
        assert_eq!(plain(shown(figure, threshold)), expected);
    }
    assert_eq!(numbers_of("1,000.4 km (2), 3. a4"), [1_000.4, 2.0, 3.0, 4.0]);
}
