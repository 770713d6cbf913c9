//! Webhooks in one process, with receivers of every kind: what is sent, to whom, how often, and what is stored.

mod fair;
mod queues;
pub(super) mod receiver;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use events::domain::webhook::sign;
use serde_json::json;
use tests::{db::Engine, product::DEADLINE};

use self::receiver::{Receiver, Reply, deliver, deliveries, execute, secret_of, until, until_is, webhook};
use super::{
    Api,
    jobs::{list, submit, thng, work},
};

/// Types, conditions, projects and the options of jobs decide what is sent; each of several webhooks gets its own.
pub(super) async fn each_webhook_gets_the_events_it_subscribed_to(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_work, _deliver) = (work(&api), deliver(&api));
    let id = thng(&api, json!({"name": "t"})).await?;
    api.create("/actions/scans", json!({"thng": id})).await?;
    let (all, some, confined) = (
        Receiver::new(|_| Reply::Take).await?,
        Receiver::new(|_| Reply::Take).await?,
        Receiver::new(|_| Reply::Take).await?,
    );
    let webhook_of_all = webhook(&api, &all, json!({})).await?;
    webhook(&api, &some, json!({"types": ["action.scans", "job"], "match": "timestamp>5|status~COMP"}))
        .await?;
    let project = api.create("/projects", json!({"name": "p"})).await?;
    let project = project["id"].as_str().context("id")?.to_owned();
    let body = json!({"name": "w", "url": confined.url()});
    let made = api.create(&format!("/webhooks?project={project}"), body).await?;
    ensure!(made["project"] == json!(project), "{made}");
    let theirs = Receiver::new(|_| Reply::Take).await?;
    let body = json!({"name": "w", "url": theirs.url()});
    ensure!(api.call_as(&api.other_key, Method::POST, "/webhooks", Some(body)).await?.status == 201);

    let late = api.create("/actions/scans", json!({"thng": id, "timestamp": 7})).await?;
    let early = api.create("/actions/scans", json!({"thng": id, "timestamp": 5})).await?;
    let inside = api.create(&format!("/actions/shares?project={project}"), json!({})).await?;
    api.call(Method::PUT, &format!("/thngs/{id}/properties"), Some(json!([{"key": "a", "value": 1}])))
        .await?;
    // A project hears of the properties of its own Thngs, and of no others.
    let scoped = api.create(&format!("/thngs?project={project}"), json!({"name": "in"})).await?["id"].clone();
    let of_scoped = format!("/thngs/{}/properties", scoped.as_str().context("id")?);
    api.call(Method::PUT, &of_scoped, Some(json!([{"key": "b", "value": 2}]))).await?;
    let mut quiet = list("PLATFORM_IDS", &[&id]);
    quiet["options"] = json!([{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]);
    submit(&api, quiet).await?;
    submit(&api, list("PLATFORM_IDS", &[id.as_str(); 1_300])).await?;
    // Three actions, two properties, two ends of jobs, and the actions of the second.
    let taken = all.wait(3 + 2 + 2 + 1_300).await?;
    ensure!(taken.len() == 1_307, "each once where nothing fails: {}", taken.len());
    let ids: BTreeSet<&str> = taken.iter().map(|came| came.id.as_str()).collect();
    for action in [&late, &early, &inside] {
        ensure!(ids.contains(action["id"].as_str().context("id")?), "{action}");
    }
    let kinds: BTreeSet<String> =
        taken.iter().filter_map(|came| came.json()["type"].as_str().map(str::to_owned)).collect();
    let expected = ["action.scans", "action.shares", "job.completed", "properties.updated"];
    ensure!(kinds.iter().map(String::as_str).eq(expected), "{kinds:?}");
    let one = taken.iter().find(|came| late["id"] == came.id.as_str()).context("late")?.json();
    ensure!(one["data"]["id"] == late["id"] && one["timestamp"].is_i64(), "{one}");
    let some = some.wait(1 + 2 + 1_300).await?;
    ensure!(some.iter().all(|came| early["id"] != came.id.as_str()), "the condition");
    let confined = confined.wait(2).await?;
    ensure!(confined.len() == 2, "{confined:?}");
    ensure!(confined.iter().any(|came| inside["id"] == came.id.as_str()), "{confined:?}");
    ensure!(confined.iter().any(|came| came.json()["data"]["thng"] == scoped), "{confined:?}");
    ensure!(theirs.taken().is_empty(), "another account's");

    // Signed with the one secret, and with both after a rotation.
    let secrets = api.get(&format!("/webhooks/{webhook_of_all}/secrets")).await?.json();
    let first = secret_of(&secrets[0])?;
    let came = &taken[0];
    ensure!(came.signature == sign(&[first], &came.id, came.timestamp, &came.body), "{came:?}");
    let both = api
        .call(Method::POST, &format!("/webhooks/{webhook_of_all}/secrets"), Some(json!({})))
        .await?
        .must_be(201)?
        .json();
    ensure!(both[1]["secret"] == secrets[0]["secret"] && both[1]["expiresAt"].is_i64(), "{both}");
    let second = secret_of(&both[0])?;
    api.create("/actions/checkins", json!({})).await?;
    let came = all.wait(1_308).await?.pop().context("one more")?;
    ensure!(came.signature == sign(&[second, first], &came.id, came.timestamp, &came.body), "{came:?}");
    let at_once = json!({"overlap": 0});
    let uri = format!("/webhooks/{webhook_of_all}/secrets");
    ensure!(api.call(Method::POST, &uri, Some(at_once)).await?.json().as_array().map(Vec::len) == Some(1));
    Ok(())
}

