//! The audit trail: who is noted, who may read it, and that changes to it are found.

use anyhow::{Context, Result};
use axum::http::Method;
use futures_util::future::try_join_all;
use kernel::store::{Conn, Ctx};
use serde_json::{Value, json};
use tenants::{
    domain::audit::Broken,
    service::audit::{KEPT_MS, chain_all, chain_new, purge, rejects, verify},
};
use tests::db::Engine;

use super::{Answer, Api};

async fn entries(api: &Api, query: &str) -> Result<Vec<Value>> {
    let answer = api.get(&format!("/audit{query}")).await?;
    anyhow::ensure!(answer.status == 200, "{answer:?}");
    Ok(answer.json().as_array().context("entries")?.clone())
}

/// Runs a statement that no code of ours would.
async fn tamper(api: &Api, sql: &'static str) -> Result<u64> {
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let rows = match &mut *tx {
        Conn::PgTx(c) => sqlx::query(sql).execute(&mut **c).await?.rows_affected(),
        Conn::SqliteTx(c) => sqlx::query(sql).execute(&mut **c).await?.rows_affected(),
        Conn::Pg(_) | Conn::Sqlite(_) => anyhow::bail!("no transaction"),
    };
    tx.commit().await?;
    Ok(rows)
}

async fn checked(api: &Api) -> Result<Result<i64, Broken>> {
    let core = &api.made.app.core;
    Ok(verify(&core.db, &core.secrets.audit, api.made.account).await?)
}

/// An account with five entries in its chain.
async fn chained(engine: Engine) -> Result<Api> {
    let api = Api::new(engine).await?;
    for name in ["a", "b", "c", "d", "e"] {
        api.create("/places", json!({"name": name, "latitude": 1, "longitude": 2})).await?;
    }
    while chain_new(&api.made.app.core).await? > 0 {}
    assert_eq!(checked(&api).await?, Ok(5));
    Ok(api)
}

pub(super) async fn an_entry_says_who_changed_what(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let new = json!({"platformId": thng["id"], "defaultRedirectUrl": "https://example.com/old",
        "shortId": "K7Q2M4XA9R"});
    let made = api.post("/redirections", new).await?;
    anyhow::ensure!(made.status.is_success(), "{made:?}");
    let change = json!({"defaultRedirectUrl": "https://example.com/new"});
    let answer = api.put("/redirections/K7Q2M4XA9R", change).await?.must_be(200)?;
    let found = entries(&api, "?filter=resource=redirection").await?;
    assert_eq!(found.len(), 2);
    let entry = &found[0];
    assert_eq!(entry["operation"], "PUT /redirections/{shortId}");
    assert_eq!(entry["actorType"], "operator");
    assert_eq!(entry["actor"], json!(api.made.operator.to_string()));
    assert_eq!(entry["requestId"].as_str(), answer.header("x-request-id"));
    assert_eq!(entry["before"], json!({"defaultRedirectUrl": "https://example.com/old"}));
    assert_eq!(entry["after"], json!({"defaultRedirectUrl": "https://example.com/new"}));
    assert_eq!(found[1]["before"], Value::Null);
    // A filter by each field, and one that is not there.
    let id = entry["resourceId"].as_str().context("id")?;
    for field in ["actor", "key", "operation", "resourceId", "requestId"] {
        let value = entry[field].as_str().with_context(|| field.to_owned())?;
        let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        let query = format!("?filter={field}%3D{value}");
        assert!(entries(&api, &query).await?.iter().any(|one| one["resourceId"] == id), "{query}");
    }
    api.get("/audit?filter=before=x").await?.problem(400, 40003);
    Ok(())
}

/// More than a statement takes, and a step that takes all that wait.
pub(super) async fn entries_of_one_transaction_keep_their_order(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let link = |n| json!({"platformId": thng["id"], "defaultRedirectUrl": "https://example.com/", "shortId": format!("L{n}")});
    let links = Value::Array((0..40).map(link).collect());
    api.call(Method::POST, "/redirections", Some(links)).await?.must_be(200)?;
    let found = entries(&api, "?filter=resource=redirection&perPage=100").await?;
    let ids: Vec<&str> = found.iter().rev().filter_map(|entry| entry["resourceId"].as_str()).collect();
    assert_eq!(ids.len(), 40);
    for (n, id) in ids.into_iter().enumerate() {
        assert!(id.ends_with(&format!("/L{n}")), "{id} is {n}");
    }
    assert_eq!(checked(&api).await?, Ok(41), "with the Thng");
    assert_eq!(chain_new(&api.made.app.core).await?, 0, "nothing waits any more");
    Ok(())
}

