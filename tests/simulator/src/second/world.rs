//! Countries, towns, markets and distributions that the second population draws from.

use countries::CountryCode;
use countries::distance::distance_km;
use verdicts::domain::location::Coordinates;

use super::super::{
    Rng,
    atlas::{COUNTRIES, City, Country},
    people::Town,
};
use super::{Mix, facts, shares};

/// One hour in milliseconds.
pub(super) const HOUR: i64 = 3_600_000;
/// One day in milliseconds.
pub(super) const DAY: i64 = 24 * HOUR;

/// Countries with one market law, in which goods may be sold on without a permit (exhaustion of rights in the
/// EU).
const UNION: &[&str] = &["DE", "FR", "IT", "ES", "PL", "NL", "SE"];

/// Sales regions as brands cut them. Assumed: the usual ones, such as EMEA, Americas and Asia-Pacific in
/// annual reports.
const REGIONS: &[&[&str]] = &[
    UNION,
    &["DE", "FR", "IT", "ES", "PL", "NL", "SE", "CH", "GB"],
    &["DE", "FR", "IT", "ES", "PL", "NL", "SE", "CH", "GB", "TR", "AE", "SA", "NG", "ZA"],
    &["US", "CA"],
    &["US", "CA", "MX"],
    &["MX", "BR"],
    &["JP", "KR"],
    &["CN", "SG"],
    &["SG", "AU", "IN"],
    &["AE", "SA"],
    &["NG", "ZA"],
];

pub(super) fn by_code(code: &str) -> &'static Country {
    COUNTRIES.iter().find(|one| one.code == code).unwrap_or(&COUNTRIES[0])
}

pub(super) fn code_of(country: &Country) -> Option<CountryCode> {
    country.code.parse().ok()
}

/// One of some values by its weight.
pub(super) fn weighted<T: Copy>(rng: &mut Rng, all: &[(T, f64)]) -> T {
    let mut left = rng.unit() * all.iter().map(|(_, weight)| weight).sum::<f64>();
    for (value, weight) in all {
        left -= weight;
        if left < 0.0 {
            return *value;
        }
    }
    all[all.len() - 1].0
}

/// A whole number between two, both among them.
pub(super) fn count(rng: &mut Rng, (low, high): (usize, usize)) -> usize {
    rng.between(low, high)
}

/// A time until something that happens at any moment alike.
pub(super) fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    -mean * (1.0 - rng.unit()).ln()
}

/// A size whose order of magnitude is what is uncertain.
pub(super) fn log_uniform(rng: &mut Rng, (low, high): (f64, f64)) -> f64 {
    low * (high / low).powf(rng.unit())
}

/// A value between two.
pub(super) fn between(rng: &mut Rng, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * rng.unit()
}

/// A count from 1 on with a mean.
pub(super) fn at_least_one(rng: &mut Rng, mean: f64) -> usize {
    1 + exponential(rng, (mean - 1.0).max(0.0)) as usize
}

/// A country by how many of a brand's customers live there, of those that a condition takes.
pub(super) fn customer_country(rng: &mut Rng, takes: impl Fn(&Country) -> bool) -> &'static Country {
    let all: Vec<_> = COUNTRIES.iter().filter(|one| takes(one)).map(|one| (one, one.weight)).collect();
    if all.is_empty() { &COUNTRIES[0] } else { weighted(rng, &all) }
}

/// A town of a country; the first ones of the atlas are larger.
pub(super) fn town_in(rng: &mut Rng, country: &'static Country) -> Town {
    let sizes: Vec<(&'static City, f64)> =
        country.cities.iter().enumerate().map(|(at, city)| (city, 1.0 / (at as f64 + 1.5))).collect();
    Town { country, city: weighted(rng, &sizes) }
}

/// Another town of the same country, where it has more than one.
pub(super) fn other_town(rng: &mut Rng, town: Town) -> Town {
    let others: Vec<(&'static City, f64)> = town
        .country
        .cities
        .iter()
        .filter(|city| !std::ptr::eq(*city, town.city))
        .map(|city| (city, 1.0))
        .collect();
    if others.is_empty() { town } else { Town { country: town.country, city: weighted(rng, &others) } }
}

/// A foreign town that somebody travels to.
pub(super) fn destination(rng: &mut Rng, home: &Country) -> Town {
    let is_near = rng.chance(facts::TRIPS_NEAR);
    let country = customer_country(rng, |one| one.code != home.code && (!is_near || one.area == home.area));
    town_in(rng, country)
}

/// A town, and one across a border within the reach of commuters and shoppers.
pub(super) fn across_a_border(rng: &mut Rng) -> (Town, Town) {
    let towns: Vec<Town> = COUNTRIES
        .iter()
        .flat_map(|country| country.cities.iter().map(move |city| Town { country, city }))
        .collect();
    let mut pairs = Vec::new();
    for home in &towns {
        for other in &towns {
            if home.country.code != other.country.code && km(*home, *other) < shares::BORDER_KM {
                pairs.push(((*home, *other), home.country.weight));
            }
        }
    }
    weighted(rng, &pairs)
}

fn km(a: Town, b: Town) -> f64 {
    let at = |town: Town| Coordinates::new(town.city.latitude, town.city.longitude);
    at(a).zip(at(b)).map_or(f64::INFINITY, |(a, b)| distance_km(a, b))
}

/// The market that an item sold in a country was made for.
pub(super) fn market(rng: &mut Rng, mix: Mix, country: &Country) -> Vec<CountryCode> {
    let regions: Vec<(&[&str], f64)> =
        REGIONS.iter().filter(|region| region.contains(&country.code)).map(|region| (*region, 1.0)).collect();
    if regions.is_empty() || rng.chance(shares::ONE_COUNTRY_MARKET.of(mix)) {
        return code_of(country).into_iter().collect();
    }
    weighted(rng, &regions).iter().filter_map(|code| code.parse().ok()).collect()
}

pub(super) fn is_inside(market: &[CountryCode], country: &Country) -> bool {
    code_of(country).is_some_and(|code| market.contains(&code))
}

/// A moment of a day when people are awake in a town.
pub(super) fn moment(rng: &mut Rng, day: f64, town: Town) -> i64 {
    let local_hours = 8.0 + 14.0 * rng.unit();
    let hours = local_hours - town.city.longitude / 15.0;
    day as i64 * DAY + (hours * HOUR as f64) as i64
}
