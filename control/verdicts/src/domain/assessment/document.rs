//! The result of an assessment as it is returned and stored.

use countries::CountryCode;
use serde_json::{Map, Value, json};

use super::{
    Assessment, RULES_VERSION,
    explain::form,
    rules::Match,
    settings::Settings,
    trigger::{Asked, Named, Request},
};
use crate::domain::action_names::TriggerType;

/// Where the scan came from, as far as it was stored with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// City.
    pub city: Option<String>,
    /// Country.
    pub country_code: Option<String>,
    /// The short URL as it was scanned.
    pub entry_url: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Time zone.
    pub time_zone: Option<String>,
    /// User agent.
    pub user_agent: Option<String>,
}

impl Context {
    /// The trigger context from an action's `context`.
    #[must_use]
    pub fn of(context: &Map<String, Value>) -> Self {
        let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            city: text("city"),
            country_code: text("countryCode"),
            entry_url: text("entryUrl"),
            region: text("region"),
            time_zone: text("timeZone"),
            user_agent: text("userAgent"),
        }
    }
}

impl Context {
    /// `triggerContext` of a result: unknown members are `unknown`.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        let of = [
            ("city", &self.city),
            ("countryCode", &self.country_code),
            ("entryUrl", &self.entry_url),
            ("region", &self.region),
            ("timeZone", &self.time_zone),
            ("userAgent", &self.user_agent),
        ];
        let or_unknown = |text: &Option<String>| text.as_deref().unwrap_or("unknown").into();
        of.into_iter().map(|(name, text)| (name.to_owned(), or_unknown(text))).collect()
    }
}

/// What results of many scans have in common: the thresholds, the markets and the version of the rules.
#[must_use]
pub fn judged_by(settings: &Settings, markets: &[CountryCode]) -> Map<String, Value> {
    let members = json!({
        "geoIpSpreadThreshold": settings.geo_ip_spread_threshold_km,
        "sensorSpreadThreshold": settings.sensor_spread_threshold_km,
        "regionsThreshold": settings.regions_threshold,
        "regionShareThreshold": settings.region_share_threshold,
        "scanThreshold": settings.scan_threshold,
        "userAgentsThreshold": settings.user_agents_threshold,
        "spreadOutlierThreshold": settings.spread_outlier_threshold_km,
        "maxObservedScans": settings.max_observed_scans,
        "permittedCountries": markets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rulesVersion": RULES_VERSION,
    });
    if let Value::Object(members) = members { members } else { Map::new() }
}

/// The certainty of a check: figures for copies and the market, for other checks only the settling steps.
fn certainty(found: &Assessment, check: &str) -> Value {
    let Some(explained) = &found.explained else { return json!({"settles": []}) };
    match check {
        "duplicateChecks" => form::duplicate(&explained.duplicate),
        "diversionChecks" => form::diversion(explained.sightings.as_ref(), &explained.diversion),
        "unauthorizedChecks" => json!({"settles": form::settles(&explained.unauthorized)}),
        _ => json!({"settles": []}),
    }
}

/// Longest `scanValue` in a tag, in characters.
const MAX_TAGGED: usize = 60;

