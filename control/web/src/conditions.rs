//! Conditional requests: answers with the `ETag` of a resource, and changes of the state that `If-Match` names.

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use shared::entity_tag::{Condition, EntityTag};

use crate::request_error::RequestError;

/// A resource as JSON, with the `ETag` of its state.
#[derive(Debug)]
pub struct Tagged<T>(pub EntityTag, pub T);

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let Self(tag, document) = self;
        let mut response = Json(document).into_response();
        if let Ok(tag) = HeaderValue::from_str(&tag.to_string()) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// Which states `If-Match` admits.
///
/// # Errors
/// It is neither `*` nor tags in quotes.
pub fn condition(headers: &HeaderMap) -> Result<Condition, RequestError> {
    let lines = headers.get_all(header::IF_MATCH).iter().map(HeaderValue::as_bytes);
    Condition::parse(lines).map_err(RequestError::IfMatch)
}
