//! HTTP: events, webhooks and reactions.
//!
//! Each handler extracts, calls one service function and answers.

mod bodies;
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
        .routes(
            routes!(webhooks::list, bulk::webhooks::update, bulk::webhooks::delete)
                .body(|| bodies::webhook(false)),
        )
        .routes(routes!(webhooks::create).idempotent().body(|| bodies::webhook(true)))
        .routes(routes!(webhooks::read).answers_tag())
        .routes(routes!(webhooks::update, webhooks::delete).takes_tag().body(|| bodies::webhook(false)))
        .routes(routes!(webhooks::list_secrets))
        .routes(routes!(webhooks::rotate).idempotent().body(bodies::overlap))
        .routes(routes!(webhooks::ping).takes_no_place())
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::send_again).idempotent())
        .routes(routes!(webhooks::send_range_again).idempotent().body(bodies::redelivery))
        .routes(
            routes!(reactions::list, bulk::reactions::update, bulk::reactions::delete)
                .body(|| bodies::reaction(false)),
        )
        .routes(routes!(reactions::create).idempotent().body(|| bodies::reaction(true)))
        .routes(routes!(reactions::read).answers_tag())
        .routes(routes!(reactions::update, reactions::delete).takes_tag().body(|| bodies::reaction(false)))
}
