//! The one admin listener of the process: control and its edge in one answer.

use std::{net::TcpListener, sync::Arc};

use control::{
    http::{Admin, AdminAnswer, run_admin},
    service::App,
};
use edge::EdgeHandle;
use http::{Method, StatusCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Serves `/live`, `/ready` and `/metrics` until `shutdown`.
pub(crate) async fn run(app: Arc<App>, edge: EdgeHandle, listener: TcpListener, shutdown: CancellationToken) {
    let control = Admin::new(app, None, None);
    let answer = move |method: &Method, path: &str| both(&control, &edge, method, path);
    if let Err(error) = run_admin(listener, answer, shutdown).await {
        tracing::error!(%error, "the admin listener ended");
    }
}

/// Ready while the edge is: what is printed must lead on, whatever the database does.
fn both(control: &Admin, edge: &EdgeHandle, method: &Method, path: &str) -> AdminAnswer {
    let (status, kind, body) = control.answer(method, path);
    if *method != Method::GET && *method != Method::HEAD {
        return (status, kind, body);
    }
    match path {
        "/ready" => {
            let edge = edge.status();
            let status = if edge.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            let mut body = json!(edge);
            body["control"] = json!(control.readiness());
            (status, kind, body.to_string())
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
