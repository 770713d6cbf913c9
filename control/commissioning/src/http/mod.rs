//! HTTP: commissions, decommissions and states of Thngs.
//!
//! Each handler extracts, calls one service function and answers.

pub mod bodies;
mod commissioning;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

use crate::service::ActionState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    ActionState: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(commissioning::list_commissions, commissioning::commission))
        .routes(routes!(commissioning::list_decommissions, commissioning::decommission))
        .routes(routes!(commissioning::read_state))
        .routes(routes!(commissioning::list_states))
}
