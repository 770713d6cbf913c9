//! HTTP: actions and their types.
//!
//! Each handler extracts, calls one service function and answers.

mod action_types;
mod actions;
pub mod bodies;
mod new_actions;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

pub use self::{
    actions::{ActionDocument, Shown, list_in},
    new_actions::Sender,
};
use crate::service::ActionState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    ActionState: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(actions::list_of_product, new_actions::create_of_product))
        .routes(routes!(actions::read_of_product, new_actions::delete_of_product))
        .routes(routes!(actions::list_of_collection, new_actions::create_of_collection))
        .routes(routes!(actions::read_of_collection, new_actions::delete_of_collection))
        .routes(routes!(actions::list_of_thng, new_actions::create_of_thng))
        .routes(routes!(actions::read_of_thng, new_actions::delete_of_thng))
        .routes(routes!(action_types::list, action_types::create))
        .routes(routes!(actions::list, new_actions::create, action_types::update, action_types::delete))
        .routes(routes!(actions::read, new_actions::delete))
}
