//! An API in this process, and browsers of the console.

use std::{net::SocketAddr, sync::Arc};

use ::mail::MailSettings;
use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    http::{HeaderMap, HeaderValue, Method, Request, header},
};
use control::http::Connection;
use kernel::service::Random;
use serde_json::{Value, json};
use shared::{
    id::AccountId,
    time::{Clock, ManualClock, UnixMillis},
};
use signin::service::commands;
use tenants::domain::email::Email;
use tests::{
    accounts,
    db::{Engine, SystemRandom, TestApp},
    fingerprint::fingerprint,
    json::text,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt;
use web::limiter::Limits;

use super::{OWNER, PASSWORD};

/// The key of the account's operator.
pub(super) const KEY: &str =
    "OOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOOO";

/// Where browsers are unless a test says otherwise.
pub(super) const HOME: &str = "198.51.100.7";

pub(super) struct Site {
    pub(super) made: TestApp,
    pub(super) clock: Arc<ManualClock>,
    router: Router,
    _worker: DropGuard,
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Site {
    /// Without limits of addresses, so that only those of sign-in count.
    pub(super) async fn new(engine: Engine, mail: Option<MailSettings>) -> Result<Self> {
        Self::with_limits(engine, mail, Limits { logins_per_address: 0, ..Limits::default() }).await
    }

    pub(super) async fn with_limits(
        engine: Engine,
        mail: Option<MailSettings>,
        limits: Limits,
    ) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(UnixMillis(1_760_000_000_000)));
        let of_parts = clock.clone();
        let made = TestApp::with(engine, move |parts| {
            parts.mail = mail;
            parts.clock = of_parts;
            parts.limits = limits;
        })
        .await?;
        let core = &made.app.core;
        made.add_key(KEY).await?;
        let stop = CancellationToken::new();
        tokio::spawn(::mail::worker::run(made.app.users.outbox.clone(), core.db.clone(), stop.clone()));
        let router = control::http::router(made.app.clone());
        Ok(Self { made, clock, router, _worker: stop.drop_guard() })
    }

    /// A site whose owner has a password.
    pub(super) async fn with_password(engine: Engine) -> Result<Self> {
        let site = Self::new(engine, None).await?;
        site.set_password().await?;
        Ok(site)
    }

    pub(super) async fn set_password(&self) -> Result<()> {
        self.set_password_in(self.made.account, OWNER, PASSWORD).await
    }

    /// Sets the password of an operator by a code of the command line.
    pub(super) async fn set_password_in(&self, account: AccountId, email: &str, new: &str) -> Result<()> {
        let body = json!({"code": self.password_code(account, email).await?, "password": new});
        self.ask(None, (Method::PUT, "/passwordReset"), body, HOME).await?.done(200).map(|_| ())
    }

    /// What `operators reset-password` prints.
    pub(super) async fn password_code(&self, account: AccountId, email: &str) -> Result<String> {
        let email = Email::parse(email).map_err(anyhow::Error::msg)?;
        let (db, with) = (&self.made.app.core.db, (&*self.clock as &dyn Clock, &SystemRandom as &dyn Random));
        Ok(commands::reset_password(db, with, Some(account), &email).await?)
    }

    /// Another account with an operator of this address, who has no password; gives the account and a key.
    pub(super) async fn other_account(&self, email: &str) -> Result<(AccountId, String)> {
        let db = &self.made.app.core.db;
        let (account, operator) = accounts::add(db, 1, email, None).await?;
        let key: String = operator.as_str().chars().cycle().take(80).collect();
        accounts::add_key(db, 1, &key, (account, operator)).await?;
        Ok((account, key))
    }

    /// How many rows of a table there are.
    pub(super) async fn count(&self, table: &str) -> Result<usize> {
        Ok(fingerprint(&self.made.db.location).await?[table].len())
    }

    pub(super) fn pass(&self, ms: i64) {
        self.clock.set(UnixMillis(self.clock.now().0 + ms));
        // Looked-up keys are cached for less than a second, by another clock.
        self.made.app.core.key_lookups.revoked();
    }

    /// Sends a request as it is, from an address.
    pub(super) async fn send(&self, mut request: Request<Body>, from: &str) -> Result<Answer> {
        let peer: SocketAddr = format!("{from}:4711").parse()?;
        request.extensions_mut().insert(ConnectInfo(Connection { peer, is_tls: true, local: None }));
        request.headers_mut().entry(header::HOST).or_insert(HeaderValue::from_static("api.example"));
        let response = self.router.clone().oneshot(request).await?;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 16 << 20).await?;
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes)? };
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(super) async fn by_key(&self, key: &str, method: Method, uri: &str, body: Value) -> Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::AUTHORIZATION, key)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))?;
        self.send(request, HOME).await
    }

    /// What a page of the console sends, with the cookie of its browser.
    pub(super) async fn ask(
        &self,
        cookie: Option<&str>,
        (method, path): (Method, &str),
        body: Value,
        from: &str,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/console/api{path}"))
            .header("sec-fetch-site", "same-origin")
            .header(
                header::USER_AGENT,
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            );
        if let Some(cookie) = cookie {
            request = request.header(header::COOKIE, cookie);
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header(header::CONTENT_TYPE, "application/json");
            Body::from(body.to_string())
        };
        self.send(request.body(body)?, from).await
    }

    /// Sends something with a cookie from home.
    pub(super) async fn with(&self, cookie: &str, method: Method, path: &str, body: Value) -> Result<Answer> {
        self.ask(Some(cookie), (method, path), body, HOME).await
    }

    /// The status of `GET session`.
    pub(super) async fn status(&self, cookie: &str) -> Result<u16> {
        Ok(self.with(cookie, Method::GET, "/session", Value::Null).await?.status)
    }

    pub(super) async fn try_sign_in(&self, body: Value, from: &str) -> Result<Answer> {
        self.ask(None, (Method::POST, "/session"), body, from).await
    }

    /// Signs the owner in with its password; gives the cookie.
    pub(super) async fn sign_in(&self) -> Result<String> {
        let body = json!({"email": OWNER, "password": PASSWORD});
        let answer = self.try_sign_in(body, HOME).await?;
        ensure!(answer.status == 200, "{answer:?}");
        answer.cookie()
    }

    /// Invites somebody who accepts with a password; gives its id and key.
    pub(super) async fn colleague(&self, email: &str, role: &str) -> Result<(String, String)> {
        let accesses = format!("/accounts/{}/operatorAccess", self.made.account);
        let body = json!({"email": email, "role": role});
        let invited = self.by_key(KEY, Method::POST, &accesses, body).await?.done(201)?;
        let body = json!({"code": invited["invitationCode"], "password": PASSWORD});
        let accepted = self.by_key("", Method::POST, "/invitations", body).await?.done(200)?;
        Ok((text(&accepted, "id")?, text(&accepted, "apiKey")?))
    }
}

impl Answer {
    /// The body of a success.
    pub(super) fn done(self, status: u16) -> Result<Value> {
        ensure!(self.status == status, "{self:?}");
        Ok(self.body)
    }

    /// Status and code of an error.
    pub(super) fn code(&self) -> (u16, u64) {
        (self.status, self.body["code"].as_u64().unwrap_or_default())
    }

    /// The pair of the cookie that it sets.
    pub(super) fn cookie(&self) -> Result<String> {
        let set = self.headers.get(header::SET_COOKIE).context("no cookie")?.to_str()?;
        let (pair, attributes) = set.split_once("; ").context("attributes")?;
        ensure!(attributes == "Path=/; Secure; HttpOnly; SameSite=Strict", "{set}");
        ensure!(pair.starts_with("__Host-waymark=") && pair.len() == 15 + 43, "{set}");
        Ok(pair.to_owned())
    }

    pub(super) fn retry_after(&self) -> Option<u64> {
        self.headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
    }
}
