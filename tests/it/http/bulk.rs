//! Bulk operations on named resources: `PUT` and `DELETE` with `?ids=`, arrays on `POST`.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::id};

use super::{
    Api,
    webhooks::receiver::{Receiver, Reply, deliver, until, webhook},
};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// A kind of resource that one request may change or remove many of.
struct Kind {
    path: String,
    /// Where the other account has its own.
    their_path: String,
    body: Value,
}

impl Kind {
    async fn all(api: &Api) -> Result<Vec<Self>> {
        let hook = json!({"name": "a", "url": "https://example.com/"});
        let effect = json!({"type": "property", "key": "k", "value": 1, "of": "thng"});
        let kinds = ["thngs", "products", "places", "collections", "files", "projects", "batches"];
        let named = kinds.into_iter().map(|kind| (kind, json!({"name": "a"})));
        let events = [("webhooks", hook), ("reactions", json!({"name": "a", "effect": effect}))];
        let mut all: Vec<Self> = named
            .chain(events)
            .map(|(kind, body)| Self { path: format!("/{kind}"), their_path: format!("/{kind}"), body })
            .collect();
        let name = json!({"name": "p"});
        let ours = id(&api.create("/projects", name.clone()).await?)?;
        let theirs = api.call_as(&api.other_key, Method::POST, "/projects", Some(name)).await?.json();
        all.push(Self {
            path: format!("/projects/{ours}/applications"),
            their_path: format!("/projects/{}/applications", id(&theirs)?),
            body: json!({"name": "a"}),
        });
        Ok(all)
    }
}

async fn bulk_updates_and_deletes_are_atomic(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for Kind { path, their_path, body } in Kind::all(&api).await? {
        let kind = &path;
        let (a, b) =
            (id(&api.create(&path, body.clone()).await?)?, id(&api.create(&path, body.clone()).await?)?);
        let theirs = api.call_as(&api.other_key, Method::POST, &their_path, Some(body)).await?.json();
        let theirs = id(&theirs)?;
        let before = api.fingerprint().await?;
        let change = || Some(json!({"tags": ["bulk"], "description": "changed"}));
        let too_many: Vec<String> = (0..101).map(|n| format!("{}{n:03}", &UNKNOWN[..21])).collect();
        for (ids, status, code) in [
            (format!("{a},{UNKNOWN}"), 404, 40401),
            (format!("{a},{theirs}"), 404, 40401),
            (format!("{a},x"), 400, 40003),
            (too_many.join(","), 400, 40003),
            (String::new(), 400, 40003),
        ] {
            let uri = format!("{path}?ids={ids}");
            api.call(Method::PUT, &uri, change()).await?.problem(status, code);
            api.delete(&uri).await?.problem(status, code);
        }
        api.call(Method::PUT, &path, change()).await?.problem(400, 40003);
        api.delete(&path).await?.problem(400, 40003);
        let both = api.delete(&format!("{path}?ids={theirs},{a},{UNKNOWN}")).await?;
        let faults = both.problem(404, 40401);
        ensure!(faults.len() == 2, "{kind}: each absent one is named: {faults:?}");
        api.put(&format!("{path}?ids={a}"), json!({"name": 1})).await?.problem(400, 40001);
        assert_eq!(api.fingerprint().await?, before, "{kind}: all of them, or none");

        let uri = format!("{path}?ids={a},{b},{a}");
        let answer = api.call(Method::PUT, &uri, change()).await?;
        ensure!(answer.status == 204 && answer.bytes.is_empty(), "{kind}: {answer:?}");
        ensure!(answer.header("x-result-count") == Some("2"), "{kind}: {answer:?}");
        for id in [&a, &b] {
            let read = api.get(&format!("{path}/{id}")).await?.json();
            ensure!(read["description"] == "changed", "{kind}: {read}");
        }
        let answer = api.delete(&uri).await?;
        ensure!(answer.status == 200 && answer.bytes.is_empty(), "{kind}: {answer:?}");
        ensure!(answer.header("x-result-count") == Some("2"), "{kind}: {answer:?}");
        for id in [&a, &b] {
            api.get(&format!("{path}/{id}")).await?.problem(404, 40401);
        }
        let answer =
            api.call_as(&api.other_key, Method::GET, &format!("{their_path}/{theirs}"), None).await?;
        ensure!(answer.status == 200, "{kind}: {answer:?}");
    }
    Ok(())
}

