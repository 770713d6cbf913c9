//! The route table of the API.

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware::{from_fn, from_fn_with_state},
};
use events::http::sockets::{self, Sockets};
use kernel::domain::limits::MAX_BODY_BYTES;
use serde_json::Value;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};
use web::{known::name_unknown, once};

use super::{known::OPERATIONS, middleware, openapi, service_info, state::RouterState, status, time};
use crate::state::ApiState;

/// The table: the routes of each subject, and those of no subject.
fn table() -> OpenApiRouter<RouterState> {
    OpenApiRouter::with_openapi(openapi::base())
        .merge(tenants::http::routes())
        .merge(catalog::http::routes())
        .merge(redirects::http::routes())
        .merge(actions::http::routes())
        .merge(commissioning::http::routes())
        .merge(assessment::http::routes())
        .merge(jobs::http::routes())
        .merge(events::http::routes())
        .merge(hosting::http::routes())
        .routes(routes!(time::read))
        .routes(routes!(status::read))
}

/// The API as a service: the table with everything that all requests share around it.
pub fn router(app: Arc<ApiState>) -> Router {
    let (routes, mut document) = table().split_for_parts();
    openapi::complete(&mut document);
    let state = RouterState(app.clone());
    let creates = once::Creates::new(app.core.clone(), &document);
    let inner = routes
        .merge(service_info::routes(&document))
        .route_layer(from_fn(middleware::note_route))
        .fallback(middleware::no_such_path)
        // Inside the next layer, so that a stored response keeps its `X-Ignored`.
        .layer(from_fn_with_state(&*OPERATIONS, name_unknown))
        .layer(from_fn_with_state(creates, once::once))
        .layer(from_fn_with_state(Sockets(app.broker.clone()), sockets::open))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state);
    // The prefix is cut before routing: the outer router has no routes, only the layer.
    Router::new().fallback_service(inner).layer(from_fn_with_state(app, middleware::finish))
}

/// The OpenAPI document of the API, as it is served.
#[must_use]
pub fn document() -> Value {
    openapi::render(&operations())
}

/// Every operation, without what only JSON can say.
pub(super) fn operations() -> OpenApi {
    let (_, mut document) = table().split_for_parts();
    openapi::complete(&mut document);
    document
}
