//! The internal listener for edges: change stream, scan intake, single reads, pages of links.
//!
//! Every request carries an edge's key, and what it says of its edge must match the key.

use std::{io, sync::Arc};
use web::access::Access;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRef, FromRequestParts, State, rejection::BytesRejection},
    http::{HeaderMap, header::CONTENT_TYPE, request::Parts},
    middleware::from_fn_with_state,
    routing::{get, post},
};
use shared::{
    problem::Code,
    redirect::RedirectKey,
    wire::{
        internal::{EDGES_PATH, LINKS_PATH, LOOKUP_PATH, SCANS_PATH, STREAM_PATH},
        links::LinksPage,
        scan::{MAX_BATCH, ScanAnswer, ScanBatch},
        spooled::{SPOOLED, read_all},
        stream::Fill,
    },
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use web::{
    access::{Authenticated, find_key},
    api_error::ApiError,
    extract::Query,
    permits, rate_limit,
};

use super::{
    middleware,
    serve::{ApiListeners, Clients, run_router},
    status::EdgesDocument,
};
use crate::{
    domain::permission::{Subject, Verb},
    error::ServiceError,
    service::{App, access::require, edge_keys::KeyHash},
    store::{redirections, snapshot::Snapshot},
    worker::ingest_scans::ingest,
};

mod stream;

/// Largest body: a batch of 1,000 scans of up to 6 KiB each.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Concurrent pages of links: edges that start must not starve others of the database.
const PAGES: usize = 2;

/// Longest host and short id that are looked up, in bytes.
const MAX_KEY: usize = 300;

/// What the listener of edges works with.
#[derive(Clone)]
struct Internal {
    app: Arc<App>,
    pages: Arc<Semaphore>,
    /// Cancelled when edges shall go elsewhere.
    leave: CancellationToken,
    streams: TaskTracker,
}

impl FromRef<Internal> for Access {
    fn from_ref(internal: &Internal) -> Self {
        Self { core: internal.app.core.clone(), limiter: internal.app.limiter.clone() }
    }
}

/// Serves edges until `shutdown`, then sends them to other replicas and finishes open requests.
///
/// # Errors
/// A socket cannot be used.
pub async fn run(listeners: ApiListeners, app: Arc<App>, shutdown: CancellationToken) -> io::Result<()> {
    let streams = TaskTracker::new();
    let internal = Internal {
        app: app.clone(),
        pages: Arc::new(Semaphore::new(PAGES)),
        leave: shutdown.clone(),
        streams: streams.clone(),
    };
    let routes = Router::new()
        .route(STREAM_PATH, get(stream::open))
        .route(SCANS_PATH, post(take_scans))
        .route(LOOKUP_PATH, get(look_up))
        .route(LINKS_PATH, get(list_links))
        .route(EDGES_PATH, get(list_edges))
        .fallback(middleware::no_such_path)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(internal);
    let clients = Clients {
        permits: app.capacity.internal.clone(),
        times: app.capacity.limits.times,
        proxies: app.trusted_proxies.clone(),
    };
    let routes = Router::new().fallback_service(routes).layer(from_fn_with_state(app, middleware::finish));
    run_router(listeners, routes, clients, shutdown).await?;
    streams.close();
    streams.wait().await;
    Ok(())
}

/// The edge behind the key of a request.
struct Edge {
    name: Arc<str>,
    key: KeyHash,
}

impl FromRequestParts<Internal> for Edge {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, internal: &Internal) -> Result<Self, ApiError> {
        let app = &internal.app;
        // A key is guessed here as well as at the API.
        Self::find(app, parts).await.map_err(|error| match error.code() {
            Code::KeyMissing | Code::KeyUnknown => {
                rate_limit::count_refusal(&app.limiter, parts, error).into()
            }
            _ => error.into(),
        })
    }
}

impl Edge {
    /// The edge whose key a request shows; a refusal is not counted.
    async fn find(app: &App, parts: &Parts) -> Result<Self, ServiceError> {
        // Keys in the query are not accepted, because URLs are logged.
        let Some(key) = find_key(&parts.headers, None) else {
            return Err(ServiceError::refused(Code::KeyMissing, "No key of an edge was sent."));
        };
        match app.edge_keys.find(&app.db, &key).await? {
            Some((key, name)) => {
                permits::prove_edge(parts, &name, key)?;
                Ok(Self { name, key })
            }
            None => Err(ServiceError::refused(Code::KeyUnknown, "The key of the edge is not known.")),
        }
    }
}

