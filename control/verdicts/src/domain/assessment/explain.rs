//! Certainty of an assessment: the figures that decided it, their thresholds, and what a person could do to settle it.
//!
//! Reasons are worded from these figures, so both always agree.

use super::{
    peak::{Level, Peak},
    rules::{Finding, Known, Match, WITHDRAWN},
    settings::Settings,
    spot::Precision,
    spread::{PHONES_OF_ONE, Spread},
};
use countries::CountryCode;

mod display;
pub mod form;
mod settle;

pub use display::Displays;
pub use settle::Settle;

/// Fewest previous sessions for the points of many far devices, and for what looks like a display piece.
pub const MANY_SESSIONS: usize = 10;

/// Previous sessions for a point each, where several devices had them.
const BUSY: [usize; 3] = [5, 10, 20];

/// Pairs of a device and a region for a point each, where no region has most of the sessions.
const SCATTERED: [usize; 4] = [5, 7, 9, 11];

/// Languages that count, and the points of each: an owner has one, and copies are sold to people of several countries.
const LANGUAGES: usize = 2;
const LANGUAGE_POINTS: u32 = 3;

/// A family, a gift, a resale or a repair has no more people than these whom nothing links; as many more count.
const LINKED_PEOPLE: usize = 4;
const MOST_PEOPLE: usize = 4;

/// Days that so many people have on an item that goes from hand to hand; as many more count as [`MOST_DAYS`].
const DAYS: usize = 6;
const MOST_DAYS: usize = 8;

/// An owner has one device, with his household two: these are several.
const SEVERAL_DEVICES: usize = 3;

/// An item is at home in its market if sessions inside × this factor ≥ sessions outside.
const HOME_SHARE: usize = 4;

/// What speaks for a duplicate.
#[derive(Debug, Clone, PartialEq)]
pub struct Sign {
    /// Which one it is.
    pub name: &'static str,
    /// How much it counts.
    pub points: u32,
    /// The observed figure, in units of [`unit()`].
    pub figure: f64,
    /// The figure counts above this.
    pub threshold: f64,
}

/// The unit of the figure of a sign.
#[must_use]
pub fn unit(sign: &str) -> &'static str {
    match sign {
        "countries" => "countries",
        "places" => "places",
        "overlap" => "places at the same time",
        "devices" => "devices",
        "sessions" => "sessions",
        "alike" => "phones",
        "scattered" => "pairs",
        "languages" => "languages",
        "people" => "people",
        "days" => "days",
        "kinematic" => "journeys",
        _ => "km",
    }
}

impl Sign {
    /// The sign in words.
    #[must_use]
    pub fn text(&self) -> String {
        let figure = plain(self.figure);
        match self.name {
            "countries" if self.figure.fract() > 0.0 => format!(
                "{figure} countries, where one whose devices were in another one within a day counts half"
            ),
            "countries" => format!("{figure} countries"),
            "places" => format!("{figure} independent places"),
            "overlap" => format!("{figure} of them at the same time"),
            "devices" => format!("{figure} devices"),
            "sessions" => format!("{figure} sessions of several devices"),
            "alike" => format!("{figure} phones alike at a time"),
            "scattered" => {
                format!("{figure} pairs of device and region, with no region that has most sessions")
            }
            "languages" => format!("{figure} languages, with no region that has most sessions"),
            "people" => {
                format!("{figure} people who share neither a network nor a device with its language")
            }
            "days" => format!("sessions of such people on {figure} days"),
            "sensors" => format!("{figure} km between sensors"),
            "kinematic" => "a journey faster than an airliner's".to_owned(),
            _ => format!("many sessions of many devices over {figure} km"),
        }
    }
}

