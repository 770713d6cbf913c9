//! HTTP: scans as they happen, as server-sent events.
//!
//! Spec gap: the platform API shows no such stream.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, header},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    request_info::RequestInfo,
};

use crate::{
    domain::access::hash_key,
    service::{StatisticsState, live_scans},
};

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";

/// A scan of the stream: the `data` of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LiveScanDocument {
    /// When it was, in milliseconds since 1970.
    #[schema(example = 1_767_222_000_000_i64)]
    at: i64,
    /// The product.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    product: Option<String>,
    /// The short domain.
    #[schema(example = "tn.gg")]
    short_domain: String,
    /// The short id.
    #[schema(example = "K7Q2M4XA9R")]
    short_id: String,
    /// `true` for a robot.
    bot: Option<bool>,
    /// ISO 3166-1 alpha-2.
    #[schema(example = "DE")]
    country: Option<String>,
    /// The first subdivision of the country.
    #[schema(example = "Bavaria")]
    region: Option<String>,
    /// The city, for whoever may see personal data.
    #[schema(example = "Munich")]
    city: Option<String>,
    /// Degrees, rounded to a tenth, for whoever may see personal data.
    #[schema(example = 48.1)]
    latitude: Option<f64>,
    /// Degrees, rounded to a tenth, for whoever may see personal data.
    #[schema(example = 11.6)]
    longitude: Option<f64>,
}

/// Streams scans as they happen, for a map (`text/event-stream`).
///
/// It begins now and cannot be resumed. Of more than 50 scans a second some are shown, and an event `sampled` says how
/// many there were: `{"scans":812,"shown":50}`. A comment comes every 15 s where nothing else does. Without
/// `Accept: text/event-stream` the stream ends at once.
#[utoipa::path(get, path = "/scans/live", tag = "Scans", operation_id = "streamScans",
    responses((status = 200, description = "The stream", content_type = "text/event-stream", body = LiveScanDocument)),
    extensions(("x-maturity" = json!("Beta"))))]
pub(super) async fn stream(
    State(state): State<StatisticsState>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    info: RequestInfo,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let follows = accepts
        .flat_map(|value| value.split(','))
        .any(|range| range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(EVENT_STREAM));
    let pieces = live_scans::open(&state, &caller, hash_key(&key), info.client, follows).await?;
    let pieces = futures_util::stream::unfold(pieces, |mut pieces| async move {
        pieces.recv().await.map(|piece| (piece, pieces))
    });
    let body = Body::from_stream(pieces.map(Ok::<_, std::convert::Infallible>));
    // Buffering proxies would delay scans.
    let headers = [
        (header::CONTENT_TYPE, EVENT_STREAM),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body).into_response())
}
