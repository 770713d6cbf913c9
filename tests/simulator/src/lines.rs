//! By which networks people reach the service, and in which language.
//!
//! Both populations use it, with shares of their own. It draws from generators of its own, so that the places, times
//! and devices of a population are the same as without it. A /48 of IPv6 is taken for a /24 of IPv4: providers give a
//! home a /56 or a /48 (RIPE-690, 2017), so both hold one to some 250 homes.

use std::net::{IpAddr, Ipv4Addr};

use verdicts::domain::assessment::client::{Language, NetworkHash};

use super::{
    atlas::{City, Country},
    people::{Rng, Town},
};

mod languages;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Shares that differ between populations and mixes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// Of home lines, with a new address each day.
    pub daily_lines: f64,
    /// Days that the others keep an address, on average.
    pub line_days: f64,
    /// Of changes of an address, into another /24.
    pub other_network: f64,
    /// Of home lines, behind the NAT of their provider.
    pub nat_lines: f64,
    /// Of people born abroad, with a phone in the language they brought.
    pub kept_language: f64,
    /// Of people in countries with another language, with a phone in English.
    pub english: f64,
    /// Of people, with a second device or program in another language.
    pub other_language: f64,
    /// Of scans, without a language.
    pub no_language: f64,
}

/// /24s of the fixed lines of a town.
///
/// Assumed: 250,000 homes fill 1,000; providers keep more in reserve, and towns of the atlas are larger.
const OF_TOWN: u64 = 1_000;
/// /24s that one access router gives its lines addresses from. Assumed: a few thousand homes.
const OF_ROUTER: u64 = 16;
/// /24s of the NAT of a fixed provider in a town. Assumed: providers that need one have few addresses.
const OF_FIXED_NAT: u64 = 8;
/// Carriers of a country with their shares. Assumed: three or four networks are usual, the first with some 40 %.
const CARRIERS: [f64; 3] = [0.40, 0.35, 0.25];
/// /24s of a carrier's NAT.
///
/// More than 90 % of carriers use one ("A Multi-perspective Analysis of Carrier-Grade NAT Deployment", IMC 2016).
/// 350,000 cellular /24s in some 670 networks ("Cell Spotting", IMC 2017) are 500 for each; assumed that a tenth of
/// them has nearly all traffic of phones, the first ones most.
const OF_CARRIER: u64 = 48;
/// How long a phone keeps its address at a carrier. Assumed: it is given up when the phone is idle; the addresses of
/// one phone change within hours ("Where's That Phone?", IMC 2009).
const CARRIER_HOURS: i64 = 4;
/// /24s of a hub for travel cards. Assumed: few firms run them.
const OF_HUB: u64 = 8;
/// VPN providers, the first the commonest, and /24s of each in a town. Assumed from their lists of servers.
const PROVIDERS: u64 = 10;
const OF_PROVIDER: u64 = 6;
/// /24s of Apple's relay for a country. Assumed: some 240,000 subnets over all countries ("Towards a Tectonic Traffic
/// Shift?", IMC 2022), most of them of IPv6; each connection may have another one.
const OF_RELAY: u64 = 200;
/// Share of people at work or with friends when they are in town on somebody's Wi-Fi. Assumed: the rest is in cafés,
/// shops and stations, with another network each time.
const AT_REGULAR_PLACE: f64 = 0.6;

/// How a scan reaches the service.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    /// The line at home.
    Home(Town),
    /// Somebody else's Wi-Fi in a town where they often are: at work, with friends, in a café.
    InTown(Town),
    /// Wi-Fi of a place that its visitors share, by a number that names the place.
    Place(u64),
    /// Wi-Fi on a journey.
    Hotel(Town),
    /// A carrier of a country.
    Carrier(&'static Country),
    /// The hub of a travel card.
    Hub(Town),
    /// An exit of a VPN.
    Vpn(Town),
    /// Apple's relay in a country.
    Relay(&'static Country),
}

/// What somebody's networks and language follow from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    /// Names the home line.
    household: u64,
    /// Names the person.
    own: u64,
    carrier: u64,
    shares: Shares,
    language: Option<Language>,
    /// That of the second device or program.
    second_language: Option<Language>,
}

impl Client {
    /// Somebody who lives in a country.
    pub(super) fn new(rng: &mut Rng, shares: Shares, country: &'static Country) -> Self {
        let carriers = CARRIERS.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let drawn = rng.unit();
        let carrier = carriers.take_while(|below| *below <= drawn).count() as u64;
        let language = Language::of_tag(languages::spoken(rng, shares, country));
        let (household, own) = (rng.number(), rng.number());
        // English, or what somebody of the country has by chance.
        let is_other = rng.chance(shares.other_language);
        let other = if rng.chance(0.5) { "en" } else { languages::spoken(rng, shares, country) };
        let second_language = if is_other { Language::of_tag(other) } else { language };
        Self { household, own, carrier, shares, language, second_language }
    }

