//! The status code of links, through the API.

use anyhow::{Context, Result, ensure};
use redirects::store::{log, redirections};
use serde_json::{Value, json};
use shared::{redirect::RedirectKey, wire::stream::Change};
use tests::{db::Engine, json::merged};

use super::Api;

crate::on_both_engines!(
    a_status_code_comes_back_and_stays_until_it_is_removed,
    lists_are_filtered_by_the_status_code,
    every_other_code_is_refused_and_changes_nothing,
    edges_get_the_status_code_that_is_stored,
);

const TARGET: &str = "https://example.com/";

fn body(more: &Value) -> Value {
    merged(json!({"defaultRedirectUrl": TARGET}), more)
}

async fn resource(api: &Api, kind: &str) -> Result<String> {
    let made = api.create(kind, json!({"name": "x"})).await?;
    Ok(made["id"].as_str().context("id")?.to_owned())
}

/// Makes a link of a resource; gives its path.
async fn make(api: &Api, resource: &str, more: &Value) -> Result<String> {
    let mut link = body(more);
    link["platformId"] = json!(resource);
    let made = api.post("/redirections", json!([link])).await?.json();
    let id = made[0]["shortId"].as_str().with_context(|| made.to_string())?;
    Ok(format!("/redirections/{id}"))
}

async fn a_status_code_comes_back_and_stays_until_it_is_removed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = resource(&api, "/products").await?;
    for (more, code) in [
        (json!({}), 307),
        (json!({"statusCode": null}), 307),
        (json!({"statusCode": 307}), 307),
        (json!({"statusCode": 302}), 302),
        (json!({"statusCode": 308}), 308),
    ] {
        let path = make(&api, &product, &more).await?;
        ensure!(api.get(&path).await?.json()["statusCode"] == code, "{more}");
        ensure!(api.get("/redirections").await?.json()[0]["statusCode"] == code, "{more}");
    }
    let path = make(&api, &product, &json!({"statusCode": 301, "shortId": "MOVED", "validUntil": 5})).await?;
    let put = async |more: Value| api.put(&path, body(&more)).await;
    let mut tag = api.get(&path).await?.header("etag").context("a tag")?.to_owned();
    for (more, code) in [
        // A client that knows nothing of it changes the target, and nothing else.
        (json!({"defaultRedirectUrl": "https://example.com/2"}), 301),
        (json!({"statusCode": 302}), 302),
        (json!({"statusCode": null}), 307),
        (json!({"statusCode": 308, "validUntil": null}), 308),
        (json!({"statusCode": 307}), 307),
    ] {
        let changed = put(more.clone()).await?;
        ensure!(changed.status == 200 && changed.header("x-ignored").is_none(), "{more}: {changed:?}");
        ensure!(changed.json()["statusCode"] == code, "{more}: {changed:?}");
        let found = api.get(&path).await?;
        ensure!(found.json()["statusCode"] == code, "{more}: {found:?}");
        let next = found.header("etag").context("a tag")?.to_owned();
        ensure!(next != tag, "{more}");
        tag = next;
    }
    // Several at once, and the first generation.
    let both = "/redirections?ids=MOVED,OTHER";
    make(&api, &product, &json!({"shortId": "OTHER"})).await?;
    ensure!(api.put(both, body(&json!({"statusCode": 301}))).await?.status == 204);
    for id in ["MOVED", "OTHER"] {
        ensure!(api.get(&format!("/redirections/{id}")).await?.json()["statusCode"] == 301, "{id}");
    }
    let first = format!("/products/{product}/redirector");
    let answer = api.put(&first, body(&json!({"statusCode": 302}))).await?;
    ensure!(answer.json()["statusCode"] == 302, "{answer:?}");
    // The trail says what it was and what it became.
    put(json!({"statusCode": 308})).await?;
    let trail = api.get("/audit?filter=resource=redirection&perPage=100").await?.json();
    ensure!(trail[0]["before"]["statusCode"] == 301, "{trail}");
    ensure!(trail[0]["after"]["statusCode"] == 308, "{trail}");
    Ok(())
}

