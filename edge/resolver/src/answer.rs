//! Answers with their headers.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY,
        CONTENT_TYPE, LINK, VARY,
    },
};

/// The context by which a linkset is JSON-LD.
pub(crate) const CONTEXT: &str = "https://ref.gs1.org/standards/resolver/linkset-context";

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Adds what every answer on the path of a Digital Link has: pages of other sites may read it, and caches keep it apart by
/// what decided.
pub fn open(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Link, Location"));
    headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Language"));
    if headers.contains_key(ALLOW) {
        headers.insert(ALLOW, METHODS);
    }
}

/// What follows on a URI in the value of `Link`: its linkset, and the context of JSON-LD.
pub(crate) const LINK_PARAMETERS: [&str; 3] = [
    "?linkType=linkset>; rel=\"linkset\"; type=\"application/linkset+json\", <",
    CONTEXT,
    ">; rel=\"http://www.w3.org/ns/json-ld#context\"; type=\"application/ld+json\"",
];

/// A redirect as an answer on the path of a Digital Link.
pub fn redirected(headers: &mut HeaderMap, link: HeaderValue) {
    headers.insert(LINK, link);
    open(headers);
}

/// An answer with a body of a media type, which nobody may keep.
pub(crate) fn with_body(status: StatusCode, media_type: &'static str, body: Vec<u8>) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if media_type.starts_with("text/html") {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(visitor_pages::POLICY));
    }
    open(headers);
    answer
}

/// The answer to OPTIONS.
pub(crate) fn options() -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    let rest: [(HeaderName, &'static str); 2] =
        [(ACCESS_CONTROL_ALLOW_HEADERS, "*"), (ACCESS_CONTROL_MAX_AGE, "86400")];
    for (name, value) in rest {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ALLOW, METHODS);
    open(headers);
    answer
}
