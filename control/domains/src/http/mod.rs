//! HTTP: short domains of accounts.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod certificates;
mod claims;
mod documents;
mod domains;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Queries, Routes},
};

use crate::service::DomainState;

/// Which domains a list shows.
const STATES: Queries = &[(
    "state",
    "A state, or `all`; without it those on which links may be, which are `verified` or `unproven`",
)];

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<DomainState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(domains::list_hosts))
        .routes(routes!(domains::list).queries(STATES))
        .routes(routes!(domains::update_by_older_name).answers_tag().takes_tag().body(bodies::settings))
        .routes(routes!(claims::create).idempotent().body(bodies::claim))
        .routes(routes!(domains::read).answers_tag())
        .routes(routes!(domains::update).answers_tag().takes_tag().body(bodies::settings))
        .routes(routes!(claims::delete).takes_tag())
        .routes(routes!(claims::verify).takes_no_place())
        .routes(routes!(certificates::try_now))
}
