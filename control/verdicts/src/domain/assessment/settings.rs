//! Settings of assessment that an account, a project or a product may change.

use std::{collections::BTreeMap, net::IpAddr};

use countries::{CountryCode, distance::distance_km};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::profile::MAX_SESSIONS;
use crate::domain::action_names::TriggerType;
use crate::domain::{
    limits::{MAX_IDENTIFIER, check_text, integer, shorten},
    location::Coordinates,
    members::Members,
};

/// Most entries of each allow list.
pub const MAX_ALLOWED: usize = 100;
/// Most purchase orders with markets of their own.
pub const MAX_ORDERS: usize = 1_000;
/// Most permitted countries: there are fewer.
pub const MAX_COUNTRIES: usize = 250;

/// How a trigger outside of the markets is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiversionMode {
    /// By where the item was before.
    Profile,
    /// Any trigger outside is a diversion.
    Trigger,
}

/// A circle on the map whose scans are not counted: a plant, a warehouse, a shop window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedPlace {
    /// Latitude of its middle.
    pub latitude: f64,
    /// Longitude of its middle.
    pub longitude: f64,
    /// Its radius.
    pub radius_km: f64,
}

impl AllowedPlace {
    /// Whether a point is inside.
    #[must_use]
    pub fn holds(&self, at: Coordinates) -> bool {
        Coordinates::new(self.latitude, self.longitude)
            .is_some_and(|middle| distance_km(middle, at) <= self.radius_km)
    }
}

/// What one owner set; `None` is left to the one above: product, project, account, default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "each is what the setting of the same name is")]
pub struct Overrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_commissioning: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diversion_mode: Option<DiversionMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region_share_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geo_ip_spread_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensor_spread_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agents_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_threshold: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_outlier_threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_observed_scans: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate_points: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspected_points: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_types: Option<Vec<TriggerType>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_networks: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_places: Option<Vec<AllowedPlace>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purchase_orders: Option<BTreeMap<String, Vec<String>>>,
}

