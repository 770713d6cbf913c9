//! HTTP: actions and their types.
//!
//! Each handler extracts, calls one service function and answers.

mod action_types;
mod actions;
mod bodies;
mod new_actions;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, Routes},
};

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
        .routes(routes!(actions::list_of_product))
        .routes(routes!(new_actions::create_of_product).idempotent().body(|| bodies::actions(true)))
        .routes(routes!(actions::read_of_product, new_actions::delete_of_product))
        .routes(routes!(actions::list_of_collection))
        .routes(routes!(new_actions::create_of_collection).idempotent().body(|| bodies::actions(true)))
        .routes(routes!(actions::read_of_collection, new_actions::delete_of_collection))
        .routes(routes!(actions::list_of_thng))
        .routes(routes!(new_actions::create_of_thng).idempotent().body(|| bodies::actions(true)))
        .routes(routes!(actions::read_of_thng, new_actions::delete_of_thng))
        .routes(routes!(action_types::list))
        .routes(routes!(action_types::create).idempotent().body(|| bodies::action_type(true)))
        .routes(
            routes!(actions::list, action_types::update, action_types::delete)
                .body(|| bodies::action_type(false)),
        )
        .routes(routes!(new_actions::create).idempotent().body(|| bodies::actions(false)))
        .routes(routes!(actions::read, new_actions::delete))
}
