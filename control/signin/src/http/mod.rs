//! HTTP: sign-in, sessions and second factors of operators, for the console.
//!
//! The paths below `/console/api/` take the cookie of a session and no key. Each handler extracts, calls one service
//! function and answers.

mod bodies;
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
use tenants::http::bodies::new_passwords;
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
        .routes(routes!(invitations::accept).rate_limit(RateLimit::Login).body(bodies::acceptance))
        .routes(routes!(own_password::change).rate_limit(RateLimit::Login).body(new_passwords))
        .routes(routes!(session::sign_in).rate_limit(RateLimit::Login).enrols().body(bodies::sign_in))
        .routes(routes!(session::read, session::sign_out).enrols())
        .routes(routes!(links::sign_in).rate_limit(RateLimit::Login).enrols().body(bodies::link))
        .routes(routes!(sessions::read_all).enrols())
        .routes(routes!(sessions::end).enrols())
        .routes(routes!(resets::request).rate_limit(RateLimit::Login).body(bodies::address))
        .routes(routes!(resets::reset).rate_limit(RateLimit::Login).body(bodies::reset))
        .routes(
            routes!(second_factor::begin).rate_limit(RateLimit::Login).enrols().body(bodies::only_password),
        )
        .routes(
            routes!(second_factor::confirm).rate_limit(RateLimit::Login).enrols().body(bodies::confirmation),
        )
        .routes(
            routes!(second_factor::disable).rate_limit(RateLimit::Login).enrols().body(bodies::both_factors),
        )
        .routes(routes!(second_factor::renew).rate_limit(RateLimit::Login).body(bodies::both_factors))
}
