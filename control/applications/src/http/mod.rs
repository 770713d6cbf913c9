//! HTTP: projects, applications and their users.
//!
//! Each handler extracts, calls one service function and answers.

mod applications;
mod bodies;
mod bulk;
mod logins;
mod projects;
mod user_passwords;
mod users;

use std::sync::Arc;

use axum::extract::FromRef;
use tenants::http::bodies::{new_passwords, overlap};
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
        .routes(
            routes!(projects::list, bulk::projects::update, bulk::projects::delete)
                .body(|| bodies::project(false)),
        )
        .routes(routes!(projects::create).idempotent().body(|| bodies::project(true)))
        .routes(routes!(projects::read).answers_tag())
        .routes(routes!(projects::update, projects::delete).takes_tag().body(|| bodies::project(false)))
        .routes(
            routes!(applications::list, applications::update_many, applications::delete_many)
                .body(|| bodies::application(false)),
        )
        .routes(routes!(applications::create).idempotent().body(|| bodies::application(true)))
        .routes(routes!(applications::read).answers_tag())
        .routes(
            routes!(applications::update, applications::delete)
                .takes_tag()
                .body(|| bodies::application(false)),
        )
        .routes(routes!(applications::read_secret_key))
        .routes(routes!(applications::rotate_secret_key).idempotent().body(overlap))
        .routes(routes!(applications::rotate_public_key).idempotent().body(overlap))
        .routes(routes!(applications::read_own))
        .routes(routes!(logins::create).rate_limit(RateLimit::Login).idempotent().body(bodies::registration))
        .routes(routes!(logins::validate).rate_limit(RateLimit::Login).idempotent().body(bodies::activation))
        .routes(routes!(logins::login).rate_limit(RateLimit::Login).body(bodies::login))
        .routes(
            routes!(logins::login_by_old_name).rate_limit(RateLimit::Login).idempotent().body(bodies::login),
        )
        .routes(routes!(logins::logout).idempotent())
        .routes(routes!(user_passwords::request_reset).rate_limit(RateLimit::Login).body(bodies::address))
        .routes(routes!(user_passwords::reset).rate_limit(RateLimit::Login).body(bodies::reset))
        .routes(routes!(user_passwords::change).rate_limit(RateLimit::Login).body(new_passwords))
        .routes(routes!(users::list))
        .routes(routes!(users::read).answers_tag())
        .routes(routes!(users::update, users::delete).takes_tag().body(bodies::changed_user))
}
