//! Links with a time window, a pause and an ended page, through the API.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api,
    batches::{finished, populate},
};

crate::on_both_engines!(
    members_come_back_and_stay_until_they_are_removed,
    every_bad_value_is_refused_and_changes_nothing,
    an_ended_page_is_checked_as_a_target_is,
    several_are_changed_together_or_not_at_all,
    edges_get_what_is_stored,
    what_is_not_known_is_named,
    users_lead_nowhere_else_by_an_ended_page,
);

const TARGET: &str = "https://example.com/";
const OVER: &str = "https://example.com/over?id={shortId}";

fn all() -> Value {
    json!({"validFrom": 1_800_000_000_000_i64, "validUntil": 1_900_000_000_000_i64, "status": "paused", "endedUrl": OVER})
}

async fn product(api: &Api) -> Result<String> {
    let made = api.create("/products", json!({"name": "p"})).await?;
    Ok(made["id"].as_str().context("id")?.to_owned())
}

/// A body with the members of `more`.
fn body(product: Option<&str>, more: &Value) -> Value {
    let mut body = json!({"defaultRedirectUrl": TARGET});
    if let Some(product) = product {
        body["platformId"] = json!(product);
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

/// Makes a link; gives its path.
async fn make(api: &Api, product: &str, more: &Value) -> Result<String> {
    let answer = api.call(Method::POST, "/redirections", Some(json!([body(Some(product), more)]))).await?;
    let made = answer.json();
    let id = made[0]["shortId"].as_str().with_context(|| made.to_string())?;
    Ok(format!("/redirections/{id}"))
}

/// Its members of before its time window, pause and ended page.
fn said(document: &Value) -> Value {
    let names = ["validFrom", "validUntil", "status", "endedUrl"];
    let members = names.into_iter().filter_map(|name| Some((name.to_owned(), document.get(name)?.clone())));
    Value::Object(members.collect())
}

async fn members_come_back_and_stay_until_they_are_removed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    let path = make(&api, &product, &all()).await?;
    let found = api.get(&path).await?;
    ensure!(said(&found.json()) == all(), "{found:?}");
    let listed = api.get("/redirections").await?.json();
    ensure!(said(&listed[0]) == all(), "{listed}");
    let plain = make(&api, &product, &json!({"validFrom": null, "status": null, "endedUrl": null})).await?;
    ensure!(said(&api.get(&plain).await?.json()) == json!({"status": "active"}));
    // The first generation alike.
    let first = format!("/products/{product}/redirector");
    let answer = api.call(Method::PUT, &first, Some(body(None, &json!({"validUntil": 5})))).await?;
    ensure!(answer.json()["validUntil"] == 5, "{answer:?}");

    // A client that knows nothing of them changes the target, and nothing else.
    let put = async |more: Value| api.call(Method::PUT, &path, Some(body(None, &more))).await;
    let changed = put(json!({"defaultRedirectUrl": "https://example.com/2"})).await?;
    ensure!(said(&changed.json()) == all() && changed.header("x-ignored").is_none(), "{changed:?}");
    ensure!(changed.header("etag") != found.header("etag"), "{changed:?}");
    let mut left = all();
    for (change, member, value) in [
        (json!({"status": "active"}), "status", json!("active")),
        (json!({"status": null}), "status", json!("active")),
        (json!({"validFrom": 1_700_000_000_000_i64}), "validFrom", json!(1_700_000_000_000_i64)),
        (json!({"validFrom": null}), "validFrom", Value::Null),
        (json!({"endedUrl": null}), "endedUrl", Value::Null),
        (json!({"validUntil": null}), "validUntil", Value::Null),
    ] {
        if value.is_null() {
            left.as_object_mut().context("an object")?.remove(member);
        } else {
            left[member] = value;
        }
        ensure!(said(&put(change.clone()).await?.json()) == left, "{change}");
        ensure!(said(&api.get(&path).await?.json()) == left, "{change}");
    }
    // The trail says what it was and what it became.
    let trail = api.get("/audit?perPage=100").await?.json();
    let entries: Vec<&Value> = trail.as_array().context("entries")?.iter().collect();
    let created = entries.iter().find(|entry| said(&entry["after"]) == all());
    ensure!(created.is_some(), "{trail}");
    Ok(())
}

async fn every_bad_value_is_refused_and_changes_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    let path = make(&api, &product, &json!({"validFrom": 500, "validUntil": 900})).await?;
    let before = api.fingerprint().await?;
    for (more, fault) in [
        (json!({"validFrom": "2026-11-27T00:00:00Z"}), "validFrom must be an integer"),
        (json!({"validFrom": -1}), "validFrom must be an integer"),
        (json!({"validUntil": 1.5}), "validUntil must be an integer"),
        (json!({"validUntil": true}), "validUntil must be an integer"),
        (json!({"validFrom": 7, "validUntil": 7}), "validUntil must be after validFrom"),
        (json!({"validFrom": 7, "validUntil": 6}), "validUntil must be after validFrom"),
        (json!({"status": "ended"}), "status must be active or paused"),
        (json!({"status": 1}), "status must be active or paused"),
        (json!({"endedUrl": "javascript:alert(1)"}), "endedUrl must be an absolute"),
        (json!({"endedUrl": ["https://example.com/"]}), "endedUrl must be a string"),
        (json!({"endedUrl": format!("https://example.com/{}", "x".repeat(2_048))}), "endedUrl"),
        (json!({"endedUrl": "https://user:pass@example.com/"}), "endedUrl"),
    ] {
        let faults = api.call(Method::PUT, &path, Some(body(None, &more))).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].contains(fault), "{more}: {faults:?}");
        let answer = api.call(Method::POST, "/redirections", Some(body(Some(&product), &more))).await?;
        ensure!(answer.problem(400, 40001)[0].contains(fault), "{more}");
        let many =
            api.call(Method::POST, "/redirections", Some(json!([body(Some(&product), &more)]))).await?;
        let errors = many.json()[0]["errors"].to_string();
        ensure!(errors.contains(fault), "{more}: {errors}");
    }
    // An end that goes with nothing in the request may not go with what stays.
    for more in [json!({"validFrom": 900}), json!({"validUntil": 500}), json!({"validUntil": 0})] {
        let faults = api.call(Method::PUT, &path, Some(body(None, &more))).await?.problem(400, 40001);
        ensure!(faults[0].starts_with("validUntil must be after validFrom of "), "{more}: {faults:?}");
    }
    ensure!(api.fingerprint().await? == before);
    Ok(())
}

