//! Jobs over HTTP, with workers in this process: validation, execution, and what they leave behind.

mod files;
mod unreadable;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use control::worker::run_jobs;
use serde_json::{Value, json};
use tests::{db::Engine, product::DEADLINE};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Answer, Api};

pub(super) const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// A body of `POST /jobs/actions`.
fn job(input: Value) -> Value {
    json!({"payload": {"type": "scans", "tags": ["job"]}, "target": "THNGS", "input": input})
}

pub(super) fn list(kind: &str, ids: &[&str]) -> Value {
    job(json!({"type": "LIST", "contentType": kind, "payload": ids}))
}

pub(super) fn work(api: &Api) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(run_jobs::run(api.made.app.jobs.clone(), stop.clone()));
    stop.drop_guard()
}

pub(super) async fn submit(api: &Api, body: Value) -> Result<String> {
    let answer = api.call(Method::POST, "/v2/jobs/actions", Some(body)).await?;
    ensure!(answer.status == 202 && answer.bytes.is_empty(), "{answer:?}");
    let location = answer.header("location").context("location")?;
    let path = location.strip_prefix("http://api.example:8080/v2").with_context(|| location.to_owned())?;
    Ok(path.to_owned())
}

/// The job when it has come to its end.
pub(super) async fn ended(api: &Api, path: &str) -> Result<Value> {
    let (begun, mut last) = (Instant::now(), 0.0);
    loop {
        let job = api.get(path).await?.json();
        let percentage = job["progress"]["percentage"].as_f64().context("percentage")?;
        ensure!(percentage >= last && percentage <= 100.0, "{percentage} after {last}");
        last = percentage;
        if job.get("completedAt").is_some() {
            return Ok(job);
        }
        ensure!(begun.elapsed() < DEADLINE, "the job does not end: {job}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Every page of a list.
pub(super) async fn all(api: &Api, path: &str) -> Result<Vec<Value>> {
    let (mut found, mut uri) = (Vec::new(), format!("{path}?perPage=100"));
    loop {
        let answer = api.get(&uri).await?.must_be(200)?;
        found.extend(answer.json().as_array().context("array")?.iter().cloned());
        let Some(next) = next(&answer) else { return Ok(found) };
        uri = next;
    }
}

pub(super) fn next(answer: &Answer) -> Option<String> {
    let link = answer.header("link")?.strip_prefix('<')?.split_once('>')?.0;
    let decoded: String = percent_encoding::percent_decode_str(link).decode_utf8().ok()?.into_owned();
    Some(decoded.split_once("api.example:8080")?.1.to_owned())
}

/// At its end, a job's counters, its actions and its log say the same.
pub(super) async fn check(
    api: &Api,
    path: &str,
    status: &str,
    requested: usize,
    failed: usize,
) -> Result<Value> {
    let job = ended(api, path).await?;
    ensure!(job["status"] == status, "{job}");
    ensure!(job["progress"]["amountRequested"] == requested, "{job}");
    ensure!(job["progress"]["amountCompleted"] == requested, "{job}");
    ensure!(job["failedOperationsAmount"] == failed, "{job}");
    let logs = all(api, &format!("{path}/logs")).await?;
    ensure!(logs.len() == failed, "{} log entries for {failed} failed operations", logs.len());
    let states: Vec<&str> = job["history"]
        .as_array()
        .context("history")?
        .iter()
        .filter_map(|step| step["status"].as_str())
        .collect();
    ensure!(states == ["ENQUEUED", "STARTING", "EXECUTING", status], "{states:?}");
    ensure!(job["history"][3]["terminal"] == true && job["history"][2]["terminal"] == false, "{job}");
    Ok(job)
}

pub(super) async fn thng(api: &Api, body: Value) -> Result<String> {
    Ok(api.create("/thngs", body).await?["id"].as_str().context("id")?.to_owned())
}

/// A file with this content; its `contentUrl`.
pub(super) async fn file(api: &Api, content: &[u8]) -> Result<String> {
    let made = api.create("/files", json!({"name": "ids"})).await?;
    let id = made["id"].as_str().context("id")?;
    let request = Request::builder()
        .method(Method::PUT)
        .uri(format!("/files/{id}/content"))
        .header(header::HOST, "api.example:8080")
        .header(header::AUTHORIZATION, &api.key);
    let answer = api.send(request.body(Body::from(content.to_vec()))?).await?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(made["contentUrl"].as_str().context("contentUrl")?.to_owned())
}

pub(super) fn of_file(kind: &str, format: &str, location: &str) -> Value {
    job(json!({"type": "FILE", "contentType": kind, "format": format, "location": location}))
}

pub(super) async fn each_kind_of_id_names_thngs(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let product = api.create("/products", json!({"name": "p"})).await?["id"].clone();
    let body = json!({"name": "a", "product": product, "identifiers": {"gs1:21": "A", "twin": "T"}});
    let (a, b) =
        (thng(&api, body).await?, thng(&api, json!({"name": "b", "identifiers": {"twin": "T"}})).await?);
    for (owner, short_id) in [(json!(a), "SHORT-A"), (product.clone(), "SHORT-P")] {
        let body = json!({"platformId": owner, "defaultRedirectUrl": "https://e.com", "shortId": short_id});
        ensure!(api.call(Method::POST, "/redirections", Some(body)).await?.status.is_success());
    }
    let (_, theirs) = api.others().await?;

    // Twice the same is two actions; what is not there or another's is a failed operation.
    let path = submit(&api, list("PLATFORM_IDS", &[&a, &b, &a, UNKNOWN, &theirs, "x"])).await?;
    let done = check(&api, &path, "COMPLETED_WITH_FAILURES", 6, 3).await?;
    ensure!(done["type"] == "ACTION_CREATION" && done["target"] == "THNGS", "{done}");
    ensure!(done["payload"] == json!({"type": "scans", "tags": ["job"]}), "{done}");
    ensure!(done["input"]["payload"][3] == UNKNOWN && done["options"] == json!([]), "{done}");
    let logs = all(&api, &format!("{path}/logs")).await?;
    let named: Vec<&Value> = logs.iter().rev().map(|log| &log["payload"]["id"]).collect();
    ensure!(named == [UNKNOWN, theirs.as_str(), "x"], "{logs:?}");
    for log in &logs {
        ensure!(log["type"] == "ERROR" && log["payload"]["type"] == "PLATFORM_IDS", "{log}");
        ensure!(path.ends_with(log["jobId"].as_str().unwrap_or("-")), "{log}");
        ensure!(log["message"].as_str().is_some_and(|text| text.ends_with('.')), "{log}");
    }
    let made = all(&api, "/actions/scans").await?;
    ensure!(made.len() == 3, "{made:?}");
    let of_a: Vec<&Value> = made.iter().filter(|action| action["thng"] == a).collect();
    ensure!(of_a.len() == 2 && of_a.iter().all(|action| action["product"] == product), "{made:?}");
    ensure!(made.iter().all(|action| action["tags"] == json!(["job"])), "{made:?}");
    ensure!(all(&api, &format!("/thngs/{b}/actions/scans")).await?.len() == 1);

    let keyed = |key: Option<&str>, ids: &[&str]| {
        let mut body = list("EXTERNAL_IDS", ids);
        if let Some(key) = key {
            body["input"]["key"] = json!(key);
        }
        body
    };
    for (body, requested, failed, fault) in [
        (list("EVRYTHNG_IDS", &[&a]), 1, 0, ""),
        (keyed(Some("gs1:21"), &["A", "B"]), 2, 1, "No thng has the identifier gs1:21:B."),
        (keyed(None, &["gs1:21:A", "A"]), 2, 1, "An identifier has the form"),
        (keyed(Some("twin"), &["T"]), 1, 1, "belongs to 2 thngs"),
        (list("SHORT_IDS", &["short-a", "SHORT-A", "SHORT-P"]), 3, 1, "which is not a thng"),
        (list("SHORT_IDS", &["NONE", "a b"]), 2, 2, "A short id has 1 to 64"),
    ] {
        let path = submit(&api, body.clone()).await?;
        let status = if failed == 0 { "COMPLETED" } else { "COMPLETED_WITH_FAILURES" };
        let done = check(&api, &path, status, requested, failed).await?;
        ensure!(done["input"] == body["input"], "{done} for {body}");
        let logs = all(&api, &format!("{path}/logs")).await?;
        let is_named = |log: &Value| log["payload"]["shortDomain"] == "tn.gg";
        ensure!(body["input"]["contentType"] != "SHORT_IDS" || logs.iter().all(is_named), "{logs:?}");
        let told = logs.first().map_or("", |log| log["message"].as_str().unwrap_or_default());
        ensure!(told.contains(fault), "{told:?} without {fault:?}");
    }
    ensure!(all(&api, "/actions/scans").await?.len() == 3 + 1 + 1 + 1 + 2);
    Ok(())
}

pub(super) async fn a_payload_of_another_item_or_type_is_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = |name: &'static str| api.create("/products", json!({"name": name}));
    let (own, other) = (product("own").await?["id"].clone(), product("other").await?["id"].clone());
    let id = thng(&api, json!({"name": "t", "product": own})).await?;
    let before = api.fingerprint().await?;
    let with = |parent: &str, name: &str, value: Value| {
        let mut body = list("PLATFORM_IDS", &[&id]);
        body.pointer_mut(parent).unwrap()[name] = value;
        body
    };
    for (body, fault) in [
        (with("", "type", json!("ACTION_DELETION")), "type must be ACTION_CREATION"),
        (with("/payload", "identifiers", json!({"gs1:21": "A"})), "payload.identifiers must be left out"),
        (with("/payload", "thng", json!(id)), "payload.thng must be left out"),
        (with("/payload", "product", other), "payload.product: input.payload[0] is an instance of"),
    ] {
        let faults = api.call(Method::POST, "/jobs/actions", Some(body)).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].contains(fault), "{faults:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    for body in [with("", "type", json!("ACTION_CREATION")), with("/payload", "product", own)] {
        submit(&api, body).await?;
    }
    Ok(())
}

pub(super) async fn lists_of_jobs_and_logs_are_filtered_and_paged(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let id = thng(&api, json!({"name": "t"})).await?;
    let good = submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    let bad = submit(&api, list("PLATFORM_IDS", &["x"; 230])).await?;
    check(&api, &good, "COMPLETED", 1, 0).await?;
    check(&api, &bad, "COMPLETED_WITH_FAILURES", 230, 230).await?;
    let bad_id = bad.rsplit('/').next().context("id")?;
    for (uri, expected) in [
        ("/jobs/actions".to_owned(), 2),
        ("/jobs/actions?filter=status%3DCOMPLETED".to_owned(), 1),
        ("/jobs/actions?filter=type%3DACTION_CREATION".to_owned(), 2),
        (format!("/jobs/actions?ids={bad_id}"), 1),
        (format!("/jobs/actions?project={UNKNOWN}"), 0),
        (format!("{bad}/logs?perPage=100&filter=jobId%3D{bad_id}"), 100),
        (format!("{bad}/logs?filter=jobId%3D{UNKNOWN}"), 0),
        (format!("{bad}/logs?filter=type%3DERROR"), 30),
        (format!("{bad}/logs?filter=type%3DINFO"), 0),
        (format!("{bad}/logs?project={UNKNOWN}"), 0),
        (format!("{good}/logs"), 0),
    ] {
        let answer = api.get(&uri).await?;
        ensure!(answer.status == 200, "{uri}: {answer:?}");
        let found = answer.json();
        ensure!(found.as_array().is_some_and(|found| found.len() == expected), "{uri}: {found}");
    }
    let listed = api.get("/jobs/actions").await?;
    ensure!(listed.header("x-result-count") == Some("2"), "{listed:?}");
    for job in listed.json().as_array().context("array")? {
        ensure!(job.get("payload").is_none() && job.get("input").is_none(), "{job}");
        ensure!(job["history"][0]["status"] == "ENQUEUED" && job["type"] == "ACTION_CREATION", "{job}");
    }
    api.get("/jobs/actions?filter=name%3Dx").await?.problem(400, 40003);
    for path in [good.clone(), format!("{good}/logs")] {
        api.call_as(&api.other_key, Method::GET, &path, None).await?.problem(404, 40401);
    }
    ensure!(api.call_as(&api.other_key, Method::GET, "/jobs/actions", None).await?.json() == json!([]));
    Ok(())
}

pub(super) async fn references_outside_the_account_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let theirs =
        api.call_as(&api.other_key, Method::POST, "/files", Some(json!({"name": "f"}))).await?.json();
    let empty = api.create("/files", json!({"name": "f"})).await?;
    let url = |file: &Value| file["contentUrl"].as_str().unwrap_or_default().to_owned();
    let with = |path: &str, value: Value| {
        let mut body = list("SHORT_IDS", &["A"]);
        if let Some(member) = body.pointer_mut(path) {
            *member = value;
        }
        body
    };
    let before = api.fingerprint().await?;
    let foreign = url(&empty).replace("api.example:8080", "evil.example");
    for (body, faults) in [
        (with("/payload", json!({"type": "_unknown"})), vec!["payload.type: there is no type"]),
        (with("/payload", json!({"type": "commissions"})), vec!["payload.type: commissions are written by"]),
        (
            with("/payload", json!({"type": "scans", "location": {"place": UNKNOWN}})),
            vec!["payload.location.place: the place"],
        ),
        (
            with("/payload", json!({"type": "scans", "product": UNKNOWN})),
            vec!["payload.product: The product"],
        ),
        (with("/payload", json!({"type": "scans", "collection": "a:b"})), vec!["payload.collection"]),
        (
            json!({"payload": {"type": "_unknown", "product": UNKNOWN}, "target": "X",
                "input": {"type": "LIST", "contentType": "SHORT_IDS", "shortDomain": "other.gg", "payload": ["a"]}}),
            vec!["target", "payload.type", "payload.product", "input.shortDomain: other.gg is not"],
        ),
        (of_file("PLATFORM_IDS", "CSV", &url(&empty)), vec!["input.location names the file"]),
        (of_file("PLATFORM_IDS", "CSV", &url(&theirs)), vec!["which was not found"]),
        (of_file("PLATFORM_IDS", "CSV", &foreign), vec!["input.location must be the contentUrl"]),
        (of_file("PLATFORM_IDS", "CSV", "https://evil.example/ids.csv"), vec!["input.location must be"]),
        (of_file("PLATFORM_IDS", "CSV", "file:///etc/passwd"), vec!["input.location must be"]),
        (of_file("PLATFORM_IDS", "CSV", UNKNOWN), vec!["input.location must be"]),
    ] {
        let errors = api.call(Method::POST, "/jobs/actions", Some(body.clone())).await?.problem(400, 40001);
        ensure!(errors.len() == faults.len(), "{body}: {errors:?}");
        for (error, part) in errors.iter().zip(&faults) {
            ensure!(error.contains(part), "{body}: {error}");
        }
    }
    let uri = format!("/jobs/actions?project={UNKNOWN}");
    api.call(Method::POST, &uri, Some(list("PLATFORM_IDS", &["A"]))).await?.problem(400, 40003);
    ensure!(api.fingerprint().await? == before, "a refusal wrote something");
    Ok(())
}

