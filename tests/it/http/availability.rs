//! Links with a time window, a pause and an ended page, through the API.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api,
    batches::{finished, populate},
    links::with_product,
};

crate::on_both_engines!(
    members_come_back_and_stay_until_they_are_removed,
    lists_are_filtered_by_them,
    links_that_are_changed_together_do_not_lead_to_each_other,
    a_list_of_links_follows_a_chain_of_ended_pages,
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
    json!({"validFrom": 1_800_000_000_000_i64, "validUntil": 1_900_000_000_000_i64, "maxScans": 5, "status": "paused",
        "endedUrl": OVER})
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
    let answer = api.post("/redirections", json!([body(Some(product), more)])).await?;
    let made = answer.json();
    let id = made[0]["shortId"].as_str().with_context(|| made.to_string())?;
    Ok(format!("/redirections/{id}"))
}

/// The members of a document that say when the link leads to its target.
fn said(document: &Value) -> Value {
    let names = ["validFrom", "validUntil", "maxScans", "status", "endedUrl"];
    let members = names.into_iter().filter_map(|name| Some((name.to_owned(), document.get(name)?.clone())));
    Value::Object(members.collect())
}

async fn members_come_back_and_stay_until_they_are_removed(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let path = make(&api, &product, &all()).await?;
    let found = api.get(&path).await?;
    ensure!(said(&found.json()) == all(), "{found:?}");
    let listed = api.get("/redirections").await?.json();
    ensure!(said(&listed[0]) == all(), "{listed}");
    let plain = make(&api, &product, &json!({"validFrom": null, "status": null, "endedUrl": null})).await?;
    ensure!(said(&api.get(&plain).await?.json()) == json!({"status": "active"}));
    // The first generation alike.
    let first = format!("/products/{product}/redirector");
    let answer = api.put(&first, body(None, &json!({"validUntil": 5}))).await?;
    ensure!(answer.json()["validUntil"] == 5, "{answer:?}");

    // A client that knows nothing of them changes the target, and nothing else.
    let put = async |more: Value| api.put(&path, body(None, &more)).await;
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
        (json!({"maxScans": 6}), "maxScans", json!(6)),
        (json!({"maxScans": null}), "maxScans", Value::Null),
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
    // The trail says what it was and what it became; the newest entry is first.
    let trail = api.get("/audit?filter=resource=redirection&perPage=100").await?.json();
    let entries = trail.as_array().context("entries")?;
    ensure!(entries[0]["before"] == json!({"validUntil": 1_900_000_000_000_i64}), "{trail}");
    ensure!(entries[0]["after"]["validUntil"].is_null(), "{trail}");
    let moved = json!({"validFrom": 1_700_000_000_000_i64});
    let moved: Vec<&Value> = entries.iter().filter(|entry| entry["after"] == moved).collect();
    ensure!(moved.len() == 1, "{trail}");
    ensure!(moved[0]["before"] == json!({"validFrom": 1_800_000_000_000_i64}), "{trail}");
    ensure!(
        entries.iter().any(|entry| entry["before"].is_null() && said(&entry["after"]) == all()),
        "{trail}"
    );
    Ok(())
}

async fn lists_are_filtered_by_them(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    for more in [
        json!({"shortId": "ALWAYS"}),
        json!({"shortId": "PAUSED", "status": "paused"}),
        json!({"shortId": "WINDOW", "validFrom": 100, "validUntil": 200, "maxScans": 9}),
        json!({"shortId": "LATER", "validUntil": 1_900_000_000_000_i64, "status": "paused"}),
    ] {
        make(&api, &product, &more).await?;
    }
    for (filter, expected) in [
        ("status%3Dpaused", &["LATER", "PAUSED"][..]),
        ("status%3Dactive", &["ALWAYS", "WINDOW"]),
        ("status~pa", &["LATER", "PAUSED"]),
        ("validUntil%3C201", &["WINDOW"]),
        ("validUntil%3E%3D200", &["LATER", "WINDOW"]),
        ("validUntil%3D1900000000000", &["LATER"]),
        ("validFrom%3E99", &["WINDOW"]),
        ("validFrom%3E100", &[]),
        ("status%3Dpaused%26validUntil%3E0", &["LATER"]),
        ("maxScans%3C10", &["WINDOW"]),
        ("maxScans%3D90", &[]),
    ] {
        let listed = api.get(&format!("/redirections?filter={filter}")).await?.json();
        let items = listed.as_array().with_context(|| listed.to_string())?;
        let mut ids: Vec<&str> = items.iter().filter_map(|item| item["shortId"].as_str()).collect();
        ids.sort_unstable();
        ensure!(ids == expected, "{filter}: {ids:?}");
    }
    api.get("/redirections?filter=validUntil%3Dnever").await?.problem(400, 40003);
    Ok(())
}

