//! HTTP: where a link would lead a scan.

use std::collections::BTreeMap;

use axum::{Json, extract::State, http::HeaderMap};
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use shared::{
    availability::Closed,
    problem::Code,
    rules::{Text, hour, weekday},
    withheld::Withheld,
};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
};

use super::redirections::choice;
use crate::{
    domain::{assumed_scan::AssumedScan, preview::KnownFacts, withheld::TakeDown},
    service::{
        Redirects, redirections as service,
        redirections::{Preview, ShownRule},
    },
};

/// Where a link would lead a scan, and why.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreviewDocument {
    /// Status of the answer to the scan: 301, 302, 307, 308, 403, 404, 410 or 451.
    #[schema(example = 307)]
    status: u16,
    /// Where it is led, tags filled in; only with a redirect.
    #[schema(example = "https://example.com/de/K7Q2M4XA9R")]
    location: Option<String>,
    /// Code of the answer where it is not led anywhere: 40305, 40404, 40405, 41001 or 45101.
    code: Option<u32>,
    /// What decides: `rule`, `defaultRedirectUrl` (no rule holds), `endedUrl`, `closed` (closed without an `endedUrl`), `copy`
    /// (the item may be a copy, and pages have `copies`) or `takeDown`.
    #[schema(example = "rule")]
    decided_by: &'static str,
    /// Why the link is closed: `ended`, `paused` or `scheduled`. Then no rule is tried.
    #[schema(example = "paused")]
    closed: Option<&'static str>,
    /// Who is led there gets a page instead (451).
    taken_down: Option<PreviewTakeDownDocument>,
    /// The rule that decides.
    rule: Option<TriedRuleDocument>,
    /// The rules that were tried before and do not hold, in their order.
    tried: Vec<TriedRuleDocument>,
    facts: FactsDocument,
}

/// A rule that was tried. Only callers who may read it see more than its place.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriedRuleDocument {
    /// The application in whose list it is; absent for the list of the account.
    application: Option<String>,
    /// Its place in the list, from 0.
    index: usize,
    /// What people call it.
    #[schema(example = "Germany")]
    name: Option<String>,
    /// When it holds.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    #[schema(example = "country=DE&language=de")]
    condition: Option<String>,
    /// Where it leads; absent too where it keeps the link's own target.
    redirect_url: Option<String>,
    /// The conditions that decide: those that are met if the rule holds, else those that are not met. Conditions on facts that
    /// the caller may not read are left out.
    #[schema(example = json!(["language=de"]))]
    because: Option<Vec<String>>,
}

/// Why nobody is led there.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewTakeDownDocument {
    /// The reason.
    #[schema(example = "Reported as phishing")]
    reason: String,
    /// The host that no link leads to; absent if the link itself was taken down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "evil.example")]
    host: Option<String>,
}

/// The facts that rules may test, by the names of rules. What is not known is absent, and so is what the caller may not read of
/// the Thng.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FactsDocument {
    /// Milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    timestamp: i64,
    /// Hour of the day in UTC, 0 to 23.
    #[schema(minimum = 0, maximum = 23)]
    hour: i64,
    /// Day of the week in UTC, 1 (Monday) to 7 (Sunday).
    #[schema(minimum = 1, maximum = 7)]
    weekday: i64,
    #[schema(example = "DE")]
    country: Option<String>,
    #[schema(example = "Bavaria")]
    region: Option<String>,
    city: Option<String>,
    /// The address that conditions on `network` are about.
    #[schema(example = "192.0.2.7")]
    network: Option<String>,
    #[schema(example = 15_169)]
    as_number: Option<u32>,
    /// The first one of `acceptLanguage`.
    #[schema(example = "de-AT")]
    language: Option<String>,
    /// Every language of `acceptLanguage` with a quality above 0, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["de-AT", "en"]))]
    languages: Vec<String>,
    #[schema(example = "example.com")]
    referer_host: Option<String>,
    /// The values of each parameter of `query`, decoded, without `access_token`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(example = json!({"ref": ["poster"]}))]
    query: BTreeMap<String, Vec<String>>,
    /// The visitor's place in the division without a name: as it was given, or as it follows from `address`, `userAgent`
    /// and the day.
    #[schema(minimum = 0, maximum = 99.99, example = 42.17)]
    percentage: Option<f64>,
    /// What `userAgent` was read as.
    #[schema(example = "Safari")]
    user_agent_name: Option<String>,
    #[schema(example = "iPhone")]
    operating_system_name: Option<String>,
    /// `phone`, `tablet`, `desktop` or `robot`.
    #[schema(example = "phone")]
    device: Option<String>,
    thng: Option<String>,
    #[serde(rename = "thng.name", skip_serializing_if = "Option::is_none")]
    thng_name: Option<String>,
    product: Option<String>,
    /// The projects that the link's scopes name.
    project: Vec<String>,
    commission_state: Option<String>,
    assessment: Option<String>,
    #[serde(rename = "assessment.counterfeitStatus", skip_serializing_if = "Option::is_none")]
    counterfeit: Option<String>,
    #[serde(rename = "assessment.grayMarketStatus", skip_serializing_if = "Option::is_none")]
    gray_market: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    action_type: Option<String>,
    short_domain: Option<String>,
    short_id: Option<String>,
}

