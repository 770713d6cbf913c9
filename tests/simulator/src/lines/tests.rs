use std::collections::HashSet;

use super::*;
use crate::atlas::COUNTRIES;

const SHARES: Shares = Shares {
    daily_lines: 0.2,
    line_days: 200.0,
    other_network: 0.5,
    nat_lines: 0.15,
    kept_language: 0.5,
    english: 0.05,
    other_language: 0.1,
    no_language: 0.01,
};

fn town() -> Town {
    Town { country: &COUNTRIES[0], city: &COUNTRIES[0].cities[0] }
}

fn people(count: usize) -> (Rng, Vec<Client>) {
    let mut rng = Rng::new(3);
    let all = (0..count).map(|_| Client::new(&mut rng, SHARES, &COUNTRIES[0])).collect();
    (rng, all)
}

/// Asserts how often two scans of everybody come from one network.
fn check(what: &str, same: usize, of: usize, expected: std::ops::RangeInclusive<f64>) {
    let share = same as f64 / of as f64;
    assert!(expected.contains(&share), "{what}: {share:.3}");
}

#[test]
fn homes_keep_their_network_for_long_and_carriers_do_not() {
    let (mut rng, all) = people(2_000);
    let mut again = |access: Access, days: i64| {
        let at = 100 * DAY;
        let is_same = |one: &&Client| {
            one.network(&mut rng, access, at) == one.network(&mut rng, access, at + days * DAY)
        };
        all.iter().filter(is_same).count()
    };
    check("home, next day", again(Access::Home(town()), 1), 2_000, 0.73..=0.82);
    check("home, a year later", again(Access::Home(town()), 365), 2_000, 0.20..=0.32);
    check("in town", again(Access::InTown(town()), 9), 2_000, 0.30..=0.42);
    check("carrier", again(Access::Carrier(&COUNTRIES[0]), 1), 2_000, 0.02..=0.12);
    check("VPN", again(Access::Vpn(town()), 1), 2_000, 0.10..=0.25);
    check("relay", again(Access::Relay(&COUNTRIES[0]), 1), 2_000, 0.0..=0.02);
    check("place", again(Access::Place(7), 100), 2_000, 1.0..=1.0);
    check("hotel, within a journey", again(Access::Hotel(town()), 3), 2_000, 1.0..=1.0);
}

#[test]
fn strangers_share_a_network_at_carriers_and_in_places_only() {
    let (mut rng, all) = people(2_000);
    let mut strangers = |access: Access| {
        let networks: Vec<_> = all.iter().map(|one| one.network(&mut rng, access, 50 * DAY)).collect();
        networks.windows(2).filter(|pair| pair[0] == pair[1]).count()
    };
    check("home", strangers(Access::Home(town())), 1_999, 0.0..=0.01);
    check("carrier", strangers(Access::Carrier(&COUNTRIES[0])), 1_999, 0.005..=0.05);
    check("place", strangers(Access::Place(1)), 1_999, 1.0..=1.0);
    let family = all[0].living_with(&all[1]);
    let home = Access::Home(town());
    assert_eq!(family.network(&mut rng, home, 5), all[1].network(&mut rng, home, 5));
}

#[test]
fn most_phones_have_the_language_of_the_country_and_some_have_another() {
    let (mut rng, all) = people(3_000);
    let mut of = |tag: &str| {
        let wanted = Language::of_tag(tag);
        all.iter().filter(|one| one.language(&mut rng, false) == wanted).count()
    };
    check("German", of("de"), 3_000, 0.80..=0.90);
    check("English", of("en"), 3_000, 0.04..=0.10);
    let mut none = Rng::new(1);
    let unknown = all.iter().filter(|one| one.language(&mut none, true).is_none()).count();
    check("none", unknown, 3_000, 0.004..=0.02);
    let distinct: HashSet<_> = all.iter().filter_map(|one| one.language).collect();
    assert!(distinct.len() > 8, "{}", distinct.len());
}
