//! People, their devices, and what the service sees of a scan.

use shared::time::UnixMillis;
use verdicts::domain::{
    assessment::{agent::AgentHash, profile::Observation, spot::Spot},
    location::Coordinates,
    scan_source::Source,
};

use super::{
    assumptions::Figures,
    atlas::{COUNTRIES, City, Country},
    lines::{self, Access, Client},
    second::{Phone, Program},
};

/// A small generator: the same numbers from the same seed, on every machine.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator that follows from the state of this one, which it leaves as it is.
    pub(super) const fn fork(&self, salt: u64) -> Self {
        Self(Self(self.0 ^ salt.rotate_left(29)).number() ^ 0x6C69_6E65_7300_0000)
    }

    /// Any number.
    pub(super) const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// From `low` to `high`, both among them.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + (self.unit() * (high - low + 1) as f64) as usize
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[(self.unit() * all.len() as f64) as usize]
    }
}

/// A place where people live.
#[derive(Debug, Clone, Copy)]
pub(super) struct Town {
    pub country: &'static Country,
    pub city: &'static City,
}

impl Town {
    pub(super) fn of(rng: &mut Rng, country: &'static Country) -> Self {
        Self { country, city: rng.pick(country.cities) }
    }
}

/// A country by its weight, of those that a condition takes.
pub(super) fn country(rng: &mut Rng, takes: impl Fn(&Country) -> bool) -> &'static Country {
    let all = || COUNTRIES.iter().filter(|one| takes(one));
    let mut left = rng.unit() * all().map(|one| one.weight).sum::<f64>();
    let found = all().find(|one| {
        left -= one.weight;
        left < 0.0
    });
    found.unwrap_or(&COUNTRIES[0])
}

/// Programs that many phones share: their user agents tell no model.
const IPHONE_SAFARI: AgentHash = AgentHash(1);
const ANDROID_CHROME: AgentHash = AgentHash(2);
const SAMSUNG_INTERNET: AgentHash = AgentHash(3);
const FIRST_OTHER_IPHONE: u64 = 10;
const OTHER_IPHONES: f64 = 12.0;
const FIRST_MODEL: u64 = 100;
const MODELS: f64 = 400.0;

/// The devices of the population with a user agent of each. Other programs are those of applications, which name the model of
/// an Android.
pub(super) fn user_agents() -> Vec<(AgentHash, String)> {
    let named = |program, model| Phone { program, model }.user_agent(0);
    let programs = [
        (IPHONE_SAFARI, Program::Safari),
        (ANDROID_CHROME, Program::Chrome),
        (SAMSUNG_INTERNET, Program::SamsungInternet),
    ];
    let other = |first: u64, count: f64, program| {
        (first..first + count as u64).map(move |device| (AgentHash(device), named(program, "SM-A155F")))
    };
    programs
        .map(|(device, program)| (device, named(program, "")))
        .into_iter()
        .chain(other(FIRST_OTHER_IPHONE, OTHER_IPHONES, Program::IphoneApplication))
        .chain(other(FIRST_MODEL, MODELS, Program::AndroidApplication))
        .collect()
}

/// One of `count`, the first ones the commonest.
fn common(rng: &mut Rng, first: u64, count: f64) -> AgentHash {
    let rank = rng.unit();
    AgentHash(first + (rank * rank * count) as u64)
}

/// Somebody with a phone.
#[derive(Debug)]
pub(super) struct Person {
    home: Town,
    main: AgentHash,
    other: AgentHash,
    exits: Vec<Town>,
    client: Client,
}

/// Countries of the exits that VPNs offer first.
const EXITS: [&str; 6] = ["US", "GB", "NL", "DE", "SG", "JP"];

impl Person {
    pub(super) fn new(rng: &mut Rng, home: Town, figures: &Figures) -> Self {
        let client = Client::new(&mut rng.fork(1), shares(figures), home.country);
        let is_iphone = rng.chance(home.country.iphones);
        let in_app = if is_iphone {
            common(rng, FIRST_OTHER_IPHONE, OTHER_IPHONES)
        } else {
            common(rng, FIRST_MODEL, MODELS)
        };
        let main = match (is_iphone, rng.unit()) {
            (true, draw) if draw < figures.iphone_safari => IPHONE_SAFARI,
            // Codes are scanned by the program that everybody has there, which tells the model.
            (false, _) if home.country.code == "CN" => in_app,
            (false, draw) if draw < figures.android_reduced => ANDROID_CHROME,
            (false, draw) if draw < (1.0 + figures.android_reduced) / 2.0 => SAMSUNG_INTERNET,
            _ => in_app,
        };
        let mut exits = Vec::new();
        if rng.chance(figures.vpn) {
            if rng.chance(figures.vpn_abroad) {
                for _ in 0..if rng.chance(figures.vpn_many) { 3 } else { 1 } {
                    let code = *rng.pick(&EXITS);
                    let there = country(rng, |one| one.code == code);
                    exits.push(Town { country: there, city: &there.cities[0] });
                }
            } else {
                exits.push(Town { country: home.country, city: &home.country.cities[0] });
            }
        }
        Self { home, main, other: in_app, exits, client }
    }

