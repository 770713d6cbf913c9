//! HTTP: actions and their types.
//!
//! Each handler extracts, calls one service function and answers.

mod action_types;
mod actions;
mod bodies;
mod by_resource;
mod new_actions;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

use self::by_resource::{of_collection, of_product, of_thng};
pub use self::{
    actions::{ActionDocument, Shown, list_in},
    new_actions::Sender,
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
        .routes(routes!(of_product::list))
        .routes(routes!(of_product::create).idempotent().body(|| bodies::actions(true)))
        .routes(routes!(of_product::read, of_product::delete))
        .routes(routes!(of_collection::list))
        .routes(routes!(of_collection::create).idempotent().body(|| bodies::actions(true)))
        .routes(routes!(of_collection::read, of_collection::delete))
        .routes(routes!(of_thng::list))
        .routes(routes!(of_thng::create).idempotent().body(|| bodies::actions(true)))
        .routes(routes!(of_thng::read, of_thng::delete))
        .routes(routes!(action_types::list))
        .routes(routes!(action_types::create).idempotent().body(|| bodies::action_type(true)))
        .routes(
            routes!(actions::list, action_types::update, action_types::delete)
                .body(|| bodies::action_type(false)),
        )
        .routes(routes!(new_actions::create).idempotent().body(|| bodies::actions(false)))
        .routes(routes!(actions::read, new_actions::delete))
}
