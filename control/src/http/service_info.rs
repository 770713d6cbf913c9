//! What the service says of itself: the root, the OpenAPI document, the docs page, the guides.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    http::{HeaderName, header},
    response::IntoResponse,
    routing::get,
};
use serde_json::json;

use super::{docs, guides, router::document, state::RouterState};

/// Nothing from outside, no script: the page is self-contained.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

const SECURITY_POLICY: HeaderName = header::CONTENT_SECURITY_POLICY;

static ROOT: LazyLock<Arc<str>> = LazyLock::new(|| {
    json!({"service": "Waymark", "docs": "/docs", "openapi": "/openapi.json"}).to_string().into()
});
static DOCUMENT: LazyLock<Arc<str>> = LazyLock::new(|| document().to_string().into());
static PAGE: LazyLock<Arc<str>> = LazyLock::new(|| docs::page(&document()).into());

/// The routes that need no key; each text is made at the first request for it.
pub(super) fn routes() -> Router<RouterState> {
    Router::new()
        .route("/", get(|| text("application/json", ROOT.clone())))
        .route("/openapi.json", get(|| text("application/json", DOCUMENT.clone())))
        .route("/docs", get(|| text("text/html; charset=utf-8", PAGE.clone())))
        .merge(guides::routes())
}

/// A page or document that loads nothing.
pub(super) async fn text(media_type: &'static str, text: Arc<str>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, media_type), (SECURITY_POLICY, POLICY)], text.to_string())
}
