//! HTTP: what the platform operator does, below `/platform/`, with a key of the platform.
//!
//! Each handler extracts, calls one service function and answers. Spec gap: the platform API shows none of it.

mod access;
mod accounts;
mod audit;
mod bodies;
mod quotas;
mod take_downs;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::Redirects;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Redirects: FromRef<S>,
{
    Routes::new()
        .routes(routes!(accounts::list))
        .routes(routes!(accounts::read))
        .routes(routes!(accounts::suspend, accounts::resume).body(bodies::suspension))
        .routes(routes!(audit::list))
        .routes(routes!(quotas::read, quotas::set).body(bodies::account_quotas))
        .routes(routes!(quotas::read_defaults, quotas::set_defaults).body(bodies::default_quotas))
        .routes(routes!(take_downs::list))
        .routes(
            routes!(take_downs::of_link::read, take_downs::of_link::take_down, take_downs::of_link::release)
                .body(bodies::take_down),
        )
        .routes(
            routes!(take_downs::of_host::read, take_downs::of_host::take_down, take_downs::of_host::release)
                .body(bodies::take_down),
        )
}
