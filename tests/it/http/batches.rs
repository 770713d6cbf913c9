//! Batches and their tasks, in the form of the vendor's client.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::store::Ctx;
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

pub(super) fn populate(quantity: u32, more: &Value) -> Value {
    let mut body = json!({"type": "POPULATING", "inputParameters": {"type": "FIXED_AMOUNT", "generateThngs": true,
        "thngTemplate": {"name": "made", "tags": ["week 47"]}, "quantity": quantity}});
    for (name, value) in more.as_object().into_iter().flatten() {
        body["inputParameters"][name] = value.clone();
    }
    body
}

/// Asks for a task and waits for its end.
pub(super) async fn finished(api: &Api, tasks: &str, body: Value) -> Result<Value> {
    let answer = api.post(tasks, body).await?;
    ensure!(answer.status == 202 && answer.bytes.is_empty(), "{answer:?}");
    let location = answer.header("location").context("location")?;
    let path = location.strip_prefix("http://api.example:8080").context("host")?.to_owned();
    let begun = Instant::now();
    loop {
        let task = api.get(&path).await?.json();
        if task["status"] != "EXECUTING" {
            return Ok(task);
        }
        ensure!(begun.elapsed() < Duration::from_secs(60), "no end: {task}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn batches_are_created_read_listed_updated_and_deleted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let body = json!({"name": "b", "customFields": {"color": "red"}, "identifiers": {"lot": "7"}});
    let made = api.create("/batches", body).await?;
    let id = made["id"].as_str().context("id")?;
    ensure!(
        made["customFields"] == json!({"color": "red"}) && made["createdAt"] == made["updatedAt"],
        "{made}"
    );
    for reference in [id, "lot:7"] {
        let read = api.get(&format!("/batches/{reference}")).await?.json();
        ensure!(read == made, "{read}");
    }
    for n in 0..3 {
        api.create("/batches", json!({"name": format!("b{n}")})).await?;
    }
    let page = api.get("/batches?perPage=2").await?;
    ensure!(page.header("x-result-count") == Some("4") && page.header("link").is_some(), "{page:?}");
    ensure!(page.json()[0]["name"] == "b2", "{page:?}");
    let found = api.get("/batches?filter=identifiers.lot=7").await?.json();
    ensure!(found.as_array().map(Vec::len) == Some(1), "{found}");
    let changed = api.put(&format!("/batches/{id}"), json!({"tags": ["new"]})).await?.json();
    ensure!(changed["tags"] == json!(["new"]) && changed["name"] == "b", "{changed}");
    ensure!(api.delete(&format!("/batches/{id}")).await?.status == 200);
    api.get(&format!("/batches/{id}")).await?.problem(404, 40401);
    Ok(())
}

async fn a_task_creates_thngs_and_short_urls(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].as_str().context("id")?.to_owned();
    let tasks = format!("/batches/{batch}/tasks");
    // More than two steps.
    let more = json!({"generateRedirections": true, "defaultRedirectUrl": "https://example.com/?item={shortId}",
        "shortDomain": "tn.gg", "shortIdTemplate": {"type": "THNG_ID"}});
    let body = populate(60, &more);
    let task = finished(&api, &tasks, body.clone()).await?;
    ensure!(
        task["status"] == "COMPLETED" && task["type"] == "POPULATING" && task["batch"] == batch,
        "{task}"
    );
    ensure!(task["progress"] == json!({"amountRequested": 60, "amountCompleted": 60}), "{task}");
    ensure!(task["inputParameters"] == body["inputParameters"], "{task}");
    let things = api.get("/thngs?perPage=100").await?.json();
    let things = things.as_array().context("array")?;
    ensure!(things.len() == 60 && things.iter().all(|thng| thng["tags"] == json!(["week 47"])), "{things:?}");
    let links = api.get("/redirections?perPage=100").await?.json();
    let links = links.as_array().context("array")?;
    ensure!(links.len() == 60 && links.iter().all(|link| link["shortId"] == link["platformId"]), "{links:?}");

    let without = finished(&api, &tasks, populate(1, &json!({}))).await?;
    ensure!(without["status"] == "COMPLETED", "{without}");
    ensure!(api.get("/redirections?perPage=100").await?.json().as_array().map(Vec::len) == Some(60));
    let listed = api.get(&tasks).await?.json();
    let ids: Vec<&Value> = listed.as_array().context("array")?.iter().map(|task| &task["id"]).collect();
    ensure!(ids == [&without["id"], &task["id"]], "{listed}");

    // One that cannot be carried out says why, and leaves nothing of its step.
    let failed =
        finished(&api, &tasks, populate(2, &json!({"thngTemplate": {"name": "x", "product": batch}})))
            .await?;
    ensure!(failed["status"] == "FAILED", "{failed}");
    ensure!(failed["message"].as_str().is_some_and(|text| text.contains("does not exist")), "{failed}");
    let logs = |task: &Value| format!("{tasks}/{}/logs", task["id"].as_str().unwrap_or_default());
    let logged = api.get(&logs(&failed)).await?.json();
    let expected = json!([{"jobId": failed["id"], "createdAt": failed["completedAt"], "type": "ERROR",
        "message": failed["message"]}]);
    ensure!(logged == expected, "{logged}, not {expected}");
    ensure!(api.get(&logs(&without)).await?.json() == json!([]));
    api.get(&format!("{tasks}/{batch}/logs")).await?.problem(404, 40401);
    api.call_as(&api.other_key, Method::GET, &logs(&failed), None).await?.problem(404, 40401);
    ensure!(api.get("/thngs?perPage=100").await?.json().as_array().map(Vec::len) == Some(61));

    let before = api.fingerprint().await?;
    for (uri, body, status) in [
        (tasks.clone(), populate(0, &json!({})), 400),
        (tasks.clone(), json!({"type": "OTHER"}), 400),
        (tasks.clone(), populate(1, &json!({"generateRedirections": true})), 400),
        (
            tasks.clone(),
            populate(
                1,
                &json!({"generateRedirections": true, "defaultRedirectUrl": "https://example.com",
                "shortDomain": "other.gg"}),
            ),
            400,
        ),
        ("/batches/UKXAGyEf8SQ5eTDmVgGpHqAa/tasks".to_owned(), populate(1, &json!({})), 404),
    ] {
        let answer = api.post(&uri, body.clone()).await?;
        ensure!(answer.status == status, "{body}: {answer:?}");
    }
    assert_eq!(api.fingerprint().await?, before);

    // Another batch has none of them, and another account not even the batch.
    let other = api.create("/batches", json!({"name": "c"})).await?;
    let task = task["id"].as_str().context("id")?;
    api.get(&format!("/batches/{}/tasks/{task}", other["id"].as_str().context("id")?))
        .await?
        .problem(404, 40401);
    for uri in [tasks.clone(), format!("{tasks}/{task}"), format!("/batches/{batch}")] {
        api.call_as(&api.other_key, Method::GET, &uri, None).await?.problem(404, 40401);
    }
    ensure!(api.delete(&format!("/batches/{batch}")).await?.status == 200);
    ensure!(
        !api.fingerprint().await?["tasks"].iter().any(|row| row.contains(task)),
        "tasks go with their batch"
    );
    Ok(())
}

async fn a_task_continues_after_a_crash(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].as_str().context("id")?.to_owned();
    let tasks = format!("/batches/{batch}/tasks");
    // Accepted, and the process ended before the first step.
    let caller = shared::id::TaskId::new(1, tests::db::random16()?);
    let (population, sent) =
        redirects::domain::task::parse(&populate(3, &json!({}))).map_err(|f| anyhow::anyhow!("{f:?}"))?;
    let task = redirects::domain::task::Task {
        id: caller,
        stamp: kernel::domain::common::Stamp::new(shared::time::UnixMillis(1)),
        kind: "POPULATING".to_owned(),
        batch: batch.parse()?,
        status: redirects::domain::task::TaskStatus::Executing,
        details: redirects::domain::task::TaskDetails {
            input_parameters: sent,
            quantity: population.quantity,
            operator: api.made.operator.to_string(),
            ..Default::default()
        },
    };
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    kernel::store::documents::insert(&mut tx, api.made.account, task).await?;
    tx.commit().await?;
    ensure!(redirects::service::tasks::resume(&api.made.app.redirects).await? == 1);
    let begun = Instant::now();
    loop {
        let task = api.get(&format!("{tasks}/{caller}")).await?.json();
        if task["status"] == "COMPLETED" {
            break;
        }
        ensure!(begun.elapsed() < Duration::from_secs(60), "no end: {task}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(api.get("/thngs").await?.json().as_array().map(Vec::len) == Some(3));
    ensure!(redirects::service::tasks::resume(&api.made.app.redirects).await? == 0, "it has ended");
    Ok(())
}

crate::on_both_engines!(
    batches_are_created_read_listed_updated_and_deleted,
    a_task_creates_thngs_and_short_urls,
    a_task_continues_after_a_crash
);
