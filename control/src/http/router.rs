//! The route table of the API.

use std::sync::{Arc, LazyLock, OnceLock};

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
        .merge(applications::http::routes())
        .merge(signin::http::routes())
        .merge(oidc::http::routes())
        .merge(catalog::http::routes())
        .merge(redirects::http::routes())
        .merge(actions::http::routes())
        .merge(commissioning::http::routes())
        .merge(assessment::http::routes())
        .merge(jobs::http::routes())
        .merge(events::http::routes())
        .merge(statistics::http::routes())
        .merge(hosting::http::routes())
        .routes(routes!(time::read))
        .routes(routes!(status::read))
}

/// The API as a service: the table with everything that all requests share around it.
pub fn router(app: Arc<ApiState>) -> Router {
    let (routes, document) = table().split_for_parts();
    let operations = DESCRIBED.get_or_init(|| openapi::completed(document));
    let state = RouterState(app.clone());
    let creates = once::Creates::new(app.core.clone(), operations);
    let inner = routes
        .merge(service_info::routes())
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

/// The OpenAPI document of the API, as it is served: it depends on the code alone, and is made once.
#[must_use]
pub fn document() -> Arc<Value> {
    static RENDERED: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(openapi::render(operations())));
    RENDERED.clone()
}

/// Every operation, without what only JSON can say.
pub(super) fn operations() -> &'static OpenApi {
    DESCRIBED.get_or_init(|| openapi::completed(table().split_for_parts().1))
}

static DESCRIBED: OnceLock<OpenApi> = OnceLock::new();
