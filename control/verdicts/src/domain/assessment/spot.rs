//! The position of a scan, with its accuracy.

use countries::CountryCode;

use crate::domain::location::Coordinates;

/// How well a place is known; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// Not at all.
    None,
    /// The country of an address; the point that goes with it is the middle of the country and means nothing.
    GeoIpCountry,
    /// The city of an address.
    GeoIpCity,
    /// By the device itself.
    Sensor,
}

impl Precision {
    /// Every one, in order.
    pub const ALL: [Self; 4] = [Self::None, Self::GeoIpCountry, Self::GeoIpCity, Self::Sensor];

    /// The accuracy radius in kilometres; `None` without a position.
    #[must_use]
    pub const fn radius_km(self) -> Option<f64> {
        match self {
            Self::None | Self::GeoIpCountry => None,
            Self::GeoIpCity => Some(250.0),
            Self::Sensor => Some(1.0),
        }
    }
}

/// A point in millionths of a degree: as exact as any sensor, and the same after each way through the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// Latitude.
    pub latitude_e6: i32,
    /// Longitude.
    pub longitude_e6: i32,
}

impl From<Coordinates> for Point {
    fn from(at: Coordinates) -> Self {
        // 180 million fit.
        let e6 = |degrees: f64| (degrees * 1e6).round() as i32;
        Self { latitude_e6: e6(at.latitude()), longitude_e6: e6(at.longitude()) }
    }
}

impl Point {
    /// The position in degrees; `None` if it is not on the earth.
    #[must_use]
    pub fn coordinates(self) -> Option<Coordinates> {
        Coordinates::new(f64::from(self.latitude_e6) / 1e6, f64::from(self.longitude_e6) / 1e6)
    }
}

/// Longest name of a region that is kept, in bytes.
const MAX_REGION: usize = 48;

/// Where something happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// How well it is known.
    pub precision: Precision,
    /// The point, of a sensor or a city only.
    pub point: Option<Point>,
    /// The country.
    pub country: Option<CountryCode>,
    /// Name of the region within it.
    pub region: Option<Box<str>>,
}

impl Spot {
    /// A place that is not known.
    pub const NOWHERE: Self = Self { precision: Precision::None, point: None, country: None, region: None };

    /// From an address: a city with its position, else the country.
    #[must_use]
    pub fn of_address(
        has_city: bool,
        at: Option<Coordinates>,
        country: Option<&str>,
        region: Option<&str>,
    ) -> Self {
        let country = country.and_then(|code| code.parse().ok());
        let point = at.map(Point::from).filter(|_| has_city);
        let precision = match (point, country) {
            (Some(_), _) => Precision::GeoIpCity,
            (None, Some(_)) => Precision::GeoIpCountry,
            (None, None) => Precision::None,
        };
        let region = region.filter(|_| country.is_some()).map(short);
        Self { precision, point, country, region }
    }

    /// From a sensor; the country is that of the position.
    #[must_use]
    pub fn of_sensor(at: Coordinates, country: Option<CountryCode>, region: Option<&str>) -> Self {
        let region = region.filter(|_| country.is_some()).map(short);
        Self { precision: Precision::Sensor, point: Some(at.into()), country, region }
    }

    /// The point and how far it may be off, in kilometres.
    #[must_use]
    pub fn located(&self) -> Option<(Coordinates, f64)> {
        self.point?.coordinates().zip(self.precision.radius_km())
    }

    /// The region with its country: `CH-Bern`.
    #[must_use]
    pub fn region_name(&self) -> Option<String> {
        let (country, region) = (self.country?, self.region.as_deref()?);
        Some(format!("{country}-{region}"))
    }
}

fn short(name: &str) -> Box<str> {
    name[..name.floor_char_boundary(MAX_REGION)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_have_two_letters() {
        for (text, expected) in [
            ("CH", Some("CH")),
            ("ch", Some("CH")),
            ("C", None),
            ("CHE", None),
            ("", None),
            ("1A", None),
            ("é", None),
        ] {
            let found = text.parse::<CountryCode>().ok().map(|code| code.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_country_centroid_is_no_position() {
        let bern = Coordinates::new(46.95, 7.44);
        let country = Spot::of_address(false, bern, Some("CH"), None);
        assert_eq!((country.precision, country.point), (Precision::GeoIpCountry, None));
        let city = Spot::of_address(true, bern, Some("CH"), Some("Bern"));
        assert_eq!((city.precision, city.region_name().as_deref()), (Precision::GeoIpCity, Some("CH-Bern")));
        assert_eq!(city.located().map(|(_, radius)| radius), Some(250.0));
        assert_eq!(Spot::of_address(true, None, None, Some("Bern")), Spot::NOWHERE);
        assert_eq!(Spot::of_address(true, None, Some("CH"), None).precision, Precision::GeoIpCountry);
        let sensor = Spot::of_sensor(bern.unwrap(), None, Some("lost without a country"));
        assert_eq!((sensor.located().map(|(_, radius)| radius), sensor.region), (Some(1.0), None));
    }

    #[test]
    fn positions_round_trip_and_names_are_truncated() {
        for (latitude, longitude) in [(90.0, 180.0), (-90.0, -180.0), (46.948_123, 7.447_456), (0.0, 0.0)] {
            let at = Coordinates::new(latitude, longitude).unwrap();
            assert_eq!(Point::from(at).coordinates(), Some(at));
        }
        let long = "ä".repeat(40);
        assert_eq!(Spot::of_address(false, None, Some("CH"), Some(&long)).region.unwrap().len(), 48);
    }
}
