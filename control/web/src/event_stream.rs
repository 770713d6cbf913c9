//! Server-sent events: whether a client asks for them, and their answer.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, header},
    response::{IntoResponse, Response},
};
use tokio::sync::mpsc::Receiver;

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";

/// Whether `Accept` names the media type, so that the client follows what happens.
#[must_use]
pub fn is_asked(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts
        .flat_map(|value| value.split(','))
        .any(|range| range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(EVENT_STREAM))
}

/// Answers with the pieces as they come, until their sender is dropped.
#[must_use]
pub fn answer(pieces: Receiver<Bytes>) -> Response {
    let pieces = futures_util::stream::unfold(pieces, |mut pieces| async move {
        pieces.recv().await.map(|piece| (Ok::<_, Infallible>(piece), pieces))
    });
    // Buffering proxies would delay events.
    let headers = [
        (header::CONTENT_TYPE, EVENT_STREAM),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}
