//! Conventions of all requests: keys, the prefix, request ids, methods, documents.

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

pub(super) async fn keys_are_accepted_in_every_form(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let key = &api.key;
    let unknown = "C".repeat(80);
    for (header, query, status) in [
        (Some(key.clone()), None, 200),
        (Some(format!("Token {key}")), None, 200),
        (Some(format!("Bearer {key}")), None, 200),
        (Some(format!("bearer {key}")), None, 200),
        (None, Some(key.clone()), 200),
        (Some(String::new()), Some(key.clone()), 200),
        (Some(format!("Basic {key}")), None, 401),
        (Some(unknown.clone()), Some(key.clone()), 401),
        (None, Some(unknown.clone()), 401),
        (None, None, 401),
    ] {
        let uri = query.as_ref().map_or("/access".to_owned(), |key| format!("/access?access_token={key}"));
        let mut request = Request::builder().uri(&uri);
        if let Some(header) = &header {
            request = request.header("authorization", header);
        }
        let answer = api.send(request.body(Body::empty())?).await?;
        assert_eq!(answer.status, status, "{header:?} {query:?}");
        let text = String::from_utf8_lossy(&answer.bytes);
        assert!(!text.contains(&unknown), "a key came back");
    }
    Ok(())
}

pub(super) async fn responses_have_request_ids_and_errors_the_common_body(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut seen = std::collections::HashSet::new();
    for uri in ["/access", "/access", "/nothing", "/docs", "/openapi.json", "/"] {
        let answer = api.get(uri).await?;
        assert!(seen.insert(answer.header("x-request-id").context("id")?.to_owned()), "{uri}");
    }
    for (sent, kept) in [("trace-0123456789", true), ("x", false), ("bad id with spaces", false)] {
        let request = Request::builder().uri("/access").header("x-request-id", sent).body(Body::empty())?;
        let answer = api.send(request).await?;
        assert_eq!(answer.header("x-request-id") == Some(sent), kept, "{sent}");
    }
    // A wrong method says which are right; HEAD goes with GET.
    let answer = api.delete("/v2/actions").await?;
    answer.problem(405, 40501);
    let mut allow: Vec<&str> = answer.header("allow").context("allow")?.split(',').collect();
    allow.sort_unstable();
    assert_eq!(allow, ["GET", "HEAD", "POST"]);
    let head = api.call(Method::HEAD, "/thngs", None).await?;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
    // Old clients send a body with a GET, and an empty one with a DELETE.
    for (body, ignored) in [(json!({}), None), (json!({"a": 1}), Some("a")), (json!([1]), None)] {
        let answer = api.call(Method::GET, "/access", Some(body.clone())).await?;
        assert_eq!((answer.status.as_u16(), answer.header("x-ignored")), (200, ignored), "{body}");
    }
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let path = format!("/thngs/{}", thng["id"].as_str().context("id")?);
    assert_eq!(api.call(Method::DELETE, &path, Some(json!({}))).await?.status, 200);
    api.get("/thngs?filter=name%3D%00").await?.problem(400, 40003);
    Ok(())
}

pub(super) async fn the_api_serves_its_description(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for prefix in ["", "/v2"] {
        let request = Request::builder().uri(format!("{prefix}/openapi.json")).body(Body::empty())?;
        let answer = api.send(request).await?;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some("application/json")));
        let document = answer.json();
        assert_eq!(document["openapi"], "3.1.0");
        check_references(&document, &document);
    }
    let page = api.send(Request::builder().uri("/docs").body(Body::empty())?).await?;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let html = String::from_utf8(page.bytes)?;
    assert!(html.contains("id=\"error-40401\"") && html.contains("/thngs/{id}"));
    Ok(())
}

/// A page of any origin may call the API with a key: the browser's question needs none.
pub(super) async fn cors_allows_every_origin(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let ask = |uri: String| {
        let request = Request::builder().method(Method::OPTIONS).uri(uri);
        let request = request.header("origin", "https://shop.example");
        request.header("access-control-request-method", "PUT").body(Body::empty())
    };
    let document = serde_json::to_value(control::http::document())?;
    for (path, item) in document["paths"].as_object().context("paths")? {
        // Pages of other origins do not get there: `signin`.
        if path.starts_with("/console/") {
            continue;
        }
        let path = path.replace(['{', '}'], "");
        for uri in [path.clone(), format!("/v2{path}")] {
            let answer = api.send(ask(uri.clone())?).await?;
            assert_eq!((answer.status.as_u16(), answer.bytes.len()), (204, 0), "{uri}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{uri}");
            assert_eq!(answer.header("access-control-allow-headers"), Some("Authorization, *"), "{uri}");
            assert_eq!(answer.header("access-control-max-age"), Some("7200"), "{uri}");
            assert_eq!(answer.header("access-control-allow-credentials"), None, "{uri}");
            let methods = answer.header("access-control-allow-methods").context(uri)?;
            for method in ["get", "post", "put", "delete"] {
                let listed = methods.split(',').any(|one| one.trim().eq_ignore_ascii_case(method));
                assert_eq!(listed, item.get(method).is_some(), "{path} {method}: {methods}");
            }
        }
    }
    api.send(ask("/nothing".to_owned())?).await?.problem(404, 40402);
    // Answers and refusals alike can be read.
    for (uri, status) in [("/access", 200), ("/thngs?perPage=0", 400), ("/nothing", 404)] {
        let answer = api.get(uri).await?;
        assert_eq!(answer.status, status, "{uri}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{uri}");
        let exposed = answer.header("access-control-expose-headers").context(uri)?;
        for name in
            ["Link", "Location", "X-Result-Count", "Retry-After", "RateLimit-Remaining", "X-Request-Id"]
        {
            assert!(exposed.split(", ").any(|one| one == name), "{name}: {exposed}");
        }
    }
    Ok(())
}

/// Every `$ref` leads somewhere.
fn check_references(document: &Value, here: &Value) {
    match here {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get("$ref") {
                let pointer = target.trim_start_matches('#');
                assert!(document.pointer(pointer).is_some(), "{target}");
            }
            members.values().for_each(|value| check_references(document, value));
        }
        Value::Array(items) => items.iter().for_each(|value| check_references(document, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

crate::on_both_engines!(
    keys_are_accepted_in_every_form,
    responses_have_request_ids_and_errors_the_common_body,
    the_api_serves_its_description,
    cors_allows_every_origin,
);
