use geo::{Distance, Haversine, HaversineMeasure};
use proptest::prelude::*;

use super::{super::profile::tests::scans, *};
use crate::domain::{assessment::profile::Observation, scan_source::Source};

mod boxes;

const HOUR: i64 = 3_600_000;
const BERN: (f64, f64) = (46.95, 7.45);
const ZURICH: (f64, f64) = (47.37, 8.54);
const LONDON: (f64, f64) = (51.51, -0.13);
const TOKYO: (f64, f64) = (35.68, 139.69);
const SYDNEY: (f64, f64) = (-33.87, 151.21);

fn at((latitude, longitude): (f64, f64)) -> Coordinates {
    Coordinates::new(latitude, longitude).unwrap()
}

fn city(point: (f64, f64), country: &str) -> Spot {
    Spot::of_address(true, Some(at(point)), Some(country), None)
}

fn sensor(point: (f64, f64), country: &str) -> Spot {
    Spot::of_sensor(at(point), country.parse().ok(), None)
}

fn seen(hours: i64, agent: u64, spot: Spot) -> Observation {
    Observation {
        at: UnixMillis(hours * HOUR),
        agent: Some(AgentHash(agent)),
        spot,
        is_implicit: true,
        source: Source::Edge,
        network: None,
        language: None,
    }
}

fn trigger(hours: i64, agent: u64, spot: Spot) -> Trigger {
    Trigger {
        at: UnixMillis(hours * HOUR),
        agent: Some(AgentHash(agent)),
        network: None,
        language: None,
        spot,
        is_counted: false,
    }
}

fn spread(scans: &[Observation], trigger: &Trigger) -> Spread {
    Spread::of(&Profile::of(scans), trigger, None, &Settings::default())
}

/// The trigger of a public key, of which nothing is believed: neither its day nor its unknown language counts.
#[test]
fn a_trigger_of_which_nothing_is_known_changes_no_people() {
    let scans: Vec<Observation> = (0..4)
        .map(|n| Observation {
            language: super::super::client::Language::of_tag("de").filter(|_| n % 2 == 0),
            ..seen(24 * n, n as u64 + 1, city(BERN, "CH"))
        })
        .collect();
    let of = |trigger: &Trigger| spread(&scans, trigger).people;
    let neutral = of(&Trigger { agent: None, ..trigger(24 * 9, 0, Spot::NOWHERE) });
    assert_eq!((neutral.days, neutral.unlinked, neutral.is_known), (4, 4, true));
    // One that is believed is a person and a day, and its language is not known.
    let believed = of(&trigger(24 * 9, 9, Spot::NOWHERE));
    assert_eq!((believed.days, believed.unlinked, believed.is_known), (5, 5, false));
}

#[test]
fn no_previous_scans_give_empty_figures() {
    let alone = spread(&[], &trigger(0, 1, Spot::NOWHERE));
    assert_eq!((alone.previous(), alone.outlier, alone.independent_places), (0, None, 0));
    let alone = spread(&[], &trigger(0, 1, city(BERN, "CH")));
    assert_eq!((alone.countries.len(), alone.agents.len(), alone.independent_places), (1, 1, 1));
    assert_eq!((alone.geo_ip_box_km, alone.geo_ip_spread_km, alone.previous_implicit), (0.0, 0.0, 0));
}

#[test]
fn the_triggers_own_session_is_not_a_previous_one() {
    let scans = [seen(10, 1, city(BERN, "CH")), seen(20, 1, city(BERN, "CH")), seen(20, 2, city(BERN, "CH"))];
    let counted = Trigger { is_counted: true, ..trigger(20, 1, city(BERN, "CH")) };
    // What happens at the same moment elsewhere is not before it.
    let found = spread(&scans, &counted);
    assert_eq!((found.previous(), found.previous_implicit), (1, 1));
    let later = Trigger { at: UnixMillis(20 * HOUR + 1), ..counted };
    let found = spread(&scans, &later);
    assert_eq!((found.previous(), found.previous_implicit), (2, 2));
    // A trigger older than the profile is judged against earlier sessions.
    let found = spread(&scans, &trigger(15, 9, city(BERN, "CH")));
    assert_eq!((found.previous(), found.previous_implicit), (1, 1));
}

