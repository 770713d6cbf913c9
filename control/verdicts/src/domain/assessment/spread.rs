//! The distances between the scans of a Thng, which the check for duplicates counts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use countries::CountryCode;
use shared::time::UnixMillis;

pub use self::boxes::{bounding_box, box_diagonal_km, largest_km};
use self::visits::{Visit, country_halves};
use super::{
    agent::AgentHash,
    client::{Language, NetworkHash},
    profile::{Profile, SESSION_MS, Session, SessionKey},
    settings::Settings,
    spot::{Precision, Spot},
};
use countries::distance::distance_km;

use crate::domain::location::Coordinates;

mod boxes;
mod people;
mod visits;

pub use people::People;

/// Sessions older than this are no part of the profile, in milliseconds: 365 days.
const WINDOW_MS: i64 = 365 * 24 * 60 * 60 * 1_000;

/// Faster than any airliner.
const MAX_SPEED_KM_H: f64 = 900.0;

/// Hours in which an airliner reaches the other end of the world: half of a great circle is 20,016 km.
const LONGEST_JOURNEY_H: f64 = 20_016.0 / MAX_SPEED_KM_H;

/// Journeys that are shorter say nothing about speed.
const MIN_JOURNEY_KM: f64 = 100.0;

/// Sessions as near as this are at one place, by sensor and by address.
const PLACE_KM: [f64; 2] = [75.0, 400.0];

/// Fewest located sessions before one of them can be an outlier.
const MIN_LOCATED: usize = 3;

/// The trigger: time, device, place.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// When it happened.
    pub at: UnixMillis,
    /// The device.
    pub agent: Option<AgentHash>,
    /// The client's network, if its address is known.
    pub network: Option<NetworkHash>,
    /// The client's language, if it sent one.
    pub language: Option<Language>,
    /// Where.
    pub spot: Spot,
    /// Whether the profile holds it as a redirect.
    pub is_counted: bool,
}

/// Previous sessions and the trigger, in figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spread {
    /// Countries.
    pub countries: BTreeSet<CountryCode>,
    /// How much the countries count: 2 each, and 1 where only devices were that had been, or were soon after, elsewhere.
    pub country_halves: usize,
    /// Regions, each with its country.
    pub regions: BTreeSet<String>,
    /// Devices.
    pub agents: BTreeSet<AgentHash>,
    /// Diagonal of the smallest box around the positions from addresses, in kilometres.
    pub geo_ip_box_km: f64,
    /// The same of sensors.
    pub sensor_box_km: f64,
    /// Largest distance between two positions from addresses, in kilometres.
    pub geo_ip_spread_km: f64,
    /// The same of sensors.
    pub sensor_spread_km: f64,
    /// Whether the trigger is far from all previous sessions; `None` if unknown.
    pub outlier: Option<bool>,
    /// Places that no device was at two of.
    pub independent_places: usize,
    /// Whether two of these were active at the same time.
    pub overlap: bool,
    /// Whether one would have had to fly too fast.
    pub kinematic: bool,
    /// The least number of phones behind one user agent, up to [`MAX_ALIKE`]: sessions of which no phone can have had
    /// two.
    pub alike: usize,
    /// The region with most sessions, of those whose region is known.
    pub home: Option<Home>,
    /// Distinct pairs of a device and a region. Where most phones share a few user agents, one of these that is seen in
    /// several regions is more likely to be several phones.
    pub device_regions: usize,
    /// Whom the sessions tell apart.
    pub people: People,
    /// Countries of previous sessions, one for each.
    pub previous_countries: Vec<Option<CountryCode>>,
    /// Devices of previous sessions, one for each, in the same order.
    pub previous_agents: Vec<Option<AgentHash>>,
    /// The device of the trigger.
    pub agent: Option<AgentHash>,
    /// Redirects in previous sessions and in the trigger's own, without itself.
    pub previous_implicit: u64,
}

