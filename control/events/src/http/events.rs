//! HTTP: the event stream as server-sent events (`text/event-stream`).

use std::sync::Arc;

use actions::http::ActionDocument;
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, header},
    response::{IntoResponse, Response},
};
use shared::time::Clock;
use utoipa::ToSchema;
use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    event_stream,
    extract::{Path, Query},
    listing::time,
    media,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        access::hash_key,
        event::Position,
        event_filter::{Condition, Types},
    },
    service::{
        EventState,
        events::{self, Request},
        export::{self, Form},
    },
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A message of the stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct StreamedEvent {
    /// Its place in the log, for `Last-Event-ID`.
    id: Option<String>,
    /// A JSON object of `type`, `timestamp` in milliseconds since 1970, and `data`.
    data: String,
}

/// Tells what happens in the account: actions, properties, redirections, ends of jobs, reports about copies.
///
/// Each event is one message of `text/event-stream` with an `id` and, as `data`, a JSON object of `type`,
/// `timestamp` and `data`. A request whose `Accept` names `text/event-stream` gets what happens from now on, and a
/// sign of life every 15 seconds; one that does not gets what is kept, oldest first, and an end. Events of a
/// day are kept, at most a million in all. Reports about copies are for operators with `cases:read`.
#[utoipa::path(get, path = "/events", tag = "Events", operation_id = "streamEvents",
    params(
        ("types" = Option<String>, Query, description = "Types with commas: `action`, `action.scans`, \
            `properties.updated`, `redirection`, `redirection.created`, `redirection.updated`, \
            `redirection.deleted`, `job.completed`, `printOrder.completed`, `shortDomain.verified`, \
            `shortDomain.unproven`, `shortDomain.certificateIssued`, `shortDomain.certificateFailed`, \
            `linkChange.completed`, `case.reported`; without it all"),
        ("match" = Option<String>, Query, description = "What an event must meet, in the language of `filter`: \
            `context.countryCode=DE&customFields.grade>3`"),
        ("lastEventId" = Option<String>, Query, description = "The place to go on from, where no header \
            `Last-Event-ID` can be sent; 409 when it is not kept any more")),
    responses((status = 200, description = "The stream", content_type = "text/event-stream", body = StreamedEvent)))]
pub(super) async fn stream(
    State(state): State<Arc<EventState>>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    info: RequestInfo,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let mut faults = Vec::new();
    let types = Types::parse(query.find("types").unwrap_or_default()).unwrap_or_else(|fault| {
        faults.push(format!("types: {fault}."));
        Types::default()
    });
    let condition = query.find("match").map(Condition::parse).transpose().unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    let sent = headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or("?"));
    let sent = sent.or_else(|| query.find("lastEventId")).filter(|text| !text.is_empty());
    let after = sent.map(str::parse::<Position>).transpose().unwrap_or_else(|fault| {
        faults.push(format!("Last-Event-ID {fault}."));
        None
    });
    ApiError::check_parameters(faults)?;
    let follows = event_stream::is_asked(&headers);
    let request = Request { types, condition, after, client: info.client, follows };
    let pieces = events::open(&state, &caller, hash_key(&key), request).await?;
    Ok(event_stream::answer(pieces))
}

/// Exports actions of one type, or of `all`: a line of JSON for each, oldest first, with `context`.
///
/// The answer is of any length and has a line for each action as `GET /actions/{type}` shows it. One that breaks
/// off, which HTTP tells, goes on with `after` and the `id` of the last whole line. With `Accept:
/// application/vnd.apache.parquet` it is one Parquet file, whose columns are in the guide; an account has one of these under
/// way at a time, else 429. A file that broke off has no footer and cannot be read: begin again.
#[utoipa::path(get, path = "/actions/{type}/export", tag = "Actions", operation_id = "exportActions",
    params(("type" = String, Path, description = "Name of a type, or `all`"),
        ("from" = Option<i64>, Query, description = "Only actions made then or later: `createdAt`"),
        ("to" = Option<i64>, Query, description = "Only actions made before; without it, before now"),
        ("after" = Option<String>, Query, description = "Id of the action behind which to begin; 409 when it is not there"),
        ("project" = Option<String>, Query, description = "Only what is scoped to this project")),
    responses((status = 200, description = "The lines, or the file", content((ActionDocument = "application/x-ndjson"),
        (String = "application/vnd.apache.parquet")))))]
pub(super) async fn export(
    State(state): State<Arc<EventState>>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    info: RequestInfo,
    Path(kind): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let mut faults = Vec::new();
    let (from, to) = (time(&query, "from", &mut faults), time(&query, "to", &mut faults));
    let after = query.find("after").map(str::parse).transpose().unwrap_or_else(|_| {
        faults.push("after must be the id of an action.".to_owned());
        None
    });
    let project = query.find("project").map(str::parse).transpose().unwrap_or_else(|_| {
        faults.push("project must be the id of a project.".to_owned());
        None
    });
    ApiError::check_parameters(faults)?;
    // Rows of the present millisecond may not be complete yet.
    let to = to.unwrap_or_else(|| state.clock.now());
    let from = from.map_or(i64::MIN, |from| from.0);
    let [lines, file] = [Form::Ndjson, Form::Parquet];
    let form = if media::prefers(&headers, file.media_type(), lines.media_type()) { file } else { lines };
    let request = export::Request { from, to: to.0, after, project, client: info.client, form };
    let pieces = export::open(&state, &caller, hash_key(&key), &kind, request).await?;
    let pieces = futures_util::stream::unfold(pieces, |mut pieces| async move {
        pieces.recv().await.map(|piece| (piece, pieces))
    });
    let headers = [
        (header::CONTENT_TYPE, form.media_type()),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "Accept"),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}
