//! Changes of many links over HTTP, with workers in this process: what is counted, changed, and given back.

mod confined;
mod refused;
mod undo;

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use kernel::store::Ctx;
use link_changes::{
    service::steps::{self, Stepped},
    store::change_leases as leases,
    worker::work,
};
use serde_json::{Value, json};
use tests::{db::Engine, json::merged};
use tokio_util::sync::CancellationToken;

use super::{Api, links::with_product};

crate::on_both_engines!(
    a_dry_run_counts_and_shows_and_changes_nothing,
    every_member_is_changed_as_by_a_put,
    each_link_has_its_entries_of_audit_and_events,
    links_that_cannot_be_changed_are_listed_and_the_others_are_changed,
    a_filter_that_the_change_itself_ends_finds_every_link,
    links_that_come_later_are_left_out,
);

/// Makes links of a product with these members and the short ids `PREFIX0`, `PREFIX1`, …
async fn links(api: &Api, product: &str, prefix: &str, count: usize, more: &Value) -> Result<()> {
    let link = |n: usize| {
        merged(
            json!({"platformId": product, "defaultRedirectUrl": "https://example.com/before",
            "shortId": format!("{prefix}{n}")}),
            more,
        )
    };
    let all: Vec<Value> = (0..count).map(link).collect();
    let made = api.post("/redirections", json!(all)).await?.json();
    let made = made.as_array().context("results")?;
    ensure!(made.len() == count && made.iter().all(|one| one["status"] == 201), "{made:?}");
    Ok(())
}

/// All links of the account as the API shows them, by their short ids.
async fn all(api: &Api) -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    let (mut uri, mut pages) = ("/redirections?perPage=100&sortOrder=ASCENDING".to_owned(), 0);
    loop {
        let answer = api.get(&uri).await?.must_be(200)?;
        for link in answer.json().as_array().context("links")? {
            found.insert(link["shortId"].as_str().context("shortId")?.to_owned(), link.clone());
        }
        pages += 1;
        ensure!(pages < 100, "the list does not end");
        match super::paging::next(&answer) {
            Some(next) => {
                uri = next
                    .split_once("/redirections")
                    .map(|(_, rest)| format!("/redirections{rest}"))
                    .context("next")?
            }
            None => return Ok(found),
        }
    }
}

/// Asks for a change; gives its path and the answer.
async fn ask(api: &Api, body: Value) -> Result<(String, Value)> {
    let answer = api.post("/jobs/redirections", body).await?.must_be(201)?;
    let change = answer.json();
    let path = format!("/jobs/redirections/{}", change["id"].as_str().context("id")?);
    ensure!(answer.header("location").is_some_and(|location| location.ends_with(&path)), "{answer:?}");
    Ok((path, change))
}

/// Lets the worker bring all changes to their end.
pub(super) async fn work_all(api: &Api) -> Result<()> {
    while work(&api.made.app.link_changes, &CancellationToken::new()).await? {}
    Ok(())
}

/// A change as it is when the worker has nothing more to do.
async fn worked(api: &Api, path: &str) -> Result<Value> {
    work_all(api).await?;
    Ok(api.get(path).await?.json())
}

/// Asks for a change, and lets the worker bring it to its end; gives the change.
pub(super) async fn finished(api: &Api, body: Value) -> Result<Value> {
    let (path, _) = ask(api, body).await?;
    let change = worked(api, &path).await?;
    ensure!(change["status"] == "complete", "{change}");
    Ok(change)
}

/// Claims the next change, does one step of it and lets it go; `None` when there is none.
async fn step(api: &Api) -> Result<Option<Stepped>> {
    let db = &api.made.app.core.db;
    let mut tx = db.begin(&Ctx::default()).await?;
    let claimed = leases::claim(&mut tx).await?;
    ensure!(leases::claim(&mut tx).await?.is_none(), "two workers hold one change");
    tx.commit().await?;
    let Some(mut claimed) = claimed else { return Ok(None) };
    let stepped = steps::step(&api.made.app.link_changes, &mut claimed).await?;
    let mut tx = db.begin(&Ctx::default()).await?;
    leases::release(&mut tx, &claimed, Duration::ZERO, u64::MAX).await?;
    tx.commit().await?;
    Ok(Some(stepped))
}

fn counts(change: &Value) -> [u64; 4] {
    ["done", "changed", "unchanged", "conflicts"]
        .map(|name| change["progress"][name].as_u64().unwrap_or(u64::MAX))
}

