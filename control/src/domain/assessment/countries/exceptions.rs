//! What outlines at 1:50m do not show: exclaves that are too small for them, and land that two countries claim.

use super::Candidates;
use crate::domain::{assessment::spot::CountryCode, geo::distance_km, location::Coordinates};

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

/// Land that is claimed by two: neither is said to be its country.
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

/// What the outlines say, corrected.
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
