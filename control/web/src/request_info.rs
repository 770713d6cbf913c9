//! What handlers may want to know of the request as a whole.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};

/// What handlers may want to know of the request as a whole.
#[derive(Debug, Clone)]
pub struct RequestInfo {
    /// The id of the request, from the client or ours.
    pub id: Arc<str>,
    /// Scheme and host by which the client reached us, without a slash at the end.
    pub base: Arc<str>,
    /// The path without the version prefix, not decoded.
    pub path: Arc<str>,
    /// The path as the client sent it.
    pub original_path: Arc<str>,
    /// The client's address; known but where the service runs without sockets.
    pub client: Option<IpAddr>,
    /// The address by which the client is limited; `None` for a program of this machine.
    pub limited_as: Option<IpAddr>,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestInfo {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self {
            id: "".into(),
            base: "".into(),
            path: parts.uri.path().into(),
            original_path: parts.uri.path().into(),
            client: None,
            limited_as: None,
        }))
    }
}