    /// The same person, in the household of another one.
    pub(super) fn living_with(mut self, other: &Self) -> Self {
        self.client = self.client.living_with(&other.client);
        self
    }

    pub(super) fn has_exit(&self) -> bool {
        !self.exits.is_empty()
    }

    /// A scan in a town, as it reaches the service; `place` names the Wi-Fi of the place where it happens, if its
    /// visitors share one.
    pub(super) fn scan(
        &self,
        rng: &mut Rng,
        at: i64,
        there: Town,
        place: Option<u64>,
        figures: &Figures,
    ) -> Observation {
        let is_other = rng.chance(figures.other_browser);
        let agent = if is_other { self.other } else { self.main };
        let mut own = rng.fork(2);
        let is_at_home =
            there.country.code == self.home.country.code && std::ptr::eq(there.city, self.home.city);
        let wifi = match place {
            Some(place) => Access::Place(place),
            None if !is_at_home => Access::Hotel(there),
            None if own.chance(figures.wifi_away) => Access::InTown(there),
            None => Access::Home(there),
        };
        let (spot, access) = self.spot(rng, there, wifi, figures);
        let access = match access {
            // How it got there does not matter to these places: carrier or Wi-Fi, as others.
            None if own.chance(figures.cellular) => Access::Carrier(there.country),
            None => wifi,
            Some(access) => access,
        };
        Observation {
            at: UnixMillis(at),
            agent: Some(agent),
            spot,
            is_implicit: true,
            source: Source::Edge,
            network: Some(self.client.network(&mut own, access, at)),
            language: self.client.language(&mut own, is_other),
        }
    }

    /// What is known of the place, and by which network, where the place follows from it.
    fn spot(&self, rng: &mut Rng, there: Town, wifi: Access, figures: &Figures) -> (Spot, Option<Access>) {
        if rng.chance(figures.sensor) {
            return (by_sensor(rng, there), None);
        }
        if rng.chance(figures.no_place) {
            return (Spot::NOWHERE, None);
        }
        if !self.exits.is_empty() && rng.chance(figures.vpn_on) {
            let exit = *rng.pick(&self.exits);
            return (by_address(rng, exit, figures), Some(Access::Vpn(exit)));
        }
        let (mut seen, mut access) = (there, wifi);
        if rng.chance(figures.cellular) {
            access = Access::Carrier(there.country);
            let is_abroad = there.country.code != self.home.country.code;
            if is_abroad && rng.chance(figures.roaming) {
                seen = Town { country: self.home.country, city: &self.home.country.cities[0] };
                access = Access::Carrier(self.home.country);
            } else if rng.chance(figures.cellular_elsewhere) {
                let is_main = rng.chance(figures.cellular_main);
                let elsewhere = if is_main { &seen.country.cities[0] } else { rng.pick(seen.country.cities) };
                seen.city = elsewhere;
            }
        } else if rng.chance(figures.wifi_elsewhere) {
            seen.city = rng.pick(seen.country.cities);
        }
        if rng.chance(figures.wrong_country) {
            let there = country(rng, |_| true);
            seen = Town::of(rng, there);
        }
        (by_address(rng, seen, figures), Some(access))
    }
}

const fn shares(figures: &Figures) -> lines::Shares {
    lines::Shares {
        daily_lines: figures.daily_lines,
        line_days: figures.line_days,
        other_network: figures.other_network,
        nat_lines: figures.nat_lines,
        kept_language: figures.kept_language,
        english: figures.english,
        other_language: figures.other_language,
        no_language: figures.no_language,
    }
}

/// Up to so far from the middle of a city, in degrees: some 20 km.
const OFF: f64 = 0.2;

fn near(rng: &mut Rng, town: Town) -> Option<Coordinates> {
    let mut off = || (rng.unit() - 0.5) * 2.0 * OFF;
    Coordinates::new(town.city.latitude + off(), town.city.longitude + off())
}

fn by_sensor(rng: &mut Rng, town: Town) -> Spot {
    let country = town.country.code.parse().ok();
    near(rng, town).map_or(Spot::NOWHERE, |at| Spot::of_sensor(at, country, Some(town.city.region)))
}

pub(super) fn by_address(rng: &mut Rng, town: Town, figures: &Figures) -> Spot {
    if rng.chance(figures.country_only) {
        return Spot::of_address(false, None, Some(town.country.code), None);
    }
    Spot::of_address(true, near(rng, town), Some(town.country.code), Some(town.city.region))
}
