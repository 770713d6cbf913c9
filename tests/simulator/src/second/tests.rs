use std::collections::{BTreeMap, HashSet};

use countries::CountryCode;
use verdicts::domain::{
    assessment::{agent::AgentHash, spot::Precision},
    scan_source::Source,
};

use super::{
    super::{Case, Kind, Rng},
    Mix, case,
    facts::Fact,
    shares,
    world::{DAY, by_code, destination, town_in},
};

const CASES: usize = 700;

fn cases(seed: u64, mix: Mix) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    (0..CASES).map(|_| case(&mut rng, mix)).collect()
}

fn share(all: &[Case], is_one: impl Fn(&Case) -> bool) -> f64 {
    all.iter().filter(|one| is_one(one)).count() as f64 / all.len() as f64
}

/// Asserts that a share lies within a distance of what is expected.
fn check(name: &str, found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{name}: {found:.3}, not {expected} within {within}");
}

#[test]
fn every_mix_has_the_stated_shares_of_kinds() {
    for mix in Mix::ALL {
        let all = cases(11, mix);
        for (kind, expected) in [(Kind::Genuine, 0.6), (Kind::Diverted, 0.2), (Kind::Copied, 0.2)] {
            // Four standard deviations of 700 draws are 7.4 %.
            check(mix.as_str(), share(&all, |one| one.kind == kind), expected, 0.075);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_cases() {
    for mix in Mix::ALL {
        let (mut one, mut same, mut other) = (Rng::new(5), Rng::new(5), Rng::new(6));
        let made = |rng: &mut Rng| (0..50).map(|_| format!("{:?}", case(rng, mix))).collect::<Vec<_>>();
        let first = made(&mut one);
        assert_eq!(first, made(&mut same), "{}", mix.as_str());
        assert_ne!(first, made(&mut other), "{}", mix.as_str());
    }
}

#[test]
fn names_of_mixes_are_distinct() {
    let names: HashSet<&str> = Mix::ALL.iter().map(|mix| mix.as_str()).collect();
    assert_eq!(names.len(), Mix::ALL.len());
}

#[test]
fn scans_are_sorted_and_the_last_one_is_a_redirect_after_the_commissioning() {
    for mix in Mix::ALL {
        for one in cases(12, mix) {
            assert!(one.scans.is_sorted_by_key(|scan| scan.at), "{one:?}");
            let last = one.scans.last().unwrap();
            assert!(last.at.0 > 0 && last.is_implicit && last.source == Source::Edge, "{one:?}");
            assert!(!one.market.is_empty(), "{one:?}");
            // Before the commissioning only the factory reports.
            let early = |source: Source| one.scans.iter().any(|scan| scan.at.0 < 0 && scan.source == source);
            assert!(!early(Source::Edge) && !early(Source::Public), "{one:?}");
        }
    }
}

#[test]
fn items_seen_counts_copies_only() {
    for mix in Mix::ALL {
        let all = cases(13, mix);
        for one in &all {
            let is_right = match one.kind {
                Kind::Genuine | Kind::Diverted => one.items_seen == 1,
                Kind::Copied => (1..=one.scans.len()).contains(&one.items_seen),
            };
            assert!(is_right, "{one:?}");
        }
        let copied: Vec<&Case> = all.iter().filter(|one| one.kind == Kind::Copied).collect();
        let several = copied.iter().filter(|one| one.items_seen > 1).count();
        assert!(several * 3 > copied.len(), "{}: {several} of {}", mix.as_str(), copied.len());
        if mix != Mix::Shift {
            assert!(copied.iter().any(|one| one.items_seen > 20), "{}", mix.as_str());
        }
    }
}

#[test]
fn only_display_pieces_are_tagged_and_one_mix_has_many_without_a_tag() {
    for mix in Mix::ALL {
        let all = cases(14, mix);
        for one in &all {
            assert_eq!(one.is_tagged, one.who == "display piece", "{one:?}");
        }
        let genuine: Vec<Case> = all.into_iter().filter(|one| one.kind == Kind::Genuine).collect();
        let untagged = share(&genuine, |one| one.who == "untagged display piece");
        if mix == Mix::Display {
            check("untagged", untagged, 0.04, 0.025);
        } else {
            assert!(untagged < 0.02, "{}: {untagged}", mix.as_str());
        }
    }
}

#[test]
fn tourists_buy_six_percent_in_their_mix() {
    let genuine: Vec<Case> =
        cases(15, Mix::Tourists).into_iter().filter(|one| one.kind == Kind::Genuine).collect();
    check("tourists", share(&genuine, |one| one.who == "tourist"), 0.06, 0.03);
    let country = |one: &Case| one.scans.last().and_then(|scan| scan.spot.country);
    let outside = genuine
        .iter()
        .filter(|one| one.who == "tourist")
        .filter(|one| country(one).is_some_and(|code| !one.market.contains(&code)))
        .count();
    assert!(outside > 5, "{outside}");
}

/// Share of the commonest two agents, counted once for each case so that frequent scanners do not weigh more.
fn common_two(all: &[Case]) -> (f64, usize) {
    let mut counts: BTreeMap<AgentHash, usize> = BTreeMap::new();
    let mut total = 0;
    for one in all.iter().filter(|one| one.kind != Kind::Copied && one.who != "display piece") {
        // The first redirect by a consumer, after transport and stock.
        let is_consumers = |scan: &&verdicts::domain::assessment::profile::Observation| {
            scan.at.0 > 14 * DAY && scan.source == Source::Edge
        };
        if let Some(agent) = one.scans.iter().find(is_consumers).and_then(|scan| scan.agent) {
            *counts.entry(agent).or_default() += 1;
            total += 1;
        }
    }
    let mut found: Vec<usize> = counts.into_values().collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    (found.iter().take(2).sum::<usize>() as f64 / total as f64, found.len())
}

#[test]
fn two_agents_are_three_quarters_of_the_phones_in_the_reduced_mix() {
    let (reduced, few) = common_two(&cases(16, Mix::Reduced));
    check("reduced", reduced, 0.74, 0.04);
    assert!(few <= 12, "{few} agents, none by its model");
    let (plain, many) = common_two(&cases(16, Mix::Plain));
    assert!(plain < reduced && many > 25, "{plain:.3} of {many} agents");
}

#[test]
fn diverted_goods_end_with_somebody_outside_of_their_market() {
    for mix in Mix::ALL {
        let diverted: Vec<Case> =
            cases(17, mix).into_iter().filter(|one| one.kind == Kind::Diverted).collect();
        let by = |one: &Case| one.scans.last().map(|scan| (scan.spot.precision, scan.spot.country));
        // A sensor is never wrong about the country.
        for one in &diverted {
            if let Some((Precision::Sensor, Some(country))) = by(one) {
                assert!(!one.market.contains(&country), "{one:?}");
            }
        }
        // Addresses mislead for VPNs and roaming only.
        let outside = share(&diverted, |one| {
            by(one).and_then(|(_, code)| code).is_some_and(|code| !one.market.contains(&code))
        });
        assert!(outside > 0.6, "{}: {outside:.3}", mix.as_str());
    }
}

#[test]
fn diverted_goods_were_tried_inside_as_often_as_the_mix_says() {
    // Before the goods arrive somewhere else nobody but those inside can scan: a public key, or the edge.
    let tried = |mix: Mix| {
        let diverted: Vec<Case> =
            cases(18, mix).into_iter().filter(|one| one.kind == Kind::Diverted).collect();
        share(&diverted, |one| {
            let (_, before) = one.scans.split_last().unwrap();
            before.iter().any(|scan| {
                let is_inside = scan.spot.country.is_some_and(|code| one.market.contains(&code));
                is_inside && scan.at.0 > DAY / 2 && scan.source != Source::Server
            })
        })
    };
    let (plain, all) = (tried(Mix::Plain), tried(Mix::TriedInside));
    // Some of them are placed elsewhere by a VPN, some goods are scanned inside by chance.
    assert!(all > 0.88, "{all:.3}");
    assert!(plain < 0.45, "{plain:.3}");
}

#[test]
fn groups_of_each_kind_are_all_there() {
    let mut groups: HashSet<(&str, &str)> = HashSet::new();
    for one in Mix::ALL.into_iter().flat_map(|mix| cases(19, mix)) {
        let kind = match one.kind {
            Kind::Genuine => "genuine",
            Kind::Diverted => "diverted",
            Kind::Copied => "copied",
        };
        groups.insert((kind, one.who));
    }
    let count = |kind: &str| groups.iter().filter(|(of, _)| *of == kind).count();
    assert_eq!([count("genuine"), count("diverted"), count("copied")], [19, 4, 4], "{groups:?}");
}

#[test]
fn a_fact_follows_its_mix() {
    let fact = Fact::new(0.1, 0.2).crowd(0.3);
    for mix in Mix::ALL {
        let expected = match mix {
            Mix::Shift => 0.2,
            Mix::Crowd => 0.3,
            Mix::Plain | Mix::Reduced | Mix::Tourists | Mix::Display | Mix::TriedInside => 0.1,
        };
        assert!((fact.of(mix) - expected).abs() < f64::EPSILON, "{}", mix.as_str());
    }
    assert!(shares::COPY_SCANNED.of(Mix::Shift) < shares::COPY_SCANNED.of(Mix::Plain));
}

#[test]
fn journeys_lead_abroad_and_towns_lie_in_their_country() {
    let mut rng = Rng::new(20);
    let germany = by_code("DE");
    for _ in 0..200 {
        assert_ne!(destination(&mut rng, germany).country.code, "DE");
        let town = town_in(&mut rng, germany);
        assert!(germany.cities.iter().any(|city| std::ptr::eq(city, town.city)));
    }
    let unknown: Option<CountryCode> = "?".parse().ok();
    assert_eq!((unknown, by_code("?").code), (None, "DE"));
}
