//! Redirect rules over the real product: written, live at the acknowledgement, recorded in the scan's action.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{Options, PHONE, Product},
    wait::read_until,
};

const OWN: &str = "https://example.com/own";

async fn put(product: &Product, path: &str, rules: Value) -> Result<Value> {
    let path = format!("{path}?wait=edges&timeout=20s");
    let (status, body) = product.call(Method::PUT, &path, Some(json!({"rules": rules}))).await?;
    ensure!(status == StatusCode::OK && body["rules"] == rules, "{status}: {body}");
    ensure!(body["acked"] == body["members"] && body["members"] == 1, "{body}");
    Ok(body)
}

async fn create(product: &Product, path: &str, body: Value) -> Result<String> {
    let body = product.must_answer(201, Method::POST, path, Some(body)).await?;
    Ok(body["id"].as_str().context("id")?.to_owned())
}

/// Where a phone that speaks a language is led.
async fn led(product: &Product, method: Method, short_id: &str, language: &str) -> Result<String> {
    let response = product
        .http
        .request(method, format!("{}/{short_id}", product.edge))
        .header(header::USER_AGENT, PHONE)
        .header(header::ACCEPT_LANGUAGE, language)
        .send()
        .await?;
    ensure!(response.status() == StatusCode::TEMPORARY_REDIRECT, "{}", response.status());
    Ok(response.headers().get(header::LOCATION).context("location")?.to_str()?.to_owned())
}

async fn assert_led(product: &Product, short_id: &str, language: &str, expected: &str) -> Result<()> {
    for method in [Method::HEAD, Method::GET] {
        let location = led(product, method, short_id, language).await?;
        ensure!(location == expected, "{short_id} in {language}: {location}, not {expected}");
    }
    Ok(())
}

/// Waits for what follows a change without an acknowledgement of its own.
async fn eventually_led(product: &Product, short_id: &str, expected: &str) -> Result<()> {
    let read = async || led(product, Method::HEAD, short_id, "en").await;
    read_until(read, |location| location == expected).await?;
    Ok(())
}

/// Waits for the scans of a Thng; gives the reactions of each, oldest first.
async fn reactions(product: &Product, thng: &str, count: usize) -> Result<Vec<Value>> {
    let path = format!("/thngs/{thng}/actions/implicitScans?perPage=100&sortOrder=ASCENDING");
    let all = read_until(async || product.list(&path).await, |all| all.len() >= count).await?;
    Ok(all.into_iter().map(|mut action| action["reactions"].take()).collect())
}

async fn rules_choose_the_target(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let (status, body) = product.call(Method::GET, "/redirector", None).await?;
    ensure!((status, &body) == (StatusCode::OK, &json!({"rules": []})), "{status}: {body}");
    let thng = create(&product, "/thngs", json!({"name": "Left shoe"})).await?;
    product.create_redirection(&thng, OWN, Some("SHOE")).await?;
    assert_led(&product, "SHOE", "de", OWN).await?;

    let rules = json!([
        {"name": "Germany", "match": "country=DE", "redirectUrl": "https://example.com/never"},
        {"name": "Deutsch", "match": "language=de&operatingSystemName=iPhone",
            "redirectUrl": "https://example.com/de/{shortId}?t={thngId}"},
        {"match": "language=fr"},
        {"match": "thng.name=Left shoe", "redirectUrl": "https://example.com/shoe"},
    ]);
    put(&product, "/redirector", rules.clone()).await?;
    assert_led(&product, "SHOE", "de-AT,en", &format!("https://example.com/de/SHOE?t={thng}")).await?;
    assert_led(&product, "SHOE", "fr", OWN).await?;
    assert_led(&product, "SHOE", "en", "https://example.com/shoe").await?;
    let (_, body) = product.call(Method::GET, "/v2/redirector", None).await?;
    ensure!(body["rules"] == rules, "{body}");

    let told = reactions(&product, &thng, 4).await?;
    let reaction =
        |rule: Value, url: &str| json!([{"type": "redirection", "rule": rule, "redirectUrl": url}]);
    let de = format!("https://example.com/de/SHOE?t={thng}");
    let expected = [
        json!([]),
        reaction(json!({"index": 1, "name": "Deutsch"}), &de),
        reaction(json!({"index": 2}), OWN),
        reaction(json!({"index": 3}), "https://example.com/shoe"),
    ];
    // Scans that two threads of an edge recorded within some milliseconds may change places.
    ensure!(told.len() == expected.len(), "{told:?}");
    for one in &expected {
        ensure!(told.contains(one), "{one} is not in {told:?}");
    }

    // The name travels with the redirection, and follows the Thng.
    let path = format!("/thngs/{thng}");
    product.must_answer(200, Method::PUT, &path, Some(json!({"name": "Right shoe"}))).await?;
    eventually_led(&product, "SHOE", OWN).await?;
    let (status, body) = product.call(Method::PUT, &path, Some(json!({"name": "Left shoe"}))).await?;
    ensure!(status == StatusCode::OK, "{status}: {body}");
    eventually_led(&product, "SHOE", "https://example.com/shoe").await?;

    // What is refused changes nothing.
    let edge = product.edge.clone();
    for (rules, fault) in [
        (json!([{"match": "hour=1"}, {"match": "colour=red"}]), "rules[1].match: there is no field colour"),
        (json!([{"match": "hour=1", "redirectUrl": "javascript:alert(1)"}]), "rules[0].redirectUrl must be"),
        (
            json!([{"match": "hour=1", "redirectUrl": format!("{edge}/{{shortId}}")}]),
            "must not lead to a short",
        ),
    ] {
        let body =
            product.must_answer(400, Method::PUT, "/redirector", Some(json!({"rules": rules}))).await?;
        ensure!(body["errors"][0].as_str().is_some_and(|text| text.contains(fault)), "{body}");
    }
    assert_led(&product, "SHOE", "en", "https://example.com/shoe").await?;

    let (status, body) = product.call(Method::DELETE, "/redirector?wait=edges&timeout=20s", None).await?;
    ensure!(status == StatusCode::OK && body["acked"] == 1, "{status}: {body}");
    assert_led(&product, "SHOE", "de", OWN).await?;
    let (status, body) = product.call(Method::DELETE, "/redirector", None).await?;
    ensure!((status, &body) == (StatusCode::NO_CONTENT, &Value::Null), "{status}: {body}");
    Ok(())
}

