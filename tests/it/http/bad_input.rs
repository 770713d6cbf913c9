//! Invalid requests to each operation: the documented status and body, and nothing changes.

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// Every operation of the OpenAPI document, its path's parts filled with an id that nothing has.
fn operations() -> Result<Vec<(Method, String, Value)>> {
    let document = serde_json::to_value(control::http::document())?;
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().context("paths")? {
        let mut uri = path.replace("{type}", "all");
        while let (Some(start), Some(end)) = (uri.find('{'), uri.find('}')) {
            uri.replace_range(start..=end, UNKNOWN);
        }
        for (method, operation) in item.as_object().context("item")? {
            let method: Method = method.to_uppercase().parse()?;
            found.push((method, uri.clone(), operation.clone()));
        }
    }
    anyhow::ensure!(found.len() > 25, "only {} operations", found.len());
    Ok(found)
}

fn has_parameter(operation: &Value, name: &str) -> bool {
    operation["parameters"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name))
}

fn request(
    method: &Method,
    uri: &str,
    key: Option<&str>,
    media_type: &str,
    body: Body,
) -> Result<Request<Body>> {
    let mut builder =
        Request::builder().method(method.clone()).uri(uri).header(header::HOST, "api.example:8080");
    if let Some(key) = key {
        builder = builder.header(header::AUTHORIZATION, key);
    }
    Ok(builder.header(header::CONTENT_TYPE, media_type).body(body)?)
}

