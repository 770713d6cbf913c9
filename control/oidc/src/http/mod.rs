//! HTTP: sign-in by the provider, for browsers, and linked identities.
//!
//! Begin and callback are opened as pages: a failure is a page for a browser, and the common error for other clients. What is
//! refused before it gets here, by the gate and by limits, is the common error for all.

mod identities;
mod page;
mod sign_in;

use axum::extract::FromRef;
use utoipa_axum::routes;
use web::{
    access::Access,
    routes::{Columns, RateLimit, Routes},
};

use crate::service::OidcState;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    OidcState: FromRef<S>,
{
    Routes::new()
        // How it ends is not counted: that needs a beginning, and a browser must not be refused after the provider let it in.
        .routes(routes!(sign_in::begin).rate_limit(RateLimit::Login).page_from(sign_in::BEGIN_FROM))
        .routes(routes!(sign_in::finish).page_from(sign_in::FINISH_FROM))
        .routes(routes!(identities::read_all))
        .routes(routes!(identities::unlink))
        .routes(routes!(identities::read_of))
        .routes(routes!(identities::unlink_of))
}
