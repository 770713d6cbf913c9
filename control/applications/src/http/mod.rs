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
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, RateLimit, Routes},
};

use crate::service::{Core, users::Users};

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<Core>: FromRef<S>,
    Users: FromRef<S>,
{
    Routes::new()
        .routes(routes!(projects::list, bulk::projects::update, bulk::projects::delete))
        .routes(routes!(projects::create).idempotent())
        .routes(routes!(projects::read).answers_tag())
        .routes(routes!(projects::update, projects::delete).takes_tag())
        .routes(routes!(applications::list, applications::update_many, applications::delete_many))
        .routes(routes!(applications::create).idempotent())
        .routes(routes!(applications::read).answers_tag())
        .routes(routes!(applications::update, applications::delete).takes_tag())
        .routes(routes!(applications::read_secret_key))
        .routes(routes!(applications::rotate_secret_key).idempotent())
        .routes(routes!(applications::rotate_public_key).idempotent())
        .routes(routes!(applications::read_own))
        .routes(routes!(logins::create).rate_limit(RateLimit::Login).idempotent())
        .routes(routes!(logins::validate).rate_limit(RateLimit::Login).idempotent())
        .routes(routes!(logins::login).rate_limit(RateLimit::Login))
        .routes(routes!(logins::login_by_old_name).rate_limit(RateLimit::Login).idempotent())
        .routes(routes!(logins::logout).idempotent())
        .routes(routes!(user_passwords::request_reset, user_passwords::reset).rate_limit(RateLimit::Login))
        .routes(routes!(user_passwords::change).rate_limit(RateLimit::Login))
        .routes(routes!(users::list))
        .routes(routes!(users::read).answers_tag())
        .routes(routes!(users::update, users::delete).takes_tag())
}
