//! People: where they are at a time, by which network they reach the service, and what an address shows of
//! them.

mod places;

use std::net::{IpAddr, Ipv4Addr};

use verdicts::domain::{
    assessment::{
        agent::AgentHash,
        client::{Language, NetworkHash},
        source::network_of,
        spot::Spot,
    },
    location::Coordinates,
};

pub(super) use self::places::city;
use self::places::{fixed, mobile};
use super::super::{
    Rng,
    atlas::Country,
    lines::{self, Access, Client},
    people::Town,
};
use super::{
    Mix, facts, habits,
    phones::{Phone, Program},
    world::{self, DAY},
};

/// How long the lives in this population last, in days.
pub(super) const HORIZON_DAYS: f64 = 1_200.0;

/// The days of a year.
pub(super) const YEAR_DAYS: f64 = 365.0;

/// How somebody abroad reaches the network.
#[derive(Debug, Clone, Copy)]
enum Abroad {
    Wifi,
    Roaming,
    /// A card whose traffic leaves by a hub.
    Hub(Town),
    LocalCard,
}

#[derive(Debug, Clone, Copy)]
enum Line {
    Home,
    Away,
    /// In a place with Wi-Fi for its visitors, such as a shop.
    Place(u64),
    Abroad(Abroad),
    PlaceAbroad(u64, Abroad),
}

/// Where somebody is, and how they are connected there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stay {
    pub town: Town,
    line: Line,
}

#[derive(Debug, Clone, Copy)]
struct Trip {
    from: i64,
    to: i64,
    stay: Stay,
}

/// Somebody who may scan.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub home: Town,
    /// From when on which phone is used, the first one from before the start.
    phones: Vec<(i64, Phone)>,
    second: Option<Phone>,
    exit: Option<Town>,
    has_relay: bool,
    gives_place: bool,
    /// How far from the middle of the town the home is, in degrees.
    off: (f64, f64),
    work: Option<Town>,
    trips: Vec<Trip>,
    moved: Option<(i64, Town)>,
    /// The network at home, as a device.
    network: AgentHash,
    client: Client,
}

impl Person {
    /// Somebody as they come, who lives in a town.
    pub(super) fn new(rng: &mut Rng, mix: Mix, home: Town) -> Self {
        let client = Client::new(&mut rng.fork(1), shares(mix), home.country);
        let mut phones = vec![(i64::MIN, Phone::of(rng, mix, home.country))];
        let mut day = facts::PHONE_YEARS * YEAR_DAYS * rng.unit();
        while day < HORIZON_DAYS {
            phones.push(((day * DAY as f64) as i64, successor(rng, mix, home.country, phones[0].1)));
            day += facts::PHONE_YEARS * YEAR_DAYS * world::between(rng, habits::PHONE_LIFE);
        }
        let second = rng.chance(facts::SECOND_DEVICE.of(mix)).then(|| {
            if rng.chance(habits::SECOND_IS_DESKTOP) {
                Phone::desktop()
            } else {
                Phone::of(rng, mix, home.country)
            }
        });
        let exit = rng.chance(facts::VPN_USERS.of(mix)).then(|| exit(rng, mix, home.country));
        let work = rng.chance(facts::OTHER_CITY_WORKERS.of(mix)).then(|| world::other_town(rng, home));
        let mut person = Self {
            home,
            phones,
            second,
            exit,
            has_relay: rng.chance(facts::RELAY_USERS.of(mix)),
            gives_place: rng.chance(facts::SENSOR_USERS.of(mix)),
            off: ((rng.unit() - 0.5) * 0.2, (rng.unit() - 0.5) * 0.2),
            work,
            trips: Vec::new(),
            moved: None,
            network: network(rng),
            client,
        };
        person.travel(rng, mix, facts::TRIPS_ABROAD.of(mix), facts::TRIPS_INLAND.of(mix));
        person
    }

