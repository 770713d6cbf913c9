//! HTTP: erasures of personal data.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod erasures;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::PrivacyState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<PrivacyState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(erasures::list))
        .routes(routes!(erasures::create).idempotent().body(bodies::erasure))
        .routes(routes!(erasures::read))
}
