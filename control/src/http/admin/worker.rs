//! The admin endpoints of a job worker, which serves no requests, follows no log and knows no edges.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::http::{Method, StatusCode};
use platform::exposition::{self, OPENMETRICS};
use prometheus_client::{encoding::text, registry::Registry};

use super::{AdminAnswer, JSON, only_reads, readings, unknown_path};
use crate::state::ApiState;

/// Time without a query for jobs after which a worker is not ready: three are due in it.
const STALE_AFTER: Duration = Duration::from_secs(15);

/// A worker of jobs as operators see it.
#[derive(Clone)]
pub struct WorkerAdmin {
    app: Arc<ApiState>,
    registry: Arc<Registry>,
    started: SystemTime,
}

shared::opaque!(WorkerAdmin);

impl WorkerAdmin {
    /// The counters of a worker under one registry.
    #[must_use]
    pub fn new(app: Arc<ApiState>) -> Self {
        let mut registry = Registry::with_prefix("waymark_control");
        readings::register_worker(&app, &mut registry);
        Self { app, registry: Arc::new(registry), started: SystemTime::now() }
    }

    /// The answer to a request of an operator or a probe.
    #[must_use]
    pub fn answer(&self, method: &Method, path: &str) -> AdminAnswer {
        match path {
            _ if *method != Method::GET && *method != Method::HEAD => only_reads(),
            "/live" => (StatusCode::OK, JSON, r#"{"live":true}"#.to_owned()),
            "/ready" => {
                let is_fresh = self.app.jobs.metrics.silence().is_some_and(|silence| silence < STALE_AFTER);
                let is_writable = self.app.write_probe.failing_since().is_none();
                let is_ready = is_fresh && is_writable;
                let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                (status, JSON, format!(r#"{{"ready":{is_ready},"writable":{is_writable}}}"#))
            }
            "/metrics" => {
                let mut shown = String::new();
                // Writing into a `String` does not fail.
                let _ = text::encode(&mut shown, &self.registry);
                (StatusCode::OK, OPENMETRICS, exposition::with(&shown, &exposition::of_process(self.started)))
            }
            _ => unknown_path(),
        }
    }
}
