//! The limit of logins: which operations it counts is a column of the route table.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use control::http::policies;
use reqwest::{Method, Response};
use shared::time::UnixMillis;
use tests::db::Engine;
use web::routes::RateLimit;

use super::{Limited, check_limited};

/// By which passwords and codes could be guessed, or users be made.
const LOGINS: [&str; 18] = [
    "POST /auth/evrythng",
    "POST /auth/evrythng/users",
    "POST /auth/evrythng/users/{id}/validate",
    "POST /users/login",
    "POST /users/passwordReset",
    "PUT /users/passwordReset",
    "PUT /users/{id}/password",
    "POST /invitations",
    "PUT /me/password",
    "POST /console/api/session",
    "POST /console/api/session/link",
    "POST /console/api/passwordReset",
    "PUT /console/api/passwordReset",
    "POST /console/api/totp",
    "PUT /console/api/totp",
    "POST /console/api/totp/disable",
    "POST /console/api/recoveryCodes",
    "GET /console/api/oidc/begin",
];

impl Limited {
    /// A request as the console and other clients send it, whose body is cut off.
    async fn log_in(&self, method: &Method, path: &str, client: &str) -> Result<Response> {
        let mut request = self.http.request(method.clone(), format!("{}{path}", self.base));
        request = request.header("x-waymark-edge", "edge-token").header("x-forwarded-for", client);
        request = request.header("sec-fetch-site", "same-origin").header("idempotency-key", "once");
        if *method != Method::GET {
            request = request.header("content-type", "application/json").body("{");
        }
        Ok(request.send().await?)
    }
}

async fn every_login_is_limited_before_its_body_is_read(engine: Engine) -> Result<()> {
    let logins = policies().iter().filter(|(.., policy)| policy.rate_limit == RateLimit::Login);
    let logins: BTreeSet<String> = logins.map(|(method, path, _)| format!("{method} {path}")).collect();
    ensure!(logins == LOGINS.map(str::to_owned).into(), "{logins:?}");
    let api = Limited::new(engine).await?;
    for (n, operation) in LOGINS.iter().enumerate() {
        let (method, path) = operation.split_once(' ').context("operation")?;
        let method = method.parse()?;
        let path = path.replace("{id}", "UKXAGyEf8SQ5eTDmVgGpHqAa");
        let client = format!("198.51.{n}.1");
        for path in [&path, &format!("/v2{path}")] {
            let response = api.log_in(&method, path, &client).await?;
            ensure!((400..500).contains(&response.status().as_u16()), "{operation}: {response:?}");
            ensure!(response.status() != 429, "{operation}: {response:?}");
        }
        check_limited(api.log_in(&method, &path, &client).await?, 60)
            .await
            .with_context(|| format!("{operation} {path}"))?;
    }
    // Reports of finders are counted apart: this address has no login left.
    for _ in 0..2 {
        let response = api.log_in(&Method::POST, "/redirections/X/reports", "198.51.0.1").await?;
        ensure!(response.status() == 400, "{response:?}");
    }
    check_limited(api.log_in(&Method::POST, "/redirections/X/reports", "198.51.0.1").await?, 60).await?;
    Ok(())
}

/// The router decides: a spelling is the same operation, which is counted, or another one or none, which is not.
async fn another_spelling_of_a_path_is_a_login_or_does_nothing(engine: Engine) -> Result<()> {
    let api = Limited::new(engine).await?;
    for (n, (method, path, is_login)) in [
        (Method::PUT, "/users/%55KXAGyEf8SQ5eTDmVgGpHqAa/password", true),
        (Method::POST, "/auth/evrythng/users/U%4BXAGyEf8SQ5eTDmVgGpHqAa/validate", true),
        (Method::POST, "/console/api/users/login", true),
        (Method::POST, "/v2/console/api/session", true),
        (Method::HEAD, "/console/api/oidc/begin", true),
        (Method::POST, "/users/%6Cogin", false),
        (Method::POST, "/users/login/", false),
        (Method::POST, "/users//login", false),
        (Method::POST, "/users/loginx", false),
        (Method::POST, "/v2/v2/users/login", false),
        (Method::POST, "/auth/evrythng/usersx", false),
        (Method::POST, "/auth/evrythng/users/x/y", false),
        (Method::POST, "/console/%61pi/session", false),
        (Method::POST, "/console/api/session/", false),
        (Method::POST, "/console/api/sessions", false),
        (Method::POST, "/console/api/totp/x", false),
        (Method::GET, "/console/api/oidc/%62egin", false),
        (Method::GET, "/users/login", false),
    ]
    .into_iter()
    .enumerate()
    {
        let client = format!("198.51.{n}.1");
        for _ in 0..2 {
            let response = api.log_in(&method, path, &client).await?;
            let status = response.status().as_u16();
            ensure!(status != 429 && (is_login || [404, 405].contains(&status)), "{method} {path}: {status}");
        }
        let third = api.log_in(&method, path, &client).await?.status();
        ensure!((third == 429) == is_login, "{method} {path}: {third}");
    }
    Ok(())
}

async fn logins_are_limited_by_address(engine: Engine) -> Result<()> {
    let api = Limited::new(engine).await?;
    for path in ["/users/login", "/v2/auth/evrythng/users"] {
        let response = api.send(Method::POST, path, Some(&api.keys[0]), "198.51.100.1").await?;
        ensure!(response.status() != 429, "{path}: {response:?}");
    }
    for (path, key) in [
        ("/users/login", Some(&api.keys[0])),
        ("/v2/users/login", Some(&api.keys[1])),
        ("/auth/evrythng/users/UKXAGyEf8SQ5eTDmVgGpHqAa/validate", None),
        ("/auth/evrythng/users?anonymous=true", None),
    ] {
        check_limited(api.send(Method::POST, path, key.map(String::as_str), "198.51.100.1").await?, 60)
            .await?;
    }
    // Everything else goes on, and so do others.
    for (method, path, client) in
        [(Method::GET, "/access", "198.51.100.1"), (Method::POST, "/users/login", "198.51.100.2")]
    {
        let response = api.send(method, path, Some(&api.keys[1]), client).await?;
        ensure!(response.status() != 429, "{path}: {response:?}");
    }
    api.clock.set(UnixMillis(30_000));
    let response = api.send(Method::POST, "/users/login", Some(&api.keys[1]), "198.51.100.1").await?;
    ensure!(response.status() != 429, "{response:?}");
    check_limited(api.send(Method::POST, "/users/login", Some(&api.keys[1]), "198.51.100.1").await?, 60).await
}

crate::on_both_engines!(
    another_spelling_of_a_path_is_a_login_or_does_nothing,
    every_login_is_limited_before_its_body_is_read,
    logins_are_limited_by_address,
);