async fn a_dry_run_counts_and_shows_and_changes_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 12, &json!({"tags": ["summer"]})).await?;
    links(&api, &product, "B", 3, &json!({"tags": ["winter"]})).await?;
    let before = api.fingerprint().await?;
    let body = json!({"filter": "tags=summer", "dryRun": true, "expect": 12,
        "patch": {"title": "New", "tags": {"add": ["autumn"], "remove": ["summer"]}}});
    let answer = api.post("/jobs/redirections", body).await?;
    ensure!(answer.status == 200 && answer.header("location").is_none(), "{answer:?}");
    let seen = answer.json();
    ensure!(seen["dryRun"] == true && seen["links"] == 12, "{seen}");
    let sample = seen["sample"].as_array().context("sample")?;
    ensure!(sample.len() == 10, "{seen}");
    for one in sample {
        let (before, after) = (&one["before"], &one["after"]);
        ensure!(before["tags"] == json!(["summer"]) && before.get("title").is_none(), "{one}");
        ensure!(after["tags"] == json!(["autumn"]) && after["title"] == "New", "{one}");
        ensure!(after["shortId"] == before["shortId"] && one.get("reason").is_none(), "{one}");
        let shown = api.get(&format!("/redirections/{}", before["shortId"].as_str().context("id")?)).await?;
        ensure!(shown.json() == *before, "{one}");
    }
    // By words and by other parameters of the list, too.
    for (conditions, count) in [
        (json!({"q": "winter"}), 3),
        (json!({"product": product}), 15),
        (json!({"platformId": product, "domain": "tn.gg"}), 15),
        (json!({"filter": "shortId~A1"}), 3),
        (json!({"filter": "tags=nothing"}), 0),
    ] {
        let mut body = json!({"dryRun": true, "patch": {"title": "New"}});
        body.as_object_mut().context("object")?.extend(conditions.as_object().context("object")?.clone());
        let seen = api.post("/jobs/redirections", body).await?.json();
        ensure!(seen["links"] == count, "{conditions}: {seen}");
    }
    ensure!(api.fingerprint().await? == before, "a dry run wrote something");
    Ok(())
}

async fn every_member_is_changed_as_by_a_put(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let said = json!({"title": "Old", "tags": ["a", "b"], "notes": "n", "customFields": {"k": 1}, "forwardQuery": true,
        "statusCode": 301, "validFrom": 5, "status": "paused", "endedUrl": "https://example.com/ended"});
    links(&api, &product, "A", 2, &said).await?;
    let project = super::operators::project(&api).await?;
    for (patch, expected) in [
        (json!({"defaultRedirectUrl": "https://example.com/{shortId}"}), Value::Null),
        (json!({"forwardQuery": false}), Value::Null),
        (json!({"statusCode": 308}), Value::Null),
        (json!({"statusCode": null}), json!({"statusCode": 307})),
        (json!({"validFrom": 7, "validUntil": 9}), Value::Null),
        (json!({"validFrom": null, "validUntil": null}), json!({"validFrom": null, "validUntil": null})),
        (json!({"status": "active"}), Value::Null),
        (json!({"endedUrl": null}), json!({"endedUrl": null})),
        (json!({"scopes": {"users": [], "projects": [project]}}), Value::Null),
        (json!({"title": "New"}), Value::Null),
        (json!({"tags": ["c"]}), Value::Null),
        (json!({"tags": {"add": ["d", "c"], "remove": ["x"]}}), json!({"tags": ["c", "d"]})),
        (json!({"tags": {"remove": ["c", "d"]}}), json!({"tags": []})),
        (json!({"notes": "m"}), Value::Null),
        (json!({"customFields": {"other": [1, 2]}}), Value::Null),
    ] {
        let before = all(&api).await?;
        api.made.clock.advance(1_000);
        let change = finished(&api, json!({"product": product, "patch": patch})).await?;
        ensure!(counts(&change) == [2, 2, 0, 0] && change["progress"]["percentage"] == 100.0, "{change}");
        let expected = if expected.is_null() { &patch } else { &expected };
        for (id, after) in all(&api).await? {
            let before = &before[&id];
            for (name, value) in expected.as_object().context("members")? {
                ensure!(after.get(name).unwrap_or(&Value::Null) == value, "{patch}: {after}");
            }
            let others = after.as_object().context("object")?.iter().filter(|(name, _)| {
                expected.get(name.as_str()).is_none() && !["updatedAt", "updatedBy"].contains(&name.as_str())
            });
            for (name, value) in others {
                ensure!(before[name] == *value, "{patch} changed {name}: {after}");
            }
            ensure!(after["updatedAt"].as_i64() > before["updatedAt"].as_i64(), "{patch}: {after}");
        }
        // What is so already is not written again.
        let again = finished(&api, json!({"product": product, "patch": patch})).await?;
        ensure!(counts(&again) == [2, 0, 2, 0], "{again}");
    }
    Ok(())
}

