//! Every write of the route table leaves an entry in the audit trail.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use applications::store::password_resets;
use axum::http::Method;
use events::{domain::webhook::Webhook, store::webhook_messages};
use kernel::store::{Ctx, documents};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::time::UnixMillis;
use signin::service::commands;
use tenants::domain::email::Email;
use tests::db::{Engine, SystemRandom};

use super::{
    super::{
        Answer, Api,
        commissioning::{Factory, WHEN},
        jobs,
        operators::{self, machine},
    },
    Fixture, operations, text,
};

/// Operations that are no `GET` and change nothing of the account.
const READS: &[&str] = &[
    "POST /thngs/commissionStateList",
    "POST /redirections/{shortId}/preview",
    "POST /products/{id}/links/check",
    "POST /products/{id}/links/preview",
    // It sends a message and stores nothing.
    "POST /webhooks/{id}/ping",
    // What it changes is noted where it finds something: see `http::own_domains`.
    "POST /accounts/{id}/shortDomains/{domain}/verify",
    "POST /accounts/{id}/shortDomains/{domain}/certificate",
    // With `apply` it does write: see `a_replay_that_is_applied_is_noted`.
    "POST /authentication/replay",
];

/// Operations of public keys alone: what these do is data.
const PUBLIC: &[&str] = &["POST /auth/all/logout", "PUT /users/{id}/password"];

/// Operations of the platform operator: `every_write_of_the_platform_is_noted` checks what they leave.
pub(super) const PLATFORM: &str = "/platform/";

/// Operations whose entries say what came or went: what was before stands in a history, or is personal data.
const WITHOUT_BEFORE: &[&str] = &[
    "/properties",
    "/location",
    "/users/{id}",
    // Neither is shown.
    "/me/password",
    "/users/passwordReset",
    "/thngs/{id}/actions/",
    "/collections/{id}/",
    "/deliveries",
];