async fn lists_are_filtered_by_the_status_code(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = resource(&api, "/products").await?;
    for (id, more) in [
        ("NONE", json!({})),
        ("DEFAULT", json!({"statusCode": 307})),
        ("MOVED", json!({"statusCode": 301})),
        ("FOUND", json!({"statusCode": 302, "status": "paused"})),
        ("FINAL", json!({"statusCode": 308})),
    ] {
        let mut more = more;
        more["shortId"] = json!(id);
        make(&api, &product, &more).await?;
    }
    for (filter, expected) in [
        ("statusCode%3D307", &["DEFAULT", "NONE"][..]),
        ("statusCode%3D301", &["MOVED"]),
        ("statusCode%3D301%7C308", &["FINAL", "MOVED"]),
        ("!statusCode%3D307", &["FINAL", "FOUND", "MOVED"]),
        ("statusCode%3D302%26status%3Dpaused", &["FOUND"]),
        ("statusCode%3D302%26status%3Dactive", &[]),
    ] {
        let listed = api.get(&format!("/redirections?filter={filter}")).await?.json();
        let items = listed.as_array().with_context(|| listed.to_string())?;
        let mut ids: Vec<&str> = items.iter().filter_map(|item| item["shortId"].as_str()).collect();
        ids.sort_unstable();
        ensure!(ids == expected, "{filter}: {ids:?}");
    }
    for (filter, fault) in [
        ("statusCode%3D303", "filter: statusCode must be 301, 302, 307 or 308."),
        ("statusCode%3D301%7Cmoved", "filter: statusCode must be 301, 302, 307 or 308."),
        ("!statusCode%3D0307", "filter: statusCode must be 301, 302, 307 or 308."),
        ("statusCode%3E301", "filter: statusCode compares by = only."),
    ] {
        let faults = api.get(&format!("/redirections?filter={filter}")).await?.problem(400, 40003);
        ensure!(faults == [fault], "{filter}: {faults:?}");
    }
    Ok(())
}

async fn every_other_code_is_refused_and_changes_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = resource(&api, "/products").await?;
    let path = make(&api, &product, &json!({"statusCode": 301})).await?;
    let before = api.fingerprint().await?;
    for code in [
        json!(300),
        json!(303),
        json!(200),
        json!(-301),
        json!(301.5),
        json!("301"),
        json!(true),
        json!([301]),
        json!(65_837),
    ] {
        let more = json!({"statusCode": code});
        let fault = "statusCode must be 301, 302, 307 or 308.";
        let faults = api.put(&path, body(&more)).await?.problem(400, 40001);
        ensure!(faults == [fault], "{more}: {faults:?}");
        let mut link = body(&more);
        link["platformId"] = json!(product);
        let faults = api.post("/redirections", link.clone()).await?.problem(400, 40001);
        ensure!(faults == [fault], "{more}: {faults:?}");
        let many = api.post("/redirections", json!([link])).await?.json();
        ensure!(many[0]["errors"] == json!([fault]), "{more}: {many}");
    }
    ensure!(api.fingerprint().await? == before);
    Ok(())
}

/// By the log, by a look-up, by a page of all links, and after a change of the Thng behind. The default is in none of them.
async fn edges_get_the_status_code_that_is_stored(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = resource(&api, "/thngs").await?;
    make(&api, &thng, &json!({"shortId": "WITH", "statusCode": 308})).await?;
    make(&api, &thng, &json!({"shortId": "WITHOUT", "statusCode": 307})).await?;
    let renamed = json!({"name": "other"});
    ensure!(api.put(&format!("/thngs/{thng}"), renamed).await?.status == 200);
    let mut conn = api.made.app.core.db.read().await?;
    let epoch = log::load_head(&mut conn).await?.epoch;
    let mut seen = Vec::new();
    for event in log::list_after(&mut conn, &epoch, 0, 100).await? {
        if let Change::Redirect(key, Some(value)) = event.change {
            let json = serde_json::to_value(&*value)?;
            seen.push((key.folded.to_string(), json.get("statusCode").cloned()));
        }
    }
    seen[2..].sort_by_key(|(folded, _)| folded.len());
    let (with, without) = (("WITH".to_owned(), Some(json!(308))), ("WITHOUT".to_owned(), None));
    ensure!(seen == [with.clone(), without.clone(), with, without], "{seen:?}");
    for (folded, expected) in [("WITH", Some(json!(308))), ("WITHOUT", None)] {
        let fill = redirections::load_fill(&mut conn, &RedirectKey::new("tn.gg", folded)).await?;
        let (_, found) = fill.value.context("a value")?;
        ensure!(serde_json::to_value(&*found)?.get("statusCode").cloned() == expected, "{found:?}");
        let page = redirections::list_of_domain(&mut conn, "tn.gg", "", 10).await?;
        let listed = page.iter().find(|(key, ..)| &*key.folded == folded).context("listed")?;
        ensure!(listed.2 == found, "{listed:?}");
    }
    Ok(())
}