/// Where an item is mostly seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The region, with its country.
    pub region: String,
    /// Sessions there.
    pub sessions: usize,
    /// Sessions in any region that is known.
    pub of: usize,
}

impl Home {
    fn of(regions: impl Iterator<Item = String>) -> Option<Self> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        regions.for_each(|region| *counts.entry(region).or_default() += 1);
        let of = counts.values().sum();
        let most = counts.into_iter().max_by_key(|(region, count)| (*count, Reverse(region.clone())));
        most.map(|(region, sessions)| Self { region, sessions, of })
    }

    /// Where the sessions of a profile mostly are; nothing where no region is known.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Option<Self> {
        Self::of(profile.sessions().filter_map(|(_, session)| session.spot.region_name()))
    }

    /// Its share of the sessions.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.sessions as f64 / self.of.max(1) as f64
    }
}

impl Spread {
    /// How many sessions were before.
    #[must_use]
    pub fn previous(&self) -> usize {
        self.previous_countries.len()
    }

    /// The figures of a trigger, among the sessions of its Thng since `since`.
    ///
    /// The session that the trigger belongs to is not a previous one.
    #[must_use]
    pub fn of(profile: &Profile, trigger: &Trigger, since: Option<UnixMillis>, settings: &Settings) -> Self {
        let own = SessionKey::of(trigger.at, trigger.agent);
        let oldest = oldest(trigger.at, since);
        let counts = |session: &Session| session.last >= oldest && session.first < trigger.at;
        let implicit_of_own: u64 = profile
            .sessions()
            .filter(|(key, session)| *key == own && counts(session))
            .map(|(_, session)| u64::from(session.implicit))
            .sum();
        let mut previous: Vec<(SessionKey, &Session)> =
            profile.sessions().filter(|(key, session)| *key != own && counts(session)).collect();
        previous.drain(..previous.len().saturating_sub(settings.max_observed_scans));
        let implicit: u64 = previous.iter().map(|(_, session)| u64::from(session.implicit)).sum();

        let mut spread = Self {
            previous_countries: previous.iter().map(|(_, session)| session.spot.country).collect(),
            previous_agents: previous.iter().map(|(key, _)| known(key.agent())).collect(),
            agent: known(own.agent()),
            previous_implicit: implicit + implicit_of_own.saturating_sub(trigger.is_counted.into()),
            ..Self::default()
        };
        let spots = || previous.iter().map(|(_, session)| &session.spot).chain([&trigger.spot]);
        spread.countries = spots().filter_map(|spot| spot.country).collect();
        spread.regions = spots().filter_map(Spot::region_name).collect();
        spread.home = Home::of(spots().filter_map(Spot::region_name));
        let agents = previous.iter().map(|(key, _)| key.agent()).chain([own.agent()]);
        let pairs = agents.zip(spots()).filter_map(|(agent, spot)| known(agent).zip(spot.region_name()));
        spread.device_regions = pairs.collect::<BTreeSet<_>>().len();
        spread.agents =
            previous.iter().map(|(key, _)| key.agent()).chain([own.agent()]).filter_map(known).collect();
        let seen = |key: SessionKey, session: &Session| people::Seen {
            at: session.first,
            agent: key.agent(),
            network: session.network,
            language: session.language,
        };
        let mut sessions: Vec<people::Seen> =
            previous.iter().map(|(key, session)| seen(*key, session)).collect();
        let Trigger { at, network, language, .. } = *trigger;
        // Of a scan by a public key nothing is believed: it is neither a person nor a day.
        if known(own.agent()).is_some() || network.is_some() || language.is_some() {
            sessions.push(people::Seen { at, agent: own.agent(), network, language });
        }
        spread.people = People::of(&sessions);
        let points = |precision: Precision| -> Vec<Coordinates> {
            let known = spots().filter(|spot| spot.precision == precision);
            known.filter_map(|spot| spot.located()).map(|(at, _)| at).collect()
        };
        let (cities, sensors) = (points(Precision::GeoIpCity), points(Precision::Sensor));
        (spread.geo_ip_box_km, spread.sensor_box_km) = (box_diagonal_km(&cities), box_diagonal_km(&sensors));
        (spread.geo_ip_spread_km, spread.sensor_spread_km) = (largest_km(&cities), largest_km(&sensors));
        spread.outlier = outlier(&previous, &trigger.spot, settings.spread_outlier_threshold_km);

        let mut stops: Vec<Stop> =
            previous.iter().filter_map(|(key, session)| Stop::of(*key, session)).collect();
        stops.extend(Stop::of_trigger(own, trigger));
        stops.sort_by_key(|stop| (stop.first, stop.last, stop.agent));
        let places = independent(places(&stops));
        spread.independent_places = places.len();
        spread.overlap = places.iter().enumerate().any(|(at, one)| {
            places.get(at + 1..).unwrap_or_default().iter().any(|other| one.overlaps(other))
        });
        spread.kinematic = stops.windows(2).any(|pair| match pair {
            [from, to] => from.agent != to.agent && is_too_fast(from, to),
            _ => false,
        });
        spread.alike = alike(&stops);
        let own = Visit::of(own.agent(), (trigger.at, trigger.at), &trigger.spot);
        let visits =
            previous.iter().filter_map(|(key, one)| Visit::of(key.agent(), (one.first, one.last), &one.spot));
        let visits: Vec<Visit> = visits.chain(own).collect();
        let is_one_phone = |agent: AgentHash| {
            let own: Vec<Stop> = stops.iter().filter(|stop| stop.agent == agent).copied().collect();
            alike(&own) <= PHONES_OF_ONE
        };
        spread.country_halves = country_halves(&visits, is_one_phone);
        spread
    }
}

