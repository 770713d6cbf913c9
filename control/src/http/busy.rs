//! Marks the connection of a request as active while the request is under way.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{ConnectInfo, Request},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use platform::Busy;

use super::serve::Served;

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
