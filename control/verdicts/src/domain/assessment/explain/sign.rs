//! The signs of a duplicate: their points, their figures, and their words.

use super::{
    super::{
        settings::Settings,
        spread::{PHONES_OF_ONE, Spread},
    },
    MANY_SESSIONS, plain, shown,
};

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