/// What is asked for where the walk's body changes nothing.
const BODIES: &[(&str, &str)] = &[
    ("PUT /accounts/{id}/domains/{domain}", r#"{"redirectMaxAge": 60}"#),
    ("PUT /accounts/{id}/shortDomains/{domain}", r#"{"robots": "all"}"#),
    ("POST /accounts/{id}/shortDomains", r#"{"host": "audit.example"}"#),
    ("PUT /thngs/{id}/location", r#"[{"position": {"type": "Point", "coordinates": [1, 2]}}]"#),
    ("PUT /redirector", r#"{"rules": [{"match": "country=DE", "redirectUrl": "https://example.com/de"}]}"#),
    (
        "PUT /projects/{project}/applications/{id}/redirector",
        r#"{"rules": [{"match": "country=DE", "redirectUrl": "https://example.com/de"}]}"#,
    ),
];

/// Logins and password resets; they are for keys of applications, too.
const LOGINS: [&str; 3] = ["/auth/evrythng", "/users/login", "/users/passwordReset"];

pub(in super::super) async fn every_write_of_the_route_table_is_noted(engine: Engine) -> Result<()> {
    let (mut api, mut fixture) = fresh(engine).await?;
    let mut wrong = Vec::new();
    let mut writes = operations()?;
    writes.retain(|(method, path)| {
        let name = format!("{method} {path}");
        let is_of_account = !PUBLIC.contains(&&*name) && !path.starts_with(PLATFORM);
        method != Method::GET && !READS.contains(&&*name) && is_of_account
    });
    // What is made first and removed last is there for most of the others.
    let rank =
        |method: &Method| [Method::POST, Method::PUT, Method::DELETE].iter().position(|one| one == method);
    writes.sort_by_key(|(method, path)| (rank(method), std::cmp::Reverse(path.split('/').count())));
    for (method, path) in &writes {
        let name = format!("{method} {path}");
        if path.ends_with("/decommissions") {
            // Its factory has the products of the one before.
            (api, fixture) = fresh(engine).await?;
        }
        let answer = match ask(&api, &fixture, method, path).await {
            Ok(answer) if answer.status.is_success() => answer,
            // An earlier operation has removed what this one needs.
            Ok(_) | Err(_) => {
                (api, fixture) = fresh(engine).await?;
                ask(&api, &fixture, method, path).await?
            }
        };
        if !answer.status.is_success() {
            wrong.push(format!("{name}: {} {}", answer.status, String::from_utf8_lossy(&answer.bytes)));
            continue;
        }
        let request = answer.header("x-request-id").context("X-Request-Id")?.to_owned();
        let begun = Instant::now();
        let entries = loop {
            let entries = api.get(&format!("/audit?filter=requestId={request}")).await?.json();
            // What a request for a reset does with the address comes after its answer.
            let is_late = name == "POST /users/passwordReset" && entries == json!([]);
            if !is_late || begun.elapsed() > Duration::from_secs(10) {
                break entries;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let entries = entries.as_array().with_context(|| format!("{name}: {entries}"))?;
        if entries.is_empty() {
            wrong.push(format!("{name}: no entry"));
        }
        for entry in entries {
            let is_named = entry["operation"] == *name
                && entry["key"].as_str().is_some_and(|id| id.len() == 24)
                && entry["actor"].is_string();
            if !is_named || (entry.get("before").is_none() && entry.get("after").is_none()) {
                wrong.push(format!("{name}: {entry}"));
            }
        }
        let says_before = entries.iter().any(|entry| entry.get("before").is_some());
        let has_before = *method != Method::POST && !WITHOUT_BEFORE.iter().any(|part| path.contains(part));
        if has_before && !says_before {
            wrong.push(format!("{name}: nothing of before: {entries:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

async fn ask(api: &Api, fixture: &Fixture, method: &Method, path: &str) -> Result<Answer> {
    let (uri, body) = prepared(api, fixture, method, path).await?;
    let is_for_applications = path.starts_with("/auth/evrythng/users") || LOGINS.contains(&path);
    let key = &fixture.keys[usize::from(is_for_applications)];
    api.call_as(key, method.clone(), &uri, body).await
}

/// What is sent so that an operation changes something, where all is there that it needs.
pub(super) async fn prepared(
    api: &Api,
    fixture: &Fixture,
    method: &Method,
    path: &str,
) -> Result<(String, Option<Value>)> {
    let name = format!("{method} {path}");
    let mut uri = fixture.uri(path, true)?;
    if method == Method::POST {
        uri.truncate(uri.find('?').unwrap_or(uri.len()));
    }
    let own = BODIES.iter().find(|(operation, _)| *operation == name);
    let mut body = match own {
        Some((_, text)) => Some(serde_json::from_str(text)?),
        None => fixture.body(method, path)?,
    };
    prepare(api, fixture, &name, &mut uri, &mut body).await?;
    Ok((uri, body))
}

/// Makes what an operation needs beyond the fixture, and changes what is asked for.
async fn prepare(
    api: &Api,
    fixture: &Fixture,
    name: &str,
    uri: &mut String,
    body: &mut Option<Value>,
) -> Result<()> {
    let create = async |uri: &str, body: Value| text(&api.create(uri, body).await?, "id");
    match name {
        "POST /auth/evrythng/users/{id}/validate" | "POST /auth/evrythng" | "POST /users/login" => {
            let credentials = json!({"email": "audit@example.com", "password": "a long password"});
            let users = "/auth/evrythng/users";
            let app = &fixture.keys[1];
            let new = api.call_as(app, Method::POST, users, Some(credentials.clone())).await?.json();
            let validate = format!("{users}/{}/validate", text(&new, "evrythngUser")?);
            let code = json!({"activationCode": new["activationCode"]});
            if name.ends_with("validate") {
                (*uri, *body) = (validate, Some(code));
            } else {
                api.call_as(app, Method::POST, &validate, Some(code)).await?;
                *body = Some(credentials);
            }
        }
        "POST /jobs/qr" | "POST /jobs/qr/{id}/cancel" => {
            let thngs = json!({"list": {"thngs": [fixture.ids["thngs"]]}});
            let order = json!({"source": thngs, "format": "zpl"});
            if name.ends_with("cancel") {
                *uri = format!("/jobs/qr/{}/cancel", create("/jobs/qr", order).await?);
            } else {
                *body = Some(order);
            }
        }
        "DELETE /accounts/{id}/shortDomains/{domain}" => {
            let claims = format!("/accounts/{}/shortDomains", api.made.account);
            let claim = api.create(&claims, json!({"host": "removed.example"})).await?;
            *uri = format!("{claims}/{}", text(&claim, "host")?);
        }
        "POST /redirections/{shortId}/restore" => {
            let history = format!("/redirections/{}/history", fixture.ids["redirections"]);
            let changes = api.get(&history).await?.json();
            *body = Some(json!({"version": changes[0]["version"]}));
        }
        "POST /jobs/redirections" | "POST /jobs/redirections/{changeId}/cancel" => {
            let change = json!({"platformId": fixture.ids["thngs"], "patch": {"notes": name}});
            if name.ends_with("cancel") {
                *uri = format!("/jobs/redirections/{}/cancel", create("/jobs/redirections", change).await?);
            } else {
                *body = Some(change);
            }
        }
        "POST /jobs/redirections/{changeId}/approve" => {
            let account = format!("/accounts/{}", api.made.account);
            let set = async |waits: bool| api.put(&account, json!({"approveBulkChanges": waits})).await;
            // Somebody else asked for it.
            let (_, editor) = machine(api, "editor", json!({})).await?;
            let change = json!({"platformId": fixture.ids["thngs"], "patch": {"notes": name}});
            set(true).await?;
            let asked = api.call_as(&editor, Method::POST, "/jobs/redirections", Some(change)).await?;
            set(false).await?;
            *uri = format!("/jobs/redirections/{}/approve", text(&asked.json(), "id")?);
        }
        "DELETE /jobs/actions/{id}" => {
            // Only a job that has ended can be removed.
            let _working = jobs::work(api);
            jobs::ended(api, uri).await?;
        }
        "POST /projects/{id}/scanCounts" | "DELETE /projects/{id}/scanCounts" => {
            *uri = format!("/projects/{}/scanCounts", create("/projects", operators::demo()).await?);
        }
        "PUT /roles/{id}/permissions" => {
            let role = json!({"name": "of users", "type": "userInApp"});
            *uri = format!("/roles/{}/permissions", create("/roles", role).await?);
        }
        "POST /users/passwordReset" | "PUT /users/passwordReset" => {
            let credentials = json!({"email": "reset@example.com", "password": "a long password"});
            let app = &fixture.keys[1];
            let new = api.call_as(app, Method::POST, "/auth/evrythng/users", Some(credentials)).await?.json();
            *body = Some(json!({"email": "reset@example.com"}));
            if name.starts_with("PUT") {
                let code = "C".repeat(80);
                let hash: [u8; 32] = Sha256::digest(code.as_bytes()).into();
                let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
                let user = text(&new, "evrythngUser")?.parse()?;
                password_resets::insert(&mut tx, &hash, api.made.account, user, UnixMillis(i64::MAX)).await?;
                tx.commit().await?;
                *body = Some(json!({"code": code, "password": "a long sentence is best"}));
            }
        }
        "PUT /me/password" => {
            let (clock, db) = (&*api.made.clock, &api.made.app.core.db);
            let email = Email::parse("o@example.com").map_err(anyhow::Error::msg)?;
            let code = commands::reset_password(db, (clock, &SystemRandom), Some(api.made.account), &email);
            let set = json!({"code": code.await?, "password": "a long sentence is best"});
            let answer = api.put("/console/api/passwordReset", set).await?;
            anyhow::ensure!(answer.status == 200, "{answer:?}");
        }
        "POST /auth/evrythng/thngs" => {
            *body = Some(json!({"thngId": create("/thngs", json!({"name": "with a key"})).await?}));
        }
        "POST /thngs/{id}/actions/commissions" | "POST /thngs/{id}/actions/decommissions" => {
            let factory = Factory::new(api).await?;
            let thng = factory.thng("1").await?;
            (*uri, *body) = (format!("/thngs/{thng}/actions/commissions"), Some(factory.body()));
            if name.ends_with("decommissions") {
                api.call(Method::POST, uri, body.clone()).await?;
                let step = json!({"location": {"place": factory.place}, "occurredAt": WHEN,
                    "factoryMetadata": {"factory": "F1"}});
                (*uri, *body) = (format!("/thngs/{thng}/actions/decommissions"), Some(step));
            }
        }
        "POST /webhooks/{id}/deliveries/{delivery}" => {
            let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
            let id = fixture.ids["webhooks"].parse()?;
            let found: Option<Webhook> = documents::find(&mut tx, api.made.account, id).await?;
            let new = webhook_messages::New {
                webhook: found.context("webhook")?.stamp.seq,
                account: api.made.account,
                message_id: "msg_1".to_owned(),
                kind: "ping".to_owned(),
                body: "{}".to_owned(),
            };
            webhook_messages::insert(&mut tx, UnixMillis(1), &[new]).await?;
            tx.commit().await?;
            *uri = format!("/webhooks/{}/deliveries/msg_1", fixture.ids["webhooks"]);
        }
        _ if name.starts_with("DELETE") && name.ends_with("/properties/{key}") => {
            api.put(uri, json!([{"value": 1}])).await?;
        }
        "PUT /actions/{type}" | "DELETE /actions/{type}" => {
            api.post("/actions", json!({"name": "_audit"})).await?;
            *uri = "/actions/_audit".to_owned();
        }
        _ if !name.starts_with("GET") && name.ends_with("/redirector") => {
            let rules = json!({"rules": [{"match": "country=FR", "redirectUrl": "https://example.com/fr"}]});
            api.put(uri, rules).await?;
        }
        "DELETE /collections/{id}/collections/{collectionId}" | "DELETE /collections/{id}/thngs/{thngId}" => {
            let kind = if name.contains("thngId") { "thngs" } else { "collections" };
            let member = create(&format!("/{kind}"), json!({"name": "member"})).await?;
            let all = format!("/collections/{}/{kind}", fixture.ids["collections"]);
            api.put(&all, json!([member])).await?;
            *uri = format!("{all}/{member}");
        }
        _ => {}
    }
    Ok(())
}

/// The walk's fixture, with a key to change beside the one that asks.
pub(super) async fn fresh(engine: Engine) -> Result<(Api, Fixture)> {
    let api = Api::new(engine).await?;
    let mut fixture = Fixture::new(&api).await?;
    let key = api.create("/keys", json!({"label": "to be changed"})).await?;
    fixture.ids.insert("keys", text(&key, "id")?);
    Ok((api, fixture))
}

crate::on_both_engines!(every_write_of_the_route_table_is_noted);