/// The signs of a duplicate that were seen.
#[must_use]
pub fn signs(spread: &Spread, settings: &Settings) -> Vec<Sign> {
    let over_one = |count: usize| count.clamp(1, 4) as u32 - 1;
    let (places, agents) = (spread.independent_places, spread.agents.len());
    let most_agents = settings.user_agents_threshold;
    let many_agents = agents > most_agents as usize;
    let previous = spread.previous();
    // What many devices scan many times is on many items, wherever these are: owners come back with their own device.
    let is_busy = |least: &&usize| agents >= SEVERAL_DEVICES && previous >= **least;
    let busy: Vec<usize> = BUSY.iter().filter(is_busy).copied().collect();
    // What one owner has is mostly seen in one region; copies have no such place.
    let has_home = spread.home.as_ref().is_none_or(|home| home.share() > settings.region_share_threshold);
    let pairs = spread.device_regions;
    let is_scattered = |least: &&usize| !has_home && agents >= SEVERAL_DEVICES && pairs >= **least;
    let scattered: Vec<usize> = SCATTERED.iter().filter(is_scattered).copied().collect();
    let people = &spread.people;
    let of_people = |figure: usize, least: usize, most: usize| {
        if people.is_known { figure.saturating_sub(least).min(most) as u32 } else { 0 }
    };
    let languages = if has_home { 0 } else { of_people(people.languages.len(), 1, LANGUAGES) };
    let days = if people.unlinked >= LINKED_PEOPLE { of_people(people.days, DAYS, MOST_DAYS) } else { 0 };
    let far_km = settings.geo_ip_spread_threshold_km;
    let sensors_km = settings.sensor_spread_threshold_km;
    let is_far = spread.geo_ip_spread_km > far_km;
    let sign = |name, points, figure, threshold| Sign { name, points, figure, threshold };
    let all = [
        sign(
            "countries",
            spread.country_halves.clamp(2, 8) as u32 - 2,
            spread.country_halves as f64 / 2.0,
            1.0,
        ),
        sign("places", over_one(places), places as f64, 1.0),
        sign("overlap", 2 * u32::from(spread.overlap), 2.0, 1.0),
        sign("devices", u32::from(many_agents), agents as f64, most_agents.into()),
        sign("sessions", busy.len() as u32, previous as f64, busy.last().map_or(0, |least| least - 1) as f64),
        sign(
            "alike",
            2 * spread.alike.saturating_sub(PHONES_OF_ONE) as u32,
            spread.alike as f64,
            PHONES_OF_ONE as f64,
        ),
        sign(
            "scattered",
            scattered.len() as u32,
            pairs as f64,
            scattered.last().map_or(0, |least| least - 1) as f64,
        ),
        sign("languages", LANGUAGE_POINTS * languages, people.languages.len() as f64, 1.0),
        sign(
            "people",
            of_people(people.unlinked, LINKED_PEOPLE, MOST_PEOPLE),
            people.unlinked as f64,
            LINKED_PEOPLE as f64,
        ),
        sign("days", days, people.days as f64, DAYS as f64),
        sign(
            "sensors",
            u32::from(spread.sensor_spread_km > sensors_km),
            shown(spread.sensor_spread_km, sensors_km),
            sensors_km,
        ),
        sign("kinematic", u32::from(spread.kinematic), 1.0, 0.0),
        sign(
            "far",
            2 * u32::from(previous >= MANY_SESSIONS && many_agents && is_far),
            shown(spread.geo_ip_spread_km, far_km),
            far_km,
        ),
    ];
    all.into_iter().filter(|sign| sign.points > 0).collect()
}

/// The points of some signs.
#[must_use]
pub fn sum(signs: &[Sign]) -> u32 {
    signs.iter().map(|sign| sign.points).sum()
}

/// The points that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bars {
    /// For a suspected duplicate.
    pub suspected: u32,
    /// For a duplicate.
    pub duplicate: u32,
}

impl Bars {
    /// The bars of the settings; half again as high, rounded up, where the signs of languages count.
    #[must_use]
    pub const fn of(spread: &Spread, settings: &Settings) -> Self {
        let Settings { suspected_points: suspected, duplicate_points: duplicate, .. } = *settings;
        if spread.people.is_known {
            Self {
                suspected: suspected + suspected.div_ceil(2),
                duplicate: duplicate + duplicate.div_ceil(2),
            }
        } else {
            Self { suspected, duplicate }
        }
    }
}