pub(super) async fn an_entry_shows_product_position_and_status_and_no_token(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.create("/products", json!({"name": "p"})).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let place = api.create("/places", json!({"name": "p", "latitude": 1, "longitude": 2})).await?;
    let hook = json!({"name": "w", "url": "https://example.com/hook?token=sesame", "status": "disabled"});
    let hook = api.create("/webhooks", hook).await?;
    for (uri, change, before, after) in [
        (
            format!("/thngs/{}", text(&thng)?),
            json!({"product": product["id"]}),
            json!({"product": null}),
            json!({"product": product["id"]}),
        ),
        (
            format!("/places/{}", text(&place)?),
            json!({"latitude": 3, "longitude": 2}),
            json!({"latitude": 1.0}),
            json!({"latitude": 3.0}),
        ),
        (
            format!("/webhooks/{}", text(&hook)?),
            json!({"status": "active"}),
            json!({"status": "disabled"}),
            json!({"status": "active"}),
        ),
    ] {
        api.put(&uri, change).await?.must_be(200)?;
        let found = &entries(&api, "").await?[0];
        assert_eq!((&found["before"], &found["after"]), (&before, &after), "{uri}");
    }
    let all = entries(&api, "").await?;
    assert!(!json!(all).to_string().contains("sesame"), "{all:?}");
    assert!(json!(all).to_string().contains("https://example.com/hook?…"), "{all:?}");
    Ok(())
}

fn text(body: &Value) -> Result<&str> {
    body["id"].as_str().with_context(|| format!("no id: {body}"))
}

pub(super) async fn what_is_refused_or_undone_leaves_no_entry(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let place = |name: &str| json!({"name": name, "latitude": 1, "longitude": 2});
    api.post("/places", json!({"latitude": 1})).await?.must_be(400)?;
    let made = api.create("/places", place("kept")).await?;
    let id = made["id"].as_str().context("id")?;
    // One of them is not there, so neither is changed.
    let uri = format!("/places?ids={id},UKXAGyEf8SQ5eTDmVgGpHqAa");
    assert_eq!(api.put(&uri, json!({"name": "x"})).await?.status, 404);
    let found = entries(&api, "").await?;
    assert_eq!(found.len(), 1, "{found:?}");
    Ok(())
}

pub(super) async fn the_trail_is_for_operators_of_the_account(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?;
    let of_project = json!({"label": "x", "project": project["id"]});
    let of_project = api.create("/keys", of_project).await?;
    let key = of_project["apiKey"].as_str().context("key")?;
    for uri in ["/audit", "/audit/export"] {
        api.call_as(key, Method::GET, uri, None).await?.problem(403, 40301);
        let other: Answer = api.call_as(&api.other_key, Method::GET, uri, None).await?;
        assert_eq!(other.status, 200);
        assert!(!String::from_utf8_lossy(&other.bytes).contains(project["id"].as_str().context("id")?));
    }
    // What a key of a project does is noted under its id.
    api.call_as(key, Method::POST, "/products", Some(json!({"name": "of a project"}))).await?.must_be(201)?;
    let found = entries(&api, "?filter=resource=product").await?;
    assert_eq!(found[0]["actorType"], "projectOperator");
    assert_eq!(found[0]["key"], of_project["id"]);
    // What strangers do with public keys is data, and not in the trail.
    let uri = format!("/projects/{}/applications", project["id"].as_str().context("id")?);
    let app = api.create(&uri, json!({"name": "a"})).await?;
    let public = app["appApiKey"].as_str().context("public key")?;
    let before = entries(&api, "").await?.len();
    api.call_as(public, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({})))
        .await?
        .must_be(201)?;
    assert_eq!(entries(&api, "").await?.len(), before);
    Ok(())
}

