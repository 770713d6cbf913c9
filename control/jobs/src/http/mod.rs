//! HTTP: jobs and their logs.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod jobs;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::JobState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<JobState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::create).idempotent().body(bodies::action_job))
        .routes(routes!(jobs::read, jobs::delete))
        .routes(routes!(jobs::logs))
        .routes(routes!(jobs::cancel).idempotent())
}
