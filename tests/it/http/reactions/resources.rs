//! Reactions as resources: visibility and validation.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    super::{
        Api,
        jobs::{next, thng},
    },
    id, react, reaction, until_done, value,
};

/// Accounts and projects hear and touch nothing of each other's.
pub(super) async fn tenants_are_apart(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _react = react(&api);
    let projects = [
        id(&api.create("/projects", json!({"name": "a"})).await?)?,
        id(&api.create("/projects", json!({"name": "b"})).await?)?,
    ];
    let inside = id(&api.create(&format!("/thngs?project={}", projects[0]), json!({"name": "in"})).await?)?;
    let outside = thng(&api, json!({"name": "out"})).await?;
    let effect = json!({"type": "property", "key": "touched", "from": "type"});
    let body = json!({"name": "r", "types": ["action"], "effect": effect});
    let theirs =
        api.call_as(&api.other_key, Method::POST, "/reactions", Some(body.clone())).await?.must_be(201)?;
    let theirs = format!("/reactions/{}", id(&theirs.json())?);
    let confined = api.create(&format!("/reactions?project={}", projects[0]), body).await?;
    ensure!(confined["project"] == json!(projects[0]), "{confined}");
    let confined = format!("/reactions/{}", id(&confined)?);
    let of_account = reaction(
        &api,
        json!({"types": ["action"],
        "effect": {"type": "property", "key": "all", "value": 1}}),
    )
    .await?;
    // Of the project, about a Thng of it; about one that is not in it; and of another project or none.
    let uri = format!("/actions/scans?project={}", projects[0]);
    api.create(&uri, json!({"thng": inside})).await?;
    api.create(&uri, json!({"thng": outside})).await?;
    api.create(&format!("/actions/scans?project={}", projects[1]), json!({"thng": outside})).await?;
    api.create("/actions/checkins", json!({"thng": outside})).await?;
    until_done(&api, &of_account, 4, 0).await?;
    let read = until_done(&api, &confined, 1, 1).await?;
    let reason = read["outcome"]["lastFailure"]["reason"].as_str().context("reason")?;
    ensure!(reason.contains(&format!("The thng {outside} was not found")), "{read}");
    ensure!(value(&api, &format!("/thngs/{inside}"), "touched").await? == "scans");
    ensure!(value(&api, &format!("/thngs/{outside}"), "touched").await?.is_null());
    let nothing = api.call_as(&api.other_key, Method::GET, &theirs, None).await?.json();
    ensure!(nothing["outcome"]["done"] == 0 && nothing["outcome"]["failed"] == 0, "{nothing}");
    // What another account or project has cannot be named, and cannot be seen.
    api.call_as(&api.other_key, Method::GET, &confined, None).await?.problem(404, 40401);
    api.call_as(&api.other_key, Method::DELETE, &confined, None).await?.problem(404, 40401);
    let webhook_of = |project: &str| format!("/webhooks?project={project}");
    let hook = json!({"name": "w", "url": "https://webhooks.invalid/", "status": "disabled"});
    let in_other = id(&api.create(&webhook_of(&projects[1]), hook.clone()).await?)?;
    let in_same = id(&api.create(&webhook_of(&projects[0]), hook.clone()).await?)?;
    let of_theirs = api.call_as(&api.other_key, Method::POST, "/webhooks", Some(hook.clone())).await?.json();
    let of_all = id(&api.create("/webhooks", hook).await?)?;
    let of_project = format!("/reactions?project={}", projects[0]);
    let calls = |webhook: &str| json!({"name": "r", "effect": {"type": "webhook", "webhook": webhook}});
    for (path, webhook, is_allowed) in [
        (of_project.as_str(), in_same.as_str(), true),
        (&of_project, &of_all, true),
        (&of_project, &in_other, false),
        (&of_project, &id(&of_theirs)?, false),
        ("/reactions", &of_all, true),
        ("/reactions", &in_same, false),
        ("/reactions", &id(&of_theirs)?, false),
    ] {
        let answer = api.post(path, calls(webhook)).await?;
        if is_allowed {
            ensure!(answer.status == 201, "{answer:?}");
        } else {
            let errors = answer.problem(400, 40001);
            ensure!(errors[0].starts_with("effect.webhook: The webhook"), "{errors:?}");
        }
    }
    for effect in [
        json!({"type": "property", "key": "a", "value": 1, "thng": outside}),
        json!({"type": "action", "action": {"type": "scans", "thng": outside}}),
    ] {
        let body = json!({"name": "r", "effect": effect});
        api.post(&of_project, body.clone()).await?.problem(400, 40001);
        api.call_as(&api.other_key, Method::POST, "/reactions", Some(body.clone()))
            .await?
            .problem(400, 40001);
        ensure!(api.post("/reactions", body).await?.status == 201);
    }
    Ok(())
}

