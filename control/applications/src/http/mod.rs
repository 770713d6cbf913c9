//! HTTP: projects, applications and their users.
//!
//! Each handler extracts, calls one service function and answers.

mod applications;
pub mod bodies;
mod bulk;
mod logins;
mod projects;
mod user_passwords;
mod users;

use std::sync::Arc;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

use crate::service::{Core, users::Users};

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<Core>: FromRef<S>,
    Users: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(projects::list, projects::create, bulk::projects::update, bulk::projects::delete))
        .routes(routes!(projects::read, projects::update, projects::delete))
        .routes(routes!(
            applications::list,
            applications::create,
            applications::update_many,
            applications::delete_many
        ))
        .routes(routes!(applications::read, applications::update, applications::delete))
        .routes(routes!(applications::read_secret_key))
        .routes(routes!(applications::rotate_secret_key))
        .routes(routes!(applications::rotate_public_key))
        .routes(routes!(applications::read_own))
        .routes(routes!(logins::create))
        .routes(routes!(logins::validate))
        .routes(routes!(logins::login))
        .routes(routes!(logins::login_by_old_name))
        .routes(routes!(logins::logout))
        .routes(routes!(user_passwords::request_reset, user_passwords::reset))
        .routes(routes!(user_passwords::change))
        .routes(routes!(users::list))
        .routes(routes!(users::read, users::update, users::delete))
}
