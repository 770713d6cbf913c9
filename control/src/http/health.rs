//! The admin listener of a replica: `/live` and `/ready`; on this machine or behind the operator's proxy.

use std::{io, sync::Arc, time::Duration};

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::serve::{ApiListeners, run_router};
use crate::service::App;

/// Most connections at once: those of a few that look.
const MAX_CONNECTIONS: usize = 64;

/// Silence of the change log after which a replica is not ready: it can neither read nor write then.
const STALE_AFTER: Duration = Duration::from_secs(5);

/// Serves until `shutdown`.
///
/// # Errors
/// A socket cannot be used.
pub async fn run(listeners: ApiListeners, app: Arc<App>, shutdown: CancellationToken) -> io::Result<()> {
    let routes = Router::new().route("/live", get(live)).route("/ready", get(ready)).with_state(app);
    run_router(listeners, routes, MAX_CONNECTIONS, shutdown).await
}

async fn live() -> &'static str {
    "live"
}

/// Whether the replica can answer.
#[derive(Serialize)]
struct Ready {
    ready: bool,
    revision: u64,
}

/// 200 while the change log can be read, else 503: a load balancer then takes another replica.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Ready>) {
    let ready = app.hub.silence() < STALE_AFTER;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Ready { ready, revision: app.hub.head() }))
}
