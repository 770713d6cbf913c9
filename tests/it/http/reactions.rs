//! Reactions in one process: triggers, effects, and failed effects.

mod resources;

use anyhow::{Context, Result, ensure};
use control::worker::reactions;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    json::{id, merged},
    wait::read_until,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Api,
    jobs::{list, submit, thng, work},
    webhooks::receiver::{Receiver, Reply, count, deliver, execute, webhook},
};

/// Runs the workers of one process: what shares out, and what does.
pub(super) fn react(api: &Api) -> (DropGuard, DropGuard) {
    let stop = CancellationToken::new();
    tokio::spawn(reactions::run(api.made.app.events.clone(), stop.clone()));
    (deliver(api), stop.drop_guard())
}

/// Makes a reaction; gives its path.
pub(super) async fn reaction(api: &Api, more: Value) -> Result<String> {
    let body = merged(json!({"name": "r"}), &more);
    let made = api.create("/reactions", body).await?;
    Ok(format!("/reactions/{}", made["id"].as_str().context("id")?))
}

/// Waits until a reaction was carried out, and could not be, so many times.
pub(super) async fn until_done(api: &Api, path: &str, done: i64, failed: i64) -> Result<Value> {
    let is_there = |read: &Value| read["outcome"]["done"] == done && read["outcome"]["failed"] == failed;
    read_until(async || Ok(api.get(path).await?.json()), is_there).await
}

/// How many tasks of reactions wait.
async fn waiting(api: &Api) -> Result<i64> {
    count(api, "SELECT COUNT(*) FROM reaction_tasks").await
}

/// The latest value of a property.
async fn value(api: &Api, of: &str, key: &str) -> Result<Value> {
    Ok(api.get(&format!("{of}/properties/{key}")).await?.json()[0]["value"].clone())
}

/// Waits until all is done about what happened before; what came of that may have to be reacted to.
async fn settle(api: &Api) -> Result<()> {
    let mark = reaction(
        api,
        json!({"types": ["action._mark"], "effect":
        {"type": "webhook", "webhook": webhook_of_nobody(api).await?}}),
    )
    .await?;
    let kind = api.post("/actions", json!({"name": "_mark"})).await?;
    ensure!(matches!(kind.status.as_u16(), 201 | 409), "{kind:?}");
    api.create("/actions/_mark", json!({})).await?;
    // The queue is in order: what is behind all others is done last.
    until_done(api, &mark, 1, 0).await?;
    Ok(())
}

async fn webhook_of_nobody(api: &Api) -> Result<String> {
    let body =
        json!({"name": "w", "url": "https://webhooks.invalid/", "status": "paused", "types": ["reaction"]});
    id(&api.create("/webhooks", body).await?)
}

