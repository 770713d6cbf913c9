//! Action types: built-in ones and those of accounts.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

fn names(page: &Value) -> Vec<&str> {
    page.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

pub(super) async fn action_types_are_created_and_deleted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let sent =
        json!({"name": "_actionType123.45", "tags": ["a"], "customFields": {"Key": 1}, "description": "d"});
    let answer = api.post("/v2/actions", sent.clone()).await?.must_be(201)?;
    assert_eq!(answer.header("location"), Some("http://api.example:8080/v2/actions/_actionType123.45"));
    let made = answer.json();
    for (name, value) in sent.as_object().context("object")? {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!(made["createdAt"], made["updatedAt"]);
    api.post("/actions", sent.clone()).await?.problem(409, 40901);
    let other = api.call_as(&api.other_key, Method::POST, "/actions", Some(sent)).await?;
    assert_eq!(other.status, 201, "each account has its own");

    // The SDK reads one type by a filter, encoded twice.
    let found = api.get("/actions?filter=name%253D_actionType123.45").await?.json();
    assert_eq!(found, json!([made]));
    let change = json!({"tags": ["updated"], "name": "_other"});
    let changed = api.put("/actions/_actionType123.45", change).await?.json();
    assert_eq!((&changed["name"], &changed["tags"]), (&made["name"], &json!(["updated"])));
    assert_eq!(changed["customFields"], made["customFields"]);
    assert!(changed["updatedAt"].as_i64() > changed["createdAt"].as_i64(), "{changed}");

    let action = api.create("/actions/_actionType123.45", json!({})).await?;
    let removed = api.delete("/actions/_actionType123.45").await?;
    assert_eq!((removed.status.as_u16(), removed.bytes.len()), (200, 0));
    api.delete("/actions/_actionType123.45").await?.problem(404, 40401);
    api.get("/actions/_actionType123.45").await?.problem(404, 40401);
    let kept = api.get("/actions/all").await?.json();
    assert_eq!(kept[0]["id"], action["id"], "the actions of a removed type stay");
    let others = api.call_as(&api.other_key, Method::GET, "/actions?perPage=1", None).await?.json();
    assert_eq!(names(&others), ["_actionType123.45"]);
    Ok(())
}

pub(super) async fn types_are_listed_page_by_page(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for name in ["_a", "_b", "_c"] {
        api.create("/actions", json!({"name": name})).await?;
    }
    let all = api.get("/actions?sortOrder=ASCENDING").await?.json();
    assert_eq!(all[0], json!({"name": "scans"}));
    let mut expected: Vec<String> = names(&all).into_iter().map(str::to_owned).collect();
    assert_eq!((expected.len(), &expected[12..]), (15, &["_a", "_b", "_c"].map(str::to_owned)[..]));
    for order in ["ASCENDING", "DESCENDING"] {
        let (mut uri, mut seen) = (format!("/actions?perPage=2&sortOrder={order}"), Vec::new());
        loop {
            let answer = api.get(&uri).await?;
            seen.extend(names(&answer.json()).into_iter().map(str::to_owned));
            // A type that was seen goes, and nothing moves.
            if seen.iter().any(|name| name == "_b") {
                api.delete("/actions/_b").await?;
            }
            let Some(link) = answer.header("link") else { break };
            let encoded = link.trim_start_matches('<').split('>').next().context("link")?;
            let url = percent_encoding::percent_decode_str(encoded).decode_utf8()?.into_owned();
            uri = url.strip_prefix("http://api.example:8080").context("base")?.to_owned();
        }
        assert_eq!(seen, expected, "{order}");
        expected.retain(|name| name != "_b");
        expected.reverse();
    }
    Ok(())
}

pub(super) async fn invalid_requests_change_no_action_type(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.create("/actions", json!({"name": "_own"})).await?;
    let before = api.fingerprint().await?;
    for (method, uri, body, status, code, fault) in [
        (Method::POST, "/actions", json!({}), 400, 40001, "name is required"),
        (Method::POST, "/actions", json!({"name": "own"}), 400, 40001, "name must be _ and"),
        (Method::POST, "/actions", json!({"name": "scans"}), 400, 40001, "name must be _ and"),
        (Method::POST, "/actions", json!({"name": "_a b"}), 400, 40001, "name must be _ and"),
        (Method::POST, "/actions", json!({"name": "_\u{0}"}), 400, 40001, "name must be _ and"),
        (Method::POST, "/actions", json!({"name": "_x", "tags": 1}), 400, 40001, "tags must be"),
        (Method::POST, "/actions", json!({"name": "_own"}), 409, 40901, "exists already"),
        (Method::PUT, "/actions/_own", json!({"customFields": 1}), 400, 40001, "customFields"),
        (Method::PUT, "/actions/_none", json!({}), 404, 40401, "_none"),
        (Method::PUT, "/actions/%00", json!({}), 404, 40401, "action type"),
        (Method::PUT, "/actions/_%00", json!({}), 404, 40401, "action type"),
        (Method::PUT, "/actions/all", json!({}), 404, 40401, "all"),
        (Method::PUT, "/actions/scans", json!({"tags": []}), 403, 40301, "built in"),
        (Method::DELETE, "/actions/scans", json!(null), 403, 40301, "built in"),
        (Method::DELETE, "/actions/all", json!(null), 404, 40401, "all"),
        (Method::DELETE, "/actions/_%00", json!(null), 404, 40401, "action type"),
    ] {
        let answer = api.call(method.clone(), uri, Some(body.clone())).await?;
        let errors = answer.problem(status, code);
        assert!(errors.iter().any(|error| error.contains(fault)), "{method} {uri} {body}: {errors:?}");
    }
    api.call_as(&api.other_key, Method::DELETE, "/actions/_own", None).await?.problem(404, 40401);
    let put = Some(json!({"tags": ["x"]}));
    api.call_as(&api.other_key, Method::PUT, "/actions/_own", put).await?.problem(404, 40401);
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(
    action_types_are_created_and_deleted,
    types_are_listed_page_by_page,
    invalid_requests_change_no_action_type
);
