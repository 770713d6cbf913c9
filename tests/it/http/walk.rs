//! Every operation of the route table with each kind of key, and from another tenant.
//!
//! Both walks are generated from the OpenAPI document: a route without a line in [`TABLE`], or whose path names a kind
//! of resource that [`Fixture`] does not create, fails.

mod audit;
mod bodies;
mod conditions;
mod console;
mod fixture;
mod platform;
mod roles;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use axum::http::Method;
use kernel::domain::access::UserRights;
use serde_json::{Value, json};
use tests::{db::Engine, json::text};

use self::{
    fixture::Fixture,
    table::{NOT_WITH_OWN_RIGHTS, TABLE},
};
use super::Api;

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// Operations that need no key, with tests of their own: `http::operators`, `http::reports`, `signin` and `oidc`.
const WITHOUT_KEY: [&str; 7] = [
    "/invitations",
    "/console/api/session",
    "/console/api/session/link",
    "/console/api/passwordReset",
    "/console/api/oidc/begin",
    "/console/api/oidc/callback",
    "/redirections/{shortId}/reports",
];

/// Kinds of key, in the order of the columns of [`TABLE`].
const KINDS: [&str; 5] = ["operator", "trusted application", "application", "user", "thng"];

/// What one request may change or remove many of.
const BULK: [&str; 10] = [
    "products",
    "thngs",
    "places",
    "collections",
    "files",
    "projects",
    "batches",
    "webhooks",
    "reactions",
    "applications",
];

/// Every operation that takes a key: method and path.
fn operations() -> Result<Vec<(Method, String)>> {
    let document = serde_json::to_value(control::http::document())?;
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().context("paths")? {
        for (method, operation) in item.as_object().context("item")? {
            if operation["security"] == json!([{}]) || operation["security"] == json!([]) {
                anyhow::ensure!(WITHOUT_KEY.contains(&path.as_str()), "{path} is public: give it a test");
                continue;
            }
            if operation["security"] == json!([{"session": []}]) {
                let name = format!("{} {path}", method.to_uppercase());
                anyhow::ensure!(console::OPERATIONS.contains(&name.as_str()), "{name} is in no walk");
                continue;
            }
            found.push((method.to_uppercase().parse()?, path.clone()));
        }
    }
    Ok(found)
}

/// The operations that take no body, as `METHOD path`.
fn without_body() -> BTreeSet<String> {
    let document = control::http::document();
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        item.as_object().into_iter().flatten().map(move |(method, operation)| (method, path, operation))
    });
    all.filter(|(.., operation)| operation.get("requestBody").is_none())
        .map(|(method, path, _)| format!("{} {path}", method.to_uppercase()))
        .collect()
}

pub(super) async fn every_cell_of_the_permissions(engine: Engine) -> Result<()> {
    walk(engine, UserRights::Open).await
}

pub(super) async fn every_cell_of_the_permissions_with_own_rights(engine: Engine) -> Result<()> {
    walk(engine, UserRights::Own).await
}