/// Receivers that are down, answer 500, hang, are slow or close early lose nothing, and delay nobody else.
pub(super) async fn failing_receivers_lose_no_events(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    // Two sets of workers over one database.
    let _workers = [deliver(&api), deliver(&api)];
    let flaky =
        Receiver::new(
            |nth| if nth.of_id == 0 && nth.all % 2 == 0 { Reply::Refuse(500) } else { Reply::Take },
        );
    let in_order =
        Receiver::new(
            |nth| if nth.of_id == 0 && nth.all % 3 == 1 { Reply::Refuse(503) } else { Reply::Take },
        );
    let (flaky, ordered) = (flaky.await?, in_order.await?);
    let slow = Receiver::new(|_| Reply::Slowly).await?;
    let hanging = Receiver::new(|_| Reply::Hang).await?;
    let good = Receiver::new(|_| Reply::Take).await?;
    let abrupt = Receiver::abrupt().await?;
    let (down, socket) = Receiver::down(|_| Reply::Take)?;
    let mut ids = Vec::new();
    for (receiver, more) in [
        (&flaky, json!({})),
        (&slow, json!({})),
        (&hanging, json!({})),
        (&good, json!({})),
        (&ordered, json!({"ordered": true})),
        (&abrupt, json!({})),
        (&down, json!({})),
    ] {
        ids.push(webhook(&api, receiver, more).await?);
    }
    let mut made = Vec::new();
    for _ in 0..9 {
        let action = api.create("/actions/scans", json!({})).await?;
        made.push(action["id"].as_str().context("id")?.to_owned());
    }
    let all: BTreeSet<String> = made.iter().cloned().collect();
    for receiver in [&good, &slow, &flaky, &ordered, &abrupt] {
        let came: BTreeSet<String> = receiver.wait(9).await?.into_iter().map(|came| came.id).collect();
        ensure!(came == all, "{came:?}");
    }
    let came: Vec<String> = ordered.taken().into_iter().map(|came| came.id).collect();
    ensure!(came == made, "in order, each once: {came:?}");
    let done = until(&api, &ids[0], "delivered", 9).await?;
    ensure!(done.iter().any(|one| one["attempts"].as_u64() > Some(1)), "{done:?}");
    ensure!(done.iter().all(|one| one["httpStatus"] == 200 && one["excerpt"] == "thanks"), "{done:?}");
    ensure!(deliveries(&api, &ids[2], "pending").await?.len() == 9, "the hanging one still has all to come");
    // It comes up: what waited goes out once somebody says so, or at the next try.
    let waiting = deliveries(&api, &ids[6], "pending").await?;
    ensure!(waiting.len() == 9, "{waiting:?}");
    ensure!(waiting.iter().any(|one| one["error"] == "no connection could be made"), "{waiting:?}");
    down.serve(socket.listen(64)?);
    let body = json!({"status": "active"});
    ensure!(api.call(Method::PUT, &format!("/webhooks/{}", ids[6]), Some(body)).await?.status == 200);
    let came: BTreeSet<String> = down.wait(9).await?.into_iter().map(|came| came.id).collect();
    ensure!(came == all, "{came:?}");
    Ok(())
}

