//! `POST /redirections/{shortId}/preview`: where a link would lead a scan, and why.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    json::{merged, text},
};

use super::{Api, Application, operators::machine, platform::ask};

crate::on_both_engines!(
    the_rule_that_decides_is_named_with_those_before_it,
    every_fact_is_shown_as_it_was_taken,
    a_closed_link_asks_no_rule,
    what_was_taken_down_leads_nowhere,
    every_fault_is_named,
    nothing_is_written,
    rules_are_shown_to_who_may_read_them,
);

const OWN: &str = "https://example.com/own";
const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
    (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";
/// Monday, 2026-09-21, 23:46:40 UTC.
const WHEN: i64 = 1_790_034_400_000;

/// Makes a Thng and a link to it with more members; gives the id of the Thng.
async fn make(api: &Api, short_id: &str, more: Value) -> Result<String> {
    let thng = text(&api.create("/thngs", json!({"name": "Left shoe"})).await?, "id")?;
    let body = merged(json!({"platformId": thng, "defaultRedirectUrl": OWN, "shortId": short_id}), &more);
    let made = api.post("/redirections", json!([body])).await?.json();
    ensure!(made[0]["shortId"] == short_id, "{made}");
    Ok(thng)
}

async fn put_rules(api: &Api, path: &str, rules: Value) -> Result<()> {
    api.put(path, json!({"rules": rules})).await?.must_be(200)?;
    Ok(())
}

async fn preview(api: &Api, short_id: &str, scan: Value) -> Result<Value> {
    Ok(api.post(&format!("/redirections/{short_id}/preview"), scan).await?.must_be(200)?.json())
}

async fn the_rule_that_decides_is_named_with_those_before_it(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let Application { id: application, project, path, .. } = api.application(json!({"name": "a"})).await?;
    let thng = make(&api, "SHOE", json!({"scopes": {"projects": [project]}, "forwardQuery": true})).await?;
    make(&api, "OTHER", json!({})).await?;
    let asked = preview(&api, "SHOE", json!({})).await?;
    ensure!(asked["status"] == 307 && asked["location"] == OWN, "{asked}");
    ensure!(asked["decidedBy"] == "defaultRedirectUrl" && asked["tried"] == json!([]), "{asked}");

    let of_application =
        json!([{"name": "Night", "match": "hour>=23", "redirectUrl": "https://example.com/night"}]);
    put_rules(&api, &format!("{path}/redirector"), of_application).await?;
    let rules = json!([
        {"name": "Germany", "match": "country=DE&language=de", "redirectUrl": "https://example.com/de/{shortId}?t={thngId}"},
        {"match": "country!=DE&operatingSystemName=iPhone"},
        {"match": "language=en", "redirectUrl": "https://example.com/en"},
    ]);
    put_rules(&api, "/redirector", rules).await?;
    let night = json!({"application": application, "index": 0, "name": "Night", "match": "hour>=23",
        "redirectUrl": "https://example.com/night", "because": ["hour>=23"]});
    let germany = |because: Value| {
        json!({"index": 0, "name": "Germany", "match": "country=DE&language=de",
            "redirectUrl": "https://example.com/de/{shortId}?t={thngId}", "because": because})
    };
    let phones = |because: Value| json!({"index": 1, "match": "country!=DE&operatingSystemName=iPhone", "because": because});
    let de = format!("https://example.com/de/SHOE?t={thng}");
    let noon = WHEN - 12 * 3_600_000;
    for (scan, location, rule, tried) in [
        (json!({"time": WHEN, "country": "DE"}), "https://example.com/night", night.clone(), json!([])),
        (
            json!({"time": noon, "country": "de", "acceptLanguage": "de-AT,en;q=0.5"}),
            &de,
            germany(json!(["country=DE", "language=de"])),
            json!([night]),
        ),
        (
            json!({"time": noon, "userAgent": PHONE, "query": "a=1&access_token=k"}),
            "https://example.com/own?a=1",
            phones(json!(["country!=DE", "operatingSystemName=iPhone"])),
            json!([night, germany(json!(["country=DE"]))]),
        ),
        (
            json!({"time": noon, "country": "DE", "acceptLanguage": "fr"}),
            OWN,
            Value::Null,
            json!([night, germany(json!(["language=de"])), phones(json!(["country!=DE"])),
                {"index": 2, "match": "language=en", "redirectUrl": "https://example.com/en", "because": ["language=en"]}]),
        ),
    ] {
        let asked = preview(&api, "SHOE", scan.clone()).await?;
        ensure!(asked["status"] == 307 && asked["location"] == location, "{scan}: {asked}");
        ensure!(asked["rule"] == rule && asked["tried"] == tried, "{scan}: {asked}");
        let by = if rule.is_null() { "defaultRedirectUrl" } else { "rule" };
        ensure!(asked["decidedBy"] == by && asked.get("code").is_none(), "{scan}: {asked}");
    }
    // The application's rules are for links of its project.
    let asked = preview(&api, "OTHER", json!({"time": WHEN})).await?;
    ensure!(
        asked["rule"].is_null() && asked["tried"].as_array().is_some_and(|all| all.len() == 3),
        "{asked}"
    );
    Ok(())
}

async fn every_fact_is_shown_as_it_was_taken(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = make(&api, "SHOE", json!({})).await?;
    let scan = json!({"country": "de", "city": "Köln", "time": WHEN, "userAgent": format!(" {PHONE} "),
        "acceptLanguage": "de-AT,en;q=0.5", "commissionState": "decommissioned",
        "assessment": {"authenticationStatus": "negative", "counterfeitStatus": "confirmed"},
        "region": "North Rhine-Westphalia", "address": "::ffff:192.0.2.7", "asNumber": 64512, "referer": " https://WWW.example.com/a ",
        "query": "ref=a&access_token=k&ref=b%20c", "percentage": 33.33});
    let facts = preview(&api, "SHOE", scan).await?["facts"].take();
    let expected = json!({"timestamp": WHEN, "hour": 23, "weekday": 1, "country": "DE", "city": "Köln", "language": "de-AT",
        "region": "North Rhine-Westphalia", "network": "192.0.2.7", "asNumber": 64512, "refererHost": "www.example.com", "percentage": 33.33,
        "query": {"ref": ["a", "b c"]}, "languages": ["de-AT", "en"], "device": "phone", "userAgentName": "Safari", "operatingSystemName": "iPhone", "thng": thng, "thng.name": "Left shoe", "project": [],
        "commissionState": "decommissioned", "assessment": "negative", "assessment.counterfeitStatus": "confirmed",
        "assessment.grayMarketStatus": "unknown", "type": "implicitScans", "shortDomain": "tn.gg", "shortId": "SHOE"});
    ensure!(facts == expected, "{facts}");
    let facts = preview(&api, "SHOE", json!({"time": WHEN})).await?["facts"].take();
    let expected = json!({"timestamp": WHEN, "hour": 23, "weekday": 1, "thng": thng, "thng.name": "Left shoe", "project": [],
        "commissionState": "not_commissioned", "type": "implicitScans", "shortDomain": "tn.gg", "shortId": "SHOE"});
    ensure!(facts == expected, "{facts}");
    Ok(())
}

async fn a_closed_link_asks_no_rule(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    put_rules(&api, "/redirector", json!([{"match": "hour>=0", "redirectUrl": "https://example.com/rule"}]))
        .await?;
    let over = "https://example.com/over?code={shortId}";
    make(&api, "WINDOW", json!({"validFrom": WHEN, "validUntil": WHEN + 2})).await?;
    make(&api, "PAGE", json!({"validUntil": WHEN, "endedUrl": over, "forwardQuery": true})).await?;
    make(&api, "PAUSED", json!({"status": "paused"})).await?;
    let page = "https://example.com/over?code=PAGE&a=1";
    for (short_id, time, status, code, location, by, closed) in [
        ("WINDOW", WHEN - 1, 404, Some(40404), None, "closed", Some("scheduled")),
        ("WINDOW", WHEN, 307, None, Some("https://example.com/rule"), "rule", None),
        ("WINDOW", WHEN + 1, 307, None, Some("https://example.com/rule"), "rule", None),
        ("WINDOW", WHEN + 2, 410, Some(41001), None, "closed", Some("ended")),
        ("PAGE", WHEN - 1, 307, None, Some("https://example.com/rule?a=1"), "rule", None),
        ("PAGE", WHEN, 307, None, Some(page), "endedUrl", Some("ended")),
        ("PAUSED", WHEN, 404, Some(40405), None, "closed", Some("paused")),
    ] {
        let asked = preview(&api, short_id, json!({"time": time, "query": "a=1"})).await?;
        let expected = [json!(status), json!(code), json!(location), json!(by), json!(closed)];
        let said = ["status", "code", "location", "decidedBy", "closed"].map(|name| asked[name].clone());
        ensure!(said == expected, "{short_id} at {time}: {asked}");
        ensure!(asked["tried"] == json!([]) && asked["rule"].is_object() == (by == "rule"), "{asked}");
    }
    Ok(())
}

async fn what_was_taken_down_leads_nowhere(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, "RULED", json!({})).await?;
    make(&api, "LINK", json!({"status": "paused"})).await?;
    put_rules(
        &api,
        "/redirector",
        json!([{"match": "country=DE", "redirectUrl": "https://a.evil.example/de"}]),
    )
    .await?;
    let why = json!({"reason": "phishing"});
    let platform = &api.platform_key;
    let down = "/platform/takedowns";
    ask(&api, platform, Method::PUT, &format!("{down}/hosts/evil.example"), Some(why.clone())).await?;
    ask(&api, platform, Method::PUT, &format!("{down}/links/tn.gg/LINK"), Some(why)).await?;
    let asked = preview(&api, "RULED", json!({"country": "DE"})).await?;
    ensure!(asked["status"] == 451 && asked["code"] == 45101 && asked.get("location").is_none(), "{asked}");
    ensure!(asked["decidedBy"] == "takeDown" && asked["rule"]["index"] == 0, "{asked}");
    ensure!(asked["takenDown"] == json!({"reason": "phishing", "host": "evil.example"}), "{asked}");
    let asked = preview(&api, "RULED", json!({"country": "FR"})).await?;
    ensure!(
        asked["status"] == 307 && asked["location"] == OWN && asked.get("takenDown").is_none(),
        "{asked}"
    );
    let asked = preview(&api, "LINK", json!({"country": "DE"})).await?;
    ensure!(asked["status"] == 451 && asked["takenDown"] == json!({"reason": "phishing"}), "{asked}");
    ensure!(asked.get("closed").is_none() && asked.get("rule").is_none(), "{asked}");
    Ok(())
}