/// Each leads to the other after the change, and to neither before it.
async fn links_that_are_changed_together_do_not_lead_to_each_other(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let made = api.create("/thngs", json!({"name": name})).await?;
        ids.push(made["id"].as_str().context("id")?.to_owned());
    }
    for (thng, short_id) in [(&ids[0], &ids[1]), (&ids[1], &ids[0])] {
        make(&api, thng, &json!({"shortId": short_id})).await?;
    }
    let before = api.fingerprint().await?;
    let path = format!("/redirections?ids={},{}", ids[0], ids[1]);
    for (member, other) in [("defaultRedirectUrl", "endedUrl"), ("endedUrl", "defaultRedirectUrl")] {
        let more = json!({member: "https://tn.gg/{thngId}", other: TARGET});
        let answer = api.put(&path, body(None, &more)).await?;
        let fault = format!("{member} leads back to the short URL itself.");
        ensure!(answer.problem(400, 40001) == [fault.as_str()], "{answer:?}");
    }
    ensure!(api.fingerprint().await? == before);
    // One alone may.
    let more = json!({"endedUrl": "https://tn.gg/{thngId}"});
    let one = format!("/redirections/{}", ids[0]);
    ensure!(api.put(&one, body(None, &more)).await?.status == 200);
    Ok(())
}

async fn a_list_of_links_follows_a_chain_of_ended_pages(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    // Each leads to two others: the deepest of a tree to none.
    for at in (1..8_u32).rev() {
        let to = |at: u32| if at < 8 { format!("https://tn.gg/N{at}") } else { TARGET.to_owned() };
        let more = json!({"shortId": format!("N{at}"), "defaultRedirectUrl": to(2 * at), "endedUrl": to(2 * at + 1)});
        make(&api, &product, &more).await?;
    }
    let ids: Vec<String> = (0..30).map(|at| format!("C{at}")).collect();
    for id in &ids {
        make(&api, &product, &json!({"shortId": id})).await?;
    }
    let path = format!("/redirections?ids={}", ids.join(","));
    let more = json!({"defaultRedirectUrl": "https://tn.gg/N1", "endedUrl": "https://tn.gg/N2"});
    api.put(&path, body(None, &more)).await?.must_be(204)?;
    let answer = api.put("/redirections/N7", body(None, &json!({"endedUrl": "https://tn.gg/C29"}))).await?;
    ensure!(answer.problem(400, 40001) == ["endedUrl leads back to the short URL itself."], "{answer:?}");
    Ok(())
}

async fn every_bad_value_is_refused_and_changes_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let path = make(&api, &product, &json!({"validFrom": 500, "validUntil": 900})).await?;
    let before = api.fingerprint().await?;
    for (more, fault) in [
        (json!({"validFrom": "2026-11-27T00:00:00Z"}), "validFrom must be an integer"),
        (json!({"validFrom": -1}), "validFrom must be an integer"),
        (json!({"validUntil": 1.5}), "validUntil must be an integer"),
        (json!({"validUntil": true}), "validUntil must be an integer"),
        (json!({"validFrom": 7, "validUntil": 7}), "validUntil must be after validFrom"),
        (json!({"validFrom": 7, "validUntil": 6}), "validUntil must be after validFrom"),
        (json!({"maxScans": 0}), "maxScans must be an integer from 1 to 1,000,000,000"),
        (json!({"maxScans": "many"}), "maxScans must be an integer from 1"),
        (json!({"status": "ended"}), "status must be active or paused"),
        (json!({"status": 1}), "status must be active or paused"),
        (json!({"endedUrl": "javascript:alert(1)"}), "endedUrl must be an absolute"),
        (json!({"endedUrl": ["https://example.com/"]}), "endedUrl must be a string"),
        (json!({"endedUrl": format!("https://example.com/{}", "x".repeat(2_048))}), "endedUrl"),
        (json!({"endedUrl": "https://user:pass@example.com/"}), "endedUrl"),
    ] {
        let faults = api.put(&path, body(None, &more)).await?.problem(400, 40001);
        ensure!(faults.len() == 1 && faults[0].contains(fault), "{more}: {faults:?}");
        let answer = api.post("/redirections", body(Some(&product), &more)).await?;
        ensure!(answer.problem(400, 40001)[0].contains(fault), "{more}");
        let many = api.post("/redirections", json!([body(Some(&product), &more)])).await?;
        let errors = many.json()[0]["errors"].to_string();
        ensure!(errors.contains(fault), "{more}: {errors}");
    }
    // One bound alone is compared with the stored other one.
    for more in [json!({"validFrom": 900}), json!({"validUntil": 500}), json!({"validUntil": 0})] {
        let faults = api.put(&path, body(None, &more)).await?.problem(400, 40001);
        ensure!(faults[0].starts_with("validUntil must be after validFrom of "), "{more}: {faults:?}");
    }
    ensure!(api.fingerprint().await? == before);
    Ok(())
}