#[test]
fn sessions_before_the_window_or_the_commission_are_left_out() {
    let scans =
        [seen(0, 1, city(BERN, "CH")), seen(24, 2, city(ZURICH, "CH")), seen(9_000, 3, city(BERN, "CH"))];
    let now = trigger(9_001, 4, city(BERN, "CH"));
    // 365 days have 8,760 hours.
    assert_eq!(spread(&scans, &now).previous(), 1);
    assert_eq!(spread(&scans, &trigger(8_760, 4, city(BERN, "CH"))).previous(), 2);
    let since = Some(UnixMillis(24 * HOUR));
    let found =
        Spread::of(&Profile::of(&scans), &trigger(8_000, 4, Spot::NOWHERE), since, &Settings::default());
    assert_eq!(found.previous(), 1);
    let few = Settings { max_observed_scans: 1, ..Settings::default() };
    let found = Spread::of(&Profile::of(&scans), &trigger(8_000, 4, Spot::NOWHERE), None, &few);
    assert_eq!(found.previous(), 1);
}

#[test]
fn a_pair_of_device_and_region_is_one_however_often_it_is_seen() {
    let in_region = |country, region| Spot::of_address(true, Some(at(BERN)), Some(country), Some(region));
    let scans = [
        seen(0, 1, in_region("CH", "Bern")),
        seen(5, 1, in_region("CH", "Bern")),
        seen(10, 2, in_region("CH", "Bern")),
        seen(15, 1, in_region("CH", "Vaud")),
        // A region of another country has another name.
        seen(20, 1, in_region("FR", "Vaud")),
        seen(25, 1, city(BERN, "CH")),
        Observation { agent: None, ..seen(30, 1, in_region("CH", "Zug")) },
    ];
    assert_eq!(spread(&scans, &trigger(40, 1, Spot::NOWHERE)).device_regions, 4);
    // The trigger is a session, too.
    assert_eq!(spread(&scans, &trigger(40, 1, in_region("CH", "Bern"))).device_regions, 4);
    assert_eq!(spread(&scans, &trigger(40, 3, in_region("CH", "Bern"))).device_regions, 5);
}

/// Who has a VPN, or travels with the thing, makes no second country of it; an agent that many phones share tells nobody.
#[test]
fn a_country_counts_half_where_only_devices_were_that_were_elsewhere_within_a_day() {
    let at_home = || [0, 48, 96].map(|hours| seen(hours, 1, city(BERN, "CH"))).to_vec();
    let with = |more: Vec<Observation>| [at_home(), more].concat();
    let unknown = |hours, spot| Observation { agent: None, ..seen(hours, 1, spot) };
    let (japan, australia) = (|| city(TOKYO, "JP"), || city(SYDNEY, "AU"));
    for (scans, expected, what) in [
        (at_home(), 2, "one country"),
        (with(vec![seen(100, 1, japan())]), 3, "a VPN"),
        (with(vec![seen(100, 1, japan()), seen(102, 2, japan())]), 4, "and another device there"),
        (with(vec![seen(100, 2, japan())]), 4, "another device"),
        (with(vec![seen(120, 1, japan())]), 3, "a day later"),
        (with(vec![seen(121, 1, japan())]), 4, "more than a day later"),
        (with(vec![unknown(100, japan())]), 4, "a device that is not known"),
        (vec![seen(0, 1, city(BERN, "CH")), seen(1, 1, japan())], 2, "two at once may be one with a VPN"),
        (
            vec![seen(0, 1, city(BERN, "CH")), seen(1, 1, japan()), seen(2, 1, australia())],
            6,
            "three at once are three phones with one agent",
        ),
    ] {
        let found = spread(&scans, &trigger(500, 9, Spot::NOWHERE));
        assert_eq!(found.country_halves, expected, "{what}");
    }
    // The trigger counts as a session.
    assert_eq!(spread(&at_home(), &trigger(100, 1, japan())).country_halves, 3);
}

