//! Geography of addresses: looks up an address in a city database in MaxMind's format, held in memory.
//!
//! Two layouts are read: the nested one of MaxMind with names in many languages (GeoLite2, DB-IP), and the flat ones of
//! `ip-location-db` and IPinfo. The caller loads and reloads the bytes.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use maxminddb::Reader;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// The location of an address, as far as the database has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Locality {
    /// City name, in English where there is a choice.
    pub city: Option<String>,
    /// Name of the first subdivision, in English where there is a choice.
    pub region: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country_code: Option<String>,
    /// IANA name.
    pub time_zone: Option<String>,
    /// Number of the autonomous system: of databases that name the network beside the place.
    pub as_number: Option<u32>,
    /// Latitude and longitude in degrees, within -90..90 and -180..180.
    pub position: Option<(f64, f64)>,
}

/// Resolves addresses to locations.
pub trait GeoIp: std::fmt::Debug + Send + Sync + 'static {
    /// The location of an address; an unknown one is no error.
    fn find(&self, ip: IpAddr) -> Locality;

    /// The same without a copy, for frequent callers.
    fn find_shared(&self, ip: IpAddr) -> Arc<Locality> {
        Arc::new(self.find(ip))
    }

    /// Whether any address has a place.
    fn knows_places(&self) -> bool {
        true
    }
}

/// No geography: for a service without a database.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoGeoIp;

impl GeoIp for NoGeoIp {
    fn find(&self, _ip: IpAddr) -> Locality {
        Locality::default()
    }

    fn knows_places(&self) -> bool {
        false
    }
}

/// The bytes are not a database of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a database in MaxMind's form (.mmdb): {0}")]
pub struct NotADatabase(String);

/// Records that a database remembers decoded: 3 MiB at most; a large database has some 100,000. Two in tests,
/// so that records do share a slot.
const REMEMBERED: usize = if cfg!(test) { 2 } else { 16_384 };

/// A decoded record and its place in the file.
type Place = (usize, Arc<Locality>);

/// A city database in memory.
pub struct CityDatabase {
    reader: Reader<Vec<u8>>,
    /// Decoded records by their offset in the file. The first record of a slot keeps it: frequent ones are likely to
    /// come early, and a reloaded database starts with an empty cache.
    places: Box<[OnceLock<Place>]>,
}

impl CityDatabase {
    /// Takes the bytes of an `.mmdb` file.
    ///
    /// Only the frame is checked, which a file that is cut short does not pass: a walk of the whole tree
    /// would take seconds.
    ///
    /// # Errors
    /// The bytes are not such a database.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, NotADatabase> {
        let reader = Reader::from_source(bytes).map_err(|error| NotADatabase(error.to_string()))?;
        Ok(Self { reader, places: (0..REMEMBERED).map(|_| OnceLock::new()).collect() })
    }
}

impl GeoIp for CityDatabase {
    fn find(&self, ip: IpAddr) -> Locality {
        Locality::clone(&self.find_shared(ip))
    }

    fn find_shared(&self, ip: IpAddr) -> Arc<Locality> {
        // A database without IPv6 returns an error for such an address.
        let Ok(found) = self.reader.lookup(ip.to_canonical()) else { return Arc::default() };
        let Some(offset) = found.offset() else { return Arc::default() };
        // An odd factor spreads neighbouring offsets; the remainder is less than the number of slots.
        let slot = &self.places[offset.wrapping_mul(0x9E37_79B9) % REMEMBERED];
        if let Some((_, place)) = slot.get().filter(|(held, _)| *held == offset) {
            return place.clone();
        }
        let record = found.decode::<Record>().ok().flatten();
        let place = Arc::new(record.map(Record::locality).unwrap_or_default());
        // Another record may hold the slot by now, which is as good.
        let _ = slot.set((offset, place.clone()));
        place
    }
}

