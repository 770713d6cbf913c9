//! HTTP: the time, for devices without a clock.
//!
//! Spec gap: the platform API does not show it; the vendor's Java client reads `GET /time`. Local time is always UTC.

use std::sync::Arc;

use axum::{Json, extract::State};
use kernel::{
    domain::permission::{Subject, Verb},
    service::{Core, access},
};
use serde::Serialize;
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError};

/// The time now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimeDocument {
    /// In milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    timestamp: i64,
    /// The same in ISO 8601, in UTC.
    #[schema(example = "2026-01-01T00:00:00.000Z")]
    local_time: String,
    /// Offset from UTC in milliseconds: 0.
    offset: i64,
}

/// Reads the time of the service, in UTC.
#[utoipa::path(get, path = "/time", tag = "Access", operation_id = "readTime",
    responses((status = 200, description = "The time now", body = TimeDocument)))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
) -> Result<Json<TimeDocument>, ApiError> {
    let _ = access::require(&caller, Verb::Read, Subject::Access)?;
    let timestamp = core.clock.now().0;
    let local_time =
        jiff::Timestamp::from_millisecond(timestamp).map_or_else(|_| String::new(), |at| format!("{at:.3}"));
    Ok(Json(TimeDocument { timestamp, local_time, offset: 0 }))
}