#[test]
fn sensors_and_addresses_are_measured_apart() {
    let scans = [
        seen(0, 1, city(BERN, "CH")),
        seen(2, 1, city(TOKYO, "JP")),
        seen(4, 1, sensor(BERN, "CH")),
        seen(6, 1, Spot::of_address(false, Some(at(SYDNEY)), Some("AU"), None)),
    ];
    let found = spread(&scans, &trigger(8, 1, sensor(ZURICH, "CH")));
    assert!((found.geo_ip_spread_km - 9_600.0).abs() < 100.0, "{}", found.geo_ip_spread_km);
    assert!((found.sensor_spread_km - 95.0).abs() < 2.0, "{}", found.sensor_spread_km);
    // The country's own point is in no distance, its country is counted.
    assert_eq!(found.countries.len(), 3);
    assert!(found.sensor_box_km >= found.sensor_spread_km - 1e-9);
}

#[test]
fn an_outlier_is_far_from_all_that_was_located_before() {
    let home = |count: i64| (0..count).map(|n| seen(n * 24, 1, city(BERN, "CH"))).collect::<Vec<_>>();
    for (before, spot, expected) in [
        (home(3), city(TOKYO, "JP"), Some(true)),
        (home(2), city(TOKYO, "JP"), None),
        (home(3), city(ZURICH, "CH"), Some(false)),
        (home(3), Spot::NOWHERE, None),
        (home(3), Spot::of_address(false, Some(at(TOKYO)), Some("JP"), None), None),
        // 745 km to London are less than 500 km beyond the two radii.
        (home(3), city(LONDON, "GB"), Some(false)),
    ] {
        assert_eq!(spread(&before, &trigger(999, 1, spot.clone())).outlier, expected, "{spot:?}");
    }
    // The boundary: more than the threshold beyond both radii.
    let before = home(3);
    let there = city(TOKYO, "JP");
    let beyond = distance_km(at(TOKYO), at(BERN)) - 250.0 - 250.0;
    for (threshold, expected) in [(beyond - 1e-6, true), (beyond, false), (beyond + 1e-6, false)] {
        let settings = Settings { spread_outlier_threshold_km: threshold, ..Settings::default() };
        let found = Spread::of(&Profile::of(&before), &trigger(999, 1, there.clone()), None, &settings);
        assert_eq!(found.outlier, Some(expected), "{threshold}");
    }
}

#[test]
fn places_are_independent_when_no_device_was_at_both() {
    let one_owner =
        [seen(0, 1, city(BERN, "CH")), seen(500, 1, city(TOKYO, "JP")), seen(900, 1, city(SYDNEY, "AU"))];
    let found = spread(&one_owner, &trigger(999, 1, city(BERN, "CH")));
    assert_eq!((found.independent_places, found.kinematic), (1, false));
    let copies =
        [seen(0, 1, city(BERN, "CH")), seen(500, 2, city(TOKYO, "JP")), seen(900, 3, city(SYDNEY, "AU"))];
    assert_eq!(spread(&copies, &trigger(999, 4, city(BERN, "CH"))).independent_places, 3);
    // Bern and Zurich are one place by address, and two by sensor.
    let near = [seen(0, 1, city(BERN, "CH"))];
    assert_eq!(spread(&near, &trigger(500, 2, city(ZURICH, "CH"))).independent_places, 1);
    let near = [seen(0, 1, sensor(BERN, "CH"))];
    assert_eq!(spread(&near, &trigger(500, 2, sensor(ZURICH, "CH"))).independent_places, 2);
}

/// A degree of a meridian is 111.195 km.
#[test]
fn places_and_journeys_have_exact_ends() {
    let north = |degrees: f64| (BERN.0 + degrees, BERN.1);
    for (degrees, is_sensor, expected) in
        [(0.674_4, true, 1), (0.674_6, true, 2), (3.597, false, 1), (3.598, false, 2)]
    {
        let spot = |point| if is_sensor { sensor(point, "CH") } else { city(point, "CH") };
        let found = spread(&[seen(0, 1, spot(BERN))], &trigger(500, 2, spot(north(degrees))));
        assert_eq!(found.independent_places, expected, "{degrees} degrees, sensor: {is_sensor}");
    }
    // 100 km beyond two radii of 1 km, a minute later: farther than any car, and the least that is a journey.
    for (degrees, expected) in [(0.917_2, false), (0.917_4, true)] {
        let judged = Trigger { at: UnixMillis(60_000), ..trigger(0, 2, sensor(north(degrees), "CH")) };
        assert_eq!(
            spread(&[seen(0, 1, sensor(BERN, "CH"))], &judged).kinematic,
            expected,
            "{degrees} degrees"
        );
    }
}

