//! The OpenAPI document: a checked-in snapshot, and rules for every operation.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::product::root;

/// How the snapshot is written anew.
const REFRESH: &str = "WAYMARK_REFRESH_OPENAPI=1 cargo nextest run -p tests -E 'test(openapi::)'";

#[test]
fn the_openapi_fixture_matches_the_code() {
    let path = root().join("tests/fixtures/openapi.json");
    let text = format!("{:#}\n", control::http::document());
    if std::env::var_os("WAYMARK_REFRESH_OPENAPI").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(text.lines()).position(|(kept, said)| kept != said);
    assert!(
        kept == text,
        "tests/fixtures/openapi.json differs from the code at line {}; look at it and write it anew: {REFRESH}",
        differs.map_or(kept.lines().count().min(text.lines().count()), |at| at) + 1
    );
}

#[test]
fn every_operation_has_errors_and_every_body_an_example() {
    check(&control::http::document()).unwrap();
}

fn check(document: &Value) -> Result<()> {
    ensure!(document["openapi"] == "3.1.0" && document["security"][0]["key"].is_array());
    let mut bodies = 0;
    for (path, item) in document["paths"].as_object().context("paths")? {
        for (method, operation) in item.as_object().context("item")? {
            let what = format!("{method} {path}");
            let takes_body = matches!(method.as_str(), "post" | "put");
            let with_body: &[&str] = if takes_body { &["413", "415"] } else { &[] };
            for status in ["400", "401", "403", "404", "409", "429", "500", "503"].iter().chain(with_body) {
                let reference = operation["responses"][*status]["$ref"].as_str();
                let shared = reference.and_then(|reference| document.pointer(reference.strip_prefix('#')?));
                let response = shared.with_context(|| format!("{what}: {status}"))?;
                ensure!(response["headers"]["X-Request-Id"].is_object(), "{what}: {status} has no headers");
                let content = &response["content"]["application/json"];
                ensure!(content["schema"]["$ref"] == "#/components/schemas/Problem", "{what}: {status}");
                ensure!(
                    content["example"]["status"] == status.parse::<u16>()?,
                    "{what}: {status} has no example"
                );
            }
            let Some(body) = operation.get("requestBody") else { continue };
            bodies += 1;
            for (media_type, content) in body["content"].as_object().context("content")? {
                let is_json = media_type == "application/json";
                ensure!(!is_json || content.get("example").is_some(), "{what}: the body has no example");
            }
        }
    }
    ensure!(bodies > 20, "only {bodies} bodies");
    Ok(())
}