async fn rules_of_applications_apply_in_their_project(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let project = create(&product, "/projects", json!({"name": "p"})).await?;
    let applications = format!("/projects/{project}/applications");
    let application = create(&product, &applications, json!({"name": "a"})).await?;
    let path = format!("{applications}/{application}/redirector");
    let (status, body) = product.call(Method::GET, &path, None).await?;
    ensure!((status, &body) == (StatusCode::OK, &json!({"rules": []})), "{status}: {body}");

    let item = product.create_product().await?;
    let scoped = json!({"platformId": item, "defaultRedirectUrl": OWN, "shortId": "MINE",
        "scopes": {"users": [], "projects": [project]}});
    let (status, body) = product.call(Method::POST, "/redirections?wait=edges", Some(scoped)).await?;
    ensure!(status == StatusCode::CREATED, "{status}: {body}");
    product.create_redirection(&item, OWN, Some("OTHER")).await?;

    let to = |url: &str| json!([{"match": "hour>=0", "redirectUrl": url}]);
    put(&product, "/redirector", to("https://example.com/account")).await?;
    put(&product, &path, to("https://example.com/application")).await?;
    assert_led(&product, "MINE", "en", "https://example.com/application").await?;
    assert_led(&product, "OTHER", "en", "https://example.com/account").await?;

    // They hold after a restart, when the edge begins with nothing.
    product.stop()?;
    product.start_again()?;
    assert_led(&product, "MINE", "en", "https://example.com/application").await?;
    assert_led(&product, "OTHER", "en", "https://example.com/account").await?;

    let nobody = "UMe8gsKVBfgRtKRaagBefgwk";
    for absent in [
        format!("{applications}/{nobody}/redirector"),
        format!("/projects/{nobody}/applications/{application}/redirector"),
    ] {
        for (method, body) in
            [(Method::GET, None), (Method::PUT, Some(json!({"rules": []}))), (Method::DELETE, None)]
        {
            let (status, body) = product.call(method.clone(), &absent, body).await?;
            ensure!(status == StatusCode::NOT_FOUND, "{method} {absent}: {status}: {body}");
        }
    }
    product.must_answer(200, Method::DELETE, &format!("{applications}/{application}"), None).await?;
    eventually_led(&product, "MINE", "https://example.com/account").await
}

/// Rules and targets change in turn: after the acknowledgement of either, nobody is led by an old one.
async fn no_acknowledged_change_is_followed_by_an_old_answer(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let id = product.create_product().await?;
    product.create_redirection(&id, OWN, Some("MOVES")).await?;
    let (mut own, mut rule) = (OWN.to_owned(), None);
    for counter in 0..200 {
        let url = format!("https://example.com/{counter}");
        match counter % 4 {
            0 | 1 => {
                put(&product, "/redirector", json!([{"match": "hour>=0", "redirectUrl": url}])).await?;
                rule = Some(url);
            }
            2 => {
                let body = Some(json!({"defaultRedirectUrl": url}));
                let path = "/redirections/MOVES?wait=edges&timeout=20s";
                product.must_answer(200, Method::PUT, path, body).await?;
                own = url;
            }
            _ => {
                put(&product, "/redirector", json!([])).await?;
                rule = None;
            }
        }
        assert_led(&product, "MOVES", "en", rule.as_ref().unwrap_or(&own)).await?;
    }
    Ok(())
}

