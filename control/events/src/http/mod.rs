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
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use crate::service::EventState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<EventState>: FromRef<S>,
{
    Routes::new()
        .routes(routes!(events::stream))
        .routes(routes!(events::export))
        .routes(routes!(webhooks::list, bulk::webhooks::update, bulk::webhooks::delete))
        .routes(routes!(webhooks::create).idempotent())
        .routes(routes!(webhooks::read).answers_tag())
        .routes(routes!(webhooks::update, webhooks::delete).takes_tag())
        .routes(routes!(webhooks::list_secrets))
        .routes(routes!(webhooks::rotate).idempotent())
        .routes(routes!(webhooks::ping))
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::send_again).idempotent())
        .routes(routes!(webhooks::send_range_again).idempotent())
        .routes(routes!(reactions::list, bulk::reactions::update, bulk::reactions::delete))
        .routes(routes!(reactions::create).idempotent())
        .routes(routes!(reactions::read).answers_tag())
        .routes(routes!(reactions::update, reactions::delete).takes_tag())
}
