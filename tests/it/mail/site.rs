//! An API in this process with an application, and its worker of mails.

use std::sync::Arc;

use ::mail::MailSettings;
use anyhow::{Result, ensure};
use axum::{
    Router,
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};
use shared::time::{Clock, ManualClock, UnixMillis};
use tests::{
    db::{Engine, TestApp},
    json::text,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;

const OPERATOR: &str = "OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO";

pub(super) struct Site {
    pub(super) made: TestApp,
    pub(super) clock: Arc<ManualClock>,
    pub(super) app: String,
    router: Router,
    _worker: DropGuard,
}

/// Status, body, and `Retry-After`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) retry_after: Option<u64>,
}

impl Site {
    pub(super) async fn new(engine: Engine, mail: Option<MailSettings>) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(UnixMillis(1_760_000_000_000)));
        let of_parts = clock.clone();
        let made = TestApp::with(engine, move |parts| {
            parts.mail = mail;
            parts.clock = of_parts;
        })
        .await?;
        let core = &made.app.core;
        made.add_key(OPERATOR).await?;
        let stop = CancellationToken::new();
        tokio::spawn(::mail::worker::run(made.app.users.outbox.clone(), core.db.clone(), stop.clone()));
        let router = control::http::router(made.app.clone());
        let mut site = Self { made, clock, app: String::new(), router, _worker: stop.drop_guard() };
        let project = site.call(OPERATOR, Method::POST, "/projects", json!({"name": "p"})).await?.body;
        let uri = format!("/projects/{}/applications", text(&project, "id")?);
        let app = site.call(OPERATOR, Method::POST, &uri, json!({"name": "a"})).await?.body;
        site.app = text(&app, "appApiKey")?;
        Ok(site)
    }

    pub(super) async fn call(&self, key: &str, method: Method, uri: &str, body: Value) -> Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::HOST, "api.example")
            .header(header::AUTHORIZATION, key)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))?;
        let response = self.router.clone().oneshot(request).await?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.map(|value| anyhow::Ok(value.to_str()?.parse()?)).transpose()?;
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes)? };
        Ok(Answer { status, body, retry_after })
    }

    /// Sends something with the application's key.
    pub(super) async fn ask(&self, method: Method, uri: &str, body: Value) -> Result<Answer> {
        self.call(&self.app, method, uri, body).await
    }

    /// Sends something with the operator's key.
    pub(super) async fn operate(&self, method: Method, uri: &str, body: Value) -> Result<Answer> {
        self.call(OPERATOR, method, uri, body).await
    }

    pub(super) async fn register(&self, email: &str, password: &str) -> Result<Answer> {
        let body = json!({"email": email, "password": password});
        self.ask(Method::POST, "/auth/evrythng/users", body).await
    }

    pub(super) async fn activate(&self, id: &str, code: &str) -> Result<Answer> {
        let uri = format!("/auth/evrythng/users/{id}/validate");
        self.ask(Method::POST, &uri, json!({"activationCode": code})).await
    }

    pub(super) async fn activate_with(&self, id: &str, code: &str, password: &str) -> Result<Answer> {
        let uri = format!("/auth/evrythng/users/{id}/validate");
        self.ask(Method::POST, &uri, json!({"activationCode": code, "password": password})).await
    }

    pub(super) async fn log_in(&self, email: &str, password: &str) -> Result<Answer> {
        self.ask(Method::POST, "/users/login", json!({"email": email, "password": password})).await
    }

    pub(super) async fn request_reset(&self, email: &str) -> Result<Answer> {
        self.ask(Method::POST, "/users/passwordReset", json!({"email": email})).await
    }

    pub(super) async fn reset(&self, code: &str, password: &str) -> Result<Answer> {
        self.ask(Method::PUT, "/users/passwordReset", json!({"code": code, "password": password})).await
    }

    pub(super) fn pass(&self, ms: i64) {
        self.clock.set(UnixMillis(self.clock.now().0 + ms));
    }
}

impl Answer {
    /// The body of a success.
    pub(super) fn done(self, status: u16) -> Result<Value> {
        ensure!(self.status == status, "{self:?}");
        Ok(self.body)
    }
}
