//! HTTP: commissions, decommissions and states of Thngs.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
mod commissioning;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::ActionState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    ActionState: FromRef<S>,
{
    Routes::new()
        .routes(routes!(commissioning::list_commissions))
        .routes(routes!(commissioning::commission).idempotent().body(|| bodies::step(true)))
        .routes(
            routes!(commissioning::list_decommissions, commissioning::decommission)
                .body(|| bodies::step(false)),
        )
        .routes(routes!(commissioning::read_state))
        .routes(routes!(commissioning::list_states).body(bodies::pairs))
}
