//! What an undo gives back, and what it leaves alone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use link_changes::{
    domain::change::{MAX_LISTED, UNDO_MS},
    service::purge,
};
use serde_json::{Value, json};
use tests::db::{Engine, TestApp};

use super::{Api, all, ask, counts, finished, links, step, with_product, work_all, worked};
use crate::http::links::product;
use crate::store::schema::run;

crate::on_both_engines!(
    an_undo_gives_every_byte_back,
    links_that_were_changed_since_are_left_alone_and_listed,
    a_strict_undo_is_all_or_nothing,
    a_change_that_was_cancelled_half_way_is_undone,
    an_undo_that_was_cancelled_is_continued_by_another,
    changes_are_undone_one_behind_the_other,
    former_values_go_after_thirty_days,
);

const EVERYTHING: &str = r#"{"defaultRedirectUrl": "https://example.com/after", "forwardQuery": true, "statusCode": 302,
    "validFrom": 7, "validUntil": 9, "status": "paused", "endedUrl": "https://example.com/ended", "title": "New",
    "tags": {"add": ["new"], "remove": ["a"]}, "notes": "m", "customFields": {"x": [1.5, null]}}"#;

/// Asks for the undoing of a change; gives the path of the undo.
async fn undo(api: &Api, path: &str, body: Value) -> Result<String> {
    let answer = api.post(&format!("{path}/undo"), body).await?.must_be(201)?;
    let undo = answer.json();
    ensure!(undo["type"] == "undo" && path.ends_with(undo["of"].as_str().context("of")?), "{undo}");
    let path = format!("/jobs/redirections/{}", undo["id"].as_str().context("id")?);
    ensure!(answer.header("location").is_some_and(|location| location.ends_with(&path)), "{answer:?}");
    Ok(path)
}

fn path_of(change: &Value) -> Result<String> {
    Ok(format!("/jobs/redirections/{}", change["id"].as_str().context("id")?))
}

/// Links of three kinds: with all members, with none, and with empty ones.
async fn varied(api: &Api, each: usize) -> Result<String> {
    let product = product(api).await?;
    let full = json!({"title": "Old", "tags": ["a", "b"], "notes": "n", "customFields": {"k": {"deep": 0.1}},
        "statusCode": 301, "validFrom": 5, "endedUrl": "https://example.com/old"});
    links(api, &product, "FULL", each, &full).await?;
    links(api, &product, "BARE", each, &json!({})).await?;
    links(api, &product, "EMPTY", each, &json!({"title": "", "tags": [], "customFields": {}})).await?;
    api.made.clock.advance(10_000);
    Ok(product)
}

async fn an_undo_gives_every_byte_back(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = varied(&api, 4).await?;
    let (before, rows) = (all(&api).await?, api.fingerprint().await?);
    let tag = async || -> Result<Option<String>> {
        Ok(api.get("/redirections/FULL0").await?.header("etag").map(str::to_owned))
    };
    let seen = tag().await?;
    let patch: Value = serde_json::from_str(EVERYTHING)?;
    let change = finished(&api, json!({"product": product, "patch": patch})).await?;
    ensure!(counts(&change) == [12, 12, 0, 0] && change["undoUntil"].is_i64(), "{change}");
    ensure!(all(&api).await?.iter().all(|(id, link)| before[id] != *link), "something stayed");
    api.made.clock.advance(10_000);
    let undone = worked(&api, &undo(&api, &path_of(&change)?, json!({})).await?).await?;
    ensure!(undone["status"] == "complete" && counts(&undone) == [12, 12, 0, 0], "{undone}");
    ensure!(undone.get("undoUntil").is_none(), "{undone}");
    let after = all(&api).await?;
    for (id, link) in &before {
        // As texts: each byte of what the API shows.
        let (now, before) = (after[id].to_string(), link.to_string());
        ensure!(now == before, "{before} became {now}");
    }
    let now = api.fingerprint().await?;
    ensure!(now["redirection_details"] == rows["redirection_details"], "{:?}", now["redirection_details"]);
    ensure!(now["link_change_former"].is_empty(), "{:?}", now["link_change_former"]);
    // It is another state for whoever writes on condition of it.
    ensure!(tag().await? != seen, "{seen:?}");
    // Nothing is left of it to undo, and an undo is not undone.
    for path in [path_of(&change)?, path_of(&undone)?] {
        api.post(&format!("{path}/undo"), json!({})).await?.problem(409, 40901);
    }
    Ok(())
}