/// Each of the three effects, by type and condition of the event; and each kind of event is one.
pub(super) async fn each_effect_is_performed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_work, _react) = (work(&api), react(&api));
    let receiver = Receiver::new(|_| Reply::Take).await?;
    let called = webhook(&api, &receiver, json!({"types": ["reaction"]})).await?;
    let product = id(&api.create("/products", json!({"name": "p"})).await?)?;
    let item = thng(&api, json!({"name": "t", "product": product})).await?;
    let other = thng(&api, json!({"name": "o", "identifiers": {"gs1:21": "O"}})).await?;
    api.create("/actions", json!({"name": "_seen"})).await?;
    // What was before is nothing to react to.
    api.create("/actions/scans", json!({"thng": item, "customFields": {"grade": 9}})).await?;

    let scans = json!(["action.scans"]);
    let (condition, from) = ("customFields.grade>3", "customFields.grade");
    let noted = reaction(
        &api,
        json!({"types": scans, "match": condition,
        "effect": {"type": "property", "key": "Grade", "from": from}}),
    )
    .await?;
    let of_product = reaction(
        &api,
        json!({"types": scans, "match": condition,
        "effect": {"type": "property", "key": "scanned", "value": true, "of": "product"}}),
    )
    .await?;
    let of_other = reaction(
        &api,
        json!({"types": scans, "match": condition,
        "effect": {"type": "property", "key": "other", "from": "thng", "thng": "gs1:21:O"}}),
    )
    .await?;
    let makes = reaction(
        &api,
        json!({"types": scans, "match": condition, "effect":
        {"type": "action", "action": {"type": "_seen", "tags": ["x"], "customFields": {"by": "reaction"}}}}),
    )
    .await?;
    let calls = reaction(
        &api,
        json!({"types": scans, "match": condition,
        "effect": {"type": "webhook", "webhook": called}}),
    )
    .await?;
    let on_properties = reaction(
        &api,
        json!({"types": ["properties"], "match": "properties.temp>20",
        "effect": {"type": "property", "key": "hot", "from": "properties.temp"}}),
    )
    .await?;
    let on_jobs = reaction(
        &api,
        json!({"types": ["job"], "match": "status=COMPLETED",
        "effect": {"type": "action", "action": {"type": "_seen"}}}),
    )
    .await?;
    let on_redirections = reaction(
        &api,
        json!({"types": ["redirection.created"],
        "effect": {"type": "webhook", "webhook": called}}),
    )
    .await?;

    api.create("/actions/scans", json!({"thng": item, "customFields": {"grade": 3}})).await?;
    let scan = api.create("/actions/scans", json!({"thng": item, "customFields": {"grade": 4}})).await?;
    for path in [&noted, &of_product, &of_other, &makes, &calls] {
        until_done(&api, path, 1, 0).await?;
    }
    ensure!(value(&api, &format!("/thngs/{item}"), "grade").await? == 4);
    ensure!(value(&api, &format!("/products/{product}"), "scanned").await? == true);
    ensure!(value(&api, &format!("/thngs/{other}"), "other").await? == json!(item));
    let made = api.get(&format!("/thngs/{item}/actions/_seen")).await?.json();
    ensure!(made.as_array().map(Vec::len) == Some(1) && made[0]["product"] == json!(product), "{made}");
    ensure!(made[0]["customFields"]["by"] == "reaction" && made[0]["tags"] == json!(["x"]), "{made}");
    ensure!(makes.ends_with(made[0]["createdByReaction"].as_str().context("by")?), "{made}");
    let came = receiver.wait(1).await?.pop().context("came")?.json();
    ensure!(came["type"] == "reaction" && came["data"]["event"]["type"] == "action.scans", "{came}");
    ensure!(
        came["data"]["event"]["data"]["id"] == scan["id"]
            && calls.ends_with(came["data"]["reaction"].as_str().context("id")?)
    );

    let uri = format!("/thngs/{item}/properties");
    api.put(&uri, json!([{"key": "temp", "value": 19}])).await?;
    api.put(&uri, json!([{"key": "temp", "value": 21}])).await?;
    until_done(&api, &on_properties, 1, 0).await?;
    ensure!(value(&api, &format!("/thngs/{item}"), "hot").await? == 21);
    submit(&api, list("PLATFORM_IDS", &[&other])).await?;
    until_done(&api, &on_jobs, 1, 0).await?;
    let body = json!({"platformId": item, "defaultRedirectUrl": "https://example.com/"});
    api.post("/redirections", body).await?;
    until_done(&api, &on_redirections, 1, 0).await?;
    ensure!(receiver.wait(2).await?[1].json()["data"]["event"]["type"] == "redirection.created");
    Ok(())
}

