//! The outermost layer of every request, before the router: request id, `/v2` prefix, the error body, headers of all answers.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{ConnectInfo, MatchedPath, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header,
        uri::{Authority, PathAndQuery},
    },
    middleware::Next,
    response::Response,
};
use kernel::domain::quota::seconds_to_next_day;
use shared::{
    client_address::ClientAddress, id::ActionId, networks::network_of, problem::Code, time::UnixMillis,
};
use signin::http::gate::{OwnSegments, Side};
use tracing::{Instrument, field::Empty};
use web::{api_error::Refusal, rate_limit::Ledger, request_info::RequestInfo};

use super::{admission::Arrival, client, cors, serve::Connection};
use crate::{
    metrics::Metrics,
    service::base_urls::{Reached, base_url},
    state::ApiState,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The version prefix that every path may have.
const PREFIX: &str = "/v2";

/// What the layer needs.
#[derive(Clone)]
pub(super) struct Outermost {
    pub(super) app: Arc<ApiState>,
    pub(super) own: Option<&'static OwnSegments>,
}

/// The outermost layer.
pub(super) async fn finish(
    State(Outermost { app, own }): State<Outermost>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers(), &app);
    let (client, is_tls) = (client::address(&app, &request), is_tls(&request));
    let path: Arc<str> = without_prefix(request.uri().path()).into();
    let side = own.map_or(Side::Outside, |own| own.side(&path));
    let info = RequestInfo {
        id: id.as_str().into(),
        base: base_url(&app, reached(&app, &request)).await.into(),
        path: match side {
            Side::Api(path) => path.into(),
            Side::Outside | Side::Console => path.clone(),
        },
        original_path: request.uri().path().into(),
        client: client.map(|client| client.ip),
        limited_as: client.and_then(ClientAddress::limited),
    };
    // HTTP/2 carries the host in the URI; later layers read the header.
    if let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
    if info.path != info.original_path {
        *request.uri_mut() = with_path(request.uri(), &info.path);
    }
    // The query is left out: it may hold a key. Logs live outside of every setting for personal data, so they have the
    // network of a client and never its address.
    let network = info.client.map(network_of);
    let span = tracing::info_span!("http", request.id = %id, http.method = %request.method(), http.path = %info.original_path, http.client = network.map(tracing::field::display), http.route = Empty, http.status = Empty, otel.kind = "server");
    let ledger = Ledger::default();
    let is_gated = side != Side::Outside;
    request.extensions_mut().insert(info);
    request.extensions_mut().insert(ledger.clone());
    let arrival = Arrival { is_gated, route: Arc::default() };
    request.extensions_mut().insert(arrival.clone());
    let method = request.method().clone();
    let is_preflight = method == Method::OPTIONS && !is_gated;
    let response = next.run(request).instrument(span.clone()).await;
    let response = if is_preflight { cors::preflight(response) } else { response };
    let mut response =
        span.in_scope(|| complete(response, &app.docs_url, &app.metrics, app.core.clock.now()));
    ledger.write(&mut response);
    protect(response.headers_mut(), is_tls.then_some(app.base_urls.is_development()));
    // The console's own pages alone read what a cookie gives.
    if !is_gated {
        cors::open(response.headers_mut());
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let (status, elapsed) = (response.status(), started.elapsed());
    app.metrics.answered(arrival.route.get().map_or("none", MatchedPath::as_str), &method, status, elapsed);
    span.record("http.status", status.as_u16());
    span.in_scope(|| tracing::info!(elapsed_us = elapsed.as_micros(), "answered"));
    response
}

/// The answer to a path that no route has.
pub(super) async fn no_such_path() -> Refusal {
    Refusal { code: Code::NoSuchPath, errors: Vec::new(), detail: None }
}

/// Adds the error body to every error, also to those of the router.
pub(super) fn complete(
    mut response: Response,
    docs_url: &str,
    metrics: &Metrics,
    now: UnixMillis,
) -> Response {
    let status = response.status();
    let refusal = match response.extensions_mut().remove::<Refusal>() {
        Some(refusal) => refusal,
        None if response.headers().contains_key(header::CONTENT_TYPE) => return response,
        None if status == StatusCode::METHOD_NOT_ALLOWED => {
            Refusal { code: Code::MethodNotAllowed, errors: Vec::new(), detail: None }
        }
        None => return response,
    };
    if let Some((kind, detail)) = &refusal.detail {
        metrics.failed(*kind);
        tracing::error!(error.code = refusal.code as u32, error.detail = %detail, "failed");
    }
    if refusal.code == Code::DailyQuotaUsedUp {
        response.headers_mut().insert(header::RETRY_AFTER, seconds_to_next_day(now).into());
    }
    refusal.render(response, docs_url)
}

/// The id that the caller sent, if it is harmless, else a new one.
fn request_id(headers: &HeaderMap, app: &ApiState) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    match sent {
        Some(id) if is_request_id(id) => id.to_owned(),
        Some(_) | None => {
            ActionId::new(app.core.clock.now().0, app.core.random16().unwrap_or_default()).to_string()
        }
    }
}

