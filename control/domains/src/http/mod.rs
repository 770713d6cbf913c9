//! HTTP: short domains of accounts.
//!
//! Each handler extracts, calls one service function and answers.

pub mod bodies;
mod claims;
mod documents;
mod domains;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::DomainState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<DomainState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(domains::list_hosts))
        .routes(routes!(domains::list))
        .routes(routes!(domains::update_by_older_name))
        .routes(routes!(claims::create).idempotent())
        .routes(routes!(domains::read, domains::update, claims::delete))
        .routes(routes!(claims::verify))
}
