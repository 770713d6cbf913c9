//! CORS: the API accepts keys and no cookies, so pages of any origin may call it.
//!
//! Application keys are meant to be in public pages, where the vendor's SDK runs.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// What scripts of other origins may read beside the body.
const EXPOSED: &str = "Allow, Content-Disposition, ETag, Link, Location, Preference-Applied, RateLimit-Limit, \
    RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Ignored, X-Request-Id, X-Result-Count";

/// `*` covers every header but `Authorization`.
const ALLOWED: &str = "Authorization, *";

/// How long a browser need not ask again, in seconds: the longest that any of them keeps.
const MAX_AGE_S: &str = "7200";

/// The answer to OPTIONS on a path that exists; `refused` is the router's 405, which names the methods.
///
/// Any other answer stays: an unknown path is 404 for a preflight too.
pub(super) fn preflight(refused: Response) -> Response {
    if refused.status() != StatusCode::METHOD_NOT_ALLOWED {
        return refused;
    }
    let mut headers = HeaderMap::new();
    if let Some(methods) = refused.headers().get(header::ALLOW) {
        headers.insert(header::ALLOW, methods.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
    }
    set(&mut headers, header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
    set(&mut headers, header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets scripts of every origin read a response; browser credentials are never used.
pub(super) fn open(headers: &mut HeaderMap) {
    set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}
