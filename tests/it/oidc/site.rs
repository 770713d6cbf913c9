//! An API in this process whose operators sign in by the provider.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Request, header},
};
use kernel::store::Ctx;
use oidc::{OidcSettings, Provider};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, OperatorId},
    time::{Clock, ManualClock, UnixMillis},
};
use tenants::store::accounts;
use tests::{
    db::{Engine, SystemRandom, TestApp, random16},
    fingerprint::fingerprint,
};
use tower::ServiceExt;
use url::Url;

use super::provider::{Running, parameter};

const OWNER: &str = "OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO";

/// What a browser sends when it opens a page.
const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

pub(super) struct Site {
    pub(super) made: TestApp,
    pub(super) clock: Arc<ManualClock>,
    router: Router,
}

/// Status, headers and body.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn header(&self, name: header::HeaderName) -> Result<&str> {
        Ok(self.headers.get(name).context("no such header")?.to_str()?)
    }

    /// `name=value` of a cookie that it sets.
    pub(super) fn cookie(&self, name: &str) -> Option<String> {
        let sets = self.headers.get_all(header::SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = sets.filter_map(|set| set.split(';').next());
        pairs.find(|pair| pair.starts_with(&format!("{name}="))).map(str::to_owned)
    }

    pub(super) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| self.text.clone())
    }
}

/// A sign-in that was begun.
pub(super) struct Begun {
    pub(super) url: Url,
    pub(super) cookie: String,
}

impl Site {
    /// An account with the owner `o@example.com`, and the operator `ada@example.com`.
    pub(super) async fn new(engine: Engine, settings: Option<OidcSettings>) -> Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        let clock = Arc::new(ManualClock::new(UnixMillis(now.try_into()?)));
        let provider = settings.map(|settings| {
            let _ = rustls::crypto::ring::default_provider().install_default();
            Provider::new(settings, clock.clone(), Arc::new(SystemRandom)).map_err(anyhow::Error::msg)
        });
        let (provider, of_parts) = (provider.transpose()?.map(Arc::new), clock.clone());
        let made = TestApp::with(engine, move |parts| {
            parts.oidc = provider;
            parts.clock = of_parts;
        })
        .await?;
        made.add_key(OWNER).await?;
        let router = control::http::router(made.app.clone());
        let site = Self { made, clock, router };
        site.add_operator(site.made.account, "ada@example.com").await?;
        Ok(site)
    }

    /// An API and its provider, which knows it.
    pub(super) async fn with_provider(engine: Engine) -> Result<(Running, Self)> {
        let provider = Running::start(0, None)?;
        let site = Self::new(engine, Some(provider.settings()?)).await?;
        let back = parameter(&site.begin("").await?.url, "redirect_uri").context("redirect_uri")?;
        ensure!(back.ends_with("api.example/console/api/oidc/callback"), "{back}");
        provider.set(json!({"redirect": back})).await?;
        Ok((provider, site))
    }

    pub(super) async fn add_operator(&self, account: AccountId, email: &str) -> Result<OperatorId> {
        let now = self.clock.now().0;
        let id = OperatorId::new(now, random16()?);
        let mut tx = self.made.app.core.db.begin(&Ctx::default()).await?;
        accounts::insert_operator(&mut tx, id, account, email, ("A", "B"), now).await?;
        tx.commit().await?;
        Ok(id)
    }

    pub(super) async fn add_account(&self) -> Result<AccountId> {
        let now = self.clock.now().0;
        let id = AccountId::new(now, random16()?);
        let mut tx = self.made.app.core.db.begin(&Ctx::default()).await?;
        accounts::insert(&mut tx, id, "Other", true, now).await?;
        tx.commit().await?;
        Ok(id)
    }

    pub(super) fn pass(&self, time: Duration) -> Result<()> {
        self.clock.set(UnixMillis(self.clock.now().0 + i64::try_from(time.as_millis())?));
        Ok(())
    }

    pub(super) async fn send(&self, method: Method, uri: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        self.send_with(method, uri, headers, Body::empty()).await
    }

    async fn send_with(
        &self,
        method: Method,
        uri: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Result<Answer> {
        let mut request = Request::builder().method(method).uri(uri).header(header::HOST, "api.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body)?).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await?;
        Ok(Answer { status, headers, text: String::from_utf8(bytes.into())? })
    }

    /// Sends something with the owner's key.
    pub(super) async fn own(&self, method: Method, uri: &str) -> Result<Answer> {
        self.send(method, uri, &[("authorization", OWNER)]).await
    }

    /// Sends a body with the owner's key.
    pub(super) async fn own_with(&self, method: Method, uri: &str, body: Value) -> Result<Answer> {
        let headers = [("authorization", OWNER), ("content-type", "application/json")];
        self.send_with(method, uri, &headers, Body::from(body.to_string())).await
    }

    /// Sends something from a page of the console, with the cookie of a session.
    pub(super) async fn console(&self, method: Method, uri: &str, session: &str) -> Result<Answer> {
        self.send(method, uri, &[("sec-fetch-site", "same-origin"), ("cookie", session)]).await
    }

    /// Opens the beginning, as by an address that was typed.
    pub(super) async fn open_begin(&self, query: &str) -> Result<Answer> {
        let uri = format!("/console/api/oidc/begin{query}");
        self.send(Method::GET, &uri, &[("sec-fetch-site", "none"), ("accept", PAGE)]).await
    }

    pub(super) async fn begin(&self, query: &str) -> Result<Begun> {
        let answer = self.open_begin(query).await?;
        ensure!(answer.status == 303, "{answer:?}");
        let cookie = answer.cookie(oidc::COOKIE).context("no cookie")?;
        Ok(Begun { url: answer.header(header::LOCATION)?.parse()?, cookie })
    }

    /// Opens the callback, as a browser that the provider sends back does.
    pub(super) async fn open_callback(&self, url: &Url, cookie: Option<&str>) -> Result<Answer> {
        let uri = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let mut headers = vec![("sec-fetch-site", "cross-site"), ("accept", PAGE)];
        headers.extend(cookie.map(|cookie| ("cookie", cookie)));
        self.send(Method::GET, &uri, &headers).await
    }

    /// Signs in at the provider up to the redirect back.
    pub(super) async fn visit(&self, provider: &Running, begun: &Begun, name: &str) -> Result<Url> {
        let back = parameter(&begun.url, "redirect_uri").context("redirect_uri")?;
        provider.sign_in(&begun.url, name, &back).await
    }

    /// A whole sign-in.
    pub(super) async fn sign_in(&self, provider: &Running, query: &str, name: &str) -> Result<Answer> {
        let begun = self.begin(query).await?;
        let back = self.visit(provider, &begun, name).await?;
        self.open_callback(&back, Some(&begun.cookie)).await
    }

    /// How many rows of a table there are.
    pub(super) async fn count(&self, table: &str) -> Result<usize> {
        Ok(fingerprint(&self.made.db.location).await?[table].len())
    }
}
