//! The edge's listener for operators (`/live`, `/ready`, `/metrics`), and the same status for callers in the same
//! process.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE},
};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use platform::{Bounds, Permits, exposition};
use prometheus_client::{encoding::text, registry::Registry};
use replica::{ReplicaState, ReplicaStatus};
use serde::Serialize;
use shared::{
    time::UnixMillis,
    wire::stream::{Epoch, Rev},
};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    TlsCerts,
    cache::{CacheStatus, EdgeCache},
    metrics::{Metrics, Reading, Readings},
    response,
    sync::{State, SyncStatus},
};

/// Connections to the admin listener: probes and scrapers are few.
const CONNECTIONS: usize = 64;
/// How long one may take to ask.
const HEADER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// A running edge as operators and the composition see it; cheap to clone.
#[derive(Debug, Clone)]
pub struct EdgeHandle {
    pub(crate) cache: Arc<EdgeCache>,
    pub(crate) status: Arc<SyncStatus>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) registry: Arc<Registry>,
    /// When it was opened: the process started just before.
    started: SystemTime,
}

/// Where an edge stands; the body of `/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeStatus {
    /// Whether the edge may get requests: it was live once.
    pub ready: bool,
    /// `BOOT`, `CONNECTING`, `SYNC`, `LIVE`, `LAGGING` or `STALE`.
    pub state: &'static str,
    /// Since when it is in this state.
    pub since: UnixMillis,
    /// `disk` or `view` when it began without control, until it is live.
    pub boot: Option<&'static str>,
    /// Whether Redis answers; `null` while it is not known.
    pub view_up: Option<bool>,
    /// For how long it does or does not, in milliseconds.
    pub view_for_ms: u64,
    /// The epoch it is in, once it had a contact.
    pub epoch: Option<Epoch>,
    /// The revision up to which every change is live here.
    pub applied: Rev,
    /// The newest revision that control announced.
    pub head: Rev,
    /// Keys in the cache, roughly; unknown ids that are remembered included.
    pub cache_entries: u64,
    /// Bytes they take, roughly.
    pub cache_bytes: u64,
    /// How the links of all stand, where the edge holds them: `loading`, `whole`, or `unsure` when a change was not
    /// understood; `null` elsewhere.
    pub replica: Option<ReplicaStatus>,
    /// Look-ups answered from memory, including cached 404s.
    pub hits: u64,
    /// Look-ups that needed the backing.
    pub misses: u64,
    /// Scans recorded, written to disk, acknowledged by control, and lost.
    pub scans: ScanCounts,
}

/// Scans since the start of the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScanCounts {
    /// Put into the ring.
    pub recorded: u64,
    /// On disk.
    pub written: u64,
    /// Acknowledged by control; may hold some of earlier boots.
    pub shipped: u64,
    /// Only counted by link and minute, as the disk budget is spent.
    pub degraded: u64,
    /// Dropped.
    pub lost: u64,
}

impl EdgeHandle {
    /// An edge over a data folder, with the certificates that it shows.
    pub(crate) fn new(
        cache: Arc<EdgeCache>,
        status: Arc<SyncStatus>,
        metrics: Arc<Metrics>,
        data_dir: PathBuf,
        tls: Option<TlsCerts>,
    ) -> Self {
        let mut registry = Registry::with_prefix("waymark_edge");
        metrics.register(&mut registry);
        if let Some(tls) = &tls {
            tls.register(&mut registry);
        }
        let read = (cache.clone(), status.clone());
        registry.register_collector(Box::new(Readings(move || readings(&read.0, &read.1))));
        registry.register_collector(Box::new(Readings(move || machine(&data_dir, tls.as_ref()))));
        Self { cache, status, metrics, registry: Arc::new(registry), started: SystemTime::now() }
    }