/// As above; a redirection goes by its short id, and a PUT replaces it.
async fn bulk_updates_and_deletes_of_redirections_are_atomic(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = id(&api.create("/thngs", json!({"name": "t"})).await?)?;
    let body = |thng: &str, id: &str| json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": id});
    for id in ["A1", "B2"] {
        api.post("/redirections", body(&thng, id)).await?.must_be(200)?;
    }
    let (_, theirs) = api.others().await?;
    api.call_as(&api.other_key, Method::POST, "/redirections", Some(body(&theirs, "C3")))
        .await?
        .must_be(200)?;
    let before = api.fingerprint().await?;
    let change = || Some(json!({"defaultRedirectUrl": "https://example.com/changed"}));
    for (ids, status, code) in [("A1,NONE", 404, 40401), ("A1,C3", 404, 40401), ("", 400, 40003)] {
        let uri = format!("/redirections?ids={ids}");
        api.call(Method::PUT, &uri, change()).await?.problem(status, code);
        api.delete(&uri).await?.problem(status, code);
    }
    assert_eq!(api.fingerprint().await?, before, "all of them, or none");

    let uri = "/redirections?ids=A1,B2,a1";
    let answer = api.call(Method::PUT, uri, change()).await?;
    ensure!(answer.status == 204 && answer.bytes.is_empty(), "{answer:?}");
    ensure!(answer.header("x-result-count") == Some("2"), "{answer:?}");
    for id in ["A1", "B2"] {
        let read = api.get(&format!("/redirections/{id}")).await?.json();
        ensure!(read["defaultRedirectUrl"] == "https://example.com/changed", "{read}");
    }
    let answer = api.delete(uri).await?;
    ensure!(answer.status == 200 && answer.bytes.is_empty(), "{answer:?}");
    ensure!(answer.header("x-result-count") == Some("2"), "{answer:?}");
    for id in ["A1", "B2"] {
        api.get(&format!("/redirections/{id}")).await?.problem(404, 40401);
    }
    // With the edges' state as its body, it has the count all the same.
    api.post("/redirections", body(&thng, "D4")).await?.must_be(200)?;
    let answer = api.delete("/redirections?ids=D4&wait=edges").await?;
    ensure!(answer.status == 200 && answer.header("x-result-count") == Some("1"), "{answer:?}");
    Ok(())
}

/// Applications are those of the project in the path; their keys end with them.
async fn bulk_of_applications_stays_within_the_project(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut paths = Vec::new();
    for name in ["here", "there"] {
        let project = id(&api.create("/projects", json!({"name": name})).await?)?;
        paths.push(format!("/projects/{project}/applications"));
    }
    let (here, there) = (&paths[0], &paths[1]);
    let ours = api.create(here, json!({"name": "ours"})).await?;
    let elsewhere = api.create(there, json!({"name": "elsewhere"})).await?;
    let (a, b) = (id(&ours)?, id(&elsewhere)?);
    let before = api.fingerprint().await?;
    for uri in [
        format!("{here}?ids={a},{b}"),
        format!("/projects/{UNKNOWN}/applications?ids={a}"),
        format!("/projects/x/applications?ids={a}"),
    ] {
        let faults = api.put(&uri, json!({"name": "n"})).await?.problem(404, 40401);
        ensure!(faults.len() == 1, "{uri}: {faults:?}");
        api.delete(&uri).await?.problem(404, 40401);
    }
    let key = ours["appApiKey"].as_str().context("key")?;
    let refused = api.call_as(key, Method::DELETE, &format!("{here}?ids={a}"), None).await?;
    refused.problem(403, 40301);
    assert_eq!(api.fingerprint().await?, before);

    let me = "/applications/me";
    ensure!(api.call_as(key, Method::GET, me, None).await?.status == 200, "the key is valid");
    api.delete(&format!("{here}?ids={a}")).await?.must_be(200)?;
    api.call_as(key, Method::GET, me, None).await?.problem(401, 40102);
    Ok(())
}

