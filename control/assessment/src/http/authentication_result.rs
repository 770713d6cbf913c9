//! The result of an assessment as the OpenAPI document describes it. It is returned as an action.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The result of an assessment: an action of the type `authenticationResults`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct ResultDocument {
    /// Its id.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// Its type: `authenticationResults`.
    #[serde(rename = "type")]
    #[schema(example = "authenticationResults")]
    kind: String,
    /// When it was made, in milliseconds since 1970.
    created_at: i64,
    /// The same.
    timestamp: i64,
    /// The Thng that was assessed, or what was asked about.
    thng: Option<String>,
    /// The verdict and what it goes by.
    custom_fields: ResultFields,
    /// What results are found by, such as `status:…` and `match:…`.
    tags: Vec<String>,
    /// Where the coordinates of the scan come from.
    #[schema(example = "sensor")]
    location_source: String,
    /// Where it happened, if that is known.
    #[schema(value_type = Option<Object>)]
    location: Option<Map<String, Value>>,
}

/// The verdict and what it goes by: these members and the figures, thresholds and texts of the result.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct ResultFields {
    /// `positive`, `unknown`, `suspicious` or `negative`.
    #[schema(example = "positive")]
    authentication_status: String,
    /// `none`, `unknown`, `suspected` or `confirmed`.
    #[schema(example = "none")]
    counterfeit_status: String,
    /// `none`, `unknown`, `suspected` or `confirmed`.
    #[schema(example = "none")]
    gray_market_status: String,
    /// The checks by name: `invalidChecks`, `unauthorizedChecks`, `diversionChecks`, `duplicateChecks`, and
    /// `physicalChecks`, `watermarkChecks` and `markingsChecks` where they were made.
    child_actions: BTreeMap<String, CheckDocument>,
    /// Which rules it was judged by.
    rules_version: u32,
}

/// What one check found.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct CheckDocument {
    /// `true`, `false` or `unknown`.
    #[serde(rename = "match")]
    #[schema(example = "false")]
    matched: String,
    /// Why, for people.
    reason: String,
    /// How sure that is. Absent in results of older releases.
    certainty: Option<CertaintyDocument>,
}

/// How sure a check is, by the scans that are believed: each number of `reason` is among the figures.
///
/// Of `duplicateChecks`: `points`, `bar` and what follows up to `signs`; of `diversionChecks`: `inside` and what
/// follows; of each: `settles`. About the scan of somebody else, the holder of a public key is told `settles` only.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct CertaintyDocument {
    /// Points of the signs.
    points: Option<u32>,
    /// The highest bar that the points reach, else the lowest.
    bar: Option<u32>,
    /// The bar above that, if there is one.
    next_bar: Option<u32>,
    /// The greatest points since the commissioning, where the verdict goes by these.
    kept_points: Option<u32>,
    /// Sessions before this one.
    previous_sessions: Option<u64>,
    /// Fewer of them say nothing.
    sessions_needed: Option<u32>,
    /// Devices.
    devices: Option<u64>,
    /// Whether the language of at least half of the sessions is known: then `languages`, `people` and `days` count, and
    /// `bar` and `nextBar` are half again as high as the settings say, rounded up.
    languages_known: Option<bool>,
    /// Other items that are tagged `display` or `demo` and mostly seen in the same region, where this one looks like one.
    displays_nearby: Option<u64>,
    /// What has to be so, beside enough points, before it is called a duplicate.
    gate: Option<GateDocument>,
    /// The region with most sessions, if any region is known.
    region_share: Option<RegionShareDocument>,
    /// What speaks for a duplicate.
    signs: Option<Vec<SignDocument>>,
    /// Sessions inside of the permitted countries.
    inside: Option<u64>,
    /// Sessions outside of them.
    outside: Option<u64>,
    /// Sessions inside from which on the item is at home there, with so many outside.
    needed: Option<u64>,
    /// Whether the first session was inside; null without any.
    first_was_inside: Option<bool>,
    /// Whether one device saw the item inside and outside.
    shared_device: Option<bool>,
    /// What a person could do to settle it.
    settles: Vec<SettleDocument>,
}

/// One figure above its threshold opens it.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct GateDocument {
    /// Whether it is open.
    is_open: bool,
    /// Regions that the item was seen in.
    regions: u64,
    /// More than these open it.
    regions_threshold: u32,
    /// Largest distance between two places that addresses tell.
    geo_ip_km: f64,
    /// More than this opens it.
    geo_ip_threshold_km: f64,
    /// Largest distance between two places that sensors tell.
    sensor_km: f64,
    /// More than this opens it.
    sensor_threshold_km: f64,
}

/// The region with most sessions.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct RegionShareDocument {
    /// The region, with its country.
    #[schema(example = "CH-Bern")]
    region: String,
    /// Sessions there.
    sessions: u64,
    /// Sessions in any region that is known.
    of: u64,
    /// The one by the other.
    share: f64,
    /// With more than this it is suspected, and not called a duplicate.
    threshold: f64,
}

/// A sign of a duplicate.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct SignDocument {
    /// `countries`, `places`, `overlap`, `devices`, `sessions`, `alike`, `scattered`, `languages`, `people`, `days`,
    /// `sensors`, `kinematic` or `far`.
    #[schema(example = "countries")]
    name: String,
    /// Its points.
    points: u32,
    /// What was seen.
    figure: f64,
    /// What is counted.
    #[schema(example = "countries")]
    unit: String,
    /// A figure counts above this.
    threshold: f64,
}

/// A step that settles a check.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the answer, which the domain makes")]
pub(super) struct SettleDocument {
    /// `TAG_DISPLAY`, `INSPECT`, `ASK_FOR_PLACE`, `DECIDE_CASE`, `SET_MARKETS`, `COMMISSION` or `ALLOW_PLACE`.
    #[schema(example = "INSPECT")]
    code: String,
    /// The same for people.
    text: String,
}