/// Sessions that ended before this do not count for a trigger.
pub fn oldest(at: UnixMillis, since: Option<UnixMillis>) -> UnixMillis {
    since.unwrap_or(UnixMillis(i64::MIN)).max(UnixMillis(at.0.saturating_sub(WINDOW_MS)))
}

/// The device, if it is known.
fn known(agent: AgentHash) -> Option<AgentHash> {
    Some(agent).filter(|agent| *agent != AgentHash(0))
}

/// A session whose place is known.
#[derive(Debug, Clone, Copy)]
struct Stop {
    first: UnixMillis,
    last: UnixMillis,
    agent: AgentHash,
    at: Coordinates,
    radius_km: f64,
    is_sensor: bool,
}

impl Stop {
    fn new(key: SessionKey, (first, last): (UnixMillis, UnixMillis), spot: &Spot) -> Option<Self> {
        let (at, radius_km) = spot.located()?;
        let is_sensor = spot.precision == Precision::Sensor;
        Some(Self { first, last, agent: key.agent(), at, radius_km, is_sensor })
    }

    fn of(key: SessionKey, session: &Session) -> Option<Self> {
        Self::new(key, (session.first, session.last), &session.spot)
    }

    fn of_trigger(key: SessionKey, trigger: &Trigger) -> Option<Self> {
        Self::new(key, (trigger.at, trigger.at), &trigger.spot)
    }

    /// How far apart two are at least.
    fn apart_km(&self, other: &Self) -> f64 {
        distance_km(self.at, other.at) - self.radius_km - other.radius_km
    }
}

/// No journey between them that an airliner could make; `to` is not the earlier one.
fn is_too_fast(from: &Stop, to: &Stop) -> bool {
    let hours = (to.first.0.saturating_sub(from.last.0)).max(0) as f64 / 3_600_000.0;
    if hours > LONGEST_JOURNEY_H {
        return false;
    }
    let apart_km = from.apart_km(to);
    apart_km > MIN_JOURNEY_KM && apart_km > MAX_SPEED_KM_H * hours
}