async fn links_that_were_changed_since_are_left_alone_and_listed(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 5, &json!({"title": "Old"})).await?;
    let before = all(&api).await?;
    let change = finished(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    let mine = json!({"defaultRedirectUrl": "https://example.com/mine", "title": "Mine"});
    ensure!(api.put("/redirections/A1", mine).await?.status == 200);
    ensure!(api.delete("/redirections/A3").await?.status == 200);
    let path = undo(&api, &path_of(&change)?, json!({"strict": false})).await?;
    let undone = worked(&api, &path).await?;
    ensure!(undone["status"] == "complete" && counts(&undone) == [5, 3, 0, 2], "{undone}");
    let listed = api.get(&format!("{path}/conflicts?sortOrder=ASCENDING")).await?.json();
    let listed: Vec<(&str, &str)> = listed
        .as_array()
        .context("conflicts")?
        .iter()
        .filter_map(|one| Some((one["shortId"].as_str()?, one["reason"].as_str()?)))
        .collect();
    ensure!(listed == [("A1", "It was changed since."), ("A3", "It was deleted since.")], "{listed:?}");
    let after = all(&api).await?;
    for id in ["A0", "A2", "A4"] {
        ensure!(after[id] == before[id], "{}", after[id]);
    }
    ensure!(after["A1"]["title"] == "Mine" && !after.contains_key("A3"), "{after:?}");
    Ok(())
}

