//! HTTP: sign-in by the provider, for browsers, and linked identities.
//!
//! Begin and callback are opened as pages: a failure is a page for a browser, and the common error for other clients. What is
//! refused before it gets here, by the gate and by limits, is the common error for all.

mod identities;
mod page;
mod sign_in;

use axum::extract::FromRef;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::access::Access;

use crate::service::OidcState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    OidcState: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(sign_in::begin))
        .routes(routes!(sign_in::finish))
        .routes(routes!(identities::read_all))
        .routes(routes!(identities::unlink))
        .routes(routes!(identities::read_of))
        .routes(routes!(identities::unlink_of))
}
