//! Geography of addresses from a city database in MaxMind's form, which the operator gives.
//!
//! Two layouts are read: MaxMind's own, nested and in many languages, and the flat one of
//! `ip-location-db`.

use std::{net::IpAddr, path::Path};

use maxminddb::{MaxMindDbError, Reader};
use serde::Deserialize;

use crate::domain::scan::Place;
use crate::service::intake::GeoIp;

/// A city database in memory.
pub struct CityDatabase(Reader<Vec<u8>>);

impl CityDatabase {
    /// Reads the file; a newer file is taken at the next start.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a database.
    pub fn open(path: &Path) -> Result<Self, MaxMindDbError> {
        Reader::open_readfile(path).map(Self)
    }
}

impl GeoIp for CityDatabase {
    fn find(&self, ip: IpAddr) -> Place {
        let Ok(found) = self.0.lookup(ip) else { return Place::default() };
        if let Ok(Some(nested)) = found.decode::<Nested>() {
            return nested.into();
        }
        found.decode::<Flat>().ok().flatten().map(Place::from).unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Nested {
    city: Named,
    subdivisions: Vec<Named>,
    country: Named,
    location: Location,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    names: Names,
    iso_code: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Names {
    en: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Location {
    latitude: Option<f64>,
    longitude: Option<f64>,
    time_zone: Option<String>,
}

impl From<Nested> for Place {
    fn from(found: Nested) -> Self {
        Self {
            city: found.city.names.en,
            region: found.subdivisions.into_iter().next().and_then(|region| region.names.en),
            country_code: found.country.iso_code,
            time_zone: found.location.time_zone,
            position: found.location.latitude.zip(found.location.longitude),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Flat {
    city: Option<String>,
    state1: Option<String>,
    country_code: Option<String>,
    timezone: Option<String>,
    latitude: Option<f64>,
    longitude: Option<f64>,
}

impl From<Flat> for Place {
    fn from(found: Flat) -> Self {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        Self {
            city: filled(found.city),
            region: filled(found.state1),
            country_code: filled(found.country_code),
            time_zone: filled(found.timezone),
            position: found.latitude.zip(found.longitude),
        }
    }
}
