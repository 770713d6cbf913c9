//! HTTP: scans of a demo in the statistics, which no edge reported, and their removal.
//!
//! Spec gap: the platform API shows no operations on them.

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path},
};

use crate::{
    domain::reported_scan::ReportedScan,
    service::{StatisticsState, project_counts},
};

/// Scans that were counted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportedScansDocument {
    /// How many.
    #[schema(read_only, example = 12)]
    scans: u64,
}

/// Counts scans of a demo; for `waymark demo` alone.
///
/// The project must be one that `waymark demo` made: it had `customFields.waymarkDemo` when it was made, which the server notes,
/// and nothing that is written later changes that. Each product and link that is named must be of that demo, each scan at most a day
/// ahead, and the key of an owner or an admin. The scans are in statistics, of the account and of the project, and
/// nowhere else: neither in `hits` nor among actions.
#[utoipa::path(post, path = "/projects/{id}/scanCounts", tag = "Scans", operation_id = "countReportedScans",
    request_body = ReportedScansDocument,
    params(("id" = String, Path, description = "Id of the project")),
    responses((status = 201, description = "They are counted", body = ReportedScansDocument),
        (status = 403, description = "The key is of no owner or admin, or the project was not made by `waymark demo`")))]
pub(super) async fn add(
    State(state): State<StatisticsState>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<ReportedScansDocument>), ApiError> {
    let scans = ReportedScan::parse(&body).map_err(ApiError::invalid)?;
    let scans = project_counts::add(&state, &caller, &id, &scans).await?;
    Ok((StatusCode::CREATED, Json(ReportedScansDocument { scans })))
}

/// Takes all counts of a demo out of the statistics, also those of scans by edges; for `waymark demo --remove` alone.
///
/// The project must be one that `waymark demo` made, and the key of an owner or an admin. The counts of the account are less by
/// them; other projects that a scan was of keep theirs.
#[utoipa::path(delete, path = "/projects/{id}/scanCounts", tag = "Scans", operation_id = "removeScanCounts",
    params(("id" = String, Path, description = "Id of the project")),
    responses((status = 200, description = "Removed; the body is empty"),
        (status = 403, description = "The key is of no owner or admin, or the project was not made by `waymark demo`")))]
pub(super) async fn remove(
    State(state): State<StatisticsState>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(project_counts::remove(&state, &caller, &id).await?)
}