async fn a_strict_undo_is_all_or_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    let before = all(&api).await?;
    let strict = json!({"strict": true});
    let change = finished(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    let undone = worked(&api, &undo(&api, &path_of(&change)?, strict.clone()).await?).await?;
    ensure!(undone["strict"] == true && counts(&undone) == [3, 3, 0, 0], "{undone}");
    ensure!(all(&api).await? == before);
    let change = finished(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    ensure!(api.delete("/redirections/A0").await?.status == 200);
    let rows = api.fingerprint().await?;
    let path = format!("{}/undo", path_of(&change)?);
    let faults = api.post(&path, strict).await?.problem(409, 40901);
    ensure!(faults[0].contains("1 links were changed or deleted since"), "{faults:?}");
    ensure!(api.fingerprint().await? == rows, "a refusal changed something");
    Ok(())
}

async fn a_change_that_was_cancelled_half_way_is_undone(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = varied(&api, 100).await?;
    let before = all(&api).await?;
    let patch: Value = serde_json::from_str(EVERYTHING)?;
    let (path, _) = ask(&api, json!({"product": product, "patch": patch})).await?;
    // What has not ended is not undone.
    let undo_path = format!("{path}/undo");
    api.post(&undo_path, json!({})).await?.problem(409, 40901);
    step(&api).await?.context("a step")?;
    let cancel = format!("{path}/cancel");
    let answer = api.call(Method::POST, &cancel, None).await?;
    ensure!(answer.status == 202 && answer.bytes.is_empty(), "{answer:?}");
    api.call(Method::POST, &cancel, None).await?.problem(409, 40901);
    let change = worked(&api, &path).await?;
    let changed = change["progress"]["changed"].as_u64().context("changed")?;
    ensure!(change["status"] == "cancelled" && (1..300).contains(&changed), "{change}");
    let different = all(&api).await?.iter().filter(|(id, link)| before[*id] != **link).count() as u64;
    ensure!(different == changed, "{different} of {changed}");
    let undone = worked(&api, &undo(&api, &path, json!({})).await?).await?;
    ensure!(undone["status"] == "complete" && counts(&undone) == [changed, changed, 0, 0], "{undone}");
    ensure!(all(&api).await? == before, "something is not as it was");
    Ok(())
}

async fn an_undo_that_was_cancelled_is_continued_by_another(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = varied(&api, 100).await?;
    let before = all(&api).await?;
    let change = finished(&api, json!({"product": product, "patch": {"notes": "new"}})).await?;
    let path = path_of(&change)?;
    let first = undo(&api, &path, json!({})).await?;
    api.post(&format!("{path}/undo"), json!({})).await?.problem(409, 40901);
    step(&api).await?.context("a step")?;
    ensure!(api.call(Method::POST, &format!("{first}/cancel"), None).await?.status == 202);
    let done = counts(&api.get(&first).await?.json())[1];
    ensure!((1..300).contains(&done), "{done}");
    let second = worked(&api, &undo(&api, &path, json!({"strict": true})).await?).await?;
    ensure!(counts(&second) == [300 - done, 300 - done, 0, 0], "{second}");
    ensure!(all(&api).await? == before, "something is not as it was");
    Ok(())
}

async fn changes_are_undone_one_behind_the_other(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    let mut states = vec![all(&api).await?];
    let mut changes = Vec::new();
    for title in ["first", "second", "third"] {
        changes.push(finished(&api, json!({"product": product, "patch": {"title": title}})).await?);
        states.push(all(&api).await?);
    }
    // The first one is under the others.
    let early = format!("{}/undo", path_of(&changes[0])?);
    api.post(&early, json!({"strict": true})).await?.problem(409, 40901);
    for (change, state) in changes.iter().zip(&states).rev() {
        let undone = worked(&api, &undo(&api, &path_of(change)?, json!({"strict": true})).await?).await?;
        ensure!(counts(&undone) == [3, 3, 0, 0], "{undone}");
        ensure!(all(&api).await? == *state, "something is not as it was");
    }
    Ok(())
}

async fn former_values_go_after_thirty_days(engine: Engine) -> Result<()> {
    let kept = Duration::from_secs(60);
    let api = Api::over(TestApp::with(engine, |parts| parts.jobs_kept = Some(kept)).await?).await?;
    let product = product(&api).await?;
    links(&api, &product, "A", 2, &json!({})).await?;
    let state = &api.made.app.link_changes;
    let change = finished(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    let path = path_of(&change)?;
    api.made.clock.advance(UNDO_MS - 1_000);
    ensure!(purge::expire(state).await? == 0 && purge::purge(state).await? == 0, "its time is not over");
    // What is being undone keeps them.
    let under_way = undo(&api, &path, json!({})).await?;
    api.made.clock.advance(2_000);
    ensure!(purge::expire(state).await? == 0, "it is being undone");
    ensure!(api.call(Method::POST, &format!("{under_way}/cancel"), None).await?.status == 202);
    api.post(&format!("{path}/undo"), json!({})).await?.problem(404, 40401);
    ensure!(purge::expire(state).await? == 1 && purge::expire(state).await? == 0);
    ensure!(api.fingerprint().await?["link_change_former"].is_empty());
    api.post(&format!("{path}/undo"), json!({})).await?.problem(404, 40401);
    let gone = api.get(&path).await?.json();
    ensure!(gone["formerRemovedAt"].is_i64() && gone.get("undoUntil").is_none(), "{gone}");
    // The change itself is kept as long as jobs, and so is the undo that has just been cancelled.
    ensure!(purge::purge(state).await? == 1);
    api.get(&path).await?.problem(404, 40401);
    ensure!(api.get(&under_way).await?.status == 200);
    work_all(&api).await?;
    Ok(())
}

// The rules are the same for both engines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_allowed_any_more_is_not_restored_and_the_first_conflicts_are_listed() {
    not_allowed_any_more().await.unwrap();
}

async fn not_allowed_any_more() -> Result<()> {
    let api = Api::new(Engine::Sqlite).await?;
    let product = product(&api).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    let new = "https://new.example/";
    links(&api, &product, "B", 1, &json!({"defaultRedirectUrl": new, "title": "Old"})).await?;
    let patch = json!({"defaultRedirectUrl": new, "title": "New"});
    let change = finished(&api, json!({"product": product, "patch": patch})).await?;
    let hosts = json!({"targetHosts": ["third.example"]});
    let account = format!("/accounts/{}", api.made.account);
    ensure!(api.put(&account, hosts).await?.status == 200);
    let path = undo(&api, &path_of(&change)?, json!({})).await?;
    // As if it had left so many links alone already.
    let many = MAX_LISTED - 2;
    let set = format!("UPDATE link_changes SET doc = json_set(doc, '$.conflicts', {many})");
    run(&api.made.db.location, &[set]).await?;
    let undone = worked(&api, &path).await?;
    ensure!(undone["status"] == "complete" && counts(&undone) == [4, 1, 0, many + 3], "{undone}");
    ensure!(undone["progress"]["conflictsListed"] == MAX_LISTED, "{undone}");
    let listed = api.get(&format!("{path}/conflicts")).await?.json();
    let reason = "Its former target must lead to one of the account's targetHosts, not to example.com.";
    let listed = listed.as_array().context("conflicts")?;
    ensure!(listed.len() == 2 && listed.iter().all(|one| one["reason"] == reason), "{listed:?}");
    let links = all(&api).await?;
    ensure!(links["A0"]["defaultRedirectUrl"] == new && links["A0"]["title"] == "New", "{}", links["A0"]);
    // Where it leads did not change.
    ensure!(links["B0"]["defaultRedirectUrl"] == new && links["B0"]["title"] == "Old", "{}", links["B0"]);
    Ok(())
}
