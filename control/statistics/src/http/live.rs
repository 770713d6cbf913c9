//! HTTP: scans as they happen, as server-sent events.
//!
//! Spec gap: the platform API shows no such stream.

use axum::{extract::State, http::HeaderMap, response::Response};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    event_stream,
    request_info::RequestInfo,
};

use crate::{
    domain::access::hash_key,
    service::{StatisticsState, live_scans},
};

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
/// It begins now and cannot be resumed. Of more than 50 scans a second some are shown, and an event `sampled` says at
/// least how many there were: `{"scans":812,"shown":50}`. A comment comes every 15 s where nothing else does. Without
/// `Accept: text/event-stream` the stream ends at once.
#[utoipa::path(get, path = "/scans/live", tag = "Scans", operation_id = "streamScans",
    responses((status = 200, description = "The stream", content_type = "text/event-stream", body = LiveScanDocument)))]
pub(super) async fn stream(
    State(state): State<StatisticsState>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    info: RequestInfo,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let follows = event_stream::is_asked(&headers);
    let pieces = live_scans::open(&state, &caller, hash_key(&key), info.client, follows).await?;
    Ok(event_stream::answer(pieces))
}
