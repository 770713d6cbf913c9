//! HTTP: cases of assessments.

use axum::{Json, extract::State, response::Response};
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::ScopesDocument,
};

use crate::{
    domain::{
        case::{Case, Decision, DecisionRequest, Evidence},
        listing::CASES,
        report::FinderReport,
        scopes::Scopes,
    },
    service::{AssessmentState, cases},
};

/// What speaks for a case: the most that its scans said since the item was commissioned.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvidenceDocument {
    /// The scan that added to it last.
    scan: String,
    /// When that happened, in milliseconds since 1970.
    at: i64,
    /// The greatest points of a duplicate.
    points: u32,
    /// What they amounted to: `none`, `suspected` or `duplicate`.
    #[schema(example = "suspected")]
    level: &'static str,
    /// Signs of a copy, and checks that were true.
    signs: Vec<String>,
    /// Countries outside of the permitted ones.
    countries: Vec<String>,
    /// What the assessment of that scan said.
    reason: String,
}

impl From<Evidence> for EvidenceDocument {
    fn from(evidence: Evidence) -> Self {
        Self {
            scan: evidence.scan.to_string(),
            at: evidence.at.0,
            points: evidence.points,
            level: evidence.level.as_str(),
            signs: evidence.signs.into_iter().collect(),
            countries: evidence.countries.into_iter().collect(),
            reason: evidence.reason,
        }
    }
}

/// Who decided.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecidedByDocument {
    /// The kind of the key as `/access` names it; `scan` where new evidence opened the case again.
    #[serde(rename = "type")]
    #[schema(example = "operator")]
    kind: String,
    /// Its id, or the scan's.
    id: String,
}

/// A change of the state of a case.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecisionDocument {
    /// `open`, `dismissed` or `confirmed`.
    #[schema(example = "dismissed")]
    status: &'static str,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// By whom.
    by: DecidedByDocument,
    /// When, in milliseconds since 1970.
    at: i64,
    /// The evidence that there was.
    evidence: EvidenceDocument,
}

impl From<Decision> for DecisionDocument {
    fn from(decision: Decision) -> Self {
        Self {
            status: decision.status.as_str(),
            reason: decision.reason,
            by: DecidedByDocument { kind: decision.by.kind, id: decision.by.id },
            at: decision.at.0,
            evidence: decision.evidence.into(),
        }
    }
}

/// What somebody wrote who scanned an item that may be a copy. It is the text of a stranger.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FinderReportDocument {
    /// Its id.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it came, in milliseconds since 1970.
    created_at: i64,
    /// The short URL that was scanned.
    #[schema(example = "https://tn.gg/K7Q2M4XA9R")]
    short_url: String,
    /// What was written: at most 2,000 characters.
    #[schema(example = "I bought it at a market.")]
    text: String,
    /// Where the finder may be asked, as written there; nobody checked it. Shown with the permission `personalData:read` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    mail: Option<String>,
    /// Whether there is a photo with it: `GET /authentication/cases/:id/reports/:id/photo`. Absent: there is none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    has_photo: bool,
}

impl From<FinderReport> for FinderReportDocument {
    fn from(report: FinderReport) -> Self {
        let FinderReport { id, short_url, text, mail, has_photo, created_at } = report;
        Self { id: id.to_string(), created_at: created_at.0, short_url, text, mail, has_photo }
    }
}

/// An item that an assessment suspects, for a person to decide on.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseDocument {
    /// Its id.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was opened first, in milliseconds since 1970.
    created_at: i64,
    /// When it changed last.
    updated_at: i64,
    /// The Thng.
    thng: String,
    /// What the Thng was an instance of when the case was opened.
    product: Option<String>,
    /// `counterfeit` or `grayMarket`.
    #[schema(example = "counterfeit")]
    kind: &'static str,
    /// `open`, `dismissed` or `confirmed`.
    #[schema(example = "open")]
    status: &'static str,
    /// Grows with each change.
    version: i64,
    /// What speaks for it.
    evidence: EvidenceDocument,
    /// The decision that holds; absent while the case is open.
    decision: Option<DecisionDocument>,
    /// Every change of its state, the oldest first, at most 50.
    history: Vec<DecisionDocument>,
    /// How many finders wrote about the item by the page of copies.
    #[schema(example = 1)]
    report_count: i64,
    /// What they wrote, the newest first, at most 100; where one case is read.
    reports: Option<Vec<FinderReportDocument>>,
    /// Shown with `withScopes=true`.
    scopes: Option<ScopesDocument>,
}

impl CaseDocument {
    fn new(case: Case, with_scopes: bool) -> Self {
        let details = case.state.details;
        let projects = case.project.map(|id| id.to_string()).into_iter().collect();
        Self {
            id: case.state.id.to_string(),
            created_at: case.created_at.0,
            updated_at: case.updated_at.0,
            thng: case.thng.to_string(),
            product: case.product.map(|id| id.to_string()),
            kind: case.kind.as_str(),
            status: case.state.status.as_str(),
            version: case.state.version,
            evidence: details.evidence.into(),
            decision: details.decision.map(DecisionDocument::from),
            history: details.history.into_iter().map(DecisionDocument::from).collect(),
            report_count: case.reports,
            reports: None,
            scopes: with_scopes.then(|| Scopes { users: Vec::new(), projects }.into()),
        }
    }
}

/// A decision on a case.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct DecisionRequestDocument {
    /// `open`, `dismissed` or `confirmed`.
    status: String,
    /// Why; required unless the case is opened again.
    reason: Option<String>,
    /// Adds the tag `display` to the Thng; with `dismissed` only.
    display: Option<bool>,
    /// The version that the caller saw; another one is a conflict.
    version: Option<i64>,
}

/// Lists cases, newest first.
#[utoipa::path(get, path = "/authentication/cases", tag = "Authentication", operation_id = "listCases",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [CaseDocument])))]
pub(super) async fn list(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &CASES)?;
    let page = cases::list(&state, &caller, &listing.request).await?;
    Ok(listing.answer(&state, page, |case| CaseDocument::new(case, listing.with_scopes)))
}

/// Reads a case.
#[utoipa::path(get, path = "/authentication/cases/{id}", tag = "Authentication", operation_id = "readCase",
    params(("id" = String, Path, description = "Id"),
        ("withScopes" = Option<bool>, Query, description = "Show `scopes`")),
    responses((status = 200, description = "The case", body = CaseDocument)))]
pub(super) async fn read(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<CaseDocument>, ApiError> {
    let mut faults = Vec::new();
    let with_scopes = flag(&query, "withScopes", &mut faults);
    ApiError::check_parameters(faults)?;
    let (case, reports) = cases::read(&state, &caller, &id).await?;
    let reports = Some(reports.into_iter().map(FinderReportDocument::from).collect());
    Ok(Json(CaseDocument { reports, ..CaseDocument::new(case, with_scopes) }))
}

/// Dismisses or confirms a case, or opens it again; the verdict of its item follows at once.
#[utoipa::path(put, path = "/authentication/cases/{id}", tag = "Authentication", operation_id = "decideCase",
    params(("id" = String, Path, description = "Id")),
    request_body = DecisionRequestDocument,
    responses((status = 200, description = "The case with its new version", body = CaseDocument),
        (status = 409, description = "The case is of another version")))]
pub(super) async fn decide(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<CaseDocument>, ApiError> {
    let request = DecisionRequest::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(CaseDocument::new(cases::decide(&state, &caller, &id, &request).await?, false)))
}