/// Webhooks resumed together send what waited for each; removed together, they leave nothing in their queues.
async fn bulk_updates_of_webhooks_move_their_queues(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _workers = deliver(&api);
    let receivers = [Receiver::new(|_| Reply::Take).await?, Receiver::new(|_| Reply::Take).await?];
    let mut ids = Vec::new();
    for receiver in &receivers {
        ids.push(webhook(&api, receiver, json!({"status": "paused"})).await?);
    }
    let uri = format!("/webhooks?ids={}", ids.join(","));
    let wait_for_one = async || -> Result<()> {
        api.create("/actions/scans", json!({})).await?;
        for id in &ids {
            until(&api, id, "pending", 1).await?;
        }
        Ok(())
    };
    let set = async |status: &str| -> Result<()> {
        api.put(&uri, json!({"status": status})).await?.must_be(204)?;
        Ok(())
    };
    wait_for_one().await?;
    set("active").await?;
    for (id, receiver) in ids.iter().zip(&receivers) {
        receiver.wait(1).await?;
        until(&api, id, "delivered", 1).await?;
    }
    set("paused").await?;
    wait_for_one().await?;
    api.delete(&uri).await?.must_be(200)?;
    ensure!(api.fingerprint().await?["webhook_messages"].is_empty());
    Ok(())
}

async fn each_item_of_an_array_has_its_own_result(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for kind in ["thngs", "products"] {
        let path = format!("/{kind}");
        let items = json!([{"name": "a", "tags": ["x"]}, {"name": 1}, {"name": "b", "product": UNKNOWN}, {"name": "c"}]);
        let results = api.post(&path, items).await?.must_be(200)?.json();
        let statuses: Vec<&Value> =
            results.as_array().context("array")?.iter().map(|one| &one["status"]).collect();
        // A product has no member `product`: there it is ignored.
        let third = if kind == "thngs" { 400 } else { 201 };
        ensure!(statuses == [201, 400, third, 201], "{kind}: {results}");
        ensure!(results[1]["code"] == 40001 && results[1]["errors"][0].as_str().is_some(), "{results}");
        let read = api.get(&format!("{path}/{}", id(&results[0])?)).await?.json();
        ensure!(read["name"] == "a" && read["tags"] == json!(["x"]), "{read}");
        let listed = api.get(&path).await?.json();
        let made = statuses.iter().filter(|status| **status == 201).count();
        ensure!(listed.as_array().map(Vec::len) == Some(made), "{listed}");

        let before = api.fingerprint().await?;
        for items in [json!([]), json!(vec![json!({"name": "x"}); 1_001])] {
            let faults = api.post(&path, items).await?.problem(400, 40001);
            ensure!(faults[0].starts_with("The array must hold 1 to 1000 items"), "{faults:?}");
        }
        assert_eq!(api.fingerprint().await?, before);
        let many = json!(vec![json!({"name": "many"}); 1_000]);
        let results = api.post(&path, many).await?.json();
        let all = results.as_array().context("array")?;
        ensure!(all.len() == 1_000 && all.iter().all(|one| one["status"] == 201), "{results}");
    }
    Ok(())
}

crate::on_both_engines!(
    bulk_updates_and_deletes_are_atomic,
    bulk_updates_and_deletes_of_redirections_are_atomic,
    bulk_of_applications_stays_within_the_project,
    bulk_updates_of_webhooks_move_their_queues,
    each_item_of_an_array_has_its_own_result
);