/// What has to be so, beside enough points, before an item is called a duplicate: one of the three is enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Whether one of them is.
    pub is_open: bool,
    /// Regions that it was seen in.
    pub regions: usize,
    /// More than these open the gate.
    pub regions_threshold: u32,
    /// Largest distance between two positions from addresses, in kilometres.
    pub geo_ip_km: f64,
    /// More than this opens the gate.
    pub geo_ip_threshold_km: f64,
    /// Largest distance between two positions from sensors, in kilometres.
    pub sensor_km: f64,
    /// More than this opens the gate.
    pub sensor_threshold_km: f64,
}

impl Gate {
    fn of(spread: &Spread, settings: &Settings) -> Self {
        let Settings { regions_threshold, geo_ip_spread_threshold_km, sensor_spread_threshold_km, .. } =
            *settings;
        let is_open = spread.regions.len() > regions_threshold as usize
            || spread.geo_ip_spread_km > geo_ip_spread_threshold_km
            || spread.sensor_spread_km > sensor_spread_threshold_km;
        Self {
            is_open,
            regions: spread.regions.len(),
            regions_threshold,
            geo_ip_km: shown(spread.geo_ip_spread_km, geo_ip_spread_threshold_km),
            geo_ip_threshold_km: geo_ip_spread_threshold_km,
            sensor_km: shown(spread.sensor_spread_km, sensor_spread_threshold_km),
            sensor_threshold_km: sensor_spread_threshold_km,
        }
    }
}

/// The region with most sessions, and how many of all these are.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The region, with its country.
    pub region: String,
    /// Sessions there.
    pub sessions: usize,
    /// Sessions in any region that is known.
    pub of: usize,
    /// The share.
    pub share: f64,
    /// With a larger share it is not called a duplicate.
    pub threshold: f64,
    /// Whether it is larger.
    pub is_above: bool,
}

/// How sure the check of duplicates is.
#[derive(Debug, Clone, PartialEq)]
pub struct Certainty {
    /// The points of the signs.
    pub points: u32,
    /// The points that are needed.
    pub bars: Bars,
    /// Whether the language of at least half of the sessions is known: then its signs count, and the bars are higher.
    pub languages_known: bool,
    /// The highest bar that the points reach, else the lowest.
    pub bar: u32,
    /// The bar above that.
    pub next_bar: Option<u32>,
    /// The greatest points since the commissioning, if the verdict is based on them.
    pub kept_points: Option<u32>,
    /// Sessions before.
    pub previous: usize,
    /// Fewer of them say nothing.
    pub needed: u32,
    /// Devices.
    pub devices: usize,
    /// The gate.
    pub gate: Gate,
    /// The region with most sessions.
    pub share: Option<Share>,
    /// What speaks for a duplicate.
    pub signs: Vec<Sign>,
    /// Whether it looks like an item on display.
    pub looks_like_display: bool,
    /// Items that are tagged as display pieces at the same place, where it looks like one.
    pub displays_nearby: Option<u64>,
    /// What settles it.
    pub settles: Vec<Settle>,
}

impl Certainty {
    /// The figures of some sessions; nothing settles them yet.
    #[must_use]
    pub fn of(spread: &Spread, settings: &Settings) -> Self {
        let signs = signs(spread, settings);
        let points = sum(&signs);
        let bars = Bars::of(spread, settings);
        let duplicate = bars.duplicate;
        let lowest = bars.suspected.min(duplicate);
        let bar = if points >= duplicate { duplicate } else { lowest };
        let threshold = settings.region_share_threshold;
        let share = spread.home.as_ref().map(|home| Share {
            region: home.region.clone(),
            sessions: home.sessions,
            of: home.of,
            share: shown(home.share() * 100.0, threshold * 100.0) / 100.0,
            threshold,
            is_above: home.share() > threshold,
        });
        let (previous, devices) = (spread.previous(), spread.agents.len());
        let is_at_one_place = share.as_ref().is_some_and(|share| share.is_above);
        Self {
            points,
            bars,
            languages_known: spread.people.is_known,
            bar,
            next_bar: Some(duplicate).filter(|next| *next > bar),
            kept_points: None,
            previous,
            needed: settings.scan_threshold,
            devices,
            gate: Gate::of(spread, settings),
            looks_like_display: is_at_one_place
                && previous >= MANY_SESSIONS
                && devices > settings.user_agents_threshold as usize,
            displays_nearby: None,
            share,
            signs,
            settles: Vec::new(),
        }
    }