fn is_request_id(id: &str) -> bool {
    (8..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn without_prefix(path: &str) -> &str {
    match path.strip_prefix(PREFIX) {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        Some(_) | None => path,
    }
}

fn with_path(uri: &Uri, path: &str) -> Uri {
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    match text.parse::<PathAndQuery>() {
        Ok(changed) => parts.path_and_query = Some(changed),
        Err(_) => return uri.clone(),
    }
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Whether TLS ends at our own listener.
fn is_tls(request: &Request) -> bool {
    request.extensions().get::<ConnectInfo<Connection>>().is_some_and(|info| info.0.is_tls)
}

/// How a request reached us, which decides scheme and host of the URLs in the answer.
///
/// A plain listener is on loopback or behind a proxy that ends TLS, so its `X-Forwarded-Proto` may be
/// believed.
fn reached<'a>(app: &ApiState, request: &'a Request) -> Reached<'a> {
    let headers = request.headers();
    let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let connection = request.extensions().get::<ConnectInfo<Connection>>().map(|info| info.0);
    let is_forwarded = header(HeaderName::from_static("x-forwarded-proto")) == Some("https");
    Reached {
        // HTTP/2 carries the host in the URI.
        host: header(header::HOST).or_else(|| request.uri().authority().map(Authority::as_str)),
        is_https: is_tls(request) || is_forwarded,
        is_of_edge: client::is_of_edge(app, headers),
        local: connection.and_then(|connection| connection.local),
    }
}

/// A year, over TLS alone; development certificates must not bind `localhost` to https.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");
const NOT_STRICT: HeaderValue = HeaderValue::from_static("max-age=0");

/// Adds headers for browsers and caches to every response; `over_tls` says whether certificates are development ones.
pub(super) fn protect(headers: &mut HeaderMap, over_tls: Option<bool>) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(is_development) = over_tls {
        let policy = if is_development { NOT_STRICT } else { STRICT };
        headers.insert(header::STRICT_TRANSPORT_SECURITY, policy);
    }
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if kind.starts_with(b"application/json") {
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn the_v2_prefix_is_stripped_once() {
        for (path, expected) in [
            ("/thngs", "/thngs"),
            ("/v2/thngs", "/thngs"),
            ("/v2", "/"),
            ("/v2/", "/"),
            ("/v2/v2/thngs", "/v2/thngs"),
            ("/v2x", "/v2x"),
            ("/v2/thngs/gs1%3A21%3AX", "/thngs/gs1%3A21%3AX"),
        ] {
            assert_eq!(without_prefix(path), expected, "{path}");
            let uri: Uri = format!("{path}?a=%2F").parse().unwrap();
            assert_eq!(with_path(&uri, expected).to_string(), format!("{expected}?a=%2F"));
        }
    }

    #[test]
    fn a_quota_of_the_day_says_when_the_day_is_over() {
        for (code, now, expected) in [
            (Code::DailyQuotaUsedUp, 1_000, Some("86399")),
            (Code::TooManyRequests, 1_000, Some("1")),
            (Code::QuotaUsedUp, 1_000, None),
        ] {
            let refusal = Refusal { code, errors: Vec::new(), detail: None };
            let response = refusal.into_response();
            let response = complete(response, "https://x/docs", &Metrics::default(), UnixMillis(now));
            let found = response.headers().get(header::RETRY_AFTER);
            assert_eq!(found.and_then(|value| value.to_str().ok()), expected, "{code:?}");
        }
    }

    #[test]
    fn request_ids_are_sanitised() {
        for (id, expected) in
            [("abcdefgh", true), ("short", false), ("a b c d e f", false), ("a-b_c-d_1", true)]
        {
            assert_eq!(is_request_id(id), expected, "{id}");
        }
        assert!(!is_request_id(&"a".repeat(65)));
    }

    #[test]
    fn responses_have_security_headers() {
        for (over_tls, kind, expected) in [
            (None, "application/json", [None, Some("no-store")]),
            (Some(false), "application/json", [Some("max-age=31536000"), Some("no-store")]),
            (Some(true), "image/png", [Some("max-age=0"), None]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            protect(&mut headers, over_tls);
            let found = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
            let names = [header::STRICT_TRANSPORT_SECURITY, header::CACHE_CONTROL];
            assert_eq!(names.map(found), expected, "{over_tls:?} {kind}");
            assert_eq!(found(header::X_CONTENT_TYPE_OPTIONS), Some("nosniff"));
            assert_eq!(found(header::REFERRER_POLICY), Some("no-referrer"));
        }
    }
}
