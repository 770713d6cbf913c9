//! HTTP: events, webhooks and reactions.
//!
//! Each handler extracts, calls one service function and answers.

pub mod bodies;
mod bulk;
mod events;
mod followers;
mod reactions;
pub mod sockets;
mod webhooks;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

use crate::service::EventState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<EventState>: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(events::stream))
        .routes(routes!(events::export))
        .routes(routes!(webhooks::list, webhooks::create, bulk::webhooks::update, bulk::webhooks::delete))
        .routes(routes!(webhooks::read, webhooks::update, webhooks::delete))
        .routes(routes!(webhooks::list_secrets, webhooks::rotate))
        .routes(routes!(webhooks::ping))
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::send_again))
        .routes(routes!(webhooks::send_range_again))
        .routes(routes!(reactions::list, reactions::create, bulk::reactions::update, bulk::reactions::delete))
        .routes(routes!(reactions::read, reactions::update, reactions::delete))
}