async fn each_link_has_its_entries_of_audit_and_events(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    let answer =
        api.post("/jobs/redirections", json!({"product": product, "patch": {"title": "New"}})).await?;
    let request = answer.header("x-request-id").context("request id")?.to_owned();
    let before = api.fingerprint().await?;
    work_all(&api).await?;
    let after = api.fingerprint().await?;
    // One event of the links, and one of the end.
    for (table, more) in [("redirect_log", 3), ("events", 2)] {
        ensure!(after[table].len() == before[table].len() + more, "{table}: {:?}", after[table]);
    }
    let entries = api.get(&format!("/audit?filter=requestId={request}")).await?.json();
    let entries = entries.as_array().context("entries")?;
    let of_links: Vec<&Value> = entries.iter().filter(|entry| entry["resource"] == "redirection").collect();
    ensure!(of_links.len() == 3 && entries.len() == 4, "{entries:?}");
    for entry in of_links {
        ensure!(
            entry["operation"] == "POST /jobs/redirections" && entry["actorType"] == "operator",
            "{entry}"
        );
        ensure!(entry["after"]["title"] == "New", "{entry}");
    }
    Ok(())
}

async fn links_that_cannot_be_changed_are_listed_and_the_others_are_changed(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 3, &json!({})).await?;
    links(&api, &product, "LATE", 2, &json!({"validFrom": 1_000_000})).await?;
    links(&api, &product, "FULL", 1, &json!({"tags": (0..100).map(|n| n.to_string()).collect::<Vec<_>>()}))
        .await?;
    let body = json!({"product": product, "patch": {"validUntil": 5, "tags": {"add": ["new"]}}});
    let change = finished(&api, body.clone()).await?;
    ensure!(counts(&change) == [6, 3, 0, 3], "{change}");
    let path = format!("/jobs/redirections/{}/conflicts", change["id"].as_str().context("id")?);
    let listed = api.get(&format!("{path}?sortOrder=ASCENDING")).await?.json();
    let listed: Vec<(&str, &str)> = listed
        .as_array()
        .context("conflicts")?
        .iter()
        .filter_map(|one| Some((one["shortId"].as_str()?, one["reason"].as_str()?)))
        .collect();
    let ids: Vec<&str> = listed.iter().map(|(id, _)| *id).collect();
    ensure!(ids == ["LATE0", "LATE1", "FULL0"], "{listed:?}");
    ensure!(listed[0].1.contains("validUntil must be after validFrom"), "{listed:?}");
    ensure!(listed[2].1.contains("101 items"), "{listed:?}");
    let page = api.get(&format!("{path}?perPage=2")).await?;
    ensure!(page.json().as_array().map(Vec::len) == Some(2) && page.header("link").is_some(), "{page:?}");
    // A loop is refused for the link that it is one of.
    let body = json!({"filter": "shortId~A", "patch": {"defaultRedirectUrl": "https://tn.gg/A1"}});
    let change = finished(&api, body).await?;
    ensure!(counts(&change)[3] >= 1, "{change}");
    let links = all(&api).await?;
    ensure!(links["A1"]["defaultRedirectUrl"] == "https://example.com/before", "{}", links["A1"]);
    Ok(())
}

async fn a_filter_that_the_change_itself_ends_finds_every_link(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 250, &json!({"tags": ["old"]})).await?;
    let (path, change) =
        ask(&api, json!({"filter": "tags=old", "patch": {"tags": {"remove": ["old"]}}})).await?;
    ensure!(change["progress"]["links"] == 250 && change["status"] == "waiting", "{change}");
    let mut steps = 0;
    while step(&api).await?.is_some() {
        steps += 1;
        ensure!(steps < 100, "{}", api.get(&path).await?.json());
    }
    ensure!(steps > 1, "all in one step");
    let change = api.get(&path).await?.json();
    ensure!(change["status"] == "complete" && counts(&change) == [250, 250, 0, 0], "{change}");
    ensure!(api.get("/redirections?filter=tags%3Dold").await?.json() == json!([]));
    let listed = api.get("/jobs/redirections?filter=status%3Dcomplete%26type%3Dchange").await?.json();
    ensure!(listed[0]["id"] == change["id"] && listed[0].get("sample").is_none(), "{listed}");
    Ok(())
}

async fn links_that_come_later_are_left_out(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    links(&api, &product, "A", 2, &json!({})).await?;
    let (path, _) = ask(&api, json!({"product": product, "patch": {"title": "New"}})).await?;
    api.made.clock.advance(1_000);
    links(&api, &product, "B", 2, &json!({})).await?;
    ensure!(counts(&worked(&api, &path).await?) == [2, 2, 0, 0]);
    let links = all(&api).await?;
    ensure!(links["A1"]["title"] == "New" && links["B0"].get("title").is_none(), "{links:?}");
    Ok(())
}
