//! HTTP: statistics of scans.
//!
//! Each handler extracts, calls one service function and answers.

mod live;
mod stats;
mod unknown;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

use crate::service::StatisticsState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    StatisticsState: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(stats::read))
        .routes(routes!(live::stream))
        .routes(routes!(unknown::read))
}