impl From<Preview> for PreviewDocument {
    fn from(preview: Preview) -> Self {
        let mut tried: Vec<ShownRule> = preview.tried;
        // Rules are tried until one holds.
        let rule = tried.pop_if(|last| last.holds);
        Self {
            status: preview.code.map_or(preview.redirect_status.as_u16(), Code::status),
            location: preview.location,
            code: preview.code.map(|code| code as u32),
            decided_by: preview.by.as_str(),
            closed: preview.closed.map(Closed::as_str),
            taken_down: preview.taken_down.map(PreviewTakeDownDocument::from),
            rule: rule.map(TriedRuleDocument::from),
            tried: tried.into_iter().map(TriedRuleDocument::from).collect(),
            facts: preview.facts.into(),
        }
    }
}

impl From<ShownRule> for TriedRuleDocument {
    fn from(shown: ShownRule) -> Self {
        let application = shown.application.map(|id| id.to_string());
        let place = Self {
            application,
            index: shown.index,
            name: None,
            condition: None,
            redirect_url: None,
            because: None,
        };
        let Some(tried) = shown.tried else { return place };
        Self {
            name: tried.rule.name.map(Into::into),
            condition: Some(tried.rule.condition.into()),
            redirect_url: tried.rule.redirect_url.map(Into::into),
            because: Some(tried.explained.because.into_iter().map(|(_, condition)| condition).collect()),
            ..place
        }
    }
}

impl From<TakeDown> for PreviewTakeDownDocument {
    fn from(take_down: TakeDown) -> Self {
        let host = match take_down.what {
            Withheld::Host(host) => Some(host.into()),
            Withheld::Link(_) | Withheld::Account(_) => None,
        };
        Self { reason: take_down.reason, host }
    }
}

impl From<KnownFacts> for FactsDocument {
    fn from(facts: KnownFacts) -> Self {
        let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &facts.query {
            query.entry(name.clone()).or_default().push(value.clone());
        }
        Self {
            timestamp: facts.at.0,
            hour: hour(facts.at),
            weekday: weekday(facts.at),
            country: facts.text(Text::Country),
            region: facts.text(Text::Region),
            city: facts.text(Text::City),
            network: facts.address.map(|address| address.to_string()),
            as_number: facts.as_number,
            query,
            percentage: facts.place.map(|place| f64::from(place) / 100.0),
            device: facts.text(Text::Device),
            user_agent_name: facts.text(Text::AgentName),
            operating_system_name: facts.text(Text::SystemName),
            thng: facts.text(Text::Thng),
            thng_name: facts.text(Text::ThngName),
            product: facts.text(Text::Product),
            project: facts.projects.iter().map(ToString::to_string).collect(),
            commission_state: facts.text(Text::CommissionState),
            assessment: facts.text(Text::Assessment),
            counterfeit: facts.text(Text::Counterfeit),
            gray_market: facts.text(Text::GrayMarket),
            action_type: facts.text(Text::ActionType),
            short_domain: facts.text(Text::ShortDomain),
            short_id: facts.text(Text::ShortId),
            language: facts.language,
            languages: facts.languages,
            referer_host: facts.referer_host,
        }
    }
}

/// Says where a link would lead a scan, and why. Nothing is written, and no scan is counted.
#[utoipa::path(post, path = "/redirections/{shortId}/preview", tag = "Redirections", operation_id = "previewRedirection",
    params(("shortId" = String, Path, description = "Short id"),
        ("domain" = Option<String>, Query, description = "Short domain")),
    request_body(content = Object, description = "What is known of the scan",
        example = json!({"country": "DE", "acceptLanguage": "de-AT,de;q=0.9"})),
    responses((status = 200, description = "Where a scan would be led, and why", body = PreviewDocument)))]
pub(super) async fn preview(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Json<PreviewDocument>, ApiError> {
    let scan = AssumedScan::parse(&body).map_err(ApiError::invalid)?;
    let found = service::preview(&redirects, &caller, choice(&query, &headers), &short_id, &scan).await?;
    Ok(Json(found.into()))
}