#[test]
fn places_overlap_when_both_are_active_at_a_time() {
    let turns = [seen(0, 1, city(BERN, "CH")), seen(500, 2, city(TOKYO, "JP"))];
    assert!(!spread(&turns, &trigger(501, 2, city(TOKYO, "JP"))).overlap);
    assert!(spread(&turns, &trigger(600, 1, city(BERN, "CH"))).overlap, "Bern again after Tokyo");
}

#[test]
fn a_journey_faster_than_an_airliner() {
    // 9,620 km, 9,120 beyond the radii: 10.1 hours at 900 km/h.
    let from = [seen(0, 1, city(BERN, "CH"))];
    for (hours, agent, expected) in [(10, 2, true), (11, 2, false), (10, 1, false), (1, 2, true)] {
        let found = spread(&from, &trigger(hours, agent, city(TOKYO, "JP")));
        assert_eq!(found.kinematic, expected, "{hours} h, device {agent}");
    }
    // Too short to say anything.
    assert!(!spread(&[seen(0, 1, sensor(BERN, "CH"))], &trigger(1, 2, sensor(ZURICH, "CH"))).kinematic);
}

#[test]
fn one_user_agent_stands_for_as_many_phones_as_were_too_far_apart() {
    let lima = (-12.05, -77.04);
    let all = [(BERN, "CH"), (TOKYO, "JP"), (SYDNEY, "AU"), (lima, "PE")];
    let every = |hours: i64, count: usize, agent: Option<u64>| -> Vec<Observation> {
        let scans = (0..).zip(all.iter().cycle().take(count));
        scans
            .map(|(n, (point, country))| Observation {
                agent: agent.map(AgentHash),
                ..seen(n * hours, 0, city(*point, country))
            })
            .collect()
    };
    for (scans, expected, what) in [
        (vec![], 1, "the trigger alone"),
        (every(1, 2, Some(1)), 2, "a phone, or one with a VPN"),
        (every(1, 3, Some(1)), 3, "an hour from each to the next"),
        (every(1, 4, Some(1)), 4, "four"),
        (every(1, 30, Some(1)), MAX_ALIKE, "no more are told apart"),
        (every(48, 30, Some(1)), 1, "a traveller"),
        (every(1, 4, None), 1, "nobody knows how many an unknown one stands for"),
        (
            vec![seen(0, 1, city(BERN, "CH")), seen(1, 2, city(TOKYO, "JP")), seen(2, 3, city(SYDNEY, "AU"))],
            1,
            "each has its own",
        ),
        // Sydney and Lima are a day from the others, each of which is too far from one other only.
        (
            vec![
                seen(0, 1, city(BERN, "CH")),
                seen(1, 1, city(TOKYO, "JP")),
                seen(40, 1, city(SYDNEY, "AU")),
                seen(41, 1, city(lima, "PE")),
            ],
            2,
            "two pairs are no four",
        ),
    ] {
        let judged = trigger(5_000, 9, city(BERN, "CH"));
        assert_eq!(spread(&scans, &judged).alike, expected, "{what}");
    }
    // The boundary of one pair: 9,120 km beyond the radii are 10.1 hours.
    for (hours, expected) in [(10, 2), (11, 1)] {
        let found = spread(&[seen(0, 1, city(BERN, "CH"))], &trigger(hours, 1, city(TOKYO, "JP")));
        assert_eq!((found.alike, found.kinematic), (expected, false), "{hours} h");
    }
}