pub(super) async fn every_operation_refuses_common_faults(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let before = api.fingerprint().await?;
    let json = "application/json";
    for (method, uri, operation) in operations()? {
        let what = format!("{method} {uri}");
        let send = async |key: Option<&str>, media_type: &str, body: Body| {
            api.send(request(&method, &uri, key, media_type, body)?).await
        };
        if ![json!([]), json!([{}])].contains(&operation["security"]) {
            send(None, json, Body::empty()).await?.problem(401, 40101);
            // Where sessions count, no key is taken.
            let is_for_console = uri.starts_with("/console/");
            for unknown in ["x", &"C".repeat(80), &"é".repeat(40), "Bearer ", &"A".repeat(79)] {
                let answer = send(Some(unknown), json, Body::empty()).await?;
                let expected = if is_for_console { 403 } else { 401 };
                assert_eq!(answer.status, expected, "{what} {unknown}: {answer:?}");
                let asks_for_key = answer.headers.contains_key(header::WWW_AUTHENTICATE);
                assert_eq!(asks_for_key, !is_for_console, "{what}");
            }
        }
        let key = Some(api.key_for(&uri));
        if operation["requestBody"]["content"].get("application/json").is_some() {
            for (media_type, body, status, code) in [
                ("text/plain", "{}", 415, 41501),
                ("application/x-www-form-urlencoded", "name=x", 415, 41501),
                (json, "{\"name\":", 400, 40002),
                (json, "{'name': 1}", 400, 40002),
                (json, "\u{feff}{}", 400, 40002),
                (json, "", 400, 40002),
                (json, "{\"name\": \"\\ud800\"}", 400, 40002),
                (json, "{\"name\": 1e999}", 400, 40002),
            ] {
                let answer = send(key, media_type, Body::from(body)).await?;
                assert_eq!(answer.status, status, "{what} {body:?}: {answer:?}");
                answer.problem(status, code);
            }
            let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
            send(key, json, Body::from(deep)).await?.problem(400, 40002);
            let large = format!("{{\"name\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
            send(key, json, Body::from(large)).await?.problem(413, 41301);
            let answer = send(key, json, Body::from("\"text\"")).await?;
            assert!([400, 404].contains(&answer.status.as_u16()), "{what}: {answer:?}");
        }
        for (name, values) in [
            ("perPage", ["0", "101", "-1", "x", "1.5", "", "99999999999"].as_slice()),
            ("sortOrder", &["UP", "descending", ""]),
            ("nextPageToken", &["x", "", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]),
            ("withScopes", &["yes"]),
            ("context", &["1"]),
            ("ids", &["x", ",", "UKXAGyEf8SQ5eTDmVgGpHqA"]),
            ("filter", &["color=red", "x", "(name%3D1"]),
        ] {
            if !has_parameter(&operation, name) || method != Method::GET || uri.contains(UNKNOWN) {
                continue;
            }
            for value in values {
                let with = format!("{uri}?{name}={value}");
                let answer = api.call_as(api.key_for(&uri), Method::GET, &with, None).await?;
                let code = if name == "nextPageToken" { 40004 } else { 40003 };
                let errors = answer.problem(400, code);
                assert!(
                    errors.iter().all(|error| error.starts_with(name)),
                    "{what} {name}={value}: {errors:?}"
                );
            }
        }
        let answer = api.call(Method::PATCH, &uri, Some(json!({}))).await?;
        answer.problem(405, 40501);
        let allow = answer.header("allow").unwrap_or_default();
        assert!(allow.split(',').any(|one| one.trim() == method.as_str()), "{what}: Allow {allow:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

pub(super) async fn wrong_members_are_named_and_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.create("/products", json!({"name": "p", "identifiers": {"sku": "1"}})).await?;
    let thng = api.create("/thngs", json!({"name": "t", "product": product["id"]})).await?;
    let (other_product, other_thng) = api.others().await?;
    let text = |value: &Value| value["id"].as_str().unwrap_or_default().to_owned();
    let product = format!("/products/{}", text(&product));
    let thng = format!("/thngs/{}", text(&thng));
    let place = api.create("/places", json!({"name": "x", "latitude": 1, "longitude": 2})).await?;
    let place = format!("/places/{}", text(&place));
    let account = format!("/accounts/{}", api.made.account);
    let operator = format!("/operators/{}", api.made.operator);
    let before = api.fingerprint().await?;
    for (method, uri, body, faults) in [
        (Method::POST, "/products", json!({}), vec!["name is required"]),
        (Method::POST, "/products", json!({"name": null}), vec!["name is required"]),
        (Method::POST, "/products", json!({"name": ""}), vec!["name must not be empty"]),
        (Method::POST, "/products", json!("x"), vec!["must be a JSON object"]),
        (Method::POST, "/products", json!([]), vec!["The array must hold 1 to 1000 items, not 0."]),
        (Method::POST, "/products", json!({"name": "a\u{0}"}), vec!["name must not hold"]),
        (
            Method::POST,
            "/products",
            json!({"name": "x", "customFields": {"a": ["\u{0}"]}}),
            vec!["customFields"],
        ),
        (Method::POST, "/products", json!({"name": "x".repeat(257)}), vec!["name must have at most 256"]),
        (
            Method::POST,
            "/products",
            json!({"name": 1, "tags": [1], "identifiers": {"k": 2}, "url": {}, "photos": "x"}),
            vec!["name", "tags", "identifiers.k", "photos", "url"],
        ),
        (Method::PUT, &product, json!({"name": ""}), vec!["name must not be empty"]),
        (Method::PUT, &product, json!({"customFields": "x", "scopes": 1}), vec!["customFields", "scopes"]),
        (Method::POST, "/thngs", json!({}), vec!["name is required"]),
        (Method::POST, "/thngs", json!({"name": "x", "product": "x"}), vec!["product: an id has 24"]),
        (Method::POST, "/thngs", json!({"name": "x", "product": UNKNOWN}), vec!["product: the product UKX"]),
        (Method::POST, "/thngs", json!({"name": "x", "product": other_product}), vec!["does not exist"]),
        (Method::POST, "/thngs", json!({"name": "x", "product": other_thng}), vec!["does not exist"]),
        (Method::PUT, &thng, json!({"product": UNKNOWN}), vec!["product: the product UKX"]),
        (Method::PUT, &thng, json!({"activatedAt": "now", "type": 1}), vec!["activatedAt", "type"]),
        (Method::POST, "/places", json!({}), vec!["name is required"]),
        (
            Method::POST,
            "/places",
            json!({"name": "x", "latitude": 91, "longitude": "1", "address": 1}),
            vec!["latitude", "longitude", "address"],
        ),
        (Method::PUT, &place, json!({"latitude": 1}), vec!["latitude needs longitude"]),
        (Method::PUT, &account, json!({"customFields": [], "name": 1}), vec!["name", "customFields"]),
        (Method::PUT, &operator, json!({"firstName": 1, "lastName": {}}), vec!["firstName", "lastName"]),
    ] {
        let answer = api.call(method.clone(), uri, Some(body.clone())).await?;
        let mut errors = answer.problem(400, 40001);
        assert_eq!(errors.len(), faults.len(), "{method} {uri} {body}: {errors:?}");
        for fault in faults {
            let index = errors.iter().position(|error| error.contains(fault));
            errors.remove(index.with_context(|| format!("{uri} {body}: {fault} is not in {errors:?}"))?);
        }
    }
    assert_eq!(api.fingerprint().await?, before);
    // The comparison can fail.
    api.put(&operator, json!({"firstName": "Q"})).await?;
    assert_ne!(api.fingerprint().await?, before);
    Ok(())
}

pub(super) async fn absent_resources_are_404(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.create("/thngs", json!({"name": "a", "identifiers": {"gs1:21": "X"}})).await?;
    let (other_product, other_thng) = api.others().await?;
    let other_account = api.other_account;
    let other_operator = api.other_operator;
    let other_place =
        api.call_as(&api.other_key, Method::POST, "/places", Some(json!({"name": "x"}))).await?;
    let other_place = other_place.json()["id"].as_str().context("id")?.to_owned();
    let before = api.fingerprint().await?;
    let mut paths = Vec::new();
    for (kind, other) in [("products", &other_product), ("thngs", &other_thng), ("places", &other_place)] {
        for reference in [
            UNKNOWN,
            other,
            "x",
            "%00",
            "gs1:21:none",
            "gs1:21:%00",
            "%FF",
            "gs1:21:",
            ":X",
            &"y".repeat(3_000),
        ] {
            paths.push(format!("/{kind}/{reference}"));
        }
    }
    for id in [UNKNOWN, other_account.as_str(), "x", "%00"] {
        paths.push(format!("/accounts/{id}"));
    }
    for id in [UNKNOWN, other_operator.as_str(), "x", "%00"] {
        paths.push(format!("/operators/{id}"));
    }
    for path in paths {
        api.get(&path).await?.problem(404, 40401);
        api.put(&path, json!({"name": "changed", "firstName": "changed"})).await?.problem(404, 40401);
        if !path.starts_with("/accounts") && !path.starts_with("/operators") {
            api.delete(&path).await?.problem(404, 40401);
        }
        if path.starts_with("/products") || path.starts_with("/thngs") {
            api.get(&format!("{path}/actions/all")).await?.problem(404, 40401);
        }
    }
    for path in [
        format!("/accounts/{other_account}/shortDomains"),
        format!("/accounts/{other_account}/domains"),
        "/actions/_own".to_owned(),
        "/actions/_own/x".to_owned(),
        format!("/actions/all/{UNKNOWN}"),
        format!("/actions/scans/{UNKNOWN}"),
        "/actions/all/x".to_owned(),
    ] {
        api.get(&path).await?.problem(404, 40401);
    }
    for path in ["/nothing", "/v2/nothing", "/v2/v2/thngs", "/thngs/", "//thngs", "/v2x/thngs"] {
        api.get(path).await?.problem(404, 40402);
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(
    every_operation_refuses_common_faults,
    wrong_members_are_named_and_change_nothing,
    absent_resources_are_404,
);
