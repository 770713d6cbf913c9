//! What outlines at 1:50m do not show: exclaves and islands that are too small, and land that two countries claim.

use kernel::domain::location::Coordinates;

use super::{Candidates, CountryCode, distance::distance_km};

/// A place that the outlines give to the country around it.
struct Exclave {
    country: [u8; 2],
    latitude: f64,
    longitude: f64,
    /// Up to here it is the exclave.
    core_km: f64,
    /// Up to here it may be.
    reach_km: f64,
}

const EXCLAVES: [Exclave; 3] = [
    // Ceuta; Fnideq in Morocco is 5.5 km from its middle.
    Exclave { country: *b"ES", latitude: 35.8892, longitude: -5.3204, core_km: 4.0, reach_km: 15.0 },
    // Melilla; Beni Ensar in Morocco is 2.6 km from its middle.
    Exclave { country: *b"ES", latitude: 35.2937, longitude: -2.9383, core_km: 2.0, reach_km: 13.0 },
    // Gibraltar; La Línea in Spain is 2.6 km from its middle.
    Exclave { country: *b"GI", latitude: 36.1408, longitude: -5.3536, core_km: 1.5, reach_km: 13.0 },
];

/// An island that the outlines leave out, as a circle around its middle.
struct Island {
    /// One country, or two between which it is undecided.
    countries: &'static [&'static str],
    latitude: f64,
    longitude: f64,
    reach_km: f64,
}

const fn island(countries: &'static [&'static str], latitude: f64, longitude: f64, reach_km: f64) -> Island {
    Island { countries, latitude, longitude, reach_km }
}

/// Those with a place of at least 15,000 people in GeoNames.
const ISLANDS: [Island; 12] = [
    // Changshan.
    island(&["CN"], 39.25, 122.66, 15.0),
    // San Andrés.
    island(&["CO"], 12.55, -81.71, 10.0),
    // Kish.
    island(&["IR"], 26.54, 53.98, 10.0),
    // Coloane, within 10 km of Hengqin in China.
    island(&["MO", "CN"], 22.12, 113.555, 3.0),
    // Labuan.
    island(&["MY"], 5.31, 115.23, 12.0),
    // Sitangkai.
    island(&["PH"], 4.66, 119.39, 10.0),
    // Panglao.
    island(&["PH"], 9.58, 123.77, 10.0),
    // Mapun.
    island(&["PH"], 6.98, 118.51, 12.0),
    // Penghu.
    island(&["TW"], 23.57, 119.6, 15.0),
    // Lý Sơn.
    island(&["VN"], 15.38, 109.11, 6.0),
    // Phú Quý.
    island(&["VN"], 10.52, 108.94, 8.0),
    // Nam Du and Hòn Tre.
    island(&["VN"], 9.97, 104.84, 10.0),
];

/// Land that two countries claim: neither counts as its country.
struct Claimed {
    by: [[u8; 2]; 2],
    south: f64,
    north: f64,
    west: f64,
    east: f64,
}

const CLAIMED: [Claimed; 4] = [
    // Western Sahara.
    Claimed { by: [*b"EH", *b"MA"], south: 20.7, north: 27.67, west: -17.2, east: -8.66 },
    // Crimea.
    Claimed { by: [*b"RU", *b"UA"], south: 44.3, north: 46.25, west: 32.4, east: 36.66 },
    // Kafia Kingi.
    Claimed { by: [*b"SD", *b"SS"], south: 8.65, north: 9.9, west: 23.5, east: 24.8 },
    // Ariel.
    Claimed { by: [*b"IL", *b"PS"], south: 32.05, north: 32.16, west: 35.12, east: 35.25 },
];

/// Corrects the candidates from the outlines.
pub(super) fn apply(at: Coordinates, mut found: Candidates) -> Candidates {
    for exclave in &EXCLAVES {
        let middle = Coordinates::new(exclave.latitude, exclave.longitude);
        let Some((km, country)) =
            middle.map(|middle| distance_km(middle, at)).zip(CountryCode::new(exclave.country))
        else {
            continue;
        };
        if km <= exclave.core_km {
            return Candidates { likely: Some(country), all: vec![country] };
        }
        if km <= exclave.reach_km {
            include(&mut found, country);
        }
    }
    if found.all.is_empty() {
        let near = ISLANDS.iter().find(|island| {
            let middle = Coordinates::new(island.latitude, island.longitude);
            middle.is_some_and(|middle| distance_km(middle, at) <= island.reach_km)
        });
        let countries = near.map(|island| island.countries).unwrap_or_default();
        found.all = countries.iter().filter_map(|code| code.parse().ok()).collect();
        found.likely = found.all.first().copied();
    }
    for claimed in &CLAIMED {
        let is_within = (claimed.south..=claimed.north).contains(&at.latitude())
            && (claimed.west..=claimed.east).contains(&at.longitude());
        let by = claimed.by.map(CountryCode::new);
        if is_within && by.iter().flatten().any(|country| found.all.contains(country)) {
            by.into_iter().flatten().for_each(|country| include(&mut found, country));
        }
    }
    found
}

/// Adds a country that the point may be in; near the sea there may have been none.
fn include(found: &mut Candidates, country: CountryCode) {
    if !found.all.is_empty() && !found.all.contains(&country) {
        found.all.push(country);
    }
}