/// A receiver that took nothing for a day is paused.
pub(super) async fn a_dead_receiver_is_paused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _deliver = deliver(&api);
    let receiver = Receiver::new(|_| Reply::Refuse(502)).await?;
    let id = webhook(&api, &receiver, json!({})).await?;
    api.create("/actions/scans", json!({})).await?;
    let begun = Instant::now();
    while receiver.asked() == 0 {
        ensure!(begun.elapsed() < DEADLINE, "nothing came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let read = loop {
        // A day goes by, in which it was asked now and then.
        let day = "UPDATE webhooks SET failures = failures + 9, failing_since = failing_since - 90000000, \
            next_at = 0 WHERE failures > 0 AND failures < 10";
        execute(&api, day).await?;
        execute(&api, "UPDATE webhook_messages SET next_at = 0").await?;
        let read = api.get(&format!("/webhooks/{id}")).await?.json();
        if read["status"] == "paused" {
            break read;
        }
        ensure!(begun.elapsed() < DEADLINE, "{read}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    ensure!(read["reason"] == "The receiver took nothing for 24 hours.", "{read}");
    // What happens meanwhile waits.
    api.create("/actions/scans", json!({})).await?;
    until(&api, &id, "pending", 2).await?;
    Ok(())
}

/// A receiver that says it is gone is paused, keeps its queue, and gets it when it is made active.
pub(super) async fn a_paused_webhook_keeps_its_queue(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _deliver = deliver(&api);
    let gone = Receiver::new(|nth| if nth.all == 0 { Reply::Refuse(410) } else { Reply::Take }).await?;
    let id = webhook(&api, &gone, json!({})).await?;
    api.create("/actions/scans", json!({})).await?;
    let read = until_is(&api, &id, "paused").await?;
    ensure!(read["reason"].as_str().is_some_and(|reason| reason.contains("410")), "{read}");
    api.create("/actions/scans", json!({})).await?;
    let waiting = until(&api, &id, "pending", 2).await?;
    ensure!(waiting.iter().any(|one| one["httpStatus"] == 410 && one["excerpt"] == "not now"), "{waiting:?}");
    ensure!(gone.taken().is_empty());
    let body = json!({"status": "active"});
    let resumed = api.call(Method::PUT, &format!("/webhooks/{id}"), Some(body)).await?.json();
    ensure!(resumed["status"] == "active" && resumed.get("reason").is_none(), "{resumed}");
    gone.wait(2).await?;
    // By hand, too.
    let put = async |status: &str| {
        api.call(Method::PUT, &format!("/webhooks/{id}"), Some(json!({"status": status}))).await
    };
    ensure!(put("paused").await?.json()["status"] == "paused");
    api.create("/actions/scans", json!({})).await?;
    until(&api, &id, "pending", 1).await?;
    ensure!(put("active").await?.status == 200);
    gone.wait(3).await?;
    // Disabled, nothing is kept; what happens afterwards is.
    ensure!(put("disabled").await?.status == 200);
    let other = Receiver::new(|_| Reply::Take).await?;
    webhook(&api, &other, json!({"types": ["action.checkins"]})).await?;
    let lost = api.create("/actions/checkins", json!({})).await?;
    // Where another has it, it was queued.
    other.wait(1).await?;
    ensure!(put("active").await?.status == 200);
    api.create("/actions/scans", json!({})).await?;
    let taken = gone.wait(4).await?;
    ensure!(taken.iter().all(|came| lost["id"] != came.id.as_str()), "{taken:?}");
    Ok(())
}

/// What was tried for a day is given up, and sent again by hand: one, or a range.
pub(super) async fn dead_messages_can_be_resent(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _deliver = deliver(&api);
    let is_open = Arc::new(AtomicUsize::new(0));
    let open = is_open.clone();
    let receiver =
        Receiver::new(
            move |_| if open.load(Ordering::SeqCst) == 0 { Reply::Refuse(500) } else { Reply::Take },
        )
        .await?;
    let id = webhook(&api, &receiver, json!({})).await?;
    for _ in 0..3 {
        api.create("/actions/scans", json!({})).await?;
    }
    let begun = Instant::now();
    while deliveries(&api, &id, "dead").await?.len() < 3 {
        // A day goes by.
        execute(
            &api,
            "UPDATE webhook_messages SET first_at = first_at - 90000000, next_at = 0 WHERE attempts > 0",
        )
        .await?;
        execute(&api, "UPDATE webhooks SET next_at = 0").await?;
        ensure!(begun.elapsed() < DEADLINE, "nothing is given up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let dead = deliveries(&api, &id, "dead").await?;
    let one = dead[0]["id"].as_str().context("id")?;
    is_open.store(1, Ordering::SeqCst);
    api.call(Method::POST, &format!("/webhooks/{id}/deliveries/{one}"), None).await?.must_be(202)?;
    ensure!(receiver.wait(1).await?[0].id == one);
    until(&api, &id, "delivered", 1).await?;
    let range = json!({"from": 0, "status": "dead"});
    let uri = format!("/webhooks/{id}/redeliveries");
    let send_range = || api.post_once(&api.key, Some("range"), &uri, &range);
    let answer = send_range().await?;
    ensure!(answer.status == 202 && answer.json() == json!({"count": 2}), "{answer:?}");
    receiver.wait(3).await?;
    until(&api, &id, "delivered", 3).await?;
    // None is dead any more: a repeat gets the first answer.
    let again = send_range().await?;
    ensure!(again.status == 202 && again.bytes == answer.bytes, "{again:?}");
    let nothing = json!({"from": 0, "to": 1});
    ensure!(api.call(Method::POST, &uri, Some(nothing)).await?.json() == json!({"count": 0}));
    api.call(Method::POST, &uri, Some(json!({"status": "x", "from": "y"}))).await?.problem(400, 40001);
    let unknown = format!("/webhooks/{id}/deliveries/UKXAGyEf8SQ5eTDmVgGpHqAa");
    api.call(Method::POST, &unknown, None).await?.problem(404, 40401);
    // The test event goes out at once, and says how it went.
    let ping = api.call(Method::POST, &format!("/webhooks/{id}/ping"), None).await?.json();
    ensure!(ping["delivered"] == true && ping["httpStatus"] == 200 && ping["excerpt"] == "thanks", "{ping}");
    ensure!(receiver.taken().pop().context("ping")?.json()["type"] == "ping");
    // Removed, with what is left of it.
    ensure!(api.call(Method::DELETE, &format!("/webhooks/{id}"), None).await?.status == 200);
    ensure!(api.fingerprint().await?["webhook_messages"].is_empty());
    Ok(())
}

/// What is wrong is named, whatever is asked; a webhook that is there stays as it was.
pub(super) async fn invalid_input_is_reported(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let url = "https://example.com/hook";
    let body = json!({"name": "w", "url": url, "status": "paused", "types": ["job"]});
    let made = api.create("/webhooks", body).await?;
    let uri = format!("/webhooks/{}", made["id"].as_str().context("id")?);
    let before = api.fingerprint().await?;
    let long = format!("https://example.com/{}", "x".repeat(2_048));
    for (path, body, part) in [
        ("/webhooks", json!({"url": url}), "name is required"),
        ("/webhooks", json!({"name": "w"}), "url is required"),
        ("/webhooks", json!({"name": "w", "url": long}), "url must have at most"),
        (
            "/webhooks",
            json!({"name": "w", "url": "https://u:p@example.com/"}),
            "url must not hold a user name",
        ),
        ("/webhooks", json!({"name": "w", "url": "https://10.1.1.1/"}), "private or local"),
        ("/webhooks", json!({"name": "w", "url": "https://0xa9fea9fe/"}), "private or local"),
        ("/webhooks", json!({"name": "w", "url": "https://0251.0376.0251.0376/"}), "private or local"),
        ("/webhooks", json!({"name": "w", "url": "https://[::ffff:10.0.0.1]/"}), "private or local"),
        ("/webhooks", json!({"name": "w", "url": "http://example.com/"}), "url must begin with https://"),
        ("/webhooks", json!({"name": "w", "url": "ftp://example.com/"}), "url must begin with https://"),
        ("/webhooks", json!({"name": "x".repeat(257), "url": url}), "name"),
        ("/webhooks", json!({"name": "w", "url": url, "types": ["nothing"]}), "types"),
        ("/webhooks", json!({"name": "w", "url": url, "types": vec!["job"; 51]}), "types"),
        ("/webhooks", json!({"name": "w", "url": url, "match": "color=red"}), "match"),
        ("/webhooks", json!({"name": "w", "url": url, "ordered": "yes"}), "ordered"),
        ("/webhooks", json!({"name": "w", "url": url, "status": "gone"}), "status"),
        ("secrets", json!({"overlap": -1}), "overlap"),
        ("secrets", json!({"overlap": 2_592_000_001_i64}), "overlap"),
        ("secrets", json!({"overlap": 1.5}), "overlap"),
        ("redeliveries", json!({"from": "yesterday"}), "from"),
        ("redeliveries", json!({"to": 1e300}), "to"),
        ("redeliveries", json!({"status": "pending"}), "status"),
        ("redeliveries", json!([]), "JSON object"),
    ] {
        let target = if path.starts_with('/') { path.to_owned() } else { format!("{uri}/{path}") };
        let errors = api.call(Method::POST, &target, Some(body.clone())).await?.problem(400, 40001);
        ensure!(errors.iter().any(|error| error.contains(part)), "{target} {body}: {errors:?}");
    }
    let body = json!({"name": "w", "url": url});
    api.call(Method::POST, "/webhooks?project=nothing", Some(body)).await?.problem(400, 40003);
    let again = format!("{uri}/deliveries/x%00y");
    api.call(Method::POST, &again, None).await?.problem(404, 40401);
    ensure!(api.fingerprint().await? == before, "a refusal changed something");
    // One account cannot fill the tables.
    for _ in 1..100 {
        api.create("/webhooks", json!({"name": "w", "url": url, "status": "disabled"})).await?;
    }
    let body = json!({"name": "w", "url": url});
    api.call(Method::POST, "/webhooks", Some(body)).await?.problem(409, 40901);
    Ok(())
}

crate::on_both_engines!(
    each_webhook_gets_the_events_it_subscribed_to,
    failing_receivers_lose_no_events,
    a_dead_receiver_is_paused,
    a_paused_webhook_keeps_its_queue,
    invalid_input_is_reported,
    dead_messages_can_be_resent,
);