/// Walks every cell where users have these rights.
async fn walk(engine: Engine, rights: UserRights) -> Result<()> {
    let api = Api::new(engine).await?;
    if rights == UserRights::Open {
        api.open_rights().await?;
    }
    let fixture = Fixture::new(&api).await?;
    let before = api.fingerprint().await?;
    let mut operations = operations()?;
    for (method, path) in &operations {
        let name = format!("{method} {path}");
        anyhow::ensure!(TABLE.iter().any(|(line, ..)| *line == name), "{name} has no line in TABLE");
    }
    for (line, ..) in TABLE {
        let is_there = operations.iter().any(|(method, path)| *line == format!("{method} {path}"));
        anyhow::ensure!(is_there, "{line} is in TABLE and no operation");
    }
    let cell = |operation: &(Method, String), kind: usize| {
        let name = format!("{} {}", operation.0, operation.1);
        let is_own_user = KINDS[kind] == "user" && rights == UserRights::Own;
        if is_own_user && NOT_WITH_OWN_RIGHTS.contains(&name.as_str()) {
            return Some('-');
        }
        TABLE.iter().find(|(line, ..)| *line == name).and_then(|(_, cells, _)| cells.chars().nth(kind))
    };
    let mut wrong = Vec::new();
    // What is refused changes nothing, be it there or not.
    for operation in &operations {
        let answer = fixture.call(&api, "", operation, true).await?;
        if answer.status != 401 {
            wrong.push(format!("{operation:?} without a key: {}", answer.status));
        }
        for (kind, key) in KINDS.into_iter().zip(&fixture.keys) {
            let index = KINDS.iter().position(|known| *known == kind).context("kind")?;
            if cell(operation, index) != Some('-') {
                continue;
            }
            for known in [true, false] {
                let answer = fixture.call(&api, key, operation, known).await?;
                if answer.status != 403 || answer.json()["code"] != 40301 {
                    wrong.push(format!("{operation:?} as {kind}: {} instead of 403", answer.status));
                }
            }
        }
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    // What is allowed reads what is there; changes go to what nothing is, so that all is there to the end.
    operations.sort_by_key(|(_, path)| path == "/auth/all/logout");
    for operation in &operations {
        for (index, key) in fixture.keys.iter().enumerate() {
            let expected = cell(operation, index);
            if expected == Some('-') {
                continue;
            }
            let is_read = operation.0 == Method::GET;
            let answer = fixture.call(&api, key, operation, is_read).await?;
            let status = answer.status.as_u16();
            let fits = match (expected, is_read) {
                (Some('y'), true) => answer.status.is_success(),
                (Some('n'), _) => status == 404,
                (Some('x'), _) => status == 404 || status == 403,
                // A login fails for other reasons with 401.
                _ => status != 403 && (status != 401 || answer.json()["code"] == 40103),
            };
            if !fits {
                wrong.push(format!("{operation:?} as {}: {status}", KINDS[index]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// The rows of an account, table by table.
async fn rows_of(api: &Api, account: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut tables = api.fingerprint().await?;
    for rows in tables.values_mut() {
        rows.retain(|row| row.contains(account));
    }
    Ok(tables)
}

pub(super) async fn ids_of_another_tenant_are_404(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let ours = Fixture::new(&api).await?;
    let account = api.made.account.to_string();
    let before = rows_of(&api, &account).await?;
    assert!(before["thngs"].len() == 1 && before["redirections"].len() == 2);
    // The other tenant has one of everything and a key of each kind too.
    let theirs = other_keys(&api).await?;
    let mut wrong = Vec::new();
    for operation in &operations()? {
        let (method, path) = operation;
        let names_one = path.replace("{type}", "").replace("{key}", "").contains('{');
        for (kind, key) in KINDS.into_iter().zip(&theirs) {
            if path == "/auth/all/logout" {
                continue;
            }
            let answer = ours.call(&api, key, operation, true).await?;
            let status = answer.status.as_u16();
            let is_hidden = match (names_one, kind) {
                (true, "operator") => status == 404 || is_not_for_operators(path) && status == 403,
                (true, _) => status == 404 || status == 403,
                (false, _) => true,
            };
            let told = String::from_utf8_lossy(&answer.bytes);
            let leaks =
                answer.status.is_success() && ours.ids.values().any(|id| id.len() > 5 && told.contains(id));
            if !is_hidden || leaks {
                wrong.push(format!("{method} {path} as the other's {kind}: {status} {told}"));
            }
        }
    }
    // By name of the short domain too.
    let uri = format!("/redirections/{}?domain=tn.gg", ours.ids["redirections"]);
    for method in [Method::GET, Method::DELETE] {
        api.call_as(&theirs[0], method, &uri, None).await?.must_be(400)?;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows_of(&api, &account).await?, before, "another tenant changed something");
    Ok(())
}

/// Users are made and logged in by keys of applications alone, and change their passwords by their own; the platform has
/// keys of its own.
fn is_not_for_operators(path: &str) -> bool {
    path.starts_with("/auth/evrythng/users")
        || path == "/users/{id}/password"
        || path.starts_with("/platform/")
}

/// A key of each kind of the second account.
async fn other_keys(api: &Api) -> Result<[String; 5]> {
    let create = async |uri: &str, body: Value| -> Result<Value> {
        let answer = api.call_as(&api.other_key, Method::POST, uri, Some(body)).await?;
        anyhow::ensure!(answer.status == 201, "{answer:?}");
        Ok(answer.json())
    };
    let project = text(&create("/projects", json!({"name": "p"})).await?, "id")?;
    let applications = format!("/projects/{project}/applications");
    let app = create(&applications, json!({"name": "a"})).await?;
    let uri = format!("{applications}/{}/secretKey", text(&app, "id")?);
    let secret = api.call_as(&api.other_key, Method::GET, &uri, None).await?.json();
    let public = text(&app, "appApiKey")?;
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
    let thng = create("/thngs", json!({"name": "t"})).await?;
    let thng_key = create("/auth/evrythng/thngs", json!({"thngId": thng["id"]})).await?;
    Ok([
        api.other_key.clone(),
        text(&secret, "secretApiKey")?,
        public,
        text(&user, "evrythngApiKey")?,
        text(&thng_key, "thngApiKey")?,
    ])
}

crate::on_both_engines!(
    every_cell_of_the_permissions,
    every_cell_of_the_permissions_with_own_rights,
    ids_of_another_tenant_are_404,
);
