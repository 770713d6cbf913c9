//! HTTP: changes of many links.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod changes;
mod documents;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::LinkChangeState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<LinkChangeState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(changes::list))
        .routes(routes!(changes::create).idempotent().body(bodies::change))
        .routes(routes!(changes::read))
        .routes(routes!(changes::list_conflicts))
        .routes(routes!(changes::approve))
        .routes(routes!(changes::cancel))
        .routes(routes!(changes::undo).idempotent().body(bodies::undo))
}