impl std::fmt::Debug for CityDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let metadata = self.reader.metadata();
        f.debug_tuple("CityDatabase").field(&metadata.database_type).field(&metadata.build_epoch).finish()
    }
}

/// A record of any layout: each has some of these.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Record {
    city: Term,
    country: Term,
    country_code: Term,
    subdivisions: Vec<Term>,
    region: Term,
    state1: Term,
    location: Point,
    traits: Network,
    asn: Term,
    autonomous_system_number: Term,
    timezone: Term,
    time_zone: Term,
    latitude: Term,
    longitude: Term,
    lat: Term,
    lng: Term,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Point {
    latitude: Term,
    longitude: Term,
    time_zone: Term,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Network {
    autonomous_system_number: Term,
}

impl Record {
    fn locality(self) -> Locality {
        let country = self.country.code.or_else(|| self.country.text.filter(|text| text.len() == 2));
        let region = self.subdivisions.into_iter().next().unwrap_or_default().text;
        let latitude = self.location.latitude.number.or(self.latitude.number).or(self.lat.number);
        let longitude = self.location.longitude.number.or(self.longitude.number).or(self.lng.number);
        let is_point = |point: &(f64, f64)| point.0.abs() <= 90.0 && point.1.abs() <= 180.0;
        Locality {
            city: self.city.text,
            region: region.or(self.region.text).or(self.state1.text),
            country_code: self.country_code.text.or(country),
            time_zone: self.location.time_zone.text.or(self.timezone.text).or(self.time_zone.text),
            as_number: self
                .traits
                .autonomous_system_number
                .as_number()
                .or(self.autonomous_system_number.as_number())
                .or(self.asn.as_number()),
            position: latitude.zip(longitude).filter(is_point),
        }
    }
}

/// A member that is a text in one layout and an object with names in another; never a fault.
#[derive(Debug, Default)]
struct Term {
    /// The text, or the English name; never empty.
    text: Option<String>,
    /// `iso_code` of an object.
    code: Option<String>,
    /// A number, also one that is written as a text.
    number: Option<f64>,
}

impl Term {
    /// The number of an autonomous system: 15169, as a text too, or `AS15169`.
    fn as_number(&self) -> Option<u32> {
        let number = || self.number.map(|number| number.to_string());
        let text = self.text.clone().or_else(number)?;
        text.strip_prefix("AS").unwrap_or(&text).parse().ok()
    }
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

impl<'de> Deserialize<'de> for Term {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TermVisitor)
    }
}

struct TermVisitor;