pub(super) async fn a_cancel_stops_the_job_and_keeps_its_actions(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    // At 0 %: no worker has seen it.
    let waiting = submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    let cancel = |path: &str| format!("{path}/cancel");
    for _ in 0..2 {
        let answer = api.call(Method::POST, &cancel(&waiting), Some(json!({}))).await?;
        ensure!(answer.status == 202 && answer.bytes.is_empty(), "{answer:?}");
    }
    ensure!(api.get(&waiting).await?.json()["status"] == "CANCELLING");
    api.call_as(&api.other_key, Method::POST, &cancel(&waiting), None).await?.problem(404, 40401);
    let _work = work(&api);
    let job = ended(&api, &waiting).await?;
    let states: Vec<&Value> =
        job["history"].as_array().context("history")?.iter().map(|s| &s["status"]).collect();
    ensure!(states == ["ENQUEUED", "CANCELLING", "CANCELLED"], "{job}");
    ensure!(api.fingerprint().await?["actions"].is_empty());
    // Somewhere in the middle.
    let many = format!("{id}\n").repeat(60_000);
    let running = submit(&api, of_file("PLATFORM_IDS", "CSV", &file(&api, many.as_bytes()).await?)).await?;
    let begun = Instant::now();
    while api.get(&running).await?.json()["progress"]["amountCompleted"] == 0 {
        ensure!(begun.elapsed() < DEADLINE, "it does not begin");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let answer = api.call(Method::POST, &cancel(&running), None).await?;
    let job = ended(&api, &running).await?;
    let done = job["progress"]["amountCompleted"].as_u64().context("done")?;
    if answer.status == 202 {
        ensure!(job["status"] == "CANCELLED" && done < 60_000, "{job}");
    } else {
        // It was faster than the cancel.
        ensure!(answer.status == 409 && job["status"] == "COMPLETED", "{answer:?} {job}");
    }
    ensure!(api.fingerprint().await?["actions"].len() as u64 == done, "{job}");
    // At 100 %.
    api.call(Method::POST, &cancel(&running), None).await?.problem(409, 40901);
    jobs::service::jobs::sweep(&api.made.app.jobs).await?;
    ensure!(api.fingerprint().await?["job_chunks"].is_empty());
    Ok(())
}

pub(super) async fn a_small_job_is_not_delayed_by_large_ones(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    let many = format!("{id}\n").repeat(100_000);
    let location = file(&api, many.as_bytes()).await?;
    let mut large = Vec::new();
    for _ in 0..3 {
        large.push(submit(&api, of_file("PLATFORM_IDS", "CSV", &location)).await?);
    }
    let _work = work(&api);
    let begun = Instant::now();
    while api.get(&large[0]).await?.json()["status"] != "EXECUTING" {
        ensure!(begun.elapsed() < DEADLINE, "it does not begin");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let small = submit(&api, list("PLATFORM_IDS", &[id.as_str(); 10])).await?;
    check(&api, &small, "COMPLETED", 10, 0).await?;
    // The order of ends is what counts; how long it takes depends on the machine.
    let mut left = 0;
    for path in &large {
        let job = api.get(path).await?.json();
        left += usize::from(job.get("completedAt").is_none());
        api.call(Method::POST, &format!("{path}/cancel"), None).await?;
    }
    ensure!(left > 0, "every large job was over before the small one");
    Ok(())
}

crate::on_both_engines!(
    each_kind_of_id_names_thngs,
    a_payload_of_another_item_or_type_is_refused,
    lists_of_jobs_and_logs_are_filtered_and_paged,
    references_outside_the_account_are_refused,
    a_cancel_stops_the_job_and_keeps_its_actions,
    a_small_job_is_not_delayed_by_large_ones,
);
