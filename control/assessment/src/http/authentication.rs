//! HTTP: assessment of items.

use actions::http::{ActionDocument, Sender, Shown};
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with_macros::skip_serializing_none;
use shared::standing::Verdict;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Query},
};

use super::authentication_result::ResultDocument;
use crate::{
    domain::assessment::trigger::Asked,
    service::{
        AssessmentState,
        assessment::{
            self,
            replay::{self, Answer, Judged, Replay, Replayed, Standing},
            settings::{self, Owner, Replacement},
        },
    },
    store::assessments::Stored,
};

/// The action that asks for an assessment, as it was recorded for the scan.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct TriggerDocument {
    /// Its id.
    id: String,
    /// Its type; without it, that of the stored action with this id.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Where its coordinates come from; without it, as it was stored.
    location_source: Option<String>,
    /// `latitude`, `longitude` and `position`, which wins; may be absent unless `locationSource` is `sensor`.
    #[schema(value_type = Option<Object>)]
    location: Option<Map<String, Value>>,
    /// The Thng that was scanned.
    thng: Option<String>,
}

/// Settings of assessment.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsDocument {
    /// What is set; what is not is left to the owner above, in the end to the defaults.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    settings: Value,
    /// How often they were replaced; 0 when they never were.
    version: i64,
    /// When they were made, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    created_at: Option<i64>,
    /// When they were replaced last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    updated_at: Option<i64>,
}

impl From<Stored> for SettingsDocument {
    fn from(stored: Stored) -> Self {
        let is_there = stored.version > 0;
        Self {
            settings: serde_json::to_value(&stored.settings).unwrap_or_else(|_| json!({})),
            version: stored.version,
            created_at: is_there.then_some(stored.created_at.0),
            updated_at: is_there.then_some(stored.updated_at.0),
        }
    }
}

/// What a replay is asked for.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct ReplayRequestDocument {
    /// The Thng, by id or `<key>:<value>`.
    thng: Option<String>,
    /// Instead of it, up to 100 of them.
    thngs: Option<Vec<String>>,
    /// Or a product: its newest 100 Thngs.
    product: Option<String>,
    /// What to set over their settings.
    #[schema(value_type = Option<Object>)]
    settings: Option<Map<String, Value>>,
    /// Replaces the stored verdicts and greatest points by what the stored scans say now; not together with `settings`.
    apply: Option<bool>,
}

/// The three statuses.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VerdictDocument {
    #[schema(example = "positive")]
    authentication_status: &'static str,
    #[schema(example = "none")]
    counterfeit_status: &'static str,
    #[schema(example = "none")]
    gray_market_status: &'static str,
    /// The points of a duplicate; absent where they were not kept.
    points: Option<u32>,
    /// Of the stored verdict: the version of the rules that wrote it; absent where it was not kept.
    rules_version: Option<u32>,
    /// Of the stored verdict: when the scan happened that wrote it, in milliseconds since 1970.
    timestamp: Option<i64>,
}

impl VerdictDocument {
    fn new(verdict: Verdict, points: Option<u32>) -> Self {
        Self {
            authentication_status: verdict.authentication.as_str(),
            counterfeit_status: verdict.counterfeit.as_str(),
            gray_market_status: verdict.gray_market.as_str(),
            points,
            rules_version: None,
            timestamp: None,
        }
    }
}

impl From<Standing> for VerdictDocument {
    fn from(stored: Standing) -> Self {
        Self {
            rules_version: stored.points.map(|(_, version)| version),
            timestamp: stored.at.map(|at| at.0),
            ..Self::new(stored.verdict, stored.points.map(|(points, _)| points))
        }
    }
}

/// One scan, judged by the settings as they are and by others.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JudgedDocument {
    /// The scan.
    trigger_action: String,
    /// When it happened, in milliseconds since 1970.
    timestamp: i64,
    /// By the settings as they are.
    current: VerdictDocument,
    /// By those that were asked about.
    proposed: VerdictDocument,
    /// Whether the two differ.
    changed: bool,
    /// What the rules found with the settings that were asked about.
    reasons: Vec<String>,
}

impl From<Judged> for JudgedDocument {
    fn from(judged: Judged) -> Self {
        Self {
            trigger_action: judged.action.to_string(),
            timestamp: judged.at.0,
            changed: judged.current.0 != judged.proposed.0,
            current: VerdictDocument::new(judged.current.0, Some(judged.current.1)),
            proposed: VerdictDocument::new(judged.proposed.0, Some(judged.proposed.1)),
            reasons: judged.reasons,
        }
    }
}