/// What is wrong is named and changes nothing; the rest is as with other resources.
pub(super) async fn reactions_behave_like_other_resources(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let effect = json!({"type": "property", "key": "a", "value": 1});
    let made = api
        .create("/reactions", json!({"name": "r", "effect": effect, "match": "type=scans", "tags": ["x"]}))
        .await?;
    let uri = format!("/reactions/{}", id(&made)?);
    let before = api.fingerprint().await?;
    let property = |more: Value| {
        let mut effect = json!({"type": "property"});
        effect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": "r", "effect": effect})
    };
    let unknown = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    for (body, part) in [
        (json!([]), "JSON object"),
        (json!({"name": "r", "effect": null, "match": "type"}), "match"),
        (json!({"name": "", "effect": effect}), "name"),
        (json!({"name": "r", "effect": effect, "types": ["nothing"]}), "types"),
        (json!({"name": "r", "effect": effect, "types": ["reaction"]}), "types"),
        (json!({"name": "r", "effect": effect, "status": "paused"}), "status"),
        (json!({"name": "r", "effect": effect, "match": "color=red"}), "match"),
        (
            json!({"name": "r", "effect": effect, "match": format!("type={}", "x|type=y".repeat(10_000))}),
            "match",
        ),
        (json!({"name": "r", "effect": [effect]}), "effect must be an object"),
        (json!({"name": "r", "effect": {"type": "mail"}}), "effect.type"),
        (
            json!({"name": "r", "effect": {"type": "webhook", "webhook": unknown}}),
            "effect.webhook: The webhook",
        ),
        (property(json!({"key": "~connected", "value": 1})), "effect.key"),
        (property(json!({"key": "a", "value": "x".repeat(17_000)})), "effect.value"),
        (property(json!({"key": "a", "from": "color"})), "effect.from"),
        (property(json!({"key": "a", "from": 7})), "effect.from"),
        (property(json!({"key": "a", "value": 1, "thng": unknown})), "effect.thng: The thng"),
        (property(json!({"key": "a", "value": 1, "product": "gs1:01:x"})), "effect.product: The product"),
        (json!({"name": "r", "effect": {"type": "action", "action": []}}), "effect.action must be an object"),
        (
            json!({"name": "r", "effect": {"type": "action", "action": {"type": "_none"}}}),
            "effect.action.type: there is no type _none",
        ),
        (
            json!({"name": "r", "effect": {"type": "action", "action": {"type": "commissions"}}}),
            "their own operations",
        ),
        (
            json!({"name": "r", "effect": {"type": "action", "action": {"type": "scans", "thng": unknown}}}),
            "effect.action.thng",
        ),
        (
            json!({"name": "r", "effect": {"type": "action", "action": {"type": "scans", "location": {"place": unknown}}}}),
            "location.place",
        ),
    ] {
        for (method, target) in [(Method::POST, "/reactions"), (Method::PUT, uri.as_str())] {
            let is_create = method == Method::POST;
            let errors = api.call(method, target, Some(body.clone())).await?.problem(400, 40001);
            ensure!(errors.iter().any(|error| error.contains(part)), "{target} {body}: {errors:?}");
            ensure!(is_create || !errors.iter().any(|error| error.contains("is required")), "{errors:?}");
        }
    }
    let body = json!({"name": "r", "effect": effect});
    api.post("/reactions?project=nothing", body.clone()).await?.problem(400, 40003);
    ensure!(api.fingerprint().await? == before, "a refusal changed something");

    let changed = api.put(&uri, json!({"match": "", "status": "disabled"})).await?.json();
    ensure!(changed.get("match").is_none() && changed["status"] == "disabled", "{changed}");
    ensure!(changed["tags"] == json!(["x"]) && changed["effect"]["key"] == "a", "{changed}");
    // What is read can be written back.
    let again = api.put(&uri, changed.clone()).await?;
    ensure!(again.status == 200 && again.json()["effect"] == changed["effect"], "{again:?}");
    for _ in 1..100 {
        api.create("/reactions", body.clone()).await?;
    }
    api.post("/reactions", body).await?.problem(409, 40901);
    let page = api.get("/reactions?filter=status%3Ddisabled").await?.json();
    ensure!(page.as_array().map(Vec::len) == Some(1) && page[0]["id"] == made["id"], "{page}");
    let (mut ids, mut more) = (BTreeSet::new(), Some("/reactions?perPage=40".to_owned()));
    while let Some(uri) = more {
        let answer = api.get(&uri).await?;
        for one in answer.json().as_array().context("page")? {
            ids.insert(id(one)?);
        }
        more = next(&answer);
    }
    ensure!(ids.len() == 100, "{}", ids.len());
    ensure!(api.delete(&uri).await?.status == 200);
    api.get(&uri).await?.problem(404, 40401);
    Ok(())
}

crate::on_both_engines!(tenants_are_apart, reactions_behave_like_other_resources);