/// Takes a batch of scans of the caller's own.
async fn take_scans(
    State(internal): State<Internal>,
    edge: Edge,
    query: Query,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ScanAnswer>, ApiError> {
    let body = body.map_err(|_| {
        ApiError::refused(Code::TooLarge, format!("The body must have at most {MAX_BODY_BYTES} bytes."))
    })?;
    let is_spooled = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == SPOOLED);
    let batch = if is_spooled { read_spooled(&query, &body)? } else { read_json(&body)? };
    if batch.edge != edge.name {
        return Err(ApiError::refused(Code::Forbidden, "The batch is not of the edge whose key was sent."));
    }
    Ok(Json(ScanAnswer { receipt: ingest(&internal.app, &batch).await?, takes_spooled: true }))
}

fn read_json(body: &[u8]) -> Result<ScanBatch, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::refused(Code::Invalid, format!("The body is no batch of scans: {error}.")))
}

/// A batch as it lay on the disk of an edge.
fn read_spooled(query: &Query, body: &[u8]) -> Result<ScanBatch, ApiError> {
    let number = |name: &str| {
        query.find(name).and_then(|text| text.parse().ok()).ok_or_else(|| {
            ApiError::refused(Code::InvalidParameter, format!("{name} must be a whole number from 0."))
        })
    };
    let edge = part(query, "edge")?.into();
    let (boot, first_seq) = (number("boot")?, number("firstSeq")?);
    let records = read_all(body).ok_or_else(|| {
        let text = format!("The body must be at most {MAX_BATCH} records that this version knows.");
        ApiError::refused(Code::Invalid, text)
    })?;
    Ok(ScanBatch { edge, boot, first_seq, records })
}

/// Reads one redirection where it is written: for what no view of it can answer.
async fn look_up(State(internal): State<Internal>, edge: Edge, query: Query) -> Result<Json<Fill>, ApiError> {
    let key = RedirectKey::new(part(&query, "domain")?, part(&query, "shortId")?);
    // Not queued: misses beyond the database's capacity are refused and retried.
    let _place = internal.app.capacity.lookup(&edge.name)?;
    let mut conn = internal.app.db.read().await?;
    Ok(Json(redirections::load_fill(&mut conn, &key).await?))
}

/// A part of a key, of which there must be something.
fn part<'q>(query: &'q Query, name: &str) -> Result<&'q str, ServiceError> {
    match query.find(name) {
        Some(text) if (1..=MAX_KEY).contains(&text.len()) => Ok(text),
        Some(_) | None => {
            let text = format!("{name} must have 1 to {MAX_KEY} bytes.");
            Err(ServiceError::refused(Code::InvalidParameter, text))
        }
    }
}

/// Reads links of a domain where they are written, for an edge that holds them all.
async fn list_links(
    State(internal): State<Internal>,
    _edge: Edge,
    query: Query,
) -> Result<Json<LinksPage>, ApiError> {
    let domain = part(&query, "domain")?;
    let after = match query.find("after") {
        None | Some("") => "",
        Some(_) => part(&query, "after")?,
    };
    // Not queued, as with single reads.
    let _turn = internal.pages.try_acquire().map_err(|_| ServiceError::Full("pages of links"))?;
    let mut snapshot = Snapshot::begin(&internal.app.db).await?;
    Ok(Json(snapshot.page_of(domain, after).await?))
}

/// Lists every edge of the fleet with its progress, whichever replica it follows.
async fn list_edges(
    State(internal): State<Internal>,
    mut parts: Parts,
) -> Result<Json<EdgesDocument>, ApiError> {
    if Edge::find(&internal.app, &parts).await.is_err() {
        let Authenticated(caller) = Authenticated::from_request_parts(&mut parts, &internal).await?;
        let _ = require(&caller, Verb::Read, Subject::Status)?;
    }
    Ok(Json(EdgesDocument::read(&internal.app)))
}