/// The commissioning state reaches the edge, and a rule can test it.
async fn rules_can_test_the_commissioning_state(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let bag = product.create_product().await?;
    let thng = create(&product, "/thngs", json!({"name": "Bag"})).await?;
    create(&product, "/actions/encodings", json!({"thng": thng})).await?;
    product.create_redirection(&thng, OWN, Some("BAG")).await?;
    product.create_redirection(&bag, OWN, Some("BAGS")).await?;
    let to = |state: &str| {
        let url = format!("https://example.com/{state}");
        json!({"match": format!("commissionState={state}"), "redirectUrl": url})
    };
    let rules = json!([to("not_commissioned"), to("commissioned"), to("decommissioned")]);
    put(&product, "/redirector", rules).await?;
    eventually_led(&product, "BAG", "https://example.com/not_commissioned").await?;
    let step = json!({"product": bag, "occurredAt": "2026-11-22T08:15:30+01:00",
        "location": {"position": {"type": "Point", "coordinates": [8.5, 47.5]}}});
    for (kind, state) in [("commissions", "commissioned"), ("decommissions", "decommissioned")] {
        let path = format!("/thngs/{thng}/actions/{kind}");
        let (status, body) = product.call(Method::POST, &path, Some(step.clone())).await?;
        ensure!(status.is_success(), "{status}: {body}");
        eventually_led(&product, "BAG", &format!("https://example.com/{state}")).await?;
    }
    // A product has no such state.
    assert_led(&product, "BAGS", "en", OWN).await
}

/// What the last assessment said reaches the edge: a suspected copy may lead to a warning, and back.
async fn rules_can_test_the_last_assessment(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let bag = product.create_product().await?;
    let thng = create(&product, "/thngs", json!({"name": "Bag"})).await?;
    create(&product, "/actions/encodings", json!({"thng": thng})).await?;
    product.create_redirection(&thng, OWN, Some("BAG")).await?;
    let to =
        |rule: &str, page: &str| json!({"match": rule, "redirectUrl": format!("https://example.com/{page}")});
    let rules = json!([
        to("commissionState=commissioned&assessment.counterfeitStatus=confirmed", "copied"),
        to("assessment=negative", "negative"),
        to("commissionState=commissioned&assessment=unknown", "unknown"),
    ]);
    put(&product, "/redirector", rules).await?;
    assert_led(&product, "BAG", "en", OWN).await?;
    let point = json!({"type": "Point", "coordinates": [8.5, 47.5]});
    let assess = async |seen: &str| -> Result<()> {
        let trigger = json!({"id": thng, "type": "inspectorScans", "thng": thng, "locationSource": "sensor",
            "location": {"latitude": 47.5, "longitude": 8.5, "position": point},
            "customFields": {"inspectedProductMatch": seen}});
        product.must_answer(200, Method::POST, "/authentication", Some(trigger)).await?;
        Ok(())
    };
    // Never commissioned: negative, and no more than suspected.
    assess("yes").await?;
    eventually_led(&product, "BAG", "https://example.com/negative").await?;
    let step =
        json!({"product": bag, "occurredAt": "2020-01-01T08:15:30+01:00", "location": {"position": point}});
    let commission = format!("/thngs/{thng}/actions/commissions");
    let (status, body) = product.call(Method::POST, &commission, Some(step)).await?;
    ensure!(status.is_success(), "{status}: {body}");
    assess("no").await?;
    eventually_led(&product, "BAG", "https://example.com/copied").await?;
    // What a person decides on the case leads at once, without another scan.
    let cases = product.list("/authentication/cases").await?;
    let case = format!("/authentication/cases/{}", cases[0]["id"].as_str().context("case")?);
    for (status, page) in [("dismissed", "unknown"), ("confirmed", "copied"), ("open", "copied")] {
        let body = json!({"status": status, "reason": "We looked."});
        product.must_answer(200, Method::PUT, &case, Some(body)).await?;
        eventually_led(&product, "BAG", &format!("https://example.com/{page}")).await?;
    }
    // Markets were never set, so a good item stays unknown.
    assess("yes").await?;
    eventually_led(&product, "BAG", "https://example.com/unknown").await
}

crate::on_both_engines!(
    rules_can_test_the_last_assessment,
    rules_can_test_the_commissioning_state,
    rules_choose_the_target,
    rules_of_applications_apply_in_their_project,
    no_acknowledged_change_is_followed_by_an_old_answer,
);
