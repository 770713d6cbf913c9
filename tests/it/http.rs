//! The API over HTTP, in process, on both engines: conventions, resources, lists, bad input.

mod action_types;
mod actions;
mod assessment_forms;
mod assessment_input;
mod assessment_settings;
mod audit;
mod authentication;
mod availability;
mod bad_input;
mod batches;
mod bulk;
mod cases;
mod client_habits;
mod collections;
mod commission_states;
mod commissioning;
mod confined_lists;
mod conventions;
mod crowd;
mod digital_links;
mod displays;
mod erasures;
mod etags;
mod event_log;
mod events;
mod export;
mod fair_share;
mod files;
mod followers;
mod idempotency;
mod identifiers;
mod ignored;
mod job_purge;
mod jobs;
mod key_flows;
mod key_rotation;
mod limits;
mod link_changes;
mod link_checks;
mod link_history;
mod link_previews;
mod links;
mod locations;
mod new_actions;
mod operator_bounds;
mod operator_keys;
mod operators;
mod own_domains;
mod pages;
mod paging;
mod personal_data;
mod personal_verdicts;
mod places;
mod platform;
mod preview;
mod print_orders;
mod properties;
mod properties_model;
mod properties_refused;
mod quotas;
mod reactions;
mod recount;
mod redirect_status;
mod report_photos;
mod reports;
mod resources;
mod scan_limits;
mod scan_profile;
mod scan_sources;
mod scan_stats;
mod scoping;
mod series;
mod serve;
mod short_domains;
mod standings;
mod suspension;
mod take_downs;
mod user_keys;
mod user_rights;
mod users;
mod walk;
mod webhooks;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header},
};
use control::{
    http::{Connection, router},
    state::ApiState,
};
use hosting::{
    domain::platform_key::{PLATFORM_KEY_PREFIX, PlatformKey},
    store::platform_keys,
};
use kernel::store::Ctx;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};
use signin::{
    domain::{
        session::{IDLE_MS, Proof, Session},
        token::Token,
    },
    store::operator_sessions,
};
use tests::{
    accounts,
    db::{Engine, TestApp, random16},
    fingerprint::fingerprint,
    json::{id, text},
};
use tower::ServiceExt;

/// A session of an operator, which works for 12 hours; gives the pair of its cookie.
pub(crate) async fn begin_session(
    app: &ApiState,
    account: AccountId,
    operator: OperatorId,
) -> Result<String> {
    let token = Token::new([random16()?, random16()?].concat().try_into().ok().context("32 bytes")?);
    let key = token.key(&app.core.secrets.sign_in).context("key")?;
    let now = app.core.clock.now();
    let session = Session {
        hash: Sha256::digest(key.as_bytes()).into(),
        created_at: now,
        last_used_at: now,
        expires_at: UnixMillis(now.0 + IDLE_MS),
        network: None,
        agent: None,
        proof: Proof::Password,
    };
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    operator_sessions::insert(&mut tx, (account, operator), &session).await?;
    tx.commit().await?;
    let set = token.set_cookie();
    Ok(set.split(';').next().context("pair")?.to_owned())
}

/// An API with two accounts; `key` is the first one's, `other_key` the second one's.
struct Api {
    made: TestApp,
    router: Router,
    key: String,
    other_key: String,
    /// A key of the platform.
    platform_key: String,
    other_account: AccountId,
    other_operator: OperatorId,
    /// The cookie of a session of the first account's operator.
    cookie: String,
}

/// An application in a project of its own.
struct Application {
    id: String,
    project: String,
    /// Its path.
    path: String,
    public: String,
    secret: String,
}

