//! The compact stored form of results: data that many results repeat is stored once, elsewhere.
//!
//! Thresholds, markets and the version of the rules are in a context that all results of the same settings share.
//! `triggerContext` and `location` are in the scan that was assessed. Counts, flags, most tags and the texts of a
//! certainty are derived from other members. Results that older releases stored whole are read unchanged.

use serde_json::{Map, Value, json};
use shared::id::ActionId;

use super::{
    document::{self, Context},
    explain::form,
};
use crate::domain::location::Coordinates;

/// The member of a stored result that holds the short form.
const MEMBER: &str = "packed";

/// What many results were judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedBy {
    /// Names it within its account: a hash of its members.
    pub id: String,
    /// The members, as each result shows them.
    pub members: Map<String, Value>,
}

impl JudgedBy {
    /// The context of some members.
    #[must_use]
    pub fn new(members: Map<String, Value>) -> Self {
        let text = Value::Object(members.clone()).to_string();
        // Half of the hash: an account has few of them.
        let id = blake3::hash(text.as_bytes()).to_hex().chars().take(32).collect();
        Self { id, members }
    }
}

/// Members of results that are stored elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    /// The [`JudgedBy`].
    pub judged_by: String,
    /// The scan, where some of its members are the result's.
    pub scan: Option<ActionId>,
}

/// Packs a result; `None` if it would not read back the same.
///
/// `scan` is the stored scan that was assessed.
#[must_use]
pub fn pack(
    whole: &Map<String, Value>,
    judged_by: &JudgedBy,
    scan: Option<&Map<String, Value>>,
) -> Option<Map<String, Value>> {
    let mut doc = whole.clone();
    let fields = doc.get_mut("customFields")?.as_object_mut()?;
    judged_by.members.keys().for_each(|name| drop(fields.remove(name)));
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    let statuses: Value = STATUSES.iter().map(|name| take(name)).collect();
    let counts: Value = COUNTS.iter().map(|name| take(name)).collect();
    COUNTED.iter().for_each(|(name, _)| drop(take(name)));
    let (checks, profile) = (take("childActions"), take("duplicateProfile"));
    let checks: Map<String, Value> = checks
        .as_object()?
        .iter()
        .map(|(name, check)| {
            let certainty = form::shorten(&check["certainty"]);
            (name.clone(), json!([check["match"], check["reason"], certainty]))
        })
        .collect();
    let profile: Value = PROFILE.iter().map(|name| profile[*name].clone()).collect();
    let mut of_scan = Vec::new();
    if scan.is_some_and(|scan| Some(&context_of(scan)) == fields.get("triggerContext")) {
        fields.remove("triggerContext");
        of_scan.push("triggerContext");
    }
    if doc.get("location").is_some_and(|own| scan.and_then(location_of).as_ref() == Some(own)) {
        doc.remove("location");
        of_scan.push("location");
    }
    let derived = tags_of(whole);
    if let Some(tags) = doc.get_mut("tags").and_then(Value::as_array_mut) {
        tags.retain(|tag| !tag.as_str().is_some_and(|tag| derived.iter().any(|one| one == tag)));
    }
    let packed = json!({
        "by": judged_by.id, "scan": of_scan, "statuses": statuses, "counts": counts, "checks": checks,
        "profile": profile,
    });
    doc.insert(MEMBER.to_owned(), packed);
    let mut again = doc.clone();
    unpack(&mut again, &judged_by.members, scan);
    (again == *whole).then_some(doc)
}

/// What is needed to unpack a stored result; `None` if it is stored whole.
#[must_use]
pub fn references(doc: &Map<String, Value>) -> Option<References> {
    let packed = doc.get(MEMBER)?;
    let judged_by = packed.get("by")?.as_str()?.to_owned();
    let is_by_scan = packed.get("scan").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    let scan = doc.get("customFields").and_then(|fields| fields.get("triggerAction")?.as_str()?.parse().ok());
    Some(References { judged_by, scan: scan.filter(|_| is_by_scan) })
}