async fn an_ended_page_is_checked_as_a_target_is(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    let a = make(&api, &product, &json!({"shortId": "AAA"})).await?;
    make(&api, &product, &json!({"shortId": "BBB", "defaultRedirectUrl": "https://tn.gg/AAA"})).await?;
    let before = api.fingerprint().await?;
    let put = async |more: Value| api.call(Method::PUT, &a, Some(body(None, &more))).await;
    for (more, fault) in [
        (json!({"endedUrl": "http://127.0.0.1/"}), "endedUrl "),
        (json!({"endedUrl": "https://tn.gg/AAA"}), "endedUrl leads back to the short URL itself"),
        // By another link's target.
        (json!({"endedUrl": "https://tn.gg/{shortId}"}), "endedUrl leads back to the short URL itself"),
        (json!({"endedUrl": "https://tn.gg/BBB"}), "endedUrl leads back to the short URL itself"),
    ] {
        let faults = put(more.clone()).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].starts_with(fault), "{more}: {faults:?}");
    }
    ensure!(api.fingerprint().await? == before);
    let c = json!({"shortId": "CCC", "endedUrl": "https://tn.gg/AAA"});
    make(&api, &product, &c).await?;
    // Back by the ended page of the other one.
    let faults = put(json!({"defaultRedirectUrl": "https://tn.gg/CCC"})).await?.problem(400, 40001);
    ensure!(faults == ["defaultRedirectUrl leads back to the short URL itself."], "{faults:?}");
    let itself = body(Some(&product), &json!({"shortId": "DDD", "endedUrl": "https://tn.gg/ddd"}));
    let faults = api.call(Method::POST, "/redirections", Some(itself)).await?.problem(400, 40001);
    ensure!(faults == ["endedUrl leads back to the short URL itself."], "{faults:?}");
    Ok(())
}

async fn several_are_changed_together_or_not_at_all(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    make(&api, &product, &json!({"shortId": "AAA", "validFrom": 100})).await?;
    make(&api, &product, &json!({"shortId": "BBB", "validFrom": 300})).await?;
    let path = "/redirections?ids=AAA,BBB";
    let before = api.fingerprint().await?;
    let answer = api.call(Method::PUT, path, Some(body(None, &json!({"validUntil": 200})))).await?;
    ensure!(answer.problem(400, 40001) == ["validUntil must be after validFrom of BBB."]);
    ensure!(api.fingerprint().await? == before);
    let more = json!({"validUntil": 400, "endedUrl": OVER});
    ensure!(api.call(Method::PUT, path, Some(body(None, &more))).await?.status == 204);
    for (id, from) in [("AAA", 100), ("BBB", 300)] {
        let found = said(&api.get(&format!("/redirections/{id}")).await?.json());
        let expected = json!({"validFrom": from, "validUntil": 400, "status": "active", "endedUrl": OVER});
        ensure!(found == expected, "{found}");
    }
    Ok(())
}

