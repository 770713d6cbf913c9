//! `ETag` and `If-Match` of a redirection, whose tag is its revision.

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use shared::wire::stream::Rev;
use web::{conditions::condition, request_error::RequestError};

use crate::service::redirections::Expected;

/// An answer with the `ETag` of a redirection: its revision. Counting a scan does not change it.
pub(super) fn tagged(mut response: Response, rev: Rev) -> Response {
    if response.status().is_success()
        && let Ok(tag) = HeaderValue::from_str(&format!("\"{rev}\""))
    {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The revisions that `If-Match` names (RFC 9110, 13.1.1); a tag that is none of ours matches nothing.
pub(super) fn expected(headers: &HeaderMap) -> Result<Expected, RequestError> {
    Ok(Expected(condition(headers)?.into_numbers()))
}