#[test]
fn the_commonest_region_is_the_home() {
    let region = |name: Option<&str>| Spot::of_address(true, Some(at(BERN)), Some("CH"), name);
    let told = |names: &[Option<&str>], own: Option<&str>| {
        let scans: Vec<Observation> =
            (1..).zip(names).map(|(n, name)| seen(n, n as u64, region(*name))).collect();
        let home = spread(&scans, &trigger(900, 99, region(own))).home;
        home.map(|home| (home.region, home.sessions, home.of))
    };
    assert_eq!(told(&[None, None], None), None);
    assert_eq!(
        told(&[Some("A"), None], Some("B")),
        Some(("CH-A".to_owned(), 1, 2)),
        "the first of two by name"
    );
    assert_eq!(told(&[Some("A"), Some("B"), None], Some("B")), Some(("CH-B".to_owned(), 2, 3)));
}

fn anywhere() -> impl Strategy<Value = Coordinates> {
    let latitude = prop_oneof![4 => -90.0..=90.0, 1 => prop::sample::select(vec![-90.0, 0.0, 90.0])];
    let longitude =
        prop_oneof![4 => -180.0..=180.0, 1 => prop::sample::select(vec![-180.0, 0.0, 179.99, 180.0])];
    (latitude, longitude).prop_map(at)
}

proptest! {
    /// An independent check: the `geo` crate on a sphere of the same radius.
    #[test]
    fn distances_are_those_of_the_geo_crate(a in anywhere(), b in anywhere()) {
        let sphere = HaversineMeasure::new(6_371_008.8);
        let point = |c: Coordinates| geo::Point::new(c.longitude(), c.latitude());
        let theirs = sphere.distance(point(a), point(b)) / 1_000.0;
        // Near the other end of the world, the haversine loses digits.
        let tolerance = if theirs > 19_900.0 { 0.5 } else { 1e-6 + theirs * 1e-9 };
        prop_assert!((distance_km(a, b) - theirs).abs() <= tolerance, "{} {}", distance_km(a, b), theirs);
        let default = Haversine.distance(point(a), point(b)) / 1_000.0;
        prop_assert!((default - theirs).abs() <= theirs * 1e-6 + 1e-9);
    }

    #[test]
    fn figures_do_not_depend_on_the_order_of_arrival(
        scans in prop::collection::vec(scans(), 0..60),
        turn in 0..60_usize,
    ) {
        let mut turned = scans.clone();
        turned.rotate_left(if scans.is_empty() { 0 } else { turn % scans.len() });
        let judged = trigger(25, 7, city(BERN, "CH"));
        prop_assert_eq!(spread(&scans, &judged), spread(&turned, &judged));
    }

    /// Another session never lowers the number of phones; compared with an exhaustive search over triples.
    #[test]
    fn the_set_of_similar_phones_only_grows(scans in prop::collection::vec(scans(), 0..40), more in scans()) {
        // Another scan of an existing session may improve its position.
        prop_assume!(!Profile::of(&scans).holds(more.source, SessionKey::of(more.at, more.agent)));
        let judged = trigger(25, 7, city(BERN, "CH"));
        let before = spread(&scans, &judged);
        let mut after = scans.clone();
        after.push(more);
        prop_assert!(spread(&after, &judged).alike >= before.alike);
        let profile = Profile::of(&scans);
        let own = SessionKey::of(judged.at, judged.agent);
        let mut stops: Vec<Stop> = profile.sessions()
            .filter(|(key, session)| *key != own && session.first < judged.at)
            .filter_map(|(key, session)| Stop::of(key, session)).collect();
        stops.extend(Stop::of_trigger(own, &judged));
        stops.sort_by_key(|stop| (stop.first, stop.last, stop.agent));
        let is_apart = |a: &Stop, b: &Stop| a.agent == b.agent && a.agent != AgentHash(0) && is_too_fast(a, b);
        let has_three = stops.iter().enumerate().any(|(i, a)| stops.iter().enumerate().skip(i + 1).any(|(j, b)| {
            is_apart(a, b) && stops.iter().skip(j + 1).any(|c| is_apart(a, c) && is_apart(b, c))
        }));
        prop_assert_eq!(before.alike >= 3, has_three);
    }
}