/// Restores a stored result. Members from a deleted scan are unknown.
pub fn unpack(
    doc: &mut Map<String, Value>,
    judged_by: &Map<String, Value>,
    scan: Option<&Map<String, Value>>,
) {
    let Some(packed) = doc.remove(MEMBER) else { return };
    let is_of_scan = |name: &str| {
        packed["scan"].as_array().is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    if is_of_scan("location")
        && let Some(location) = scan.and_then(location_of)
    {
        doc.insert("location".to_owned(), location);
    }
    if let Some(fields) = doc.get_mut("customFields").and_then(Value::as_object_mut) {
        fields.extend(judged_by.clone());
        let of = |names: &[&str], values: &Value| -> Map<String, Value> {
            let values = values.as_array().cloned().unwrap_or_default();
            names.iter().map(|name| (*name).to_owned()).zip(values).collect()
        };
        fields.extend(of(&STATUSES, &packed["statuses"]));
        fields.extend(of(&COUNTS, &packed["counts"]));
        let checks = packed["checks"].as_object().into_iter().flatten().map(|(name, check)| {
            let certainty = form::expand(&check[2], judged_by);
            (name.clone(), json!({"match": check[0], "reason": check[1], "certainty": certainty}))
        });
        let checks: Map<String, Value> = checks.collect();
        let mut profile = of(&PROFILE, &packed["profile"]);
        for (name, listed) in COUNTED {
            let count = profile.get(listed).and_then(Value::as_array).map_or(0, Vec::len);
            fields.insert(name.to_owned(), count.into());
        }
        let is_duplicate = checks.get("duplicateChecks").is_some_and(|check| check["match"] == "true");
        let is_outlier = fields.get("spreadOutlier").is_some_and(|outlier| outlier == "yes");
        profile.insert("isDuplicate".to_owned(), is_duplicate.into());
        profile.insert("isTriggerOutlier".to_owned(), is_outlier.into());
        fields.insert("duplicateProfile".to_owned(), profile.into());
        fields.insert("childActions".to_owned(), checks.into());
        if is_of_scan("triggerContext") {
            let context = scan.map_or_else(|| Context::default().members().into(), context_of);
            fields.insert("triggerContext".to_owned(), context);
        }
    }
    let derived = tags_of(doc);
    if let Some(tags) = doc.get_mut("tags").and_then(Value::as_array_mut) {
        tags.extend(derived.into_iter().map(Value::from));
        tags.sort_unstable_by(|one, other| one.as_str().cmp(&other.as_str()));
    }
}

/// Members of `customFields` in the order in which the short form has their values.
const STATUSES: [&str; 3] = ["authenticationStatus", "counterfeitStatus", "grayMarketStatus"];
const COUNTS: [&str; 6] = [
    "previousImplicitScansCount",
    "geoIpSpreadDistance",
    "sensorSpreadDistance",
    "spreadOutlier",
    "duplicatePoints",
    "unverifiedScansCount",
];

/// Members of `duplicateProfile`, without the two that follow from others.
const PROFILE: [&str; 5] = ["countryCodes", "regions", "uaHashes", "geoIpBBSize", "sensorBBSize"];

/// Counts, and the list of the profile that each is the length of.
const COUNTED: [(&str, &str); 3] =
    [("countriesCount", "countryCodes"), ("regionsCount", "regions"), ("userAgentCount", "uaHashes")];

fn context_of(scan: &Map<String, Value>) -> Value {
    let empty = Map::new();
    Context::of(scan.get("context").and_then(Value::as_object).unwrap_or(&empty)).members().into()
}

fn location_of(scan: &Map<String, Value>) -> Option<Value> {
    let degrees = |name: &str| scan.get("location").and_then(|location| location.get(name)?.as_f64());
    let at = Coordinates::new(degrees("latitude")?, degrees("longitude")?)?;
    Some(at.members().into())
}

/// The tags that follow from other members of a result.
fn tags_of(whole: &Map<String, Value>) -> Vec<String> {
    let Some(fields) = whole.get("customFields") else { return Vec::new() };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let checks = fields.get("childActions").and_then(Value::as_object);
    let is_true = checks.into_iter().flatten().filter(|(_, check)| check["match"] == "true");
    document::derived_tags(
        text("authenticationStatus"),
        text("requestSource"),
        is_true.map(|(name, _)| name.as_str()),
    )
}

#[cfg(test)]
mod tests;
