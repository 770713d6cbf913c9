//! The internal listener for edges: what `push` answers, and the intake of scans.
//!
//! Every request carries an edge's key, and what it says of its edge must match the key.

use std::{io, sync::Arc};

use axum::{
    Json,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRef, State, rejection::BytesRejection},
    http::{HeaderMap, header::CONTENT_TYPE},
    routing::post,
};
use push::http::{Edge, EdgeApi, part};
use serde_json::{Value, json};
use shared::wire::{
    internal::{LIMITS_PATH, SCANS_PATH, UNKNOWN_PATH},
    limits::LimitReport,
    scan::{MAX_BATCH, ScanAnswer, ScanBatch},
    spooled::{SPOOLED, read_all},
    unknown::UnknownReport,
};
use statistics::service::{scan_limits, unknown_scans};
use tokio_util::sync::CancellationToken;
use web::{access::Access, api_error::ApiError, extract::Query, routes::Policies};

use super::{
    middleware,
    router::behind_layers,
    serve::{ApiListeners, Clients, run_router},
};
use crate::{error::ControlError, state::ApiState, worker::ingest_scans::ingest};

/// Largest body: a batch of 1,000 scans of up to 6 KiB each.
const MAX_BODY_BYTES: usize = 8 << 20;

/// What edges ask has no rows of its own.
static POLICIES: Policies = Policies::none();

/// The state of the listener: what handlers for edges work with, and what takes scans.
#[derive(Clone)]
struct Internal {
    edges: EdgeApi,
    app: Arc<ApiState>,
}

impl FromRef<Internal> for EdgeApi {
    fn from_ref(internal: &Internal) -> Self {
        internal.edges.clone()
    }
}

/// Serves edges until `shutdown`, then sends them to other replicas and finishes open requests.
///
/// # Errors
/// A socket cannot be used.
pub async fn run(listeners: ApiListeners, app: Arc<ApiState>, shutdown: CancellationToken) -> io::Result<()> {
    let access = Access { core: app.core.clone(), limiter: app.limiter.clone() };
    let edges = EdgeApi::new(access, app.hub.clone(), app.edge_keys.clone(), shutdown.clone());
    let streams = edges.streams.clone();
    let routes = push::http::routes()
        .route(SCANS_PATH, post(take_scans))
        .route(UNKNOWN_PATH, post(take_unknown))
        .route(LIMITS_PATH, post(take_limits))
        .fallback(middleware::no_such_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Internal { edges, app: app.clone() });
    let clients = Clients {
        permits: app.core.capacity.internal.clone(),
        times: app.core.capacity.limits.times,
        proxies: app.trusted_proxies.clone(),
    };
    let routes = behind_layers(routes, app, &POLICIES, None);
    run_router(listeners, routes, clients, shutdown).await?;
    streams.close();
    streams.wait().await;
    Ok(())
}

/// Takes a batch of scans of the caller's own.
async fn take_scans(
    State(internal): State<Internal>,
    edge: Edge,
    query: Query,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ScanAnswer>, ApiError> {
    let body = read_whole(body)?;
    let is_spooled = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == SPOOLED);
    let batch = if is_spooled { read_spooled(&query, &body)? } else { read_json(&body)? };
    if batch.edge != edge.name {
        return Err(ControlError::ForeignBatch.into());
    }
    Ok(Json(ScanAnswer { receipt: ingest(&internal.app, &batch).await?, takes_spooled: true }))
}

/// Takes a report of the caller's own about requests for ids that do not exist.
async fn take_unknown(
    State(internal): State<Internal>,
    edge: Edge,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, ApiError> {
    let report: UnknownReport = serde_json::from_slice(&read_whole(body)?).map_err(ControlError::NoReport)?;
    if *report.edge != *edge.name {
        return Err(ControlError::ForeignReport.into());
    }
    unknown_scans::record(&internal.app.core, &report).await?;
    Ok(Json(json!({})))
}

/// Takes a report of the caller's own about links with a limit.
async fn take_limits(
    State(internal): State<Internal>,
    edge: Edge,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, ApiError> {
    let report: LimitReport = serde_json::from_slice(&read_whole(body)?).map_err(ControlError::NoReport)?;
    if *report.edge != *edge.name {
        return Err(ControlError::ForeignReport.into());
    }
    scan_limits::record(&internal.app.core, &report).await?;
    Ok(Json(json!({})))
}

fn read_whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, ControlError> {
    body.map_err(|_| ControlError::BodyTooLarge { most: MAX_BODY_BYTES })
}

fn read_json(body: &[u8]) -> Result<ScanBatch, ControlError> {
    serde_json::from_slice(body).map_err(ControlError::NoBatch)
}

/// A batch as it lay on the disk of an edge.
fn read_spooled(query: &Query, body: &[u8]) -> Result<ScanBatch, ApiError> {
    let number =
        |name| query.find(name).and_then(|text| text.parse().ok()).ok_or(ControlError::NoNumber { name });
    let edge = part(query, "edge")?.into();
    let (boot, first_seq) = (number("boot")?, number("firstSeq")?);
    let records = read_all(body).ok_or(ControlError::NoRecords { most: MAX_BATCH })?;
    Ok(ScanBatch { edge, boot, first_seq, records })
}
