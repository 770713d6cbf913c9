//! HTTP: statistics of scans.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod live;
mod project_counts;
mod rules;
mod stats;
mod unknown;

use axum::extract::FromRef;
use redirects::service::Redirects;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::StatisticsState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    StatisticsState: FromRef<S>,
    Redirects: FromRef<S>,
{
    Routes::new()
        .routes(routes!(stats::read))
        .routes(routes!(rules::read).by_edges())
        .routes(routes!(live::stream))
        .routes(routes!(unknown::read))
        .routes(routes!(project_counts::add).idempotent().body(bodies::reported_scans))
        .routes(routes!(project_counts::remove))
}
