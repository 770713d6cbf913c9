//! Who scans, where and when.

use control::domain::{
    assessment::{agent::AgentHash, profile::Observation, spot::Spot},
    location::Coordinates,
};
use shared::time::UnixMillis;

use super::Case;

/// What an item really is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Genuine, in its market.
    Genuine,
    /// Genuine, and outside of its market.
    Diverted,
    /// One of many with the same code.
    Copied,
}

/// Which people there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// As it is thought to be.
    Plain,
    /// More VPNs, journeys and sales among people; copies that stay nearer to each other.
    Shifted,
}

/// A small generator: the same numbers from the same seed, on every machine.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// From `low` to `high`, both among them.
    fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.unit() * (high - low + 1) as f64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[(self.unit() * all.len() as f64) as usize]
    }
}

struct City {
    name: &'static str,
    country: &'static str,
    latitude: f64,
    longitude: f64,
}

const fn city(name: &'static str, country: &'static str, latitude: f64, longitude: f64) -> City {
    City { name, country, latitude, longitude }
}

const CITIES: &[City] = &[
    city("Berlin", "DE", 52.52, 13.40),
    city("Hamburg", "DE", 53.55, 9.99),
    city("Bavaria", "DE", 48.14, 11.58),
    city("Hesse", "DE", 50.11, 8.68),
    city("Ile-de-France", "FR", 48.86, 2.35),
    city("Provence", "FR", 43.30, 5.37),
    city("Rhone", "FR", 45.76, 4.84),
    city("England", "GB", 51.51, -0.13),
    city("Scotland", "GB", 55.95, -3.19),
    city("Madrid", "ES", 40.42, -3.70),
    city("Catalonia", "ES", 41.39, 2.17),
    city("Lazio", "IT", 41.90, 12.50),
    city("Lombardy", "IT", 45.46, 9.19),
    city("Mazovia", "PL", 52.23, 21.01),
    city("Istanbul", "TR", 41.01, 28.98),
    city("Dubai", "AE", 25.20, 55.27),
    city("Lagos", "NG", 6.52, 3.38),
    city("Gauteng", "ZA", -26.20, 28.05),
    city("New York", "US", 40.71, -74.01),
    city("California", "US", 34.05, -118.24),
    city("Illinois", "US", 41.88, -87.63),
    city("Texas", "US", 29.76, -95.37),
    city("Mexico City", "MX", 19.43, -99.13),
    city("Sao Paulo", "BR", -23.55, -46.63),
    city("Beijing", "CN", 39.90, 116.41),
    city("Shanghai", "CN", 31.23, 121.47),
    city("Guangdong", "CN", 23.13, 113.26),
    city("Maharashtra", "IN", 19.08, 72.88),
    city("Delhi", "IN", 28.61, 77.21),
    city("Tokyo", "JP", 35.68, 139.69),
    city("Singapore", "SG", 1.35, 103.82),
    city("New South Wales", "AU", -33.87, 151.21),
];

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// Days from the commission to the scan that is judged.
const DAYS: i64 = 180;

fn device(rng: &mut Rng) -> AgentHash {
    if rng.chance(0.35) {
        return AgentHash(1);
    }
    // Squared, so that some models are much commoner than others.
    let rank = rng.unit();
    AgentHash(2 + (rank * rank * 400.0) as u64)
}

fn scan(rng: &mut Rng, at: i64, agent: AgentHash, city: &City) -> Observation {
    let mut off = |degrees: f64| (rng.unit() - 0.5) * 2.0 * degrees;
    let near = Coordinates::new(city.latitude + off(0.3), city.longitude + off(0.4));
    let spot = match rng.unit() {
        share if share < 0.10 => {
            near.map_or(Spot::NOWHERE, |at| Spot::of_sensor(at, city.country.parse().ok(), Some(city.name)))
        }
        share if share < 0.82 => Spot::of_address(true, near, Some(city.country), Some(city.name)),
        share if share < 0.97 => Spot::of_address(false, near, Some(city.country), None),
        _ => Spot::NOWHERE,
    };
    Observation { at: UnixMillis(at), agent: Some(agent), spot, is_implicit: true }
}

fn when(rng: &mut Rng) -> i64 {
    (rng.unit() * (DAYS * DAY) as f64) as i64
}

/// One item with its scans.
pub(super) fn case(rng: &mut Rng, mix: Mix) -> Case {
    let home = rng.pick(CITIES);
    let shifted = mix == Mix::Shifted;
    let draw = rng.unit();
    // Enough of each kind: precision at other shares is computed.
    let (kind, mut scans) = match draw {
        draw if draw < 0.5 => (Kind::Genuine, genuine(rng, home, shifted)),
        draw if draw < 0.75 => (Kind::Copied, copied(rng, home, shifted)),
        _ => (Kind::Diverted, Vec::new()),
    };
    if kind == Kind::Diverted {
        let abroad = other_country(rng, home);
        scans = genuine(rng, abroad, shifted);
        if rng.chance(0.125) {
            let (agent, at) = (device(rng), -(when(rng) / 10));
            scans.push(scan(rng, at, agent, home));
        }
    }
    scans.sort_by_key(|scan| scan.at);
    Case { kind, market: home.country.parse().ok(), scans }
}

