//! The one admin listener of the process: control and its edge in one answer.

use std::{net::TcpListener, sync::Arc};

use control::{
    http::{Admin, AdminAnswer, run_admin},
    state::ApiState,
};
use edge::EdgeHandle;
use http::{Method, StatusCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const JSON: &str = "application/json";

/// Serves `/live`, `/ready` and `/metrics` until `shutdown`.
pub(crate) async fn run(
    app: Arc<ApiState>,
    edge: EdgeHandle,
    listener: TcpListener,
    shutdown: CancellationToken,
) {
    let control = Admin::new(app, None, None);
    let answer = move |method: &Method, path: &str| both(&control, &edge, method, path);
    if let Err(error) = run_admin(listener, answer, shutdown).await {
        tracing::error!(%error, "the admin listener ended");
    }
}

/// Ready while the edge is and the database takes writes. What is printed leads on whatever the database does: a
/// balancer in front of short URLs asks for `/ready/edge`.
fn both(control: &Admin, edge: &EdgeHandle, method: &Method, path: &str) -> AdminAnswer {
    let (status, kind, body) = control.answer(method, path);
    if *method != Method::GET && *method != Method::HEAD {
        return (status, kind, body);
    }
    match path {
        "/ready" => {
            let edge = edge.status();
            let control = control.readiness();
            let is_ready = edge.ready && control.writable;
            let mut body = json!(edge);
            body["ready"] = json!(is_ready);
            body["control"] = json!(control);
            (code_of(is_ready), JSON, body.to_string())
        }
        "/ready/edge" => {
            let edge = edge.status();
            (code_of(edge.ready), JSON, json!(edge).to_string())
        }
        "/metrics" => {
            let end = "# EOF\n";
            let mut text = body.strip_suffix(end).unwrap_or(&body).to_owned();
            text.push_str(&edge.metrics_text());
            (status, kind, text)
        }
        _ => (status, kind, body),
    }
}

const fn code_of(is_ready: bool) -> StatusCode {
    if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
