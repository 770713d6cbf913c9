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
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

use crate::service::SignInState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    SignInState: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(invitations::accept))
        .routes(routes!(own_password::change))
        .routes(routes!(session::sign_in, session::read, session::sign_out))
        .routes(routes!(links::sign_in))
        .routes(routes!(sessions::read_all))
        .routes(routes!(sessions::end))
        .routes(routes!(resets::request, resets::reset))
        .routes(routes!(second_factor::begin, second_factor::confirm))
        .routes(routes!(second_factor::disable))
        .routes(routes!(second_factor::renew))
}
