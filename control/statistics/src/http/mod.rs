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
        // Questions of an account wait for each other; with places, other accounts would wait, too.
        .routes(routes!(stats::read).takes_no_place())
        .routes(routes!(rules::read).by_edges().takes_no_place())
        .routes(routes!(live::stream))
        .routes(routes!(unknown::read).takes_no_place())
        .routes(routes!(project_counts::add).idempotent().body(bodies::reported_scans))
        .routes(routes!(project_counts::remove))
}
