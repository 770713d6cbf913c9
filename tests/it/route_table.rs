//! The route table of control: what its columns do, and who else knows some of it.

use std::{future::pending, time::Duration};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Body,
    http::{Request, Response, header},
};
use control::http::{behind_layers, policies};
use edge::is_management;
use serde_json::{Value, json};
use signin::http::gate::OwnSegments;
use tests::db::{Engine, TestApp};
use tower::ServiceExt;
use utoipa_axum::routes;
use web::routes::{Columns, Routes};

#[test]
fn edges_pass_on_what_the_table_gives_to_them() {
    let mut count = 0;
    for (method, path, policy) in policies().iter() {
        let uri = path.trim_start_matches('/').replace(['{', '}'], "");
        assert_eq!(is_management(&uri), policy.by_edges, "{method} {path}");
        assert_eq!(is_management(&format!("v2/{uri}")), policy.by_edges, "{method} /v2{path}");
        count += usize::from(policy.by_edges);
    }
    assert!(count > 10, "{count} operations by edges");
}

#[utoipa::path(get, path = "/short/{id}")]
async fn never_ends() {
    pending().await
}

#[utoipa::path(put, path = "/short/{id}")]
async fn takes_a_while() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

#[utoipa::path(get, path = "/console/api/page")]
async fn page() {}

#[utoipa::path(get, path = "/console/api/other")]
async fn other() {}

/// These routes behind the layers of every request.
async fn service() -> Result<(Router, TestApp)> {
    let made = TestApp::new(Engine::Sqlite).await?;
    let (routes, _, policies) = Routes::new()
        .routes(routes!(never_ends).time_limit(Duration::from_millis(20)))
        .routes(routes!(takes_a_while))
        .routes(routes!(page).page_from(&["none", "cross-site"]))
        .routes(routes!(other))
        .split();
    let own = Box::leak(Box::new(OwnSegments::of(policies.iter().map(|(_, path, _)| path))));
    let policies = Box::leak(Box::new(policies));
    Ok((behind_layers(routes, made.app.clone(), policies, Some(own)), made))
}

async fn ask(service: &Router, method: &str, uri: &str, site: &str) -> Result<Response<Body>> {
    let request = Request::builder().method(method).uri(uri).header(header::HOST, "api.example");
    Ok(service.clone().oneshot(request.header("sec-fetch-site", site).body(Body::empty())?).await?)
}

#[tokio::test]
async fn a_request_takes_as_long_as_its_row_allows() -> Result<()> {
    let (service, _made) = service().await?;
    for (method, uri, status) in [
        ("GET", "/short/1", 503),
        ("GET", "/v2/short/%31", 503),
        // The other row of the same path.
        ("PUT", "/short/1", 200),
    ] {
        let answer = tokio::time::timeout(Duration::from_secs(20), ask(&service, method, uri, "none"));
        let answer = answer.await.with_context(|| format!("{method} {uri}"))??;
        ensure!(answer.status() == status, "{method} {uri}: {answer:?}");
        if status == 503 {
            let body = axum::body::to_bytes(answer.into_body(), 4_096).await?;
            let body: Value = serde_json::from_slice(&body)?;
            ensure!(body["code"] == json!(50_302), "{body}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_page_is_opened_from_the_sites_of_its_row() -> Result<()> {
    let (service, _made) = service().await?;
    for (uri, site, status) in [
        ("/console/api/page", "cross-site", 200),
        ("/v2/console/api/page", "none", 200),
        ("/console/api/page", "same-site", 403),
        ("/console/api/page/", "cross-site", 403),
        ("/console/api/%70age", "cross-site", 403),
        ("/console/api/other", "cross-site", 403),
        ("/console/api/other", "same-origin", 200),
        // Of the public API, not of the console: its rows are asked for without the prefix.
        ("/console/api/short/1", "same-origin", 503),
        ("/console/api/nothing", "same-origin", 404),
        ("/console/api/nothing", "cross-site", 403),
    ] {
        let answer = ask(&service, "GET", uri, site).await?;
        ensure!(answer.status() == status, "{uri} {site}: {answer:?}");
    }
    Ok(())
}
