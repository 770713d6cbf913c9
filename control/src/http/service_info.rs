//! What the service says of itself: the root, the OpenAPI document, the docs page, the guides, and where abuse is reported.

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    extract::State,
    http::{HeaderName, header},
    response::{IntoResponse, Response},
    routing::get,
};
use kernel::service::Core;
use serde_json::json;
use shared::contact::Contact;

use super::{docs, guides, middleware, router::document, state::RouterState};

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
        .route("/docs", get(|State(core): State<Arc<Core>>| async move { page(&core, &PAGE) }))
        .route("/.well-known/security.txt", get(security))
        .merge(guides::routes())
        .merge(webconsole::routes())
}

/// Where abuse is reported (RFC 9116), if that is set.
async fn security(State(core): State<Arc<Core>>) -> Response {
    let Some(contact) = &core.key_lookups.contact else {
        return middleware::no_such_path().await.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, contact.security_txt(core.clock.now().0)).into_response()
}

/// A page that loads nothing; at its end stands where abuse is reported.
pub(super) fn page(core: &Core, html: &str) -> Response {
    let contact = core.key_lookups.contact.as_deref();
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (SECURITY_POLICY, POLICY)];
    (headers, with_contact(html, contact)).into_response()
}

fn with_contact(html: &str, contact: Option<&Contact>) -> String {
    match (contact, html.rsplit_once("</body>")) {
        (Some(contact), Some((body, end))) => format!("{body}{}</body>{end}", contact.html()),
        (None, _) | (_, None) => html.to_owned(),
    }
}

/// A document.
async fn text(media_type: &'static str, text: Arc<str>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, media_type), (SECURITY_POLICY, POLICY)], text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_with_the_contact() {
        let contact = "abuse@example.com".parse().unwrap();
        let page = "<html><body><p>&lt;/body></p></body></html>";
        let shown = with_contact(page, Some(&contact));
        let end = "<a href=\"mailto:abuse@example.com\">abuse@example.com</a></small></p></body></html>";
        assert!(shown.starts_with("<html><body><p>&lt;/body></p><p>") && shown.ends_with(end), "{shown}");
        assert_eq!(with_contact(page, None), page);
    }
}