/// The members `customFields` and `tags` of a result; unknown values are `[]`, 0 or `unknown`.
#[must_use]
pub fn members(
    found: &Assessment,
    request: &Request,
    context: &Context,
    markets: &[CountryCode],
    settings: &Settings,
) -> (Map<String, Value>, Vec<String>) {
    let spread = &found.spread;
    let names =
        |codes: &mut dyn Iterator<Item = CountryCode>| codes.map(|code| code.to_string()).collect::<Vec<_>>();
    let mut checks = Map::new();
    for (name, finding) in &found.checks {
        let certainty = certainty(found, name);
        let check =
            json!({"match": finding.matched.as_str(), "reason": finding.reason, "certainty": certainty});
        checks.insert((*name).to_owned(), check);
    }
    let agents: Vec<String> = spread.agents.iter().map(|agent| agent.hex()).collect();
    let outlier = match spread.outlier {
        None => "unknown",
        Some(true) => "yes",
        Some(false) => "no",
    };
    let source = request.text("requestSource").filter(|text| !text.is_empty());
    let source = source.unwrap_or_else(|| request.kind.as_str());
    let fields = json!({
        "authenticationStatus": found.verdict.authentication.as_str(),
        "counterfeitStatus": found.verdict.counterfeit.as_str(),
        "grayMarketStatus": found.verdict.gray_market.as_str(),
        "childActions": checks,
        "duplicateProfile": {
            "countryCodes": names(&mut spread.countries.iter().copied()),
            "geoIpBBSize": tidy(spread.geo_ip_box_km),
            "isDuplicate": found.check("duplicateChecks") == Match::True,
            "isTriggerOutlier": spread.outlier == Some(true),
            "regions": spread.regions.iter().collect::<Vec<_>>(),
            "sensorBBSize": tidy(spread.sensor_box_km),
            "uaHashes": agents,
        },
        "countriesCount": spread.countries.len(),
        "regionsCount": spread.regions.len(),
        "userAgentCount": spread.agents.len(),
        "previousImplicitScansCount": spread.previous_implicit,
        "geoIpSpreadDistance": tidy(spread.geo_ip_spread_km),
        "sensorSpreadDistance": tidy(spread.sensor_spread_km),
        "spreadOutlier": outlier,
        "requestSource": source,
        "triggerAction": request.id.to_string(),
        "triggerContext": context.members(),
        "duplicatePoints": found.points,
        "unverifiedScansCount": found.unverified,
    });
    let mut fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
    fields.extend(judged_by(settings, markets));
    for name in REPEATED {
        if let Some(text) = request.text(name) {
            fields.insert(name.to_owned(), text.into());
        }
    }
    (fields, tags(found, request, context, source))
}

/// Removes from a response everything that only comes from the stored scan and concerns its client: address and
/// agent, place and custom fields. The stored result keeps them.
pub fn withhold_scan(asked: &Asked, members: &mut Map<String, Value>) {
    if !asked.gives_location() {
        members.remove("location");
    }
    let Some(fields) = members.get_mut("customFields").and_then(Value::as_object_mut) else { return };
    let context = fields.get_mut("triggerContext").and_then(Value::as_object_mut);
    for value in context.into_iter().flat_map(Map::values_mut) {
        *value = "unknown".into();
    }
    // Removes figures from scans of others; the settling steps stay.
    let checks = fields.get_mut("childActions").and_then(Value::as_object_mut);
    for certainty in checks.into_iter().flat_map(Map::values_mut).filter_map(|one| one.get_mut("certainty")) {
        let settles = certainty.get("settles").cloned().unwrap_or_default();
        *certainty = json!({"settles": settles});
    }
    if !asked.gives_custom_fields() {
        for name in REPEATED {
            fields.remove(name);
        }
        if let Some(tags) = members.get_mut("tags").and_then(Value::as_array_mut) {
            tags.retain(|tag| !tag.as_str().is_some_and(|tag| tag.starts_with("scanValue:")));
        }
    }
}

/// Custom fields of a trigger that its result repeats.
const REPEATED: [&str; 3] = ["requestUser", "requestUserName", "scanValue"];

/// Metres are as exact as any of it.
fn tidy(km: f64) -> f64 {
    (km * 1_000.0).round() / 1_000.0
}

fn tags(found: &Assessment, request: &Request, context: &Context, source: &str) -> Vec<String> {
    let is_true = found.checks.iter().filter(|(_, finding)| finding.matched == Match::True);
    let mut tags =
        derived_tags(found.verdict.authentication.as_str(), source, is_true.map(|(name, _)| *name));
    tags.push(format!("eventGroup:{}", request.kind.event_group()));
    let scanned = request.text("scanValue").or(context.entry_url.as_deref());
    // For an unknown item, what the request named.
    let asked = Some(&request.named).filter(|_| found.check("invalidChecks") == Match::True);
    let scanned = scanned.map(str::to_owned).or_else(|| asked.and_then(Named::shown));
    let shown = scanned.as_deref().map(|value| value.split(['?', '#']).next().unwrap_or_default());
    if let Some(value) = shown.filter(|value| !value.is_empty()) {
        tags.push(format!("scanValue:{}", value.chars().take(MAX_TAGGED).collect::<String>()));
    }
    tags.sort_unstable();
    tags
}

/// The tags that other members of a result tell, too: its status, its source and the checks that are true.
pub fn derived_tags<'a>(status: &str, source: &str, is_true: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut tags = vec!["brandIntegrity".to_owned(), format!("status:{status}"), format!("source:{source}")];
    tags.extend(is_true.map(|name| format!("match:{name}")));
    tags
}

/// Trigger types that an application may submit if it lists none.
pub const DEFAULT_TYPES: [TriggerType; 2] = [TriggerType::Scans, TriggerType::ImplicitScans];
