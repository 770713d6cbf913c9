//! The listener for operators: `/live`, `/ready`, `/metrics`. Its requests are not counted as requests of users.

use std::{io, sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Method, Request, Response, StatusCode, header},
};
use platform::{
    Bounds, Permits, TimeLimits,
    exposition::{self, OPENMETRICS},
};
use prometheus_client::{encoding::text, registry::Registry};
use push::publisher_stats::PublisherStats;
use serde::Serialize;
use shared::{client_address::TrustedProxies, time::UnixMillis, wire::stream::Rev};
use tokio_util::sync::CancellationToken;

use super::{
    middleware::protect,
    serve::{ApiListeners, Clients, run_router},
};
use crate::{state::ApiState, tls::Certificates};

mod readings;
mod worker;

pub use worker::WorkerAdmin;

/// Silence of the change log after which a replica is not ready: it can neither read nor write then.
const STALE_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// Most connections: this listener has few clients.
const MAX_CONNECTIONS: usize = 64;

/// What an admin listener answers: status, media type, body.
pub type AdminAnswer = (StatusCode, &'static str, String);

const JSON: &str = "application/json";

/// Control as operators see it.
#[derive(Clone)]
pub struct Admin {
    app: Arc<ApiState>,
    registry: Arc<Registry>,
    /// When it was made: the process started just before.
    started: SystemTime,
}

/// Where control stands; the body of `/ready`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Whether this replica may get requests.
    pub ready: bool,
    /// `fresh` while the change log can be read, else `stale`.
    pub state: &'static str,
    /// Since when the change log is stale; absent while it is fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<UnixMillis>,
    /// Whether the database took the last write that was tried.
    pub writable: bool,
    /// Since when it takes none; absent while it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_writable_since: Option<UnixMillis>,
    /// The epoch of the log.
    pub epoch: String,
    /// The newest revision that is on its way to the edges.
    pub head: Rev,
    /// Edges of the fleet whose lease is valid.
    pub edges: usize,
    /// Edges that were seen and are silent.
    pub unreachable: Vec<String>,
}

shared::opaque!(Admin);

impl Admin {
    /// Control's counters under one registry, with those of the publisher where there is one.
    #[must_use]
    pub fn new(
        app: Arc<ApiState>,
        publisher: Option<&PublisherStats>,
        certificates: Option<&Certificates>,
    ) -> Self {
        let mut registry = Registry::with_prefix("waymark_control");
        readings::register(&app, &mut registry);
        if let Some(publisher) = publisher {
            publisher.register(&mut registry);
        }
        if let Some(certificates) = certificates {
            readings::register_certificates(certificates, &mut registry);
        }
        Self { app, registry: Arc::new(registry), started: SystemTime::now() }
    }

    /// Where control stands, without asking the database: probes must not add to its load.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let silence = self.app.hub.silence();
        let is_stale = silence >= STALE_AFTER;
        let silent_ms = i64::try_from(silence.as_millis()).unwrap_or(i64::MAX);
        let (reachable, unreachable): (Vec<_>, Vec<_>) =
            self.app.hub.edges().into_iter().partition(|edge| edge.reachable);
        let not_writable_since = self.app.write_probe.failing_since();
        Readiness {
            ready: !is_stale && not_writable_since.is_none(),
            writable: not_writable_since.is_none(),
            not_writable_since,
            state: if is_stale { "stale" } else { "fresh" },
            stale_since: is_stale.then(|| UnixMillis(self.app.core.clock.now().0.saturating_sub(silent_ms))),
            epoch: self.app.hub.epoch().to_string(),
            head: self.app.hub.head(),
            edges: reachable.len(),
            unreachable: unreachable.into_iter().map(|edge| edge.edge_id.to_string()).collect(),
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

    /// The answer to a request of an operator or a probe.
    #[must_use]
    pub fn answer(&self, method: &Method, path: &str) -> AdminAnswer {
        match path {
            _ if *method != Method::GET && *method != Method::HEAD => only_reads(),
            "/live" => (StatusCode::OK, JSON, r#"{"live":true}"#.to_owned()),
            "/ready" => {
                let readiness = self.readiness();
                let code = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                (code, JSON, serde_json::to_string(&readiness).unwrap_or_default())
            }
            "/metrics" => {
                let text = exposition::with(&self.metrics_text(), &exposition::of_process(self.started));
                (StatusCode::OK, OPENMETRICS, text)
            }
            _ => unknown_path(),
        }
    }
}

fn only_reads() -> AdminAnswer {
    (StatusCode::METHOD_NOT_ALLOWED, JSON, r#"{"error":"only GET"}"#.to_owned())
}

fn unknown_path() -> AdminAnswer {
    (StatusCode::NOT_FOUND, JSON, r#"{"paths":["/live","/ready","/metrics"]}"#.to_owned())
}

/// Serves an admin listener until `shutdown`; `answer` is [`Admin::answer`], or that of a composition.
///
/// # Errors
/// The socket cannot be used.
pub async fn run_admin(
    listener: std::net::TcpListener,
    answer: impl Fn(&Method, &str) -> AdminAnswer + Clone + Send + Sync + 'static,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let service = Router::new().fallback(move |request: Request<Body>| {
        let (status, kind, body) = answer(request.method(), request.uri().path());
        let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
        // Answers have metrics in one form, and scrapers get the one they ask for.
        let (kind, body) = if kind == OPENMETRICS { exposition::answer(accept, body) } else { (kind, body) };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        protect(headers, None);
        std::future::ready(response)
    });
    let listeners = ApiListeners { plain: vec![listener], tls: None };
    // Connections without a request in flight are closed to make room for new ones.
    let bounds =
        Bounds { newcomers: Some(MAX_CONNECTIONS), ..Bounds::plain(MAX_CONNECTIONS, MAX_CONNECTIONS) };
    let clients = Clients {
        permits: Permits::new(bounds),
        times: TimeLimits::default(),
        proxies: TrustedProxies::default(),
    };
    run_router(listeners, service, clients, shutdown).await
}