/// `SINGLE_RESOURCE_REACTIONS` keeps a job's actions out, and the other option does not; the job's end is heard.
pub(super) async fn options_of_jobs_are_respected(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    // Two sets of workers over one database.
    let (_work, _react) = (work(&api), [react(&api), react(&api)]);
    let item = thng(&api, json!({"name": "t"})).await?;
    api.create("/actions", json!({"name": "_seen"})).await?;
    let each = reaction(
        &api,
        json!({"types": ["action.scans"],
        "effect": {"type": "action", "action": {"type": "_seen"}}}),
    )
    .await?;
    let ends = reaction(
        &api,
        json!({"types": ["job.completed"],
        "effect": {"type": "property", "key": "ended", "from": "status", "thng": item}}),
    )
    .await?;
    let mut quiet = list("PLATFORM_IDS", &[item.as_str(); 40]);
    quiet["options"] = json!([{"type": "SINGLE_RESOURCE_REACTIONS", "enabled": true}]);
    submit(&api, quiet).await?;
    until_done(&api, &ends, 1, 0).await?;
    let mut loud = list("PLATFORM_IDS", &[item.as_str(); 130]);
    loud["options"] = json!([{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]);
    submit(&api, loud).await?;
    until_done(&api, &ends, 2, 0).await?;
    until_done(&api, &each, 130, 0).await?;
    settle(&api).await?;
    ensure!(count(&api, "SELECT COUNT(*) FROM actions WHERE type = '_seen'").await? == 130);
    Ok(())
}

/// No reaction reacts to what it had its part in, directly or by others; and a chain of others ends somewhere.
pub(super) async fn loops_are_cut(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _react = react(&api);
    let item = thng(&api, json!({"name": "t"})).await?;
    for n in 0..9 {
        api.create("/actions", json!({"name": format!("_n{n}")})).await?;
    }
    let makes =
        |on: &str, kind: &str| json!({"types": [on], "effect": {"type": "action", "action": {"type": kind}}});
    // One that makes what it reacts to, two that make each other's, and a chain that is longer than may be.
    let itself = reaction(&api, makes("action.checkins", "checkins")).await?;
    let (ping, pong) = (
        reaction(&api, makes("action.scans", "shares")).await?,
        reaction(&api, makes("action.shares", "scans")).await?,
    );
    let mut chain = Vec::new();
    for n in 0..8 {
        chain.push(reaction(&api, makes(&format!("action._n{n}"), &format!("_n{}", n + 1))).await?);
    }
    // A property that is set where any is set, of the Thng itself.
    let sets = reaction(
        &api,
        json!({"types": ["properties"],
        "effect": {"type": "property", "key": "touched", "value": true}}),
    )
    .await?;
    for kind in ["checkins", "scans", "_n0"] {
        api.create(&format!("/actions/{kind}"), json!({"thng": item})).await?;
    }
    api.put(&format!("/thngs/{item}/properties"), json!([{"key": "a", "value": 1}])).await?;
    settle(&api).await?;
    // Each effect may itself be something to react to: what was done of it is behind the first mark.
    for _ in 0..6 {
        settle(&api).await?;
    }
    for (path, done) in [(&itself, 1), (&ping, 1), (&pong, 1), (&sets, 1)] {
        ensure!(api.get(path).await?.json()["outcome"]["done"] == done, "{}", api.get(path).await?.json());
    }
    for (n, path) in chain.iter().enumerate() {
        let done = i64::from(n < kernel::domain::event::MAX_DEPTH);
        ensure!(api.get(path).await?.json()["outcome"]["done"] == done, "link {n}");
    }
    let made = |kind: &str| format!("SELECT COUNT(*) FROM actions WHERE type = '{kind}'");
    for (kind, expected) in [("checkins", 2), ("scans", 2), ("shares", 1), ("_n5", 1), ("_n6", 0)] {
        ensure!(count(&api, &made(kind)).await? == expected, "{kind}");
    }
    Ok(())
}

/// What cannot be done stops nobody else: it is noted, with why, and leaves no trace.
pub(super) async fn failed_effects_are_recorded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _react = react(&api);
    let item = thng(&api, json!({"name": "t"})).await?;
    let gone = thng(&api, json!({"name": "gone"})).await?;
    api.create("/actions", json!({"name": "_gone"})).await?;
    let called = webhook_of_nobody(&api).await?;
    let sets = |more: Value| {
        let mut effect = json!({"type": "property", "key": "a"});
        effect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"types": ["action.scans"], "effect": effect})
    };
    let to_gone = reaction(&api, sets(json!({"value": 1, "thng": gone}))).await?;
    let to_nothing = reaction(&api, sets(json!({"from": "customFields.none"}))).await?;
    let to_long = reaction(&api, sets(json!({"from": "customFields.long"}))).await?;
    let of_gone = reaction(
        &api,
        json!({"types": ["action.scans"],
        "effect": {"type": "action", "action": {"type": "_gone"}}}),
    )
    .await?;
    let calls = reaction(
        &api,
        json!({"types": ["action.scans"],
        "effect": {"type": "webhook", "webhook": called}}),
    )
    .await?;
    let good = reaction(&api, sets(json!({"value": 2}))).await?;
    for path in [format!("/thngs/{gone}"), "/actions/_gone".to_owned()] {
        ensure!(api.delete(&path).await?.status == 200);
    }
    let off = json!({"status": "disabled"});
    api.put(&format!("/webhooks/{called}"), off).await?;
    let long = "x".repeat(20_000);
    let scan = api.create("/actions/scans", json!({"thng": item, "customFields": {"long": long}})).await?;
    until_done(&api, &good, 1, 0).await?;
    for (path, part) in [
        (&to_gone, "was not found"),
        (&to_nothing, "The event has no customFields.none."),
        (&to_long, "The value must have at most"),
        (&of_gone, "there is no type _gone"),
        (&calls, "is disabled"),
    ] {
        let read = until_done(&api, path, 0, 1).await?;
        let failure = &read["outcome"]["lastFailure"];
        ensure!(failure["reason"].as_str().is_some_and(|reason| reason.contains(part)), "{read}");
        ensure!(failure["event"] == scan["id"] && failure["timestamp"].is_i64(), "{read}");
    }
    ensure!(value(&api, &format!("/thngs/{item}"), "a").await? == 2);
    // The database fails on one again and again: the others wait for it a little, and then no longer.
    execute(&api, "UPDATE reaction_turns SET resume_at = 9999999999999").await?;
    api.create("/actions/scans", json!({"thng": item})).await?;
    read_until(async || waiting(&api).await, |found| *found == 6).await?;
    execute(&api, "UPDATE reaction_tasks SET deed = '{}' WHERE seq = (SELECT MIN(seq) FROM reaction_tasks)")
        .await?;
    let passed = async || {
        // Time goes by.
        execute(&api, "UPDATE reaction_turns SET resume_at = 0").await?;
        waiting(&api).await
    };
    read_until(passed, |found| *found == 0).await?;
    let read = until_done(&api, &to_gone, 0, 2).await?;
    let reason = read["outcome"]["lastFailure"]["reason"].as_str().context("reason")?;
    ensure!(reason.contains("again and again"), "{read}");
    until_done(&api, &good, 2, 0).await?;
    Ok(())
}

