//! HTTP: checks and previews of links, and waits for edges, for operations on products and Things.

mod bodies;
mod checks;
mod previews;

use std::sync::Arc;

use axum::{
    extract::{FromRef, Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use redirects::{service::Redirects, store::log};
use utoipa_axum::routes;
use web::{
    access::Access,
    api_error::ApiError,
    edges::{EDGES, Wait, edges_header},
    extract::Query,
    routes::{Columns, Policy, Routes},
};

use crate::service::check::LinkChecks;

/// The routes: each line is one path with its operations.
pub fn routes<S>() -> Routes<S>
where
    S: Clone + Send + Sync + 'static,
    Access: FromRef<S>,
    Arc<LinkChecks>: FromRef<S>,
    Redirects: FromRef<S>,
{
    // The pages are servers that may answer late.
    let checks = routes!(checks::check).takes_no_place();
    Routes::new().routes(checks).routes(routes!(previews::preview).body(bodies::assumed_request))
}

/// The layer: where the row of the request has the column `waits`, it waits for edges behind a success, if that was asked. 202:
/// it is done, and an edge had not confirmed it at the deadline.
pub async fn wait_for_edges(State(redirects): State<Redirects>, request: Request, next: Next) -> Response {
    let waits = request.extensions().get::<Policy>().is_some_and(|policy| policy.waits);
    if !waits {
        return next.run(request).await;
    }
    let wait = match Wait::parse(&Query::read(request.uri(), request.extensions())) {
        Ok(wait) => wait,
        Err(error) => return ApiError::from(error).into_response(),
    };
    let mut response = next.run(request).await;
    if !wait.is_asked() || !response.status().is_success() {
        return response;
    }
    // The newest revision is that of the change, or a later one.
    let head = match redirects.db.read().await {
        Ok(mut conn) => log::load_head(&mut conn).await,
        Err(error) => Err(error),
    };
    let report = match head {
        Ok(head) => {
            redirects.readers.wake_edges();
            wait.run(&*redirects.edges, head.head).await
        }
        Err(error) => {
            tracing::warn!(%error, "a change was made, but how far edges are could not be read");
            None
        }
    };
    if !report.as_ref().is_some_and(|report| report.is_done()) {
        *response.status_mut() = StatusCode::ACCEPTED;
    }
    if let Some(value) = report.as_ref().and_then(edges_header) {
        response.headers_mut().insert(EDGES, value);
    }
    response
}