/// The settings by which an item is assessed.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether an item that was never commissioned is not authorised.
    pub require_commissioning: bool,
    /// How a trigger outside of the markets is judged.
    pub diversion_mode: DiversionMode,
    /// More regions than this open the gate of duplicates.
    pub regions_threshold: u32,
    /// What has a larger share of its sessions in one region is suspected, and not called a duplicate.
    pub region_share_threshold: f64,
    /// A larger spread by addresses does too, in kilometres.
    pub geo_ip_spread_threshold_km: f64,
    /// A larger spread by sensors does too, in kilometres.
    pub sensor_spread_threshold_km: f64,
    /// More devices than this are a point.
    pub user_agents_threshold: u32,
    /// Fewest previous sessions for a judgement of duplicates.
    pub scan_threshold: u32,
    /// Distance from all others beyond which a scan is an outlier, in kilometres beyond the radii.
    pub spread_outlier_threshold_km: f64,
    /// Most sessions that are used.
    pub max_observed_scans: usize,
    /// Points for a duplicate.
    pub duplicate_points: u32,
    /// Points for a suspected duplicate.
    pub suspected_points: u32,
    /// Triggers whose evidence counts: `inspectedProductMatch`, watermark, markings.
    pub evidence_types: Vec<TriggerType>,
    /// Networks whose scans are not counted.
    pub allowed_networks: Vec<IpNet>,
    /// Places whose scans are not counted.
    pub allowed_places: Vec<AllowedPlace>,
    /// Markets by purchase order.
    pub purchase_orders: BTreeMap<String, Vec<CountryCode>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            require_commissioning: true,
            diversion_mode: DiversionMode::Profile,
            regions_threshold: 2,
            region_share_threshold: 0.5,
            geo_ip_spread_threshold_km: 1_000.0,
            sensor_spread_threshold_km: 300.0,
            user_agents_threshold: 4,
            scan_threshold: 3,
            spread_outlier_threshold_km: 500.0,
            max_observed_scans: MAX_SESSIONS,
            duplicate_points: 10,
            suspected_points: 8,
            evidence_types: vec![TriggerType::InspectorScans, TriggerType::AuthenticationConfirmations],
            allowed_networks: Vec::new(),
            allowed_places: Vec::new(),
            purchase_orders: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The settings with what an owner set over them.
    #[must_use]
    pub fn with(self, over: &Overrides) -> Self {
        let orders = over.purchase_orders.as_ref().map(|orders| {
            let codes = |texts: &Vec<String>| texts.iter().filter_map(|text| text.parse().ok()).collect();
            orders.iter().map(|(order, texts)| (order.clone(), codes(texts))).collect()
        });
        let networks = over.allowed_networks.as_ref();
        let networks = networks.map(|texts| texts.iter().filter_map(|text| text.parse().ok()).collect());
        Self {
            require_commissioning: over.require_commissioning.unwrap_or(self.require_commissioning),
            diversion_mode: over.diversion_mode.unwrap_or(self.diversion_mode),
            regions_threshold: over.regions_threshold.unwrap_or(self.regions_threshold),
            region_share_threshold: over.region_share_threshold.unwrap_or(self.region_share_threshold),
            geo_ip_spread_threshold_km: over
                .geo_ip_spread_threshold
                .unwrap_or(self.geo_ip_spread_threshold_km),
            sensor_spread_threshold_km: over
                .sensor_spread_threshold
                .unwrap_or(self.sensor_spread_threshold_km),
            user_agents_threshold: over.user_agents_threshold.unwrap_or(self.user_agents_threshold),
            scan_threshold: over.scan_threshold.unwrap_or(self.scan_threshold),
            spread_outlier_threshold_km: over
                .spread_outlier_threshold
                .unwrap_or(self.spread_outlier_threshold_km),
            max_observed_scans: over.max_observed_scans.map_or(self.max_observed_scans, |most| most as usize),
            duplicate_points: over.duplicate_points.unwrap_or(self.duplicate_points),
            suspected_points: over.suspected_points.unwrap_or(self.suspected_points),
            evidence_types: over.evidence_types.clone().unwrap_or(self.evidence_types),
            allowed_networks: networks.unwrap_or(self.allowed_networks),
            allowed_places: over.allowed_places.clone().unwrap_or(self.allowed_places),
            purchase_orders: orders.unwrap_or(self.purchase_orders),
        }
    }

    /// Whether scans of this address and place are not counted.
    #[must_use]
    pub fn allows(&self, ip: Option<IpAddr>, at: Option<Coordinates>) -> bool {
        let by_network =
            ip.is_some_and(|ip| self.allowed_networks.iter().any(|net| net.contains(&ip.to_canonical())));
        by_network || at.is_some_and(|at| self.allowed_places.iter().any(|place| place.holds(at)))
    }
}