async fn an_ended_page_is_checked_as_a_target_is(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let a = make(&api, &product, &json!({"shortId": "AAA"})).await?;
    make(&api, &product, &json!({"shortId": "BBB", "defaultRedirectUrl": "https://tn.gg/AAA"})).await?;
    let before = api.fingerprint().await?;
    let put = async |more: Value| api.put(&a, body(None, &more)).await;
    for (more, fault) in [
        (json!({"endedUrl": "http://127.0.0.1/"}), "endedUrl "),
        (json!({"endedUrl": "https://tn.gg/AAA"}), "endedUrl leads back to the short URL itself"),
        // Its own short URL by a tag, and by the target of another link.
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
    let faults = api.post("/redirections", itself).await?.problem(400, 40001);
    ensure!(faults == ["endedUrl leads back to the short URL itself."], "{faults:?}");
    Ok(())
}

async fn several_are_changed_together_or_not_at_all(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    make(&api, &product, &json!({"shortId": "AAA", "validFrom": 100})).await?;
    make(&api, &product, &json!({"shortId": "BBB", "validFrom": 300})).await?;
    let path = "/redirections?ids=AAA,BBB";
    let before = api.fingerprint().await?;
    let answer = api.put(path, body(None, &json!({"validUntil": 200}))).await?;
    ensure!(answer.problem(400, 40001) == ["validUntil must be after validFrom of BBB."]);
    ensure!(api.fingerprint().await? == before);
    let more = json!({"validUntil": 400, "endedUrl": OVER});
    ensure!(api.put(path, body(None, &more)).await?.status == 204);
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

    let (api, product) = with_product(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    make(&api, &thng, &all_with("shortId", "WITH")).await?;
    make(&api, &product, &json!({"shortId": "WITHOUT"})).await?;
    let renamed = json!({"name": "other"});
    ensure!(api.put(&format!("/thngs/{thng}"), renamed).await?.status == 200);
    let mut conn = api.made.app.core.db.read().await?;
    let mut seen = Vec::new();
    let epoch = log::load_head(&mut conn).await?.epoch;
    for event in log::list_after(&mut conn, &epoch, 0, 100).await? {
        if let Change::Redirect(key, Some(value)) = event.change {
            let json = serde_json::to_value(&*value)?;
            seen.push((key.folded.to_string(), json.get("availability").cloned()));
        }
    }
    let window = json!({"validFrom": 1_800_000_000_000_i64, "validUntil": 1_900_000_000_000_i64, "maxScans": 5,
        "isPaused": true, "endedUrl": OVER});
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
    let (api, product) = with_product(engine).await?;
    let path = make(&api, &product, &json!({})).await?;
    let more = json!({"expiresAt": 5, "validUntil": 7});
    let answer = api.put(&path, body(None, &more)).await?;
    ensure!(answer.header("x-ignored") == Some("expiresAt"), "{answer:?}");
    let made = api.post("/redirections", json!([body(Some(&product), &more)])).await?;
    ensure!(made.header("x-ignored") == Some("[0].expiresAt"), "{made:?}");
    // Tasks make links that always lead to their target, and say so.
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].as_str().context("id")?.to_owned();
    let tasks = format!("/batches/{batch}/tasks");
    let more = json!({"generateRedirections": true, "defaultRedirectUrl": TARGET, "validUntil": 7, "status": "paused"});
    let answer = api.post(&tasks, populate(1, &more)).await?;
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
    let refused = api
        .call_as(user, Method::POST, "/redirections", Some(json!([body(Some(product), &evil)])))
        .await?
        .must_be(403)?;
    ensure!(
        refused.json()["errors"].to_string().contains("endedUrl: the application's users may not"),
        "{refused:?}"
    );
    let fine = json!({"endedUrl": "https://example.com/over"});
    let made =
        api.call_as(user, Method::POST, "/redirections", Some(json!([body(Some(product), &fine)]))).await?;
    let id = made.json()[0]["shortId"].as_str().with_context(|| format!("{made:?}"))?.to_owned();
    let path = format!("/redirections/{id}");
    api.call_as(user, Method::PUT, &path, Some(body(None, &evil))).await?.must_be(403)?;
    ensure!(api.get(&path).await?.json()["endedUrl"] == "https://example.com/over");
    Ok(())
}