pub(super) async fn the_export_has_every_entry(engine: Engine) -> Result<()> {
    let api = chained(engine).await?;
    let lines = |answer: &Answer| {
        let text = String::from_utf8_lossy(&answer.bytes).into_owned();
        text.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>()
    };
    let whole = api.get("/audit/export").await?;
    assert_eq!(whole.header("content-type"), Some("application/x-ndjson"));
    let found = lines(&whole)?;
    let numbers: Vec<i64> = found.iter().filter_map(|entry| entry["number"].as_i64()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let last = found[4]["createdAt"].as_i64().context("createdAt")?;
    assert_eq!(lines(&api.get(&format!("/audit/export?from={}", last + 1)).await?)?.len(), 0);
    assert_eq!(lines(&api.get(&format!("/audit/export?to={last}")).await?)?.len(), 5);
    api.get("/audit/export?from=yesterday").await?.problem(400, 40003);
    Ok(())
}

pub(super) async fn a_changed_moved_or_missing_entry_is_found(engine: Engine) -> Result<()> {
    for (sql, expected) in [
        ("UPDATE audit_entries SET after = '{}' WHERE number = 3", Broken::Changed(3)),
        ("UPDATE audit_entries SET actor_id = NULL WHERE number = 2", Broken::Changed(2)),
        ("UPDATE audit_entries SET at = at + 1 WHERE number = 5", Broken::Changed(5)),
        ("DELETE FROM audit_entries WHERE number = 4", Broken::Missing(4)),
        ("DELETE FROM audit_entries WHERE number = 5", Broken::Missing(5)),
        (
            "UPDATE audit_entries SET number = CASE number WHEN 2 THEN -3 ELSE -2 END WHERE number IN (2, 3)",
            Broken::Missing(2),
        ),
        (
            "UPDATE audit_chains SET last_number = 4, last_hash = (SELECT hash FROM audit_entries WHERE number = 4)",
            Broken::Ends,
        ),
        (
            "UPDATE audit_chains SET base_number = 1, base_hash = (SELECT hash FROM audit_entries WHERE number = 1)",
            Broken::Ends,
        ),
        ("DELETE FROM audit_chains", Broken::Beyond(5)),
    ] {
        let api = chained(engine).await?;
        assert!(tamper(&api, sql).await? > 0, "{sql}");
        assert_eq!(checked(&api).await?, Err(expected), "{sql}");
        // It stays so when the trail goes on.
        api.create("/places", json!({"name": "f", "latitude": 1, "longitude": 2})).await?;
        let _ = chain_new(&api.made.app.core).await;
        assert!(checked(&api).await?.is_err(), "{sql}, later");
    }
    // Two that were exchanged: each has the number of the other.
    let api = chained(engine).await?;
    tamper(&api, "UPDATE audit_entries SET number = -number WHERE number IN (2, 3)").await?;
    tamper(&api, "UPDATE audit_entries SET number = 5 + number WHERE number IN (-2, -3)").await?;
    assert_eq!(checked(&api).await?, Err(Broken::Changed(2)));
    Ok(())
}

pub(super) async fn entries_that_are_chained_at_once_make_one_chain(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d"] {
        made.push(api.create("/places", json!({"name": name, "latitude": 1, "longitude": 2})).await?);
    }
    // As a server of the release before leaves one.
    entries(&api, "").await?;
    tamper(&api, "UPDATE audit_entries SET number = NULL, hash = NULL").await?;
    tamper(&api, "DELETE FROM audit_chains").await?;
    for name in ["e", "f"] {
        made.push(api.create("/places", json!({"name": name, "latitude": 1, "longitude": 2})).await?);
    }
    let core = &api.made.app.core;
    try_join_all((0..4).map(|_| chain_all(core))).await?;
    assert_eq!(checked(&api).await?, Ok(6));
    // In the order of the changes, and those of the release before first.
    let mut found = entries(&api, "").await?;
    found.sort_by_key(|entry| entry["number"].as_i64());
    let ids: Vec<&Value> = found.iter().map(|entry| &entry["resourceId"]).collect();
    assert_eq!(ids, made.iter().map(|place| &place["id"]).collect::<Vec<_>>());
    Ok(())
}

pub(super) async fn old_entries_go_and_the_rest_is_still_checked(engine: Engine) -> Result<()> {
    let api = chained(engine).await?;
    let core = &api.made.app.core;
    assert_eq!(purge(core).await?, 0);
    // One that somebody makes look old takes nothing along.
    assert_eq!(tamper(&api, "UPDATE audit_entries SET at = 1 WHERE number = 5").await?, 1);
    assert_eq!(purge(core).await?, 0);
    assert_eq!(tamper(&api, "UPDATE audit_entries SET at = 1 WHERE number = 1").await?, 1);
    assert_eq!(purge(core).await?, 0);
    // Without the key nobody can do this and stay unseen: the test makes the entries old and chains them again.
    tamper(&api, "DELETE FROM audit_chains").await?;
    tamper(&api, "UPDATE audit_entries SET number = NULL, hash = NULL").await?;
    let old =
        "UPDATE audit_entries SET at = 1 WHERE seq IN (SELECT seq FROM audit_entries ORDER BY seq LIMIT 3)";
    assert_eq!(tamper(&api, old).await?, 3);
    assert!(core.clock.now().0 > KEPT_MS);
    while chain_new(core).await? > 0 {}
    assert_eq!(checked(&api).await?, Ok(5));
    assert_eq!(purge(core).await?, 3);
    assert_eq!(checked(&api).await?, Ok(2));
    tamper(&api, "DELETE FROM audit_entries WHERE number = 4").await?;
    assert_eq!(checked(&api).await?, Err(Broken::Missing(4)));
    Ok(())
}

/// It is in no chain and not lost either, and others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_entry_is_set_aside() -> Result<()> {
    let api = chained(Engine::Sqlite).await?;
    tamper(&api, "INSERT INTO audit_queue (entry) VALUES ('[1]'), ('')").await?;
    api.create("/places", json!({"name": "f", "latitude": 1, "longitude": 2})).await?;
    chain_all(&api.made.app.core).await?;
    assert_eq!(checked(&api).await?, Ok(6));
    let found = rejects(&api.made.app.core.db).await?;
    assert!(found.len() == 2 && found[0].1.contains("audit_queue: invalid"), "{found:?}");
    Ok(())
}

crate::on_both_engines!(
    an_entry_says_who_changed_what,
    entries_of_one_transaction_keep_their_order,
    an_entry_shows_product_position_and_status_and_no_token,
    what_is_refused_or_undone_leaves_no_entry,
    the_trail_is_for_operators_of_the_account,
    the_export_has_every_entry,
    a_changed_moved_or_missing_entry_is_found,
    entries_that_are_chained_at_once_make_one_chain,
    old_entries_go_and_the_rest_is_still_checked,
);