/// What an edge is told: by the log, by a look-up, by a page of all links, and after a change of the product behind.
async fn edges_get_what_is_stored(engine: Engine) -> Result<()> {
    use redirects::store::{log, redirections};
    use shared::{redirect::RedirectKey, wire::stream::Change};

    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    make(&api, &thng, &all_with("shortId", "WITH")).await?;
    make(&api, &product, &json!({"shortId": "WITHOUT"})).await?;
    let renamed = json!({"name": "other"});
    ensure!(api.call(Method::PUT, &format!("/thngs/{thng}"), Some(renamed)).await?.status == 200);
    let mut conn = api.made.app.core.db.read().await?;
    let mut seen = Vec::new();
    let epoch = log::load_head(&mut conn).await?.epoch;
    for event in log::list_after(&mut conn, &epoch, 0, 100).await? {
        if let Change::Redirect(key, Some(value)) = event.change {
            let json = serde_json::to_value(&*value)?;
            seen.push((key.folded.to_string(), json.get("availability").cloned()));
        }
    }
    let window = json!({"validFrom": 1_800_000_000_000_i64, "validUntil": 1_900_000_000_000_i64, "isPaused": true,
        "endedUrl": OVER});
    let with = ("WITH".to_owned(), Some(window.clone()));
    // Created, and renamed; a link without it says no word of it.
    ensure!(seen == [with.clone(), ("WITHOUT".to_owned(), None), with], "{seen:?}");
    for (folded, expected) in [("WITH", Some(&window)), ("WITHOUT", None)] {
        let fill = redirections::load_fill(&mut conn, &RedirectKey::new("tn.gg", folded)).await?;
        let (_, found) = fill.value.context("a value")?;
        ensure!(serde_json::to_value(&*found)?.get("availability") == expected, "{found:?}");
        let page = redirections::list_of_domain(&mut conn, "tn.gg", "", 10).await?;
        let listed = page.iter().find(|(key, ..)| &*key.folded == folded).context("listed")?;
        ensure!(listed.2 == found, "{listed:?}");
    }
    Ok(())
}

fn all_with(name: &str, value: &str) -> Value {
    let mut all = all();
    all[name] = json!(value);
    all
}

async fn what_is_not_known_is_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    let path = make(&api, &product, &json!({})).await?;
    let more = json!({"expiresAt": 5, "maxScans": 1, "validUntil": 7});
    let answer = api.call(Method::PUT, &path, Some(body(None, &more))).await?;
    ensure!(answer.header("x-ignored") == Some("expiresAt, maxScans"), "{answer:?}");
    let made = api.call(Method::POST, "/redirections", Some(json!([body(Some(&product), &more)]))).await?;
    ensure!(made.header("x-ignored") == Some("[0].expiresAt, [0].maxScans"), "{made:?}");
    // Tasks make links that always lead to their target, and say so.
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].as_str().context("id")?.to_owned();
    let tasks = format!("/batches/{batch}/tasks");
    let more = json!({"generateRedirections": true, "defaultRedirectUrl": TARGET, "validUntil": 7, "status": "paused"});
    let answer = api.call(Method::POST, &tasks, Some(populate(1, &more))).await?;
    let ignored = answer.header("x-ignored").unwrap_or_default().to_owned();
    ensure!(ignored == "inputParameters.status, inputParameters.validUntil", "{answer:?}");
    finished(&api, &tasks, populate(1, &json!({"generateRedirections": true, "defaultRedirectUrl": TARGET})))
        .await?;
    Ok(())
}

async fn users_lead_nowhere_else_by_an_ended_page(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project =
        api.create("/projects", json!({"name": "p"})).await?["id"].as_str().context("id")?.to_owned();
    let applications = format!("/projects/{project}/applications");
    let app = json!({"name": "a", "redirectHosts": ["example.com"], "usersMayCreate": true});
    let app = api.create(&applications, app).await?;
    let key = app["appApiKey"].as_str().context("appApiKey")?;
    let user = api
        .call_as(key, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({"anonymous": true})))
        .await?
        .json();
    let user = user["evrythngApiKey"].as_str().with_context(|| user.to_string())?;
    let thng = api.call_as(user, Method::POST, "/thngs", Some(json!({"name": "t"}))).await?.json();
    let product = thng["id"].as_str().with_context(|| thng.to_string())?;
    let evil = json!({"endedUrl": "https://evil.example/"});
    let refused =
        api.call_as(user, Method::POST, "/redirections", Some(json!([body(Some(product), &evil)]))).await?;
    ensure!(refused.status == 403, "{refused:?}");
    ensure!(
        refused.json()["errors"].to_string().contains("endedUrl: the application's users may not"),
        "{refused:?}"
    );
    let fine = json!({"endedUrl": "https://example.com/over"});
    let made =
        api.call_as(user, Method::POST, "/redirections", Some(json!([body(Some(product), &fine)]))).await?;
    let id = made.json()[0]["shortId"].as_str().with_context(|| format!("{made:?}"))?.to_owned();
    let path = format!("/redirections/{id}");
    let refused = api.call_as(user, Method::PUT, &path, Some(body(None, &evil))).await?;
    ensure!(refused.status == 403, "{refused:?}");
    ensure!(api.get(&path).await?.json()["endedUrl"] == "https://example.com/over");
    Ok(())
}
