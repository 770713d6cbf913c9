//! The scan that set an item's status, stored so that the item can be assessed again when a person decides on it or
//! tags it, without another scan.

use countries::CountryCode;
use serde::{Deserialize, Serialize};
use shared::time::UnixMillis;

use super::{
    DEVICES_SINCE, RULES_VERSION,
    agent::{AccountDevices, AgentHash},
    client::{Language, NetworkHash},
    rules::Evidence,
    spot::{Point, Precision, Spot},
    spread::Trigger,
};
use crate::domain::action_names::TriggerType;

/// A scan as it was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedScan {
    /// What kind of scan it was.
    pub kind: TriggerType,
    /// When, by what and where.
    pub trigger: Trigger,
    /// The countries that it may have been in.
    pub countries: Vec<CountryCode>,
    /// The caller's observations.
    pub evidence: Evidence,
    /// The version of the rules that judged it.
    pub rules_version: u32,
    /// The points of a duplicate that they found.
    pub points: u32,
}

impl JudgedScan {
    /// The same with the device as the rules of now tell devices apart: until version 8 its hash had no key.
    #[must_use]
    pub fn with_device(mut self, devices: AccountDevices) -> Self {
        if self.rules_version < DEVICES_SINCE {
            self.trigger.agent = self.trigger.agent.map(|hash| devices.keyed(hash));
            self.rules_version = DEVICES_SINCE;
        }
        self
    }

    /// A scan of which nothing but the time is known.
    #[must_use]
    pub fn at(at: UnixMillis) -> Self {
        Self {
            kind: TriggerType::Scans,
            trigger: Trigger {
                at,
                agent: None,
                network: None,
                language: None,
                spot: Spot::NOWHERE,
                is_counted: false,
            },
            countries: Vec::new(),
            evidence: Evidence::default(),
            rules_version: RULES_VERSION,
            points: 0,
        }
    }
}

/// The stored form; unknown members are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredScan {
    kind: TriggerType,
    at: UnixMillis,
    rules_version: u32,
    points: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_counted: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    precision: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    point: Option<[i32; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    country: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    countries: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inspected: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watermark: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    markings: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl StoredScan {
    /// When the scan happened.
    #[must_use]
    pub const fn at(&self) -> UnixMillis {
        self.at
    }
}

impl From<&JudgedScan> for StoredScan {
    fn from(scan: &JudgedScan) -> Self {
        let JudgedScan { kind, trigger, countries, evidence, rules_version, points } = scan;
        let spot = &trigger.spot;
        Self {
            kind: *kind,
            at: trigger.at,
            rules_version: *rules_version,
            points: *points,
            agent: trigger.agent.map(AgentHash::hex),
            network: trigger.network.map(|network| network.0),
            language: trigger.language.map(|language| language.to_string()),
            is_counted: trigger.is_counted,
            precision: spot.precision as u8,
            point: spot.point.map(|point| [point.latitude_e6, point.longitude_e6]),
            country: spot.country.map(|country| country.to_string()),
            region: spot.region.as_deref().map(str::to_owned),
            countries: countries.iter().map(ToString::to_string).collect(),
            inspected: evidence.inspected,
            watermark: evidence.watermark.clone(),
            markings: evidence.markings.clone(),
        }
    }
}

impl From<StoredScan> for JudgedScan {
    fn from(stored: StoredScan) -> Self {
        let code = |text: &String| text.parse::<CountryCode>().ok();
        let spot = Spot {
            precision: Precision::ALL.get(usize::from(stored.precision)).copied().unwrap_or(Precision::None),
            point: stored.point.map(|[latitude_e6, longitude_e6]| Point { latitude_e6, longitude_e6 }),
            country: stored.country.as_ref().and_then(code),
            region: stored.region.map(Into::into),
        };
        let agent = stored.agent.and_then(|hex| u64::from_str_radix(&hex, 16).ok()).map(AgentHash);
        Self {
            kind: stored.kind,
            trigger: Trigger {
                at: stored.at,
                agent,
                network: stored.network.map(NetworkHash),
                language: stored.language.as_deref().and_then(Language::of_tag),
                spot,
                is_counted: stored.is_counted,
            },
            countries: stored.countries.iter().filter_map(code).collect(),
            evidence: Evidence {
                inspected: stored.inspected,
                watermark: stored.watermark,
                markings: stored.markings,
            },
            rules_version: stored.rules_version,
            points: stored.points,
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::id::AccountId;

    use super::*;
    use crate::domain::device::DeviceKey;

    #[test]
    fn stored_scans_round_trip() {
        let country = "JP".parse::<CountryCode>().ok();
        let full = JudgedScan {
            kind: TriggerType::InspectorScans,
            trigger: Trigger {
                at: UnixMillis(5),
                agent: Some(AgentHash(0x0f)),
                network: Some(NetworkHash(7)),
                language: Language::of_tag("ja"),
                spot: Spot {
                    precision: Precision::GeoIpCity,
                    point: Some(Point { latitude_e6: -1, longitude_e6: 2 }),
                    country,
                    region: Some("Tokyo".into()),
                },
                is_counted: true,
            },
            countries: country.into_iter().collect(),
            evidence: Evidence {
                inspected: Some(false),
                watermark: Some("W".to_owned()),
                markings: vec!["m".to_owned()],
            },
            rules_version: 6,
            points: 12,
        };
        for scan in [full, JudgedScan::at(UnixMillis(7))] {
            let text = serde_json::to_string(&StoredScan::from(&scan)).unwrap();
            let read: StoredScan = serde_json::from_str(&text).unwrap();
            assert_eq!(JudgedScan::from(read), scan, "{text}");
        }
        let least = serde_json::to_string(&StoredScan::from(&JudgedScan::at(UnixMillis(7)))).unwrap();
        assert_eq!(least, r#"{"kind":"scans","at":7,"rulesVersion":9,"points":0}"#);
    }

    #[test]
    fn the_device_of_an_older_scan_gets_its_key_once() {
        let devices = DeviceKey::new(&[7; 32]).of(AccountId::new(1, [1; 16]));
        let mut old = JudgedScan::at(UnixMillis(7));
        (old.rules_version, old.trigger.agent) = (8, AgentHash::of("Phone/1"));
        let read = old.with_device(devices);
        assert_eq!(read.trigger.agent, devices.device("Phone/1"));
        assert_eq!(read.clone().with_device(devices), read);
    }
}