impl Overrides {
    /// Reads what an owner sets: the members of a body.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let found = Self::read(&mut members);
        members.finish(Some(found))
    }

    /// Reads them from an object inside of a body.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn within(value: &Value, name: &str) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, name)?;
        let found = Self::read(&mut members);
        members.finish(Some(found))
    }

    fn read(members: &mut Members<'_>) -> Self {
        let found = Self {
            require_commissioning: members.boolean("requireCommissioning"),
            diversion_mode: members.typed("diversionMode", "profile or trigger", |value| {
                serde_json::from_value(value.clone()).ok()
            }),
            regions_threshold: count(members, "regionsThreshold", 0, 1_000),
            region_share_threshold: members.typed("regionShareThreshold", "a number from 0 to 1", |value| {
                value.as_f64().filter(|share| (0.0..=1.0).contains(share))
            }),
            geo_ip_spread_threshold: kilometres(members, "geoIpSpreadThreshold"),
            sensor_spread_threshold: kilometres(members, "sensorSpreadThreshold"),
            user_agents_threshold: count(members, "userAgentsThreshold", 0, 1_000),
            scan_threshold: count(members, "scanThreshold", 0, MAX_SESSIONS as u32),
            spread_outlier_threshold: kilometres(members, "spreadOutlierThreshold"),
            max_observed_scans: count(members, "maxObservedScans", 1, MAX_SESSIONS as u32),
            duplicate_points: count(members, "duplicatePoints", 1, 100),
            suspected_points: count(members, "suspectedPoints", 1, 100),
            evidence_types: list(members, "evidenceTypes", 5, "types of triggers", |value| {
                value.as_str()?.parse().ok()
            }),
            allowed_networks: list(
                members,
                "allowedNetworks",
                MAX_ALLOWED,
                "networks, such as 192.0.2.0/24",
                |value| value.as_str()?.parse::<IpNet>().ok().map(|net| net.to_string()),
            ),
            allowed_places: list(
                members,
                "allowedPlaces",
                MAX_ALLOWED,
                "objects with latitude, longitude and radiusKm (0 to 1,000)",
                allowed_place,
            ),
            purchase_orders: orders(members),
        };
        let defaults = Settings::default();
        let duplicate = found.duplicate_points.unwrap_or(defaults.duplicate_points);
        if found.suspected_points.unwrap_or(defaults.suspected_points) > duplicate {
            let path = members.path("suspectedPoints");
            members.fault(format!("{path} must not be more than duplicatePoints."));
        }
        found
    }
}

fn count(members: &mut Members<'_>, name: &str, min: u32, max: u32) -> Option<u32> {
    members.typed(name, &format!("a whole number from {min} to {max}"), |value| {
        let number = u32::try_from(integer(value)?).ok()?;
        (min..=max).contains(&number).then_some(number)
    })
}

/// Half of a great circle is 20,016 km.
fn kilometres(members: &mut Members<'_>, name: &str) -> Option<f64> {
    members.typed(name, "a number of kilometres from 0 to 20016", |value| {
        value.as_f64().filter(|number| (0.0..=20_016.0).contains(number))
    })
}

fn list<T>(
    members: &mut Members<'_>,
    name: &str,
    most: usize,
    of: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<Vec<T>> {
    members.typed(name, &format!("an array of at most {most} {of}"), |value| {
        let items = value.as_array().filter(|items| items.len() <= most)?;
        items.iter().map(&read).collect()
    })
}

fn allowed_place(value: &Value) -> Option<AllowedPlace> {
    let place: AllowedPlace = serde_json::from_value(value.clone()).ok()?;
    let is_good = Coordinates::new(place.latitude, place.longitude).is_some();
    (is_good && (0.0..=1_000.0).contains(&place.radius_km)).then_some(place)
}

fn orders(members: &mut Members<'_>) -> Option<BTreeMap<String, Vec<String>>> {
    let given: &Map<String, Value> = members.typed("purchaseOrders", "an object", Value::as_object)?;
    let path = members.path("purchaseOrders");
    if given.len() > MAX_ORDERS {
        members.fault(format!("{path} must have at most {MAX_ORDERS} members."));
        return None;
    }
    let mut orders = BTreeMap::new();
    for (order, value) in given {
        if let Err(fault) = check_text(order, 1, MAX_IDENTIFIER) {
            members.fault(format!("{path} has a key that {fault}."));
        }
        match countries(value) {
            Some(codes) => {
                orders.insert(order.clone(), codes.iter().map(ToString::to_string).collect());
            }
            None => members
                .fault(format!("{path}.{} must be an array of countries (ISO alpha-2).", shorten(order))),
        }
    }
    Some(orders)
}

/// A list of countries; `None` when it is something else.
#[must_use]
pub fn countries(value: &Value) -> Option<Vec<CountryCode>> {
    let items = value.as_array().filter(|items| items.len() <= MAX_COUNTRIES)?;
    items.iter().map(|item| item.as_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
