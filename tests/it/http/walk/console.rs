//! Operations that take a session: no key reaches them, and nobody without a session. And every operation that takes a key,
//! by a session below `/console/api/`: it may do what a key of the same operator may.

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use kernel::domain::subject::Permissions;
use serde_json::json;
use signin::domain::token::Token;
use tests::db::Engine;

use super::{
    super::{Answer, Api, begin_session, operators::accept},
    Fixture, KINDS, TABLE,
    bodies::BODIES,
    operations, text,
};

/// Each operation whose security is a session.
pub(super) const OPERATIONS: &[&str] = &[
    "GET /console/api/session",
    "DELETE /console/api/session",
    "GET /console/api/sessions",
    "DELETE /console/api/sessions/{id}",
    "GET /console/api/identities",
    "DELETE /console/api/identities/{id}",
    "POST /console/api/totp",
    "PUT /console/api/totp",
    "POST /console/api/totp/disable",
    "POST /console/api/recoveryCodes",
];

/// Sends an operation with headers of its own.
async fn ask(api: &Api, operation: &str, headers: &[(&str, &str)]) -> Result<Answer> {
    let (method, path) = operation.split_once(' ').context("operation")?;
    let path = path.replace("{id}", "9F86D081884C7D659A2FEAA0");
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "api.example:8080");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let json = request.header(header::CONTENT_TYPE, "application/json");
    api.send_unchanged(json.body(Body::from(json!({}).to_string()))?).await
}

pub(in super::super) async fn operations_of_the_console_take_a_session_alone(engine: Engine) -> Result<()> {
    const SAME: (&str, &str) = ("sec-fetch-site", "same-origin");
    let api = Api::new(engine).await?;
    let fixture = Fixture::new(&api).await?;
    let document = control::http::document();
    let before = api.fingerprint().await?;
    for operation in OPERATIONS {
        let (method, path) = operation.split_once(' ').context("operation")?;
        let declared = &document["paths"][path][method.to_lowercase()]["security"];
        assert_eq!(declared, &json!([{"session": []}]), "{operation}");
        ask(&api, operation, &[SAME]).await?.problem(401, 40101);
        let unknown = format!("__Host-waymark={}", "A".repeat(43));
        ask(&api, operation, &[SAME, ("cookie", &unknown)]).await?.problem(401, 40102);
        for (kind, key) in KINDS.into_iter().zip(&fixture.keys) {
            let answer = ask(&api, operation, &[SAME, ("authorization", key)]).await?;
            assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (403, &json!(40301)), "{kind}");
            let both = [SAME, ("authorization", key), ("cookie", &api.cookie)];
            ask(&api, operation, &both).await?.problem(403, 40301);
        }
        for site in ["cross-site", "same-site", "none"] {
            let headers = [("sec-fetch-site", site), ("cookie", &api.cookie)];
            ask(&api, operation, &headers).await?.problem(403, 40301);
        }
        ask(&api, operation, &[("cookie", &api.cookie)]).await?.problem(403, 40301);
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    for operation in OPERATIONS.iter().filter(|operation| **operation != "DELETE /console/api/session") {
        let answer = ask(&api, operation, &[SAME, ("cookie", &api.cookie)]).await?;
        assert!(![401, 403].contains(&answer.status.as_u16()), "{operation}: {answer:?}");
    }
    Ok(())
}

/// A viewer reads by a session what it reads by a key, and is refused the same.
pub(in super::super) async fn a_session_does_what_its_role_allows(engine: Engine) -> Result<()> {
    let api = Api::without_mail(engine).await?;
    let fixture = Fixture::new(&api).await?;
    let accesses = format!("/accounts/{}/operatorAccess", api.made.account);
    let invited = api.create(&accesses, json!({"email": "viewer@example.com", "role": "viewer"})).await?;
    let accepted = accept(&api, json!({"code": text(&invited, "invitationCode")?})).await?.json();
    let (viewer, key) = (text(&accepted, "id")?, text(&accepted, "apiKey")?);
    let cookie = begin_session(&api.made.app, api.made.account, viewer.parse()?).await?;
    // Of the owner's session, too, whose answers below hold more.
    let key_of = |cookie: &str| {
        let token = Token::find([cookie].into_iter())?;
        token.key(&api.made.app.core.secrets.sign_in)
    };
    let session_keys = [&cookie, &api.cookie].map(|cookie| key_of(cookie).unwrap_or_default());
    assert!(session_keys.iter().all(|key| key.len() == 80), "no key of a session");
    let policies = api.get("/accessPolicies?filter=name~evt:viewer").await?.json();
    let texts = policies[0]["permissions"].as_array().context("permissions")?.iter();
    let texts: Vec<&str> = texts.filter_map(|text| text.as_str()).collect();
    let allowed = Permissions::parse(&texts.join(" "))?;
    let (mut refused, mut reads, mut wrong) = (0, 0, Vec::new());
    for operation in operations()? {
        let (method, path) = &operation;
        let name = format!("{method} {path}");
        let (_, cells, needs) = TABLE.iter().find(|(line, ..)| *line == name).context("no line")?;
        let needs = match *needs {
            "" | "own" | "x" => None,
            text => Some(Permissions::parse(text)?),
        };
        let is_refused = cells.starts_with('-') || needs.is_some_and(|needs| !allowed.cover(&needs));
        if !is_refused && *method != Method::GET {
            continue;
        }
        let mut uri = fixture.uri(path, true)?;
        if *method == Method::GET || *method == Method::POST {
            uri.truncate(uri.find('?').unwrap_or(uri.len()));
        }
        let body = match BODIES.iter().find(|(line, _)| *line == name) {
            Some((_, text)) => Some(serde_json::from_str(text)?),
            None => fixture.body(method, path)?,
        };
        let by_key = api.call_as(&key, method.clone(), &uri, body.clone()).await?;
        let request = Request::builder().method(method.clone()).uri(format!("/console/api{uri}"));
        let request = request
            .header(header::HOST, "api.example:8080")
            .header(header::COOKIE, &cookie)
            .header(header::ACCEPT, "*/*")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        let by_session = api.send(request).await?;
        let is_same = by_key.status == by_session.status;
        if !is_same || is_refused && by_session.status != 403 {
            wrong.push(format!("{name}: {} by key, {} by session", by_key.status, by_session.status));
        }
        assert!(by_session.header("access-control-allow-origin").is_none(), "{name}");
        let mut told = vec![by_session.bytes.clone()];
        if *method == Method::GET {
            // Sent with the session of the owner in place of the key.
            told.push(api.get(&format!("/console/api{uri}")).await?.bytes);
        }
        for (told, key) in told.iter().flat_map(|told| session_keys.iter().map(move |key| (told, key))) {
            assert!(
                !String::from_utf8_lossy(told).contains(key.as_str()),
                "{name} shows the key of a session"
            );
        }
        refused += usize::from(is_refused);
        reads += usize::from(!is_refused && by_session.status.is_success());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused > 60 && reads > 30, "{refused} refused, {reads} read");
    Ok(())
}

crate::on_both_engines!(operations_of_the_console_take_a_session_alone, a_session_does_what_its_role_allows);
