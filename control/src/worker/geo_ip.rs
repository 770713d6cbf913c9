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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Appends a value in the format's data encoding (MaxMind DB file format 2.0, data section).
    fn encode(out: &mut Vec<u8>, name: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                out.push(7 << 5 | u8::try_from(members.len()).unwrap());
                for (name, member) in members {
                    encode(out, "", &json!(name));
                    encode(out, name, member);
                }
            }
            Value::Array(items) => {
                out.extend([u8::try_from(items.len()).unwrap(), 11 - 7]);
                items.iter().for_each(|item| encode(out, "", item));
            }
            Value::String(text) => {
                assert!(text.len() < 29, "a longer text has another size field");
                out.push(2 << 5 | u8::try_from(text.len()).unwrap());
                out.extend(text.as_bytes());
            }
            // The reader asks for each number in the width that the format gives it.
            Value::Number(number) if name == "build_epoch" => {
                out.extend([8, 9 - 7]);
                out.extend(number.as_u64().unwrap().to_be_bytes());
            }
            Value::Number(number) if name == "node_count" => {
                out.push(6 << 5 | 4);
                out.extend(u32::try_from(number.as_u64().unwrap()).unwrap().to_be_bytes());
            }
            Value::Number(number) if number.is_u64() => {
                out.push(5 << 5 | 2);
                out.extend(u16::try_from(number.as_u64().unwrap()).unwrap().to_be_bytes());
            }
            Value::Number(number) => {
                out.push(3 << 5 | 8);
                out.extend(number.as_f64().unwrap().to_be_bytes());
            }
            Value::Bool(_) | Value::Null => panic!("not needed"),
        }
    }

    /// A database in which 128.0.0.0/1 has `record`, and the other half nothing.
    fn database(record: &Value) -> CityDatabase {
        // One node of two 24-bit records: 1 (the number of nodes) is nothing, 17 the first byte of data.
        let mut file = vec![0, 0, 1, 0, 0, 1 + 16];
        file.extend([0; 16]);
        encode(&mut file, "", record);
        file.extend(b"\xAB\xCD\xEFMaxMind.com");
        encode(
            &mut file,
            "",
            &json!({
                "binary_format_major_version": 2, "binary_format_minor_version": 0, "build_epoch": 1,
                "database_type": "Test-City", "description": {"en": "test"}, "ip_version": 4,
                "languages": ["en"], "node_count": 1, "record_size": 24,
            }),
        );
        CityDatabase(Reader::from_source(file).unwrap())
    }

    #[test]
    fn both_layouts_tell_the_place() {
        let london = Place {
            city: Some("London".to_owned()),
            region: Some("England".to_owned()),
            country_code: Some("GB".to_owned()),
            time_zone: Some("Europe/London".to_owned()),
            position: Some((51.5, -0.125)),
        };
        for (record, expected, why) in [
            (
                json!({
                    "city": {"geoname_id": 1, "names": {"de": "X", "en": "London"}},
                    "country": {"iso_code": "GB", "names": {"en": "United Kingdom"}},
                    "location": {"latitude": 51.5, "longitude": -0.125, "time_zone": "Europe/London"},
                    "subdivisions": [{"iso_code": "ENG", "names": {"en": "England"}}],
                }),
                london.clone(),
                "MaxMind's own, nested",
            ),
            (
                json!({
                    "city": "London", "country_code": "GB", "latitude": 51.5, "longitude": -0.125,
                    "postcode": "", "state1": "England", "timezone": "Europe/London",
                }),
                london,
                "flat",
            ),
            (
                json!({"city": "", "country_code": "GB"}),
                Place { country_code: Some("GB".to_owned()), ..Place::default() },
                "an empty text is nothing",
            ),
        ] {
            let database = database(&record);
            assert_eq!(database.find("200.1.2.3".parse().unwrap()), expected, "{why}");
            assert_eq!(database.find("10.1.2.3".parse().unwrap()), Place::default(), "no record: {why}");
            assert_eq!(database.find("::1".parse().unwrap()), Place::default(), "not in the tree: {why}");
        }
    }

    #[test]
    fn another_file_is_no_database() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("city.mmdb");
        std::fs::write(&path, "no database").unwrap();
        assert!(CityDatabase::open(&path).is_err());
    }
}
