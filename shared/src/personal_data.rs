//! How much of the person behind a scan an account keeps.

use std::{fmt, net::IpAddr};

use serde::{Deserialize, Serialize};

use crate::networks::network_of;

crate::words! {
    /// How much of the person behind a scan, or another action, an account keeps.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum PersonalData {
        /// Everything: address, user agent, exact place.
        Full = "full",
        /// The network of the address, names and major versions of the user agent, the place to some kilometres.
        Truncated = "truncated",
        /// No address, no user agent and no coordinates: categories, and the place that a database names.
        None = "none",
    } else InvalidPersonalData
}

/// A text that names no such setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be full, truncated or none")]
pub struct InvalidPersonalData;

/// Steps of a degree to which coordinates are rounded: 0.01° are 1.1 km.
const STEPS: f64 = 100.0;

impl PersonalData {
    /// What is kept of an address: see [`network_of`].
    #[must_use]
    pub fn address(self, ip: IpAddr) -> Option<IpAddr> {
        match self {
            Self::Full => Some(ip),
            Self::Truncated => Some(network_of(ip).addr()),
            Self::None => None,
        }
    }

    /// What is kept of a latitude or a longitude.
    #[must_use]
    pub fn degrees(self, degrees: f64) -> Option<f64> {
        match self {
            Self::Full => Some(degrees),
            // Adding zero converts -0.0 to 0.0.
            Self::Truncated => Some((degrees * STEPS).round() / STEPS + 0.0),
            Self::None => None,
        }
    }
}

impl fmt::Display for PersonalData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut_to_their_networks() {
        for (setting, ip, kept) in [
            (PersonalData::Full, "203.0.113.77", Some("203.0.113.77")),
            (PersonalData::Truncated, "203.0.113.77", Some("203.0.113.0")),
            (PersonalData::Truncated, "::ffff:203.0.113.77", Some("203.0.113.0")),
            (PersonalData::Truncated, "2001:db8:1:2:3:4:5:6", Some("2001:db8:1::")),
            (PersonalData::Truncated, "2002:cb00:714d::1", Some("2002:cb00:7100::")),
            (PersonalData::None, "203.0.113.77", None),
            (PersonalData::None, "2001:db8::1", None),
        ] {
            let found = setting.address(ip.parse().unwrap()).map(|ip| ip.to_string());
            assert_eq!(found.as_deref(), kept, "{setting} {ip}");
        }
    }

    #[test]
    fn coordinates_are_rounded_to_hundredths() {
        for (setting, degrees, kept) in [
            (PersonalData::Full, 46.947_974, Some(46.947_974)),
            (PersonalData::Truncated, 46.947_974, Some(46.95)),
            (PersonalData::Truncated, -7.444_9, Some(-7.44)),
            (PersonalData::Truncated, -0.001, Some(0.0)),
            (PersonalData::Truncated, 179.999, Some(180.0)),
            (PersonalData::None, 46.9, None),
        ] {
            assert_eq!(setting.degrees(degrees), kept, "{setting} {degrees}");
        }
    }

    #[test]
    fn names_are_read_and_others_refused() {
        for setting in PersonalData::ALL {
            assert_eq!(setting.as_str().parse(), Ok(setting));
            assert_eq!(serde_json::to_string(&setting).unwrap(), format!("{:?}", setting.as_str()));
        }
        for text in ["", "Full", "all", "none "] {
            assert_eq!(text.parse::<PersonalData>(), Err(InvalidPersonalData), "{text}");
        }
    }
}