fn other_country(rng: &mut Rng, home: &City) -> &'static City {
    loop {
        let city = rng.pick(CITIES);
        if city.country != home.country {
            return city;
        }
    }
}

fn genuine(rng: &mut Rng, home: &City, shifted: bool) -> Vec<Observation> {
    // Owners, engaged owners, VPNs, travellers, resold items, shop displays.
    let shares: [f64; 6] =
        if shifted { [0.40, 0.15, 0.14, 0.13, 0.12, 0.06] } else { [0.55, 0.20, 0.07, 0.07, 0.07, 0.04] };
    let mut draw = rng.unit();
    let who = shares.iter().position(|share| {
        draw -= share;
        draw < 0.0
    });
    let (count, devices) = (rng.between(1, 6), rng.between(1, 2));
    match who.unwrap_or(0) {
        0 => owner(rng, home, count, devices),
        1 => {
            let (count, devices) = (rng.between(8, 60), rng.between(1, 3));
            owner(rng, home, count, devices)
        }
        2 => {
            let count = rng.between(3, 25);
            let mut scans = owner(rng, home, count, devices);
            for _ in 0..rng.between(1, 2) {
                let exit = other_country(rng, home);
                let hops = rng.between(1, 1 + scans.len() / 3);
                for _ in 0..hops {
                    let at = (rng.unit() * scans.len() as f64) as usize;
                    let seen = &scans[at];
                    let (time, agent) = (seen.at.0, seen.agent.unwrap_or(AgentHash(1)));
                    let spot = Coordinates::new(exit.latitude, exit.longitude);
                    let spot = Spot::of_address(true, spot, Some(exit.country), Some(exit.name));
                    scans[at] =
                        Observation { at: UnixMillis(time), agent: Some(agent), spot, is_implicit: true };
                }
            }
            scans
        }
        3 => {
            let count = rng.between(2, 10);
            let mut scans = owner(rng, home, count, 1);
            let agent = scans[0].agent.unwrap_or(AgentHash(1));
            let mut at = when(rng);
            for _ in 0..rng.between(1, 4) {
                let there = other_country(rng, home);
                at += rng.between(1, 6) as i64 * DAY;
                for _ in 0..rng.between(1, 3) {
                    at += rng.between(1, 30) as i64 * HOUR;
                    scans.push(scan(rng, at, agent, there));
                }
            }
            scans
        }
        4 => {
            let mut scans = owner(rng, home, count, devices);
            let moved = scans.iter().map(|scan| scan.at.0).max().unwrap_or(0) + 3 * DAY;
            let near: Vec<&City> = CITIES.iter().filter(|city| city.country == home.country).collect();
            let to = if rng.chance(0.8) { *rng.pick(&near) } else { other_country(rng, home) };
            let (count, agent) = (rng.between(1, 6), device(rng));
            for n in 0..count {
                scans.push(scan(rng, moved + n as i64 * 2 * DAY, agent, to));
            }
            scans
        }
        _ => {
            let devices = rng.between(5, 40);
            owner(rng, home, devices * 2, devices)
        }
    }
}

fn owner(rng: &mut Rng, home: &City, count: usize, devices: usize) -> Vec<Observation> {
    let agents: Vec<AgentHash> = (0..devices).map(|_| device(rng)).collect();
    (0..count)
        .map(|_| {
            let (at, agent) = (when(rng), *rng.pick(&agents));
            scan(rng, at, agent, home)
        })
        .collect()
}

fn copied(rng: &mut Rng, home: &City, shifted: bool) -> Vec<Observation> {
    // Smaller series are commoner than large ones.
    let copies = 3 + (497.0 * rng.unit().powi(2)) as usize;
    let is_local = rng.chance(if shifted { 0.4 } else { 0.1 });
    let cities: Vec<&City> = if is_local {
        CITIES.iter().filter(|city| city.country == home.country).collect()
    } else {
        let mut cities = vec![home];
        for _ in 0..rng.between(1, 7) {
            cities.push(other_country(rng, home));
        }
        cities
    };
    let mut scans = owner(rng, home, 1, 1);
    for _ in 0..copies {
        let (agent, there) = (device(rng), *rng.pick(&cities));
        for _ in 0..rng.between(0, 2) {
            let at = when(rng);
            scans.push(scan(rng, at, agent, there));
        }
    }
    scans
}