    /// The same person, in the household of another one.
    pub(super) const fn living_with(mut self, other: &Self) -> Self {
        self.household = other.household;
        self
    }

    /// The language of a scan by the first or the second device.
    pub(super) fn language(&self, rng: &mut Rng, is_second: bool) -> Option<Language> {
        let own = if is_second { self.second_language } else { self.language };
        own.filter(|_| !rng.chance(self.shares.no_language))
    }

    /// The network of a scan.
    pub(super) fn network(&self, rng: &mut Rng, access: Access, at: i64) -> NetworkHash {
        NetworkHash::of(self.address(rng, access, at))
    }

    fn address(&self, rng: &mut Rng, access: Access, at: i64) -> IpAddr {
        let day = at.div_euclid(DAY).cast_unsigned();
        match access {
            Access::Home(town) => self.at_home(town, at),
            Access::InTown(town) if rng.chance(AT_REGULAR_PLACE) => {
                network(&[1, key(town.city), mixed(&[self.own, key(town.city)]) % OF_TOWN])
            }
            Access::InTown(town) => network(&[1, key(town.city), rng.number() % OF_TOWN]),
            Access::Place(place) => network(&[2, place]),
            Access::Hotel(town) => {
                // One for a journey, which lasts some days.
                network(&[1, key(town.city), mixed(&[self.own, key(town.city), day / 8]) % OF_TOWN])
            }
            Access::Carrier(country) => {
                let drawn = mixed(&[self.own, at.div_euclid(CARRIER_HOURS * HOUR).cast_unsigned()]);
                network(&[3, code(country), self.carrier, ranked(drawn, OF_CARRIER)])
            }
            Access::Hub(town) => network(&[4, key(town.city), rng.number() % OF_HUB]),
            Access::Vpn(exit) => {
                let provider = ranked(mixed(&[self.own]), PROVIDERS);
                network(&[5, provider, key(exit.city), rng.number() % OF_PROVIDER])
            }
            Access::Relay(country) => network(&[6, code(country), rng.number() % OF_RELAY]),
        }
    }

    fn at_home(&self, town: Town, at: i64) -> IpAddr {
        let Shares { daily_lines, line_days, other_network, nat_lines, .. } = self.shares;
        let line = mixed(&[self.household, key(town.city)]);
        let day = at as f64 / DAY as f64;
        if share_of(mixed(&[line, 1])) < nat_lines {
            let drawn = mixed(&[line, day.floor() as u64]) % OF_FIXED_NAT;
            return network(&[7, key(town.city), drawn]);
        }
        let days = if share_of(mixed(&[line, 2])) < daily_lines { 1.0 } else { line_days };
        // The last change that led into another /24.
        let mut epoch = (day / days + share_of(mixed(&[line, 3]))).floor().max(0.0) as u64;
        while epoch > 0 && share_of(mixed(&[line, 4, epoch])) >= other_network {
            epoch -= 1;
        }
        let router = line % (OF_TOWN / OF_ROUTER) * OF_ROUTER;
        network(&[1, key(town.city), router + mixed(&[line, 5, epoch]) % OF_ROUTER])
    }
}

/// A number of a place that visitors share, such as a shop for one item in a town.
pub(super) fn place(item: u64, town: Town) -> u64 {
    mixed(&[item, key(town.city)])
}

/// The network of a place that has one line, such as a warehouse.
pub(super) fn of_place(place: u64) -> NetworkHash {
    NetworkHash::of(network(&[2, place]))
}

fn key(city: &City) -> u64 {
    mixed(&[city.latitude.to_bits(), city.longitude.to_bits()])
}

fn code(country: &Country) -> u64 {
    country.code.bytes().fold(0, |code, letter| code << 8 | u64::from(letter))
}

/// One of `count`, the first ones the commonest: its weight falls with the square root of a draw.
fn ranked(drawn: u64, count: u64) -> u64 {
    let unit = share_of(drawn);
    (unit * unit * count as f64) as u64
}

fn share_of(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

/// An address in the network with a name.
fn network(name: &[u64]) -> IpAddr {
    let [one, two, three, ..] = mixed(name).to_be_bytes();
    Ipv4Addr::new(one, two, three, 1).into()
}

/// One number from several.
fn mixed(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |mixed, part| Rng::new(mixed ^ part.rotate_left(17)).number())
}

#[cfg(test)]
mod tests;
