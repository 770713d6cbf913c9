//! HTTP: sign-in, sessions and second factors of operators, for the console.
//!
//! The paths below `/console/api/` take the cookie of a session and no key. Each handler extracts, calls one service
//! function and answers.

pub mod bodies;
pub mod extract;
pub mod gate;
mod invitations;
mod links;
mod own_password;
mod resets;
mod second_factor;
mod session;
mod sessions;
mod throttled;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, RateLimit, Routes},
};

use crate::service::SignInState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    SignInState: FromRef<S>,
{
    Routes::new()
        .routes(routes!(invitations::accept).rate_limit(RateLimit::Login))
        .routes(routes!(own_password::change).rate_limit(RateLimit::Login))
        .routes(routes!(session::sign_in).rate_limit(RateLimit::Login).enrols())
        .routes(routes!(session::read, session::sign_out).enrols())
        .routes(routes!(links::sign_in).rate_limit(RateLimit::Login).enrols())
        .routes(routes!(sessions::read_all).enrols())
        .routes(routes!(sessions::end).enrols())
        .routes(routes!(resets::request, resets::reset).rate_limit(RateLimit::Login))
        .routes(routes!(second_factor::begin, second_factor::confirm).rate_limit(RateLimit::Login).enrols())
        .routes(routes!(second_factor::disable).rate_limit(RateLimit::Login).enrols())
        .routes(routes!(second_factor::renew).rate_limit(RateLimit::Login))
}
