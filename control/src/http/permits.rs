//! The connection permit of a request: marks it as active, and records whose key it presented.

use std::{
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{ConnectInfo, Request},
    http::{StatusCode, request::Parts},
    middleware::Next,
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use platform::{Busy, Handle, Holder, Rank};

use super::serve::Served;
use crate::{
    domain::access::Actor,
    error::ServiceError,
    service::capacity::{holder, refusal},
};

/// The layer around everything: a connection is at work until the last byte of the answer was taken.
pub(super) async fn note_request(mut request: Request, next: Next) -> Response {
    let served = request.extensions_mut().remove::<ConnectInfo<Served>>();
    let Some(ConnectInfo(Served { connection, permit: Some(permit) })) = served else {
        return next.run(request).await;
    };
    request.extensions_mut().insert(ConnectInfo(connection));
    request.extensions_mut().insert(permit.clone());
    let busy = permit.begin();
    let response = next.run(request).await;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        permit.upgrade();
        return response;
    }
    response.map(|body| Body::new(Noted { body, _busy: busy }))
}

/// The body of an answer.
struct Noted {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Noted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The permit of the request's connection; none where the service runs without sockets.
pub(super) fn permit(parts: &Parts) -> Option<&Handle> {
    parts.extensions.get()
}

/// Gives the connection to the caller of a request.
pub(super) fn prove(parts: &Parts, actor: &Actor, key: [u8; 32]) -> Result<(), ServiceError> {
    let Some(permit) = permit(parts) else { return Ok(()) };
    permit.prove(&holder(actor, key)).map_err(refusal)
}

/// Assigns a long-lived connection to the caller, even if a proxy relays it.
pub(super) fn hold(
    parts: &Parts,
    actor: &Actor,
    key: [u8; 32],
    client: Option<IpAddr>,
) -> Result<(), ServiceError> {
    let Some(permit) = permit(parts) else { return Ok(()) };
    permit.hold(&holder(actor, key), client).map_err(refusal)
}

/// Gives the connection to an edge.
pub(super) fn prove_edge(parts: &Parts, edge: &str, key: [u8; 32]) -> Result<(), ServiceError> {
    let Some(permit) = permit(parts) else { return Ok(()) };
    let holder = Holder { rank: Rank::Trusted, key, account: edge.to_owned(), is_operator: true };
    permit.prove(&holder).map_err(refusal)
}
