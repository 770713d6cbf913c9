//! HTTP: assessment of items, its settings and its cases.
//!
//! Each handler extracts, calls one service function and answers.

mod authentication;
mod authentication_result;
mod bodies;
mod cases;
mod report_forms;
mod report_photos;
mod reports;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, RateLimit, Routes},
};

use crate::service::AssessmentState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    AssessmentState: FromRef<S>,
{
    Routes::new()
        .routes(routes!(authentication::authenticate).body(bodies::trigger))
        .routes(
            routes!(authentication::read_settings, authentication::replace_settings)
                .body(bodies::assessment_settings),
        )
        .routes(routes!(authentication::replay).body(bodies::replay))
        .routes(routes!(cases::list))
        .routes(routes!(cases::read, cases::decide).body(bodies::decision))
        // The store of photos may be a server that answers late.
        .routes(routes!(report_photos::read).takes_no_place())
        .routes(routes!(reports::send).by_edges().rate_limit(RateLimit::Report).body(bodies::finder_report))
}