/// A person with a VPN seems to be at two places: from three phones with one user agent on, several have the code.
pub const PHONES_OF_ONE: usize = 2;

/// Most phones that are distinguished behind one user agent.
pub const MAX_ALIKE: usize = 4;

/// The least number of phones behind one user agent: the largest set of its sessions, up to [`MAX_ALIKE`], of which
/// no phone can have had two. Sessions are in order of time, and a profile has fewer than 128.
fn alike(stops: &[Stop]) -> usize {
    let is_apart = |from: &Stop, to: &Stop| {
        from.agent == to.agent && from.agent != AgentHash(0) && is_too_fast(from, to)
    };
    // Bit n of entry m: the later session n is apart from m.
    let apart: Vec<u128> = stops
        .iter()
        .enumerate()
        .map(|(at, from)| {
            let later = stops.iter().enumerate().skip(at + 1).take_while(|(n, _)| *n < 128);
            later.filter(|(_, to)| is_apart(from, to)).fold(0, |bits, (n, _)| bits | 1 << n)
        })
        .collect();
    let most = apart.iter().map(|others| 1 + largest(&apart, *others, MAX_ALIKE - 1)).max();
    most.unwrap_or_default()
}

/// The largest set, up to `most`, of sessions of `among` that are all apart from each other.
fn largest(apart: &[u128], among: u128, most: usize) -> usize {
    let mut found = 0;
    for (_, others) in apart.iter().enumerate().filter(|(n, _)| among >> n & 1 == 1) {
        found = found.max(1);
        if found < most {
            found = found.max(1 + largest(apart, among & others, most - 1));
        }
        if found >= most {
            break;
        }
    }
    found
}

/// Sessions around a leader: the first one there.
#[derive(Debug)]
struct Place {
    leader: Stop,
    agents: BTreeSet<AgentHash>,
    first: UnixMillis,
    last: UnixMillis,
}

impl Place {
    fn overlaps(&self, other: &Self) -> bool {
        // A single scan is an instant; a session covers its half hour.
        let end = |place: &Self| place.last.0.max(place.first.0.saturating_add(SESSION_MS));
        self.first.0 <= end(other) && other.first.0 <= end(self)
    }
}

/// Leader clustering in order of time.
fn places(stops: &[Stop]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for stop in stops {
        let reach = |place: &Place| {
            let both_sensors = stop.is_sensor && place.leader.is_sensor;
            PLACE_KM[usize::from(!both_sensors)]
        };
        let near = places.iter_mut().find(|place| distance_km(place.leader.at, stop.at) <= reach(place));
        match near {
            Some(place) => {
                place.agents.insert(stop.agent);
                place.first = place.first.min(stop.first);
                place.last = place.last.max(stop.last);
            }
            None => places.push(Place {
                leader: *stop,
                agents: [stop.agent].into(),
                first: stop.first,
                last: stop.last,
            }),
        }
    }
    places
}

/// Places with devices of their own, taken greedily in order of time.
fn independent(places: Vec<Place>) -> Vec<Place> {
    let mut seen = BTreeSet::new();
    let mut taken = Vec::new();
    for place in places {
        if place.agents.is_disjoint(&seen) {
            seen.extend(place.agents.iter().copied());
            taken.push(place);
        }
    }
    taken
}

fn outlier(previous: &[(SessionKey, &Session)], trigger: &Spot, threshold_km: f64) -> Option<bool> {
    let (at, radius_km) = trigger.located()?;
    let located: Vec<(Coordinates, f64)> =
        previous.iter().filter_map(|(_, session)| session.spot.located()).collect();
    if located.len() < MIN_LOCATED {
        return None;
    }
    let apart = located.iter().map(|(other, radius)| distance_km(at, *other) - radius - radius_km);
    Some(apart.fold(f64::INFINITY, f64::min) > threshold_km)
}

#[cfg(test)]
mod tests;