    /// Whether the edge was live once; it stays ready when control is gone.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status.is_ready()
    }

    /// Where the edge stands.
    #[must_use]
    pub fn status(&self) -> EdgeStatus {
        let (state, since) = self.status.state();
        let (epoch, applied) = self.cache.position();
        let (cache_entries, cache_bytes) = self.cache.size();
        let view = self.status.backing();
        let count = |status| self.metrics.lookups(status);
        EdgeStatus {
            ready: self.is_ready(),
            state: state.as_str(),
            since,
            boot: self.status.boot(),
            view_up: view.view_up,
            view_for_ms: u64::try_from(view.view_for.as_millis()).unwrap_or(u64::MAX),
            epoch,
            applied,
            head: self.status.head(),
            cache_entries,
            cache_bytes,
            replica: self.cache.replica(),
            hits: count(CacheStatus::Hit) + count(CacheStatus::Negative),
            misses: [CacheStatus::Miss, CacheStatus::Stale, CacheStatus::Coalesced].map(count).iter().sum(),
            scans: ScanCounts {
                recorded: self.metrics.scans.recorded.get(),
                written: self.metrics.scans.written.get(),
                shipped: self.metrics.scans.shipped.get(),
                degraded: self.metrics.scans.degraded.get(),
                lost: self.metrics.scans.lost.get(),
            },
        }
    }

    /// All metrics in the OpenMetrics text form; the last line is `# EOF`.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let mut text = String::new();
        // Writing into a `String` does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    /// The answer to an admin request, whose `Accept` chooses the form of metrics.
    #[must_use]
    pub fn answer(&self, method: &Method, path: &str, accept: Option<&str>) -> Response<Full<Bytes>> {
        const JSON: &str = "application/json";
        let (status, kind, body) = match path {
            _ if *method != Method::GET && *method != Method::HEAD => {
                (StatusCode::METHOD_NOT_ALLOWED, JSON, r#"{"error":"only GET"}"#.to_owned())
            }
            "/live" => (StatusCode::OK, JSON, r#"{"live":true}"#.to_owned()),
            "/ready" => {
                let status = self.status();
                let code = if status.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                (code, JSON, serde_json::to_string(&status).unwrap_or_default())
            }
            "/metrics" => {
                let text = exposition::with(&self.metrics_text(), &exposition::of_process(self.started));
                let (kind, text) = exposition::answer(accept, text);
                (StatusCode::OK, kind, text)
            }
            _ => (StatusCode::NOT_FOUND, JSON, r#"{"paths":["/live","/ready","/metrics"]}"#.to_owned()),
        };
        let mut response = Response::new(Full::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response::protect(headers, None);
        response
    }
}

/// Metrics that are computed at each scrape.
fn readings(cache: &EdgeCache, status: &SyncStatus) -> Vec<Reading> {
    let (entries, bytes) = cache.size();
    let (state, _) = status.state();
    let mut readings = vec![
        Reading::new("applied_rev", "Newest revision applied", cache.position().1 as f64),
        Reading::new("head_rev", "Newest revision known", status.head() as f64),
        Reading::new("ready", "Whether the edge was live once", f64::from(u8::from(status.is_ready()))),
        Reading::new("live", "Whether the stream is live", f64::from(u8::from(state == State::Live))),
        Reading::new("cache_entries", "Keys in the cache", entries as f64),
        Reading::new("cache_bytes", "Bytes of the cache", bytes as f64),
        Reading::new(
            "rules_refused",
            "Accounts of whose rules none can be used",
            cache.refused_rules() as f64,
        ),
    ];
    if let Some(replica) = cache.replica() {
        let is_whole = f64::from(u8::from(replica.state == ReplicaState::Whole));
        readings.extend([
            Reading::new("replica_whole", "Whether every link is held and may be shown", is_whole),
            Reading::new("replica_links", "Links in the replica", replica.links as f64),
            Reading::new("replica_bytes", "Bytes of the replica", replica.bytes as f64),
        ]);
    }
    if let Some(is_up) = status.backing().view_up {
        readings.push(Reading::new("view_up", "Whether Redis answers", f64::from(u8::from(is_up))));
    }
    if let Some(behind) = status.behind() {
        let help = "Seconds since everything was applied that control had";
        readings.push(Reading::new("behind_seconds", help, behind.as_secs_f64()));
    }
    readings.extend(State::ALL.map(|each| Reading {
        labels: vec![("state", each.as_str().into())],
        ..Reading::new("state", "1 for the state of the change stream", f64::from(u8::from(each == state)))
    }));
    readings
}

/// What of the machine concerns an edge: its disk, and when its certificates end.
fn machine(data_dir: &Path, tls: Option<&TlsCerts>) -> Vec<Reading> {
    let mut readings = Vec::new();
    if let Ok(disk) = rustix::fs::statvfs(data_dir) {
        let bytes = |blocks: u64| blocks as f64 * disk.f_frsize as f64;
        let (free, size) = (bytes(disk.f_bavail), bytes(disk.f_blocks));
        readings.push(Reading::new("disk_free_bytes", "Room on the disk of the data folder", free));
        readings.push(Reading::new("disk_size_bytes", "Size of the disk of the data folder", size));
    }
    let ends = tls.map(TlsCerts::expiries).unwrap_or_default();
    let source = |is_received: bool| is_received.then(|| ("source", Box::<str>::from("control")));
    readings.extend(ends.into_iter().map(|(name, is_received, end)| Reading {
        labels: [("name", name)].into_iter().chain(source(is_received)).collect(),
        ..Reading::new(
            "certificate_expiry_timestamp_seconds",
            "When a certificate ends, in seconds since 1970",
            end as f64,
        )
    }));
    readings
}

/// Serves the admin listener until `shutdown`.
pub(crate) async fn serve(handle: EdgeHandle, listener: TcpListener, shutdown: CancellationToken) {
    let tasks = TaskTracker::new();
    // Connections without a request in flight are closed to make room for new ones.
    let permits =
        Permits::new(Bounds { newcomers: Some(CONNECTIONS), ..Bounds::plain(CONNECTIONS, CONNECTIONS) });
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = permits.enter(peer.ip(), true) else { continue };
        let (handle, shutdown) = (handle.clone(), shutdown.clone());
        tasks.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
                let response = handle.answer(request.method(), request.uri().path(), accept);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                _ = shutdown.run_until_cancelled(connection) => {}
                () = permit.displaced() => {}
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}