/// An answer, read whole.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The answer, which must have this status.
    fn must_be(self, status: u16) -> Result<Self> {
        ensure!(self.status == status, "not {status}: {self:?}");
        Ok(self)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Checks the common error body; gives its faults.
    fn problem(&self, status: u16, code: u32) -> Vec<String> {
        let body = self.json();
        assert_eq!(self.status.as_u16(), status, "{body}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{body}");
        assert!(self.header("x-request-id").is_some_and(|id| id.len() >= 8), "{body}");
        assert_eq!(body.as_object().map(serde_json::Map::len), Some(4), "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["moreInfo"], format!("https://api.example/docs#error-{code}"), "{body}");
        let errors: Vec<String> = serde_json::from_value(body["errors"].clone()).unwrap();
        assert!(!errors.is_empty() && errors.iter().all(|error| !error.is_empty()), "{body}");
        errors
    }
}

impl Api {
    async fn new(engine: Engine) -> Result<Self> {
        Self::over(TestApp::new(engine).await?).await
    }

    /// A server that sends no mail: it shows the code of an invitation to whoever invites.
    async fn without_mail(engine: Engine) -> Result<Self> {
        Self::over(TestApp::with(engine, |parts| parts.mail = None).await?).await
    }

    /// The API over a service that was made with other parts.
    async fn over(made: TestApp) -> Result<Self> {
        let now = made.app.core.clock.now().0;
        let (key, other_key) = ("A".repeat(80), "B".repeat(80));
        let db = &made.app.core.db;
        let other = accounts::add(db, now, "x@example.com", Some("other.gg")).await?;
        accounts::add_key(db, now, &key, (made.account, made.operator)).await?;
        accounts::add_key(db, now, &other_key, other).await?;
        let (other_account, other_operator) = other;
        let platform_key = format!("{PLATFORM_KEY_PREFIX}{}", "P".repeat(76));
        let hash: [u8; 32] = Sha256::digest(platform_key.as_bytes()).into();
        let (label, created_at) = ("of the tests".to_owned(), UnixMillis(now));
        let of_platform = PlatformKey { hash, label, created_at, expires_at: None, revoked_at: None };
        let mut tx = db.begin(&Ctx::default()).await?;
        platform_keys::insert(&mut tx, &of_platform).await?;
        tx.commit().await?;
        let cookie = begin_session(&made.app, made.account, made.operator).await?;
        let router = router(made.app.clone());
        Ok(Self { made, router, key, other_key, platform_key, other_account, other_operator, cookie })
    }

    /// The key that is for a path.
    fn key_for(&self, uri: &str) -> &str {
        if uri.starts_with("/platform/") { &self.platform_key } else { &self.key }
    }

    /// Sends a request as it is. Below `/console/api/` it comes from the same origin, and the first account's key stands
    /// for the session of its operator: no key is taken there.
    async fn send(&self, mut request: Request<Body>) -> Result<Answer> {
        let path = request.uri().path();
        if path.strip_prefix("/v2").unwrap_or(path).starts_with("/console/api/") {
            let headers = request.headers_mut();
            headers.insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
            if headers.get(header::AUTHORIZATION).is_some_and(|key| key == &*self.key) {
                headers.remove(header::AUTHORIZATION);
                headers.insert(header::COOKIE, HeaderValue::from_str(&self.cookie)?);
            }
        }
        self.send_unchanged(request).await
    }

    /// Sends a request as it is, below `/console/api/` too.
    async fn send_unchanged(&self, request: Request<Body>) -> Result<Answer> {
        let response = self.router.clone().oneshot(request).await?;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 64 << 20).await?.to_vec();
        Ok(Answer { status: parts.status, headers: parts.headers, bytes })
    }

    /// Sends JSON (or nothing) with the first account's key.
    async fn call(&self, method: Method, uri: &str, body: Option<Value>) -> Result<Answer> {
        self.call_as(&self.key, method, uri, body).await
    }

    /// Sends JSON (or nothing) with a key.
    async fn call_as(&self, key: &str, method: Method, uri: &str, body: Option<Value>) -> Result<Answer> {
        // As the vendor's clients do: the content type also without a body.
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::HOST, "api.example:8080")
            .header(header::AUTHORIZATION, key)
            .header(header::ACCEPT, "*/*")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        self.send(request).await
    }

    /// Sends JSON (or nothing) with a key and further headers, from an address.
    async fn call_from(
        &self,
        ip: &str,
        headers: &[(&str, &str)],
        (key, method, uri): (&str, Method, &str),
        body: Option<Value>,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::HOST, "api.example")
            .header(header::AUTHORIZATION, key)
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        let connection = Connection { peer: format!("{ip}:4711").parse()?, is_tls: false, local: None };
        request.extensions_mut().insert(ConnectInfo(connection));
        self.send(request).await
    }

    async fn get(&self, uri: &str) -> Result<Answer> {
        self.call(Method::GET, uri, None).await
    }

    async fn post(&self, uri: &str, body: Value) -> Result<Answer> {
        self.call(Method::POST, uri, Some(body)).await
    }

    async fn put(&self, uri: &str, body: Value) -> Result<Answer> {
        self.call(Method::PUT, uri, Some(body)).await
    }

    async fn delete(&self, uri: &str) -> Result<Answer> {
        self.call(Method::DELETE, uri, None).await
    }

    /// Gives users of the first account's applications the rights of the whole project.
    async fn open_rights(&self) -> Result<()> {
        let uri = format!("/accounts/{}", self.made.account);
        self.put(&uri, json!({"userRights": "open"})).await?.must_be(200)?;
        Ok(())
    }

    /// Gives whoever registers a user in the first account its activation code.
    async fn codes_to_callers(&self) -> Result<()> {
        let uri = format!("/accounts/{}", self.made.account);
        self.put(&uri, json!({"userRegistration": "caller"})).await?.must_be(200)?;
        Ok(())
    }

    /// Creates a resource and gives its body.
    async fn create(&self, uri: &str, body: Value) -> Result<Value> {
        Ok(self.post(uri, body).await?.must_be(201)?.json())
    }

    /// Creates an application in a new project.
    async fn application(&self, body: Value) -> Result<Application> {
        let project = id(&self.create("/projects", json!({"name": "p"})).await?)?;
        let applications = format!("/projects/{project}/applications");
        let app = self.create(&applications, body).await?;
        let id = id(&app)?;
        let path = format!("{applications}/{id}");
        let secret = self.get(&format!("{path}/secretKey")).await?.json();
        let (public, secret) = (text(&app, "appApiKey")?, text(&secret, "secretApiKey")?);
        Ok(Application { id, project, path, public, secret })
    }

    /// Creates a product and a Thng for the other account; gives their ids.
    async fn others(&self) -> Result<(String, String)> {
        let mut ids = Vec::new();
        for (uri, body) in [("/products", json!({"name": "p"})), ("/thngs", json!({"name": "t"}))] {
            let answer = self.call_as(&self.other_key, Method::POST, uri, Some(body)).await?;
            ids.push(answer.json()["id"].as_str().context("id")?.to_owned());
        }
        Ok((ids.remove(0), ids.remove(0)))
    }

    /// Everything that the database holds.
    async fn fingerprint(&self) -> Result<BTreeMap<String, Vec<String>>> {
        fingerprint(&self.made.db.location).await
    }
}