    /// The same once the level is known, which may be that of a greatest before.
    #[must_use]
    pub fn settled(mut self, level: Level, kept: Option<&Peak>) -> Self {
        self.kept_points = kept.map(|peak| peak.points);
        if level.max(kept.map_or(Level::None, |peak| peak.level)) > Level::None {
            let is_at_one_place = self.share.as_ref().is_some_and(|share| share.is_above);
            let fits = [
                (Settle::TagDisplay, self.looks_like_display),
                (Settle::AllowPlace, is_at_one_place),
                (Settle::Inspect, true),
                (Settle::DecideCase, true),
            ];
            self.settles = fits.into_iter().filter(|(_, fits)| *fits).map(|(settle, _)| settle).collect();
        }
        self
    }
}

/// Where an item was before, by its markets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sightings {
    /// Sessions inside.
    pub inside: usize,
    /// Sessions outside.
    pub outside: usize,
    /// Whether the first of them was inside; `None` without any.
    pub first_was_inside: Option<bool>,
    /// Sessions inside that are needed to be at home, with this many outside.
    pub needed: usize,
    /// Whether one device saw it inside and outside.
    pub shared_device: bool,
}

impl Sightings {
    /// The sessions before, by the markets of the item.
    #[must_use]
    pub fn of(markets: &[CountryCode], spread: &Spread) -> Self {
        let is_in = |country: &CountryCode| markets.contains(country);
        let before = || spread.previous_countries.iter().flatten();
        let inside = before().filter(|country| is_in(country)).count();
        let outside = before().count() - inside;
        Self {
            inside,
            outside,
            first_was_inside: before().next().map(is_in),
            needed: outside.div_ceil(HOME_SHARE),
            shared_device: super::rules::travels_with_its_owner(spread, &is_in),
        }
    }

    /// Whether the item is at home in its markets. Goods that come back after they were sold outside are not at home by
    /// one scan.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        (self.first_was_inside == Some(true) || self.shared_device) && self.inside >= self.needed
    }
}

/// How sure an assessment is, by the scans that are believed.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Of duplicates.
    pub duplicate: Certainty,
    /// Of the market; `None` where none is set.
    pub sightings: Option<Sightings>,
    /// What settles the question of the market.
    pub diversion: Vec<Settle>,
    /// What settles whether the item was declared.
    pub unauthorized: Vec<Settle>,
}

impl Explained {
    /// Facts besides the findings.
    #[must_use]
    pub fn of(
        known: &Known,
        spread: &Spread,
        precision: Precision,
        (duplicate, diversion, unauthorized): (Certainty, &Finding, &Finding),
    ) -> Self {
        let sightings = (!known.markets.is_empty()).then(|| Sightings::of(&known.markets, spread));
        let of_market: &[Settle] = match diversion.matched {
            Match::Unknown if sightings.is_none() => &[Settle::SetMarkets],
            Match::Unknown => &[Settle::AskForPlace],
            Match::True if precision == Precision::Sensor => &[Settle::DecideCase],
            Match::True => &[Settle::AskForPlace, Settle::DecideCase],
            Match::False => &[],
        };
        let is_withdrawn = known.tags.iter().any(|tag| WITHDRAWN.contains(&tag.as_str()));
        let of_factory: &[Settle] = match unauthorized.matched {
            Match::True | Match::Unknown if !is_withdrawn => &[Settle::Commission],
            Match::True | Match::Unknown | Match::False => &[],
        };
        Self { duplicate, sightings, diversion: of_market.to_vec(), unauthorized: of_factory.to_vec() }
    }
}

/// A figure for display: with as few decimals as keep it on its side of the threshold.
fn shown(figure: f64, threshold: f64) -> f64 {
    let places = [1.0, 1_000.0].map(|scale| (figure * scale).round() / scale);
    places.into_iter().find(|one| (*one > threshold) == (figure > threshold)).unwrap_or(figure)
}

/// A figure in words: thousands apart, no more places than it has.
pub fn plain(figure: f64) -> String {
    let text = figure.to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests;
