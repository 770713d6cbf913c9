//! The console in the browser: files that are built into the binary, and how they are served.
//!
//! `control/console/build` makes the files with Node; `build.rs` takes them if they are there. Without them the page says how
//! to build the console, so cargo alone needs no Node. The page and its scripts are public: what they show comes by
//! `/console/api/`, with a session. The reference of the API with its client, `/docs/reference/`, is built and served alike.
//!
//! Invariants: a page knows no absolute path. It begins with a `<base>` that leads to the root of the console from wherever
//! it was opened, so that a proxy may put any prefix before it. No page allows a script, a frame or a request that is not of
//! its own origin.

mod encoding;
mod page;

use axum::{
    Router,
    extract::{FromRef, State},
    http::{HeaderMap, HeaderName, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::{any, get},
};
use encoding::Encoding;
use shared::problem::Code;
use signin::domain::token::COOKIE_START;
use web::api_error::Refusal;

/// A file of the console, and its packed forms.
struct File {
    /// Its path below `/console/`.
    name: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

/// What was built; nothing where the console was not.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page itself.
const INDEX: &str = "index.html";

/// The page of the API's reference.
const REFERENCE: &str = "reference.html";

/// Files below it have a hash of their content in their names, and never change.
const HASHED: &str = "assets/";

/// Scripts, styles, images and requests of our own origin only. Styles that scripts set through the object model are allowed
/// by this, too; those in the markup are not. The logo of visitors' pages is a `data:` URL.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; worker-src 'self'; base-uri 'self'; form-action 'self'; \
    object-src 'none'; frame-ancestors 'none'";

/// The library of the reference writes its styles into the markup.
const REFERENCE_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    base-uri 'self'; form-action 'none'; object-src 'none'; frame-ancestors 'none'";

/// The page that says how to build the console has its style in itself, and no script.
const BARE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Whether the console was built into this binary.
#[must_use]
pub fn is_built() -> bool {
    !FILES.is_empty()
}

/// Whether this server has a provider of identities: the page then offers to sign in by it.
#[derive(Debug, Clone, Copy)]
pub struct HasProvider(pub bool);

/// The routes; what lies below `/console/api/` is not among them.
pub fn routes<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    HasProvider: FromRef<S>,
{
    Router::new()
        // Relative, so that it holds behind a proxy with a prefix.
        .route("/console", get(|| async { Redirect::permanent("console/") }))
        .route("/console/", get(root))
        .route("/docs/reference", get(|| async { Redirect::permanent("reference/") }))
        .route("/docs/reference/", get(reference))
        .route("/console/{*path}", get(answer))
        // Those that the API has are routes of their own.
        .route("/console/api/{*path}", any(|| async { no_such_path() }))
}

async fn root(State(provider): State<HasProvider>, headers: HeaderMap) -> Response {
    page_at("", &headers, provider)
}

async fn answer(State(provider): State<HasProvider>, uri: Uri, headers: HeaderMap) -> Response {
    // As it was sent: a browser resolves `..` by the slashes that it sees, not by those that are escaped.
    let path = uri.path().strip_prefix("/console/").unwrap_or_default();
    if matches!(path, "api" | "api/") {
        return no_such_path();
    }
    match FILES.iter().find(|file| file.name == path && file.name != INDEX && file.name != REFERENCE) {
        Some(file) => serve(file, &headers),
        // A file of another build: the page in its place would be taken for a script.
        None if path.starts_with(HASHED) => no_such_path(),
        None => page_at(path, &headers, provider),
    }
}

fn no_such_path() -> Response {
    Refusal { code: Code::NoSuchPath, errors: Vec::new(), detail: None }.into_response()
}

fn serve(file: &File, headers: &HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT_ENCODING);
    let accepted = accepted.iter().filter_map(|value| value.to_str().ok());
    let (encoding, bytes) = match (encoding::best(accepted), file.brotli, file.gzip) {
        (Some(Encoding::Brotli), Some(bytes), _) => (Some(Encoding::Brotli), bytes),
        (Some(_), _, Some(bytes)) => (Some(Encoding::Gzip), bytes),
        (_, _, _) => (None, file.plain),
    };
    let kept = match file.name.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let fixed = [
        (header::CONTENT_TYPE, media_type(file.name)),
        (header::CACHE_CONTROL, kept),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::VARY, "accept-encoding"),
    ];
    let encoded = encoding.map(|encoding| [(header::CONTENT_ENCODING, encoding.name())]);
    match encoded {
        Some(encoded) => (fixed, encoded, bytes).into_response(),
        None => (fixed, bytes).into_response(),
    }
}

/// The page as it is opened at a path below `/console/`.
fn page_at(path: &str, headers: &HeaderMap, HasProvider(has_provider): HasProvider) -> Response {
    let complete = |html: &str| page::with_base(html, path, has_session(headers), has_provider);
    built_page(INDEX, POLICY, complete)
}

/// The reference of the API, which tries operations with the session if there is one.
async fn reference(headers: HeaderMap) -> Response {
    let complete = |html: &str| page::with_base_at(html, "../../console/", has_session(&headers), false);
    built_page(REFERENCE, REFERENCE_POLICY, complete)
}

/// Whether the browser sent a session: a page without one asks for none, and is refused nothing.
fn has_session(headers: &HeaderMap) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).any(|pair| pair.trim().starts_with(COOKIE_START))
}

/// A page as it was built, completed; without it, the one that says how to build it.
fn built_page(name: &str, policy: &'static str, complete: impl FnOnce(&str) -> String) -> Response {
    let built = FILES.iter().find(|file| file.name == name);
    let (policy, html) = match built.and_then(|file| std::str::from_utf8(file.plain).ok()) {
        Some(html) => (policy, complete(html)),
        None => (BARE_POLICY, page::NOT_BUILT.to_owned()),
    };
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "private, no-cache"),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, html).into_response()
}

/// The media type of a file by its ending.
fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