/// One that is removed or disabled does no more, also of what it had to do; one that is active again begins anew.
pub(super) async fn a_deleted_reaction_does_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _deliver = deliver(&api);
    let item = thng(&api, json!({"name": "t"})).await?;
    let sets = |key: &str| json!({"types": ["action.scans"], "effect": {"type": "property", "key": key, "from": "timestamp"}});
    let (gone, off, on) = (
        reaction(&api, sets("gone")).await?,
        reaction(&api, sets("off")).await?,
        reaction(&api, sets("on")).await?,
    );
    api.create("/actions/scans", json!({"thng": item, "timestamp": 1})).await?;
    read_until(async || waiting(&api).await, |found| *found == 3).await?;
    ensure!(api.delete(&gone).await?.status == 200);
    api.put(&off, json!({"status": "disabled"})).await?;
    // One that is changed does what it was to do.
    api.put(&on, json!({"effect": {"type": "property", "key": "later", "value": 0}})).await?;
    let _react = react(&api);
    until_done(&api, &on, 1, 0).await?;
    read_until(async || waiting(&api).await, |found| *found == 0).await?;
    api.create("/actions/scans", json!({"thng": item, "timestamp": 2})).await?;
    until_done(&api, &on, 2, 0).await?;
    api.put(&off, json!({"status": "active"})).await?;
    api.create("/actions/scans", json!({"thng": item, "timestamp": 3})).await?;
    until_done(&api, &off, 1, 0).await?;
    let path = format!("/thngs/{item}");
    for (key, expected) in [("gone", json!(null)), ("off", json!(3)), ("on", json!(1)), ("later", json!(0))] {
        ensure!(value(&api, &path, key).await? == expected, "{key}");
    }
    Ok(())
}

crate::on_both_engines!(
    each_effect_is_performed,
    options_of_jobs_are_respected,
    loops_are_cut,
    failed_effects_are_recorded,
    a_deleted_reaction_does_nothing,
);