    /// The same person, in the household of another one.
    pub(super) fn living_with(mut self, other: &Self) -> Self {
        self.client = self.client.living_with(&other.client);
        self
    }

    /// The language of a scan with a device.
    pub(super) fn language(&self, rng: &Rng, phone: Phone) -> Option<Language> {
        self.client.language(&mut rng.fork(4), self.second == Some(phone))
    }

    /// Somebody who has a VPN for certain.
    pub(super) fn with_vpn(mut self, rng: &mut Rng, mix: Mix) -> Self {
        self.exit = Some(exit(rng, mix, self.home.country));
        self
    }

    /// Somebody who works in a town.
    pub(super) const fn working_in(mut self, town: Town) -> Self {
        self.work = Some(town);
        self
    }

    /// Somebody who travels often.
    pub(super) fn travelling(mut self, rng: &mut Rng, mix: Mix) -> Self {
        self.travel(rng, mix, facts::TRIPS_OF_TRAVELLERS.of(mix), 0.0);
        self
    }

    /// Somebody who moves to another town for good.
    pub(super) const fn moving(mut self, at: i64, town: Town) -> Self {
        self.moved = Some((at, town));
        self
    }

    /// Somebody who scans with a device of their work place and stays there.
    pub(super) fn at_counter(mut self, phone: Phone) -> Self {
        self.phones = vec![(i64::MIN, phone)];
        (self.second, self.exit, self.has_relay, self.gives_place) = (None, None, false, false);
        (self.work, self.moved) = (None, None);
        self.trips.clear();
        self
    }

    fn travel(&mut self, rng: &mut Rng, mix: Mix, abroad: f64, inland: f64) {
        for (a_year, nights, is_abroad) in
            [(abroad, facts::NIGHTS_ABROAD, true), (inland, facts::NIGHTS_INLAND, false)]
        {
            if a_year <= 0.0 {
                continue;
            }
            let mut day = world::exponential(rng, YEAR_DAYS / a_year);
            while day < HORIZON_DAYS {
                let long = 1.0 + world::exponential(rng, nights - 1.0);
                let stay = if is_abroad {
                    let town = world::destination(rng, self.home.country);
                    Stay { town, line: Line::Abroad(way_abroad(rng, mix)) }
                } else {
                    Stay { town: world::other_town(rng, self.home), line: Line::Away }
                };
                let (from, to) = ((day * DAY as f64) as i64, ((day + long) * DAY as f64) as i64);
                self.trips.push(Trip { from, to, stay });
                day += long + world::exponential(rng, YEAR_DAYS / a_year);
            }
        }
    }

    /// The town that is their home at a time.
    pub(super) fn home_at(&self, at: i64) -> Town {
        self.moved.filter(|(moved, _)| *moved <= at).map_or(self.home, |(_, town)| town)
    }

    /// The first day abroad after another day, and where.
    pub(super) fn first_trip_abroad(&self, after: i64) -> Option<(i64, Town)> {
        self.trips
            .iter()
            .filter(|trip| trip.from > after && trip.stay.town.country.code != self.home.country.code)
            .map(|trip| (trip.from, trip.stay.town))
            .min_by_key(|(from, _)| *from)
    }

    /// Where they are at a time.
    pub(super) fn whereabouts(&self, rng: &mut Rng, at: i64) -> Stay {
        let home = self.home_at(at);
        if let Some(trip) = self.trips.iter().find(|trip| trip.from <= at && at < trip.to)
            && self.moved.is_none_or(|(moved, _)| at < moved)
        {
            return trip.stay;
        }
        match self.work {
            Some(town) if rng.chance(facts::AT_WORK) => {
                let is_abroad = town.country.code != home.country.code;
                let way = if rng.chance(habits::WORK_WIFI) { Abroad::Wifi } else { Abroad::Roaming };
                Stay { town, line: if is_abroad { Line::Abroad(way) } else { Line::Away } }
            }
            _ if rng.chance(facts::AT_HOME) => Stay { town: home, line: Line::Home },
            _ => Stay { town: home, line: Line::Away },
        }
    }

