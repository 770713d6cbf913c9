//! Scans and events of a day: by requests, jobs, reactions and edges.

use anyhow::{Context, Result};
use axum::http::Method;
use control::worker::ingest_scans::ingest;
use serde_json::{Value, json};
use shared::wire::scan::{ScanBatch, ScanRecord};
use tests::db::Engine;

use super::{
    super::{
        Api,
        jobs::{all, check, list, submit, thng, work},
        reactions::{react, reaction, until_done},
    },
    refused,
};
use crate::store::scans;

const DAILY: (u16, u32) = (429, 42902);

/// A day, in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;

async fn events_beyond_the_quota_wait_for_the_next_day(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    assert_eq!(api.set_quotas(json!({"eventsPerDay": 6})).await?["eventsPerDay"]["used"], 0);
    let value = format!("/thngs/{id}/properties/a");
    let write = |values: Value| api.put(&value, values);
    let act = |uri: &'static str, body: Value| api.post(uri, body);
    assert_eq!(write(json!([{"value": 1}])).await?.status, 200);
    let two = json!([{"value": 1, "timestamp": 1}, {"value": 2, "timestamp": 2}]);
    assert_eq!(write(two.clone()).await?.status, 200);
    assert_eq!(act("/actions/checkins", json!({"thng": id})).await?.status, 201);
    // A scan has a quota of its own.
    assert_eq!(act("/actions/scans", json!({"thng": id})).await?.status, 201);
    let quotas = api.quotas().await?;
    assert_eq!((&quotas["eventsPerDay"]["used"], &quotas["scansPerDay"].get("limit")), (&json!(4), &None));
    // All of an array or none.
    let three = json!([{"thng": id}, {"thng": id}, {"thng": id}]);
    let answer = act("/actions/checkins", three).await?;
    refused(&answer, DAILY, "eventsPerDay", "4 of 6");
    let seconds: i64 = answer.header("retry-after").context("retry-after")?.parse()?;
    let left =
        quotas["eventsPerDay"]["resetsAt"].as_i64().context("resetsAt")? - api.made.app.core.clock.now().0;
    assert!((0..2).contains(&(seconds - left / 1_000)), "{seconds} s, {left} ms");
    assert_eq!(write(two.clone()).await?.status, 200);
    refused(&write(two.clone()).await?, DAILY, "eventsPerDay", "6 of 6");
    refused(&write(json!([{"value": 9}])).await?, DAILY, "eventsPerDay", "6 of 6");
    let shown = api.get(&format!("/thngs/{id}/properties/a")).await?.json();
    assert!(shown.as_array().is_some_and(|points| points.iter().all(|p| p["value"] != 9)), "{shown}");
    // Resources are made and changed as before, and other accounts write.
    assert_eq!(api.put(&format!("/thngs/{id}"), json!({"name": "u"})).await?.status, 200);
    api.call_as(&api.other_key, Method::POST, "/actions/checkins", Some(json!({}))).await?.must_be(201)?;
    api.made.clock.advance(DAY);
    assert_eq!(api.quotas().await?["eventsPerDay"]["used"], 0);
    assert_eq!(write(two).await?.status, 200);
    assert_eq!(api.quotas().await?["eventsPerDay"]["used"], 2);
    Ok(())
}

async fn jobs_and_reactions_obey_the_quota(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(thng(&api, json!({"name": format!("t{n}")})).await?);
    }
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    api.set_quotas(json!({"scansPerDay": 3, "eventsPerDay": 1})).await?;
    let _work = work(&api);
    let job = submit(&api, list("PLATFORM_IDS", &ids)).await?;
    check(&api, &job, "COMPLETED_WITH_FAILURES", 5, 2).await?;
    for entry in all(&api, &format!("{job}/logs")).await? {
        let message = entry["message"].as_str().context("message")?;
        assert!(message.contains("quota scansPerDay ") && message.contains("3 of 3"), "{entry}");
    }
    assert_eq!(api.get("/actions/scans?perPage=100").await?.json().as_array().context("list")?.len(), 3);
    refused(&api.post("/actions/scans", json!({"thng": ids[0]})).await?, DAILY, "scansPerDay", "3 of 3");

    // The action that a reaction makes is the second event.
    let _react = react(&api);
    let effect = json!({"type": "action", "action": {"type": "shares"}});
    let path = reaction(&api, json!({"types": ["action.checkins"], "effect": effect})).await?;
    api.create("/actions/checkins", json!({"thng": ids[0]})).await?;
    let read = until_done(&api, &path, 0, 1).await?;
    let reason = read["outcome"]["lastFailure"]["reason"].as_str().context("reason")?;
    assert!(reason.contains("quota eventsPerDay ") && reason.contains("1 of 1"), "{read}");
    assert_eq!(api.get("/actions/shares").await?.json(), json!([]));
    Ok(())
}

pub(super) fn record(short_id: &str, at: i64) -> ScanRecord {
    scans::record(short_id, "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X)", at)
}

async fn scans_of_edges_beyond_the_quota_count_and_are_not_stored(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.product().await?;
    let body = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "A"});
    api.post("/redirections", body).await?;
    api.set_quotas(json!({"scansPerDay": 3, "eventsPerDay": 0})).await?;
    let records: Vec<_> = (0..5).map(|n| record("A", 1_000 + n)).collect();
    let batch = |first_seq: u64, records: &[ScanRecord]| ScanBatch {
        edge: "e1".into(),
        boot: 1,
        first_seq,
        records: records.to_vec(),
    };
    let stored = async || {
        let list = api.get("/actions/implicitScans?perPage=100").await?.json();
        Ok::<_, anyhow::Error>(list.as_array().context("list")?.len())
    };
    ingest(&api.made.app, &batch(0, &records[..2])).await?;
    assert_eq!(
        ingest(&api.made.app, &batch(2, &records[2..])).await?.next_seq,
        5,
        "an edge sends nothing twice"
    );
    assert_eq!(stored().await?, 3);
    assert_eq!(api.get("/redirections/A").await?.json()["hits"], 5, "all were redirected");
    let quota = api.quotas().await?["scansPerDay"].clone();
    assert_eq!((&quota["used"], &quota["notStored"]), (&json!(3), &json!(2)), "{quota}");
    assert_eq!(api.get("/status").await?.json()["scans"]["overQuota"], 2);
    api.made.clock.advance(DAY);
    ingest(&api.made.app, &batch(5, &records[..1])).await?;
    let quota = api.quotas().await?["scansPerDay"].clone();
    assert_eq!((stored().await?, &quota["used"], &quota["notStored"]), (4, &json!(1), &json!(0)), "{quota}");
    Ok(())
}

crate::on_both_engines!(
    events_beyond_the_quota_wait_for_the_next_day,
    jobs_and_reactions_obey_the_quota,
    scans_of_edges_beyond_the_quota_count_and_are_not_stored
);
