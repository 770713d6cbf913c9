//! What the service says of itself: the root, the OpenAPI document, the docs page, the guides.

use std::sync::Arc;

use axum::{
    Router,
    http::{HeaderName, header},
    response::IntoResponse,
    routing::get,
};
use serde_json::json;
use utoipa::openapi::OpenApi;

use super::{docs, guides, openapi, state::RouterState};

/// Nothing from outside, no script: the page is self-contained.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

const SECURITY_POLICY: HeaderName = header::CONTENT_SECURITY_POLICY;

/// The routes that need no key; all texts are built once, here.
pub(super) fn routes(document: &OpenApi) -> Router<RouterState> {
    let document = openapi::render(document);
    let json: Arc<str> = document.to_string().into();
    let page: Arc<str> = docs::page(&document).into();
    let root: Arc<str> =
        json!({"service": "Waymark", "docs": "/docs", "openapi": "/openapi.json"}).to_string().into();
    Router::new()
        .route("/", get(move || text("application/json", root.clone())))
        .route("/openapi.json", get(move || text("application/json", json.clone())))
        .route("/docs", get(move || text("text/html; charset=utf-8", page.clone())))
        .merge(guides::routes())
}

/// A page or document that loads nothing.
pub(super) async fn text(media_type: &'static str, text: Arc<str>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, media_type), (SECURITY_POLICY, POLICY)], text.to_string())
}