async fn every_fault_is_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, "SHOE", json!({})).await?;
    let product = text(&api.create("/products", json!({"name": "p"})).await?, "id")?;
    let link = json!([{"platformId": product, "defaultRedirectUrl": OWN, "shortId": "BAG"}]);
    ensure!(api.post("/redirections", link).await?.status == 200);
    for (short_id, scan, expected) in [
        (
            "SHOE",
            json!({"contry": "DE", "time": -1, "acceptLanguage": "dé"}),
            &[
                "contry is not a member of this operation.",
                "acceptLanguage must be in printable ASCII.",
                "time must be an integer, in milliseconds since 1970.",
            ][..],
        ),
        (
            "BAG",
            json!({"commissionState": "commissioned", "assessment": {"authenticationStatus": "negative"}}),
            &[
                "commissionState is of Thngs, and this link leads to none.",
                "assessment is of Thngs, and this link leads to none.",
            ],
        ),
    ] {
        let uri = format!("/redirections/{short_id}/preview");
        let answer = api.post(&uri, scan.clone()).await?;
        ensure!(answer.problem(400, 40001) == expected, "{scan}: {answer:?}");
    }
    for short_id in ["NOBODY", "a.b"] {
        let uri = format!("/redirections/{short_id}/preview");
        api.post(&uri, json!({})).await?.problem(404, 40401);
    }
    let answer =
        api.call_as(&api.other_key, Method::POST, "/redirections/SHOE/preview", Some(json!({}))).await?;
    answer.problem(404, 40401);
    api.call(Method::POST, "/redirections/SHOE/preview", None).await?.problem(400, 40002);
    Ok(())
}

