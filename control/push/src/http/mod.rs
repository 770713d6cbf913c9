//! HTTP: what edges ask for on their own listener: the change stream, single reads, pages of links, the fleet.
//!
//! Every request carries an edge's key, and what it says of its edge must match the key.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{FromRef, FromRequestParts, State},
    http::request::Parts,
    routing::get,
};
use kernel::{
    domain::permission::{Subject, Verb},
    error::ServiceError,
    service::access::require,
};
use redirects::{service::redirections::digital_link_at, store::redirections};
use serde::Serialize;
use shared::{
    problem::Code,
    redirect::RedirectKey,
    wire::{
        internal::{DIGITAL_LINK_PATH, EDGES_PATH, LINKS_PATH, LOOKUP_PATH, STREAM_PATH},
        links::LinksPage,
        stream::Fill,
    },
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use web::{
    access::{Access, Authenticated, find_key},
    api_error::ApiError,
    extract::Query,
    permits, rate_limit,
};

use crate::{
    edge_keys::{EdgeKeys, KeyHash},
    error::EdgeError,
    hub::{EdgeStatus, Hub},
    store::snapshot::Snapshot,
};

mod stream;

/// Concurrent pages of links: edges that start must not starve others of the database.
const PAGES: usize = 2;

/// Longest host and short id that are looked up, in bytes.
const MAX_KEY: usize = 300;

/// What the handlers for edges work with.
#[derive(Clone)]
pub struct EdgeApi {
    /// Keys of callers that are no edge.
    pub access: Access,
    /// The change stream.
    pub hub: Hub,
    /// Keys of edges.
    pub edge_keys: Arc<EdgeKeys>,
    /// Cancelled when edges shall go elsewhere.
    pub leave: CancellationToken,
    /// The open streams.
    pub streams: TaskTracker,
    pages: Arc<Semaphore>,
}

impl EdgeApi {
    /// Without streams yet; one for each listener.
    #[must_use]
    pub fn new(access: Access, hub: Hub, edge_keys: Arc<EdgeKeys>, leave: CancellationToken) -> Self {
        let (streams, pages) = (TaskTracker::new(), Arc::new(Semaphore::new(PAGES)));
        Self { access, hub, edge_keys, leave, streams, pages }
    }
}

impl FromRef<EdgeApi> for Access {
    fn from_ref(api: &EdgeApi) -> Self {
        api.access.clone()
    }
}

/// The routes, below the paths of `shared::wire::internal`.
pub fn routes<S>() -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    EdgeApi: FromRef<S>,
{
    Router::new()
        .route(STREAM_PATH, get(stream::open))
        .route(LOOKUP_PATH, get(look_up))
        .route(DIGITAL_LINK_PATH, get(say_digital_link))
        .route(LINKS_PATH, get(list_links))
        .route(EDGES_PATH, get(list_edges))
}

/// The edge behind the key of a request.
pub struct Edge {
    /// Its name.
    pub name: Arc<str>,
    key: KeyHash,
}

impl<S: Send + Sync> FromRequestParts<S> for Edge
where
    EdgeApi: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let api = EdgeApi::from_ref(state);
        // A key is guessed here as well as at the API.
        Self::find(&api, parts).await.map_err(|error| match error.code() {
            Code::KeyMissing | Code::KeyUnknown => {
                rate_limit::count_refusal(&api.access.limiter, parts, error).into()
            }
            _ => error.into(),
        })
    }
}

impl Edge {
    /// The edge whose key a request shows; a refusal is not counted.
    async fn find(api: &EdgeApi, parts: &Parts) -> Result<Self, ServiceError> {
        // Keys in the query are not accepted, because URLs are logged.
        let Some(key) = find_key(&parts.headers, None) else {
            return Err(EdgeError::KeyMissing.into());
        };
        match api.edge_keys.find(&api.access.core.db, &key).await? {
            Some((key, name)) => {
                permits::prove_edge(parts, &name, key)?;
                Ok(Self { name, key })
            }
            None => Err(EdgeError::KeyUnknown.into()),
        }
    }
}

/// Reads one redirection where it is written: for what no view of it can answer.
async fn look_up(State(api): State<EdgeApi>, edge: Edge, query: Query) -> Result<Json<Fill>, ApiError> {
    let key = RedirectKey::new(part(&query, "domain")?, part(&query, "shortId")?);
    // Not queued: misses beyond the database's capacity are refused and retried.
    let _place = api.access.core.capacity.lookup(&edge.name)?;
    let mut conn = api.access.core.db.read().await?;
    Ok(Json(redirections::load_fill(&mut conn, &key).await?))
}

/// What the code of a link says where it is to be its Digital Link. Images of such codes are rare, so it counts as a look-up.
async fn say_digital_link(
    State(api): State<EdgeApi>,
    edge: Edge,
    query: Query,
) -> Result<Json<Result<String, &'static str>>, ApiError> {
    let key = RedirectKey::new(part(&query, "domain")?, part(&query, "shortId")?);
    let _place = api.access.core.capacity.lookup(&edge.name)?;
    let mut conn = api.access.core.db.read().await?;
    Ok(Json(digital_link_at(&mut conn, &key).await?))
}

/// A part of a key, of which there must be something.
///
/// # Errors
/// It is missing, or too long.
pub fn part<'q>(query: &'q Query, name: &str) -> Result<&'q str, EdgeError> {
    match query.find(name) {
        Some(text) if (1..=MAX_KEY).contains(&text.len()) => Ok(text),
        Some(_) | None => Err(EdgeError::PartLength { name: name.to_owned(), most: MAX_KEY }),
    }
}

/// Reads links of a domain where they are written, for an edge that holds them all.
async fn list_links(
    State(api): State<EdgeApi>,
    _edge: Edge,
    query: Query,
) -> Result<Json<LinksPage>, ApiError> {
    let domain = part(&query, "domain")?;
    let after = match query.find("after") {
        None | Some("") => "",
        Some(_) => part(&query, "after")?,
    };
    // Not queued, as with single reads.
    let _turn = api.pages.try_acquire().map_err(|_| ServiceError::Full("pages of links"))?;
    let mut snapshot = Snapshot::begin(&api.access.core.db).await?;
    Ok(Json(snapshot.page_of(domain, after).await?))
}

/// Lists every edge of the fleet with its progress, whichever replica it follows.
async fn list_edges(State(api): State<EdgeApi>, mut parts: Parts) -> Result<Json<EdgesDocument>, ApiError> {
    if Edge::find(&api, &parts).await.is_err() {
        let Authenticated(caller) = Authenticated::from_request_parts(&mut parts, &api).await?;
        let _ = require(&caller, Verb::Read, Subject::Status)?;
    }
    Ok(Json(EdgesDocument::of(&api.hub)))
}

/// Every edge with its lag, for operators and edges (`GET /internal/v1/edges`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EdgesDocument {
    epoch: String,
    revision: u64,
    edges: Vec<EdgeStatus>,
}

impl EdgesDocument {
    /// The state now.
    fn of(hub: &Hub) -> Self {
        Self { epoch: hub.epoch().to_string(), revision: hub.head(), edges: hub.edges() }
    }
}