#[expect(clippy::cast_precision_loss, reason = "whole degrees are small")]
impl<'de> Visitor<'de> for TermVisitor {
    type Value = Term;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<Term, E> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        Ok(Term { text: filled(Some(text.to_owned())), code: None, number })
    }

    fn visit_f64<E>(self, number: f64) -> Result<Term, E> {
        Ok(Term { number: Some(number).filter(|number| number.is_finite()), ..Term::default() })
    }

    fn visit_u64<E>(self, number: u64) -> Result<Term, E> {
        Ok(Term { number: Some(number as f64), ..Term::default() })
    }

    fn visit_i64<E>(self, number: i64) -> Result<Term, E> {
        Ok(Term { number: Some(number as f64), ..Term::default() })
    }

    fn visit_u128<E>(self, _: u128) -> Result<Term, E> {
        Ok(Term::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Term, E> {
        Ok(Term::default())
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Term, E> {
        Ok(Term::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Term, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Term::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Term, A::Error> {
        let named = Named::deserialize(MapAccessDeserializer::new(members))?;
        Ok(Term { text: filled(named.names.en), code: filled(named.iso_code), number: None })
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the module of the workspace's tests is public there")]
#[allow(unfulfilled_lint_expectations, reason = "what it expects to be warned of is allowed in tests")]
#[path = "../../tests/src/mmdb.rs"]
mod mmdb;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Whole files, with real trees of both address families, are in the workspace's tests.
    #[test]
    fn every_layout_is_read() {
        let london = Locality {
            city: Some("London".to_owned()),
            region: Some("England".to_owned()),
            country_code: Some("GB".to_owned()),
            time_zone: Some("Europe/London".to_owned()),
            as_number: None,
            position: Some((51.5, -0.125)),
        };
        let system = |as_number| Locality { as_number: Some(as_number), ..Locality::default() };
        for (record, expected, why) in [
            (
                json!({
                    "city": {"geoname_id": 1, "names": {"de": "X", "en": "London"}},
                    "country": {"iso_code": "GB", "names": {"en": "United Kingdom"}},
                    "location": {"latitude": 51.5, "longitude": -0.125, "time_zone": "Europe/London"},
                    "subdivisions": [{"iso_code": "ENG", "names": {"en": "England"}}, {"names": {"en": "X"}}],
                }),
                london.clone(),
                "MaxMind's own, nested",
            ),
            (
                json!({
                    "city": "London", "country_code": "GB", "latitude": 51.5, "longitude": -0.125,
                    "postcode": "", "state1": "England", "state2": "X", "timezone": "Europe/London",
                }),
                london.clone(),
                "ip-location-db, flat",
            ),
            (
                json!({
                    "city": "London", "country": "GB", "lat": "51.5", "lng": "-0.125", "region": "England",
                    "timezone": "Europe/London",
                }),
                london,
                "IPinfo, flat with numbers as texts",
            ),
            (
                json!({"country": "United Kingdom", "country_code": "GB", "city": "", "asn": [1]}),
                Locality { country_code: Some("GB".to_owned()), ..Locality::default() },
                "a country alone; an empty text is nothing",
            ),
            (json!({"asn": "AS15169", "as_name": "Google LLC"}), system(15_169), "IPinfo, with the network"),
            (json!({"autonomous_system_number": 15169}), system(15_169), "ip-location-db, with the network"),
            (
                json!({"traits": {"autonomous_system_number": 4_294_967_295_u32}}),
                system(u32::MAX),
                "MaxMind's",
            ),
            (json!({"asn": "AS1x", "autonomous_system_number": 1.5}), Locality::default(), "no numbers"),
            (
                json!({"city": [1], "region": true, "latitude": 91, "longitude": 0}),
                Locality::default(),
                "what has another type, or is no place on earth, is nothing",
            ),
        ] {
            let read: Record = serde_json::from_value(record).unwrap();
            assert_eq!(read.locality(), expected, "{why}");
        }
    }

    #[test]
    fn records_that_share_a_slot_are_not_mixed_up() {
        let networks: Vec<String> = (0..40).map(|n| format!("203.0.{n}.0/24")).collect();
        let city = |n: usize| format!("City {n}");
        let records: Vec<(&str, serde_json::Value)> = networks
            .iter()
            .enumerate()
            .map(|(n, network)| (&**network, json!({"city": city(n), "country_code": "GB"})))
            .collect();
        let database = CityDatabase::parse(mmdb::database(4, &records)).unwrap();
        for _ in 0..3 {
            for n in 0..40 {
                let ip: IpAddr = [203, 0, n, 7].into();
                let found = database.find_shared(ip);
                assert_eq!(found.city, Some(city(n.into())));
                assert_eq!(*found, database.find(ip));
            }
            assert_eq!(database.find([203, 0, 40, 7].into()), Locality::default());
            assert_eq!(database.find("2001:db8::1".parse().unwrap()), Locality::default());
        }
    }

    #[test]
    fn other_bytes_are_refused_as_database() {
        for bytes in [&b""[..], b"no database", b"\xAB\xCD\xEFMaxMind.com", b"\xAB\xCD\xEFMaxMind.com\xE0"] {
            assert!(CityDatabase::parse(bytes.to_vec()).is_err(), "{bytes:?}");
        }
    }
}