    /// Their being in a place of a certain town, such as at a shop; `item` names what they scan there.
    pub(super) fn visiting(&self, rng: &mut Rng, mix: Mix, town: Town, at: i64, item: u64) -> Stay {
        let is_abroad = self.home_at(at).country.code != town.country.code;
        let place = lines::place(item, town);
        let line =
            if is_abroad { Line::PlaceAbroad(place, way_abroad(rng, mix)) } else { Line::Place(place) };
        Stay { town, line }
    }

    /// The device of a visit.
    pub(super) fn phone_at(&self, rng: &mut Rng, at: i64) -> Phone {
        if let Some(second) = self.second
            && rng.chance(facts::BY_SECOND_DEVICE)
        {
            return second;
        }
        let used = self.phones.iter().rev().find(|(from, _)| *from <= at);
        used.map_or(self.phones[0].1, |(_, phone)| *phone)
    }

    /// The network at home, by which a public key's scans are told apart.
    pub(super) const fn network(&self) -> AgentHash {
        self.network
    }

    /// The place that the phone itself tells, if it may.
    pub(super) fn by_sensor(&self, rng: &mut Rng, stay: Stay) -> Option<Spot> {
        if !self.gives_place || !rng.chance(facts::SENSOR_ON) {
            return None;
        }
        let (north, east) = match stay.line {
            Line::Home => self.off,
            Line::Away | Line::Place(_) | Line::Abroad(_) | Line::PlaceAbroad(..) => {
                ((rng.unit() - 0.5) * 0.1, (rng.unit() - 0.5) * 0.1)
            }
        };
        let at = Coordinates::new(stay.town.city.latitude + north, stay.town.city.longitude + east)?;
        Some(Spot::of_sensor(at, world::code_of(stay.town.country), Some(stay.town.city.region)))
    }

    /// The place that the address of a scan tells, and its network.
    pub(super) fn by_address(
        &self,
        rng: &mut Rng,
        mix: Mix,
        stay: Stay,
        phone: Phone,
        at: i64,
    ) -> (Spot, NetworkHash) {
        let mut own = rng.fork(at.cast_unsigned());
        let (spot, access) = self.seen(rng, mix, stay, phone, at);
        (spot, self.client.network(&mut own, access, at))
    }

