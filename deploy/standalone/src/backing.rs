//! The edge's backing in one process: the store and the change stream, without a network.

use std::sync::Arc;

use control::state::ApiState;
use edge::backing::{Backing, BackingError, Changes};
use kernel::{error::ServiceError, store::StoreError};
use push::{hub::EdgeSession, store::snapshot::Snapshot};
use redirects::{service::redirections::digital_link_at, store::redirections};
use shared::{
    redirect::RedirectKey,
    wire::{
        limits::LimitReport,
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Fill, Hello, ToControl, ToEdge},
        unknown::UnknownReport,
    },
};
use statistics::service::{scan_limits, unknown_scans};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

/// Control in the same process.
///
/// Look-ups run on the runtime that made this: the edge asks from threads with runtimes of their own, and a connection to
/// the database must not end with one of those.
#[derive(Clone)]
pub struct InProcess {
    app: Arc<ApiState>,
    runtime: Handle,
}

impl InProcess {
    /// The backing over a running control plane, for a runtime that it is in.
    #[must_use]
    pub fn new(app: Arc<ApiState>) -> Self {
        Self { app, runtime: Handle::current() }
    }
}

impl Backing for InProcess {
    type Changes = Stream;

    async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let (app, key) = (self.app.clone(), key.clone());
        let load = async move {
            let mut conn = app.core.db.read().await?;
            redirections::load_fill(&mut conn, &key).await
        };
        // The edge bounds the time of a look-up: what it gave up must not go on waiting for a connection.
        let loaded = AbortOnDropHandle::new(self.runtime.spawn(load)).await;
        loaded.map_err(|error| BackingError::Unreachable(error.to_string()))?.map_err(unreachable)
    }

    async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.get(key).await
    }

    async fn digital_link(&self, key: &RedirectKey) -> Result<Result<String, String>, BackingError> {
        let (app, key) = (self.app.clone(), key.clone());
        let load = async move { digital_link_at(&mut app.core.db.read().await?, &key).await };
        let loaded = AbortOnDropHandle::new(self.runtime.spawn(load)).await;
        let found = loaded.map_err(|error| BackingError::Unreachable(error.to_string()))?;
        Ok(found.map_err(unreachable)?.map_err(str::to_owned))
    }

    async fn changes(&self, hello: Hello) -> Result<Stream, BackingError> {
        self.app.hub.connect(&hello).await.map(Stream).map_err(unreachable)
    }

    async fn page(&self, domain: &str, after: &str) -> Result<LinksPage, BackingError> {
        let mut snapshot = Snapshot::begin(&self.app.core.db).await.map_err(unreachable)?;
        snapshot.page_of(domain, after).await.map_err(unreachable)
    }

    async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        let batch = scans.read();
        let unread = || BackingError::Unreachable("the next scan is of another version".to_owned());
        control::worker::ingest_scans::ingest(&self.app, &batch.ok_or_else(unread)?).await.map_err(failed)
    }

    async fn record_unknown(&self, report: &UnknownReport) -> Result<(), BackingError> {
        unknown_scans::record(&self.app.core, report).await.map_err(failed)
    }

    async fn record_limits(&self, report: &LimitReport) -> Result<(), BackingError> {
        scan_limits::record(&self.app.core, report).await.map_err(failed)
    }
}

/// The change stream of the one edge.
pub struct Stream(EdgeSession);

impl Changes for Stream {
    async fn next(&mut self) -> Result<ToEdge, BackingError> {
        self.0.next().await.map_err(unreachable)
    }

    async fn send(&mut self, message: ToControl) -> Result<(), BackingError> {
        self.0.receive(message);
        Ok(())
    }
}

fn failed(error: ServiceError) -> BackingError {
    match error {
        ServiceError::Refused { errors, .. } => BackingError::Refused(errors.join(" ")),
        ServiceError::Store(_) | ServiceError::Full(_) | ServiceError::Internal(_) => {
            BackingError::Unreachable(error.to_string())
        }
    }
}

fn unreachable(error: StoreError) -> BackingError {
    BackingError::Unreachable(error.to_string())
}
