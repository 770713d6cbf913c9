//! `ETag` and `If-Match` of a redirection, whose tag is its revision.

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use shared::wire::stream::Rev;

use crate::{error::RedirectsError, service::redirections::Expected};

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
pub(super) fn expected(headers: &HeaderMap) -> Result<Expected, RedirectsError> {
    if !headers.contains_key(header::IF_MATCH) {
        return Ok(Expected::default());
    }
    let fault = || RedirectsError::IfMatch;
    let mut revs = Vec::new();
    for line in headers.get_all(header::IF_MATCH) {
        for tag in line.to_str().map_err(|_| fault())?.split(',').map(str::trim) {
            if tag == "*" {
                return Ok(Expected::default());
            }
            let text = tag.strip_prefix("W/").unwrap_or(tag);
            let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).ok_or_else(fault)?;
            // By the strong comparison a weak tag matches nothing.
            revs.extend(text.parse::<Rev>().ok().filter(|_| !tag.starts_with("W/")));
        }
    }
    Ok(Expected(Some(revs)))
}

/// Refuses `If-Match`, which says nothing of several redirections.
pub(super) fn no_condition(headers: &HeaderMap) -> Result<(), RedirectsError> {
    if headers.contains_key(header::IF_MATCH) {
        return Err(RedirectsError::IfMatchOfSeveral);
    }
    Ok(())
}