    fn seen(&self, rng: &mut Rng, mix: Mix, stay: Stay, phone: Phone, at: i64) -> (Spot, Access) {
        if let Some(exit) = self.exit
            && rng.chance(facts::VPN_ON.of(mix))
        {
            let is_misplaced = rng.chance(facts::VPN_MISPLACED.of(mix));
            let told = if is_misplaced { world::destination(rng, exit.country) } else { exit };
            return (city(rng, told), Access::Vpn(exit));
        }
        let home = self.home_at(at);
        let (is_wifi, by_wifi) = match stay.line {
            Line::Home => (rng.chance(facts::WIFI_HOME.of(mix)), Access::Home(stay.town)),
            Line::Away => {
                let is_home = std::ptr::eq(stay.town.city, home.city);
                let regular =
                    is_home || self.work.is_some_and(|work| std::ptr::eq(stay.town.city, work.city));
                let access = if regular { Access::InTown(stay.town) } else { Access::Hotel(stay.town) };
                (rng.chance(facts::WIFI_AWAY.of(mix)), access)
            }
            Line::Place(place) => (rng.chance(facts::WIFI_AWAY.of(mix)), Access::Place(place)),
            Line::Abroad(Abroad::Wifi) => (true, Access::Hotel(stay.town)),
            Line::PlaceAbroad(place, Abroad::Wifi) => (true, Access::Place(place)),
            Line::Abroad(_) | Line::PlaceAbroad(..) => (false, Access::Hotel(stay.town)),
        };
        let (spot, access) = match stay.line {
            _ if is_wifi => (fixed(rng, mix, stay.town), by_wifi),
            Line::Abroad(Abroad::Roaming) | Line::PlaceAbroad(_, Abroad::Roaming) => {
                (mobile(rng, mix, home), Access::Carrier(home.country))
            }
            Line::Abroad(Abroad::Hub(hub)) | Line::PlaceAbroad(_, Abroad::Hub(hub)) => {
                (city(rng, hub), Access::Hub(hub))
            }
            Line::Home
            | Line::Away
            | Line::Place(_)
            | Line::Abroad(Abroad::LocalCard | Abroad::Wifi)
            | Line::PlaceAbroad(_, Abroad::LocalCard | Abroad::Wifi) => {
                (mobile(rng, mix, stay.town), Access::Carrier(stay.town.country))
            }
        };
        // The relay keeps the country and a rough region: the town that is told is one of the country.
        match spot.country {
            Some(country) if self.has_relay && phone.program == Program::Safari => {
                let country = world::by_code(&country.to_string());
                let is_near = country.code == stay.town.country.code && rng.chance(facts::RELAY_NEAR);
                let told = if is_near { stay.town } else { world::town_in(rng, country) };
                (city(rng, told), Access::Relay(country))
            }
            Some(_) | None => (spot, access),
        }
    }
}

const fn shares(mix: Mix) -> lines::Shares {
    lines::Shares {
        daily_lines: facts::DAILY_LINES.of(mix),
        line_days: facts::LINE_DAYS.of(mix),
        other_network: facts::OTHER_NETWORK.of(mix),
        nat_lines: facts::NAT_LINES.of(mix),
        kept_language: facts::KEPT_LANGUAGE.of(mix),
        english: facts::ENGLISH.of(mix),
        other_language: facts::OTHER_LANGUAGE.of(mix),
        no_language: facts::NO_LANGUAGE.of(mix),
    }
}

/// The next phone of somebody: most stay with their system and program.
fn successor(rng: &mut Rng, mix: Mix, country: &'static Country, old: Phone) -> Phone {
    let new = Phone::of(rng, mix, country);
    if rng.chance(facts::SAME_PROGRAM) { Phone { program: old.program, ..new } } else { new }
}

fn way_abroad(rng: &mut Rng, mix: Mix) -> Abroad {
    let (wifi, roaming, hub) =
        (facts::ABROAD_WIFI.of(mix), facts::ABROAD_ROAMING.of(mix), facts::ABROAD_ESIM.of(mix));
    let country = world::by_code(rng.pick::<&str>(facts::ESIM_HUBS));
    let hub_town = world::town_in(rng, country);
    world::weighted(
        rng,
        &[
            (Abroad::Wifi, wifi),
            (Abroad::Roaming, roaming),
            (Abroad::Hub(hub_town), hub),
            (Abroad::LocalCard, (1.0 - wifi - roaming - hub).max(0.0)),
        ],
    )
}

/// Where a VPN's traffic leaves: at home or in a country where providers have many servers.
fn exit(rng: &mut Rng, mix: Mix, home: &'static Country) -> Town {
    if !rng.chance(facts::VPN_ABROAD.of(mix)) {
        return world::town_in(rng, home);
    }
    let ranks: Vec<(&str, f64)> =
        facts::VPN_EXITS.iter().enumerate().map(|(rank, code)| (*code, 1.0 / (rank as f64 + 1.0))).collect();
    let country = world::by_code(world::weighted(rng, &ranks));
    world::town_in(rng, country)
}

fn network(rng: &mut Rng) -> AgentHash {
    let mut byte = || (rng.unit() * 256.0) as u8;
    network_of(IpAddr::V4(Ipv4Addr::new(byte(), byte(), byte(), byte())))
}