async fn nothing_is_written(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, "SHOE", json!({})).await?;
    put_rules(&api, "/redirector", json!([{"match": "country=DE", "redirectUrl": "https://example.com/de"}]))
        .await?;
    let before = api.fingerprint().await?;
    for country in ["DE", "FR"] {
        preview(&api, "SHOE", json!({"country": country, "userAgent": PHONE})).await?;
    }
    ensure!(api.fingerprint().await? == before);
    Ok(())
}

async fn rules_are_shown_to_who_may_read_them(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let Application { project, secret, .. } = api.application(json!({"name": "a"})).await?;
    make(&api, "SHOE", json!({"scopes": {"projects": [project]}})).await?;
    make(&api, "OTHER", json!({})).await?;
    let rules = json!([{"name": "a", "match": "country=FR"},
        {"name": "b", "match": "thng.name~Left", "redirectUrl": "https://example.com/left"}]);
    put_rules(&api, "/redirector", rules).await?;
    let post = async |short_id: &str| {
        let uri = format!("/redirections/{short_id}/preview");
        api.call_as(&secret, Method::POST, &uri, Some(json!({}))).await
    };
    let asked = post("SHOE").await?.json();
    ensure!(
        asked["location"] == "https://example.com/left" && asked["rule"] == json!({"index": 1}),
        "{asked}"
    );
    ensure!(asked["tried"] == json!([{"index": 0}]), "{asked}");
    // The Thng is of no project, and its state is nothing for applications.
    let facts = &asked["facts"];
    ensure!(facts["thng"].is_string(), "{asked}");
    ensure!(facts.get("thng.name").is_none() && facts.get("commissionState").is_none(), "{asked}");
    post("OTHER").await?.problem(404, 40401);
    // Whoever reads rules and not Things sees no condition on what it may not read.
    let policy = json!({"name": "rules", "permissions": ["redirections:read", "rules:read"]});
    let policy = text(&api.create("/accessPolicies", policy).await?, "id")?;
    let (_, key) = machine(&api, &policy, json!({})).await?;
    let uri = "/redirections/SHOE/preview";
    let asked = api.call_as(&key, Method::POST, uri, Some(json!({}))).await?.json();
    ensure!(asked["rule"]["name"] == "b" && asked["rule"]["because"] == json!([]), "{asked}");
    ensure!(asked["tried"][0]["because"] == json!(["country=FR"]), "{asked}");
    ensure!(asked["facts"].get("thng.name").is_none(), "{asked}");
    Ok(())
}
