//! Builds every response of the edge.

mod errors;

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY,
        STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};
use hyper::body::{Frame, Incoming, SizeHint};
use shared::domain_files::JsonFile;

pub(crate) use self::errors::{Errors, PAGE_POLICY, Prepared, VARY_OF_PAGES};
use crate::{connection::InFlight, redirect_head::RedirectHead};

/// Initial capacity: headers that most responses have, plus those of the server.
const HEADERS: usize = 8;

/// The body of an answer: at hand, or passed on from control.
#[derive(Debug)]
pub(crate) enum Body {
    /// At hand; `None` once it was sent.
    Full(Option<Bytes>),
    /// Passed on as it comes; the connection counts as busy as long as it lasts.
    Passed {
        /// What control sends.
        body: Incoming,
        /// Held until the last byte is sent.
        _in_flight: InFlight,
    },
}

impl Body {
    /// No body at all.
    pub(crate) const fn empty() -> Self {
        Self::Full(None)
    }

    /// These bytes, if they are any.
    pub(crate) fn of(bytes: Bytes) -> Self {
        Self::Full((!bytes.is_empty()).then_some(bytes))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passed { body, .. } => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(bytes) => bytes.is_none(),
            Self::Passed { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Passed { body, .. } => body.size_hint(),
        }
    }
}

fn headers() -> HeaderMap {
    HeaderMap::with_capacity(HEADERS)
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

// Spec gap: the platform API does not show the status of the redirect. Without a choice it is 307, which keeps the method, and
// is not stored, so that a change of the target reaches the next scan.
/// A redirect to `location`.
///
/// `headers` is the request's map, which is no longer needed: hyper reuses the response's map for the next request,
/// so that no table is allocated or freed.
pub(crate) fn redirect(mut headers: HeaderMap, location: HeaderValue, head: RedirectHead) -> Response<Body> {
    headers.clear();
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, head.cache_control());
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response(head.status_code(), headers, Body::empty())
}

/// Adds the security headers of every response; `strict` says for one over TLS whether it gets
/// `Strict-Transport-Security`.
///
/// Names and values are static: nothing is parsed or allocated for them.
pub(crate) fn protect(headers: &mut HeaderMap, strict: Option<bool>) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The target of a redirect still learns which site links to it, but no path of that site.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin-when-cross-origin"));
    if let Some(strict) = strict {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(strict_transport(strict)));
    }
}

/// The value of `Strict-Transport-Security`.
pub(crate) const fn strict_transport(strict: bool) -> &'static str {
    if strict { "max-age=31536000" } else { "max-age=0" }
}

/// 200 with the JSON of a record.
pub(crate) fn record(json: Vec<u8>) -> Response<Body> {
    let mut headers = headers();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response(StatusCode::OK, headers, Body::of(json.into()))
}

/// A text that may be kept for a day.
pub(crate) fn text(content: impl Into<Bytes>) -> Response<Body> {
    let mut headers = headers();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    response(StatusCode::OK, headers, Body::of(content.into()))
}

/// What a certificate authority asked for.
pub(crate) fn challenge(answer: &str) -> Response<Body> {
    let mut headers = headers();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(CACHE_CONTROL, NO_STORE);
    response(StatusCode::OK, headers, Body::of(Bytes::copy_from_slice(answer.as_bytes())))
}

/// A JSON file of a domain, which may be kept for an hour; its bytes are shared and not copied.
pub(crate) fn file(file: &JsonFile) -> Response<Body> {
    let mut headers = headers();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response(StatusCode::OK, headers, Body::of(Bytes::from_owner(file.clone())))
}

/// 404 without words, kept for a day: there is no icon.
pub(crate) fn no_icon() -> Response<Body> {
    let mut headers = headers();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response(StatusCode::NOT_FOUND, headers, Body::of(Bytes::from_static(b"There is no icon.\n")))
}

/// Converts a response to GET into one to HEAD: the same headers, no body.
pub(crate) fn without_body(response: &mut Response<Body>) {
    if let Body::Full(bytes) = response.body()
        && response.status() != StatusCode::NOT_MODIFIED
    {
        let length = HeaderValue::from(bytes.as_ref().map_or(0, Bytes::len));
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    *response.body_mut() = Body::empty();
}

/// Names an image's bytes for the client's cache; the code of a short id never changes.
pub(crate) fn cacheable(headers: &mut HeaderMap, etag: HeaderValue) {
    headers.insert(ETAG, etag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
}

/// 200 with an image, or 304 when the client has it; `extra` are the headers that describe it.
pub(crate) fn image(
    kind: &'static str,
    bytes: Bytes,
    etag: HeaderValue,
    extra: HeaderMap,
    if_none_match: Option<&HeaderValue>,
) -> Response<Body> {
    let mut headers = headers();
    let is_known = if_none_match.is_some_and(|sent| matches(sent.as_bytes(), etag.as_bytes()));
    cacheable(&mut headers, etag);
    headers.extend(extra);
    if is_known {
        return response(StatusCode::NOT_MODIFIED, headers, Body::empty());
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response(StatusCode::OK, headers, Body::of(bytes))
}

/// Weak comparison, as `If-None-Match` has it; our tags hold no comma.
fn matches(sent: &[u8], etag: &[u8]) -> bool {
    sent.split(|byte| *byte == b',').any(|tag| {
        let tag = tag.trim_ascii();
        tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == etag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_compared_weakly() {
        for (sent, expected) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(matches(sent.as_bytes(), b"\"a\""), expected, "{sent}");
        }
    }
}
