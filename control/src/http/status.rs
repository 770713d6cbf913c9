//! HTTP: the state of the service for operators, with its revision, edges with their lag, and scans.

use std::sync::atomic::Ordering;

use axum::{Json, extract::State};
use kernel::{
    domain::permission::{Subject, Verb},
    service::access::require,
};
use push::hub::EdgeStatus;
use serde::Serialize;
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError};

use super::state::RouterState;

/// The state of the service.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusDocument {
    /// Id of the change log's history.
    epoch: String,
    /// The newest revision.
    revision: u64,
    /// Every edge of the fleet; of a single process, those seen since its start.
    #[schema(value_type = Vec<Object>)]
    edges: Vec<EdgeStatus>,
    scans: ScansDocument,
}

/// What the intake of scans counted since the start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScansDocument {
    /// Scans that became actions.
    recorded: u64,
    /// Scans that came again and were skipped.
    repeated: u64,
    /// Scans of short ids that are not known.
    unknown: u64,
    /// Scans that were not stored, because their accounts had used up the quota of the day.
    over_quota: u64,
    /// Scans that edges lost.
    missing: u64,
}

// Spec gap: the contract shows no operation for the state of the service.
/// Says how far the edges are, and what was scanned.
#[utoipa::path(get, path = "/status", tag = "Status", operation_id = "readStatus",
    responses((status = 200, description = "The state of the service", body = StatusDocument)))]
pub(super) async fn read(
    State(RouterState(app)): State<RouterState>,
    Authenticated(caller): Authenticated,
) -> Result<Json<StatusDocument>, ApiError> {
    let _ = require(&caller, Verb::Read, Subject::Status)?;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Json(StatusDocument {
        epoch: app.hub.epoch().to_string(),
        revision: app.hub.head(),
        edges: app.hub.edges(),
        scans: ScansDocument {
            recorded: count(&app.intake.stored),
            repeated: count(&app.intake.repeated),
            unknown: count(&app.intake.unknown),
            over_quota: count(&app.intake.over_quota),
            missing: count(&app.intake.missing),
        },
    }))
}