/// The last scans of a Thng, judged again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplayDocument {
    /// The Thng.
    thng: String,
    /// How many scans were read.
    scans: usize,
    /// Whether the profile that is kept is what these scans make; absent when there are more scans than are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_matches: Option<bool>,
    /// The verdict that edges go by; absent before the first assessment.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<VerdictDocument>,
    /// At most 50 scans, of several Thngs 5 each, the newest first.
    results: Vec<JudgedDocument>,
}

impl From<Replayed> for ReplayDocument {
    fn from(replayed: Replayed) -> Self {
        Self {
            thng: replayed.thng.to_string(),
            scans: replayed.scans,
            profile_matches: replayed.profile_matches,
            stored: replayed.stored.map(VerdictDocument::from),
            results: replayed.judged.into_iter().map(JudgedDocument::from).collect(),
        }
    }
}

/// What a replay found: of `thng` alone, or of each of `thngs` or of a product's.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum ReplayAnswerDocument {
    /// Of one Thng.
    One(Box<ReplayDocument>),
    /// Of several.
    Many(ReplaysDocument),
}

/// The last scans of several Thngs, judged again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReplaysDocument {
    /// Each of them.
    thngs: Vec<ReplayDocument>,
    /// Whether the product has more.
    more: bool,
}

impl From<Answer> for ReplayAnswerDocument {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::One(replayed) => Self::One(Box::new((*replayed).into())),
            Answer::Many { thngs, more } => Self::Many(ReplaysDocument {
                thngs: thngs.into_iter().map(ReplayDocument::from).collect(),
                more,
            }),
        }
    }
}

/// Assesses the item behind a scan; the result is kept as an action, too.
#[utoipa::path(post, path = "/authentication", tag = "Authentication", operation_id = "authenticate",
    request_body = TriggerDocument,
    responses((status = 200, description = "The result: an action of the type `authenticationResults`",
        body = ResultDocument)))]
pub(super) async fn authenticate(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    sender: Sender,
    JsonBody(body): JsonBody,
) -> Result<Json<ActionDocument>, ApiError> {
    let body = assessment::as_recorded(&state, &caller, body).await?;
    let request = Asked::parse(&body).map_err(ApiError::invalid)?;
    let action = assessment::authenticate(&state, &caller, &request, sender.origin()).await?;
    Ok(Json(ActionDocument::new(action, Shown::default())))
}

/// Reads the settings of assessment of the account, of a project or of a product.
#[utoipa::path(get, path = "/authentication/settings", tag = "Authentication",
    operation_id = "readAssessmentSettings",
    params(("project" = Option<String>, Query, description = "Those of this project"),
        ("product" = Option<String>, Query, description = "Those of this product")),
    responses((status = 200, description = "What it set itself", body = SettingsDocument)))]
pub(super) async fn read_settings(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    query: Query,
) -> Result<Json<SettingsDocument>, ApiError> {
    let owner = Owner::parse(query.find("project"), query.find("product"))?;
    Ok(Json(settings::read(&state, &caller, owner).await?.into()))
}

/// Replaces the settings of assessment of the account, of a project or of a product, as a whole.
#[utoipa::path(put, path = "/authentication/settings", tag = "Authentication",
    operation_id = "replaceAssessmentSettings",
    params(("project" = Option<String>, Query, description = "Those of this project"),
        ("product" = Option<String>, Query, description = "Those of this product")),
    request_body = SettingsDocument,
    responses((status = 200, description = "The settings with their new version", body = SettingsDocument)))]
pub(super) async fn replace_settings(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Json<SettingsDocument>, ApiError> {
    let owner = Owner::parse(query.find("project"), query.find("product"))?;
    let replacement = Replacement::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(settings::replace(&state, &caller, owner, &replacement).await?.into()))
}

/// Assesses the last scans of Thngs again, by their settings and by others; stores nothing without `apply`.
#[utoipa::path(post, path = "/authentication/replay", tag = "Authentication",
    operation_id = "replayAssessments", request_body = ReplayRequestDocument,
    responses((status = 200, description = "What each scan says by both", body = ReplayAnswerDocument)))]
pub(super) async fn replay(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    JsonBody(body): JsonBody,
) -> Result<Json<ReplayAnswerDocument>, ApiError> {
    let asked = Replay::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(replay::replay(&state, &caller, &asked).await?.into()))
}
