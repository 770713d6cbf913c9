//! `Idempotency-Key`: every operation whose row of the route table says so is executed once.

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use control::http::policies;
use serde_json::{Value, json};
use tests::{db::Engine, sql};
use web::routes::Idempotency;

use super::{Answer, Api, link_changes, operators, print_orders};

impl Api {
    pub(super) async fn post_once(
        &self,
        api_key: &str,
        key: Option<&str>,
        uri: &str,
        body: &Value,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header(header::HOST, "api.example:8080")
            .header(header::AUTHORIZATION, api_key)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.send(request.body(Body::from(body.to_string()))?).await
    }
}

/// Idempotent operations that [`request_of`] cannot ask for: they need a user and its code or key, or something that ran.
const NOT_HERE: [&str; 6] = [
    "/auth/evrythng",
    "/auth/evrythng/users/{id}/validate",
    "/auth/all/logout",
    "/batches/{id}/tasks",
    "/webhooks/{id}/deliveries/{delivery}",
    "/webhooks/{id}/redeliveries",
];

/// The paths whose POST is carried out once, by the route table.
fn creates() -> Vec<&'static str> {
    let rows = policies().iter().filter(|(.., policy)| policy.idempotency != Idempotency::Ignored);
    rows.map(|(_, path, _)| path).filter(|path| !NOT_HERE.contains(path)).collect()
}

/// Whoever makes something wants to repeat it safely.
#[test]
fn every_operation_that_creates_is_idempotent() {
    let document = control::http::document();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let is_create = item["post"]["responses"].get("201").is_some();
        let is_kept = policies().find(&Method::POST, path).idempotency != Idempotency::Ignored;
        assert!(is_kept || !is_create, "POST {path}");
    }
}

/// The key of a new application.
async fn application_key(api: &Api) -> Result<String> {
    let project = api.create("/projects", json!({"name": "Once"})).await?;
    let path = format!("/projects/{}/applications", project["id"].as_str().context("id")?);
    let made = api.create(&path, json!({"name": "Once", "socialNetworks": {}})).await?;
    Ok(made["appApiKey"].as_str().context("appApiKey")?.to_owned())
}

fn a_job() -> Value {
    json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "LIST", "contentType": "EXTERNAL_IDS", "payload": ["a:b"]}})
}

/// A request of a path that creates; a path without an entry fails the test.
async fn request_of(api: &Api, path: &str) -> Result<(String, Value)> {
    let id = |body: Value| body["id"].as_str().unwrap_or_default().to_owned();
    let named = json!({"name": "Once"});
    let target = json!({"defaultRedirectUrl": "https://example.com/"});
    let webhook = json!({"name": "Once", "url": "https://example.com/", "status": "disabled"});
    Ok(match path {
        "/products" | "/thngs" | "/projects" | "/places" | "/collections" | "/files" | "/batches" => {
            (path.to_owned(), named)
        }
        "/projects/{project}/applications" => {
            let project = id(api.create("/projects", named).await?);
            (format!("/projects/{project}/applications"), json!({"name": "Once", "socialNetworks": {}}))
        }
        "/auth/evrythng/thngs" => {
            (path.to_owned(), json!({"thngId": id(api.create("/thngs", named).await?)}))
        }
        "/keys" => (path.to_owned(), json!({"label": "Once"})),
        "/roles" => (path.to_owned(), named),
        "/accessPolicies" => (path.to_owned(), json!({"name": "Once", "permissions": ["thngs:read"]})),
        "/accessTokens" => (path.to_owned(), json!({"name": "Once", "role": "viewer"})),
        "/accounts/{id}/operatorAccess" | "/accounts/{id}/operatorAccess/{access}/invitation" => {
            let accesses = path.replace("{id}", api.made.account.as_str());
            // Each address is invited once.
            let email = format!("{}@example.com", api.made.app.core.clock.now().0);
            let body = json!({"email": email, "role": "viewer"});
            match accesses.strip_suffix("/{access}/invitation") {
                None => (accesses, body),
                Some(all) => (format!("{all}/{}/invitation", id(api.create(all, body).await?)), json!({})),
            }
        }
        "/accounts/{id}/shortDomains" => {
            let host = format!("h{}.example", api.made.app.core.clock.now().0);
            (path.replace("{id}", api.made.account.as_str()), json!({"host": host}))
        }
        "/keys/{id}/rotate" => {
            let made = id(api.create("/keys", json!({"label": "Once"})).await?);
            (format!("/keys/{made}/rotate"), json!({"overlap": 60_000}))
        }
        "/projects/{project}/applications/{id}/secretKey/rotate"
        | "/projects/{project}/applications/{id}/appApiKey/rotate" => {
            let project = id(api.create("/projects", named.clone()).await?);
            let made = id(api.create(&format!("/projects/{project}/applications"), named).await?);
            (path.replace("{project}", &project).replace("{id}", &made), json!({}))
        }
        "/auth/evrythng/thngs/{id}/rotate" => {
            let thng = id(api.create("/thngs", named).await?);
            api.create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
            (path.replace("{id}", &thng), json!({}))
        }
        "/auth/evrythng/users" => {
            let user = json!({"email": "once@example.com", "password": "a word that is long"});
            (path.to_owned(), user)
        }
        "/projects/{id}/scanCounts" => {
            let project = id(api.create("/projects", operators::demo()).await?);
            (format!("/projects/{project}/scanCounts"), json!({"scans": [{"timestamp": 1}]}))
        }
        "/privacy/erasures" => (path.to_owned(), json!({"network": "203.0.113.0/24", "from": 1, "to": 2})),
        "/jobs/actions" => (path.to_owned(), a_job()),
        "/jobs/qr" => (path.to_owned(), an_order(api).await?),
        "/jobs/qr/{id}/cancel" => {
            let made = id(api.create("/jobs/qr", an_order(api).await?).await?);
            (format!("/jobs/qr/{made}/cancel"), json!({}))
        }
        "/jobs/redirections" => (path.to_owned(), a_change(api).await?),
        "/jobs/redirections/{changeId}/undo" => {
            let change = link_changes::finished(api, a_change(api).await?).await?;
            (path.replace("{changeId}", &id(change)), json!({}))
        }
        "/jobs/qr/{id}/reprint" => {
            let made = id(print_orders::finished(api, an_order(api).await?).await?);
            (format!("/jobs/qr/{made}/reprint"), json!({"from": 1, "to": 1}))
        }
        "/jobs/actions/{id}/cancel" => {
            let made = api.post("/jobs/actions", a_job()).await?;
            let location = made.header("location").context("location")?;
            let id = location.rsplit('/').next().context("id")?;
            (format!("/jobs/actions/{id}/cancel"), json!({}))
        }
        "/thngs/{id}/actions/commissions" => {
            let thng = id(api.create("/thngs", named.clone()).await?);
            let product = id(api.create("/products", named).await?);
            api.create("/actions/encodings", json!({"thng": thng})).await?;
            let place = json!({"type": "Point", "coordinates": [8.5, 47.5]});
            let body = json!({"product": product, "location": {"position": place},
                "occurredAt": "2026-01-02T03:04:05+01:00"});
            (path.replace("{id}", &thng), body)
        }
        "/actions" => (path.to_owned(), json!({"name": "_once"})),
        "/reactions" => {
            let effect = json!({"type": "property", "key": "a", "value": 1});
            (path.to_owned(), json!({"name": "Once", "status": "disabled", "effect": effect}))
        }
        "/webhooks" => (path.to_owned(), webhook),
        "/webhooks/{id}/secrets" => {
            (format!("/webhooks/{}/secrets", id(api.create("/webhooks", webhook).await?)), json!({}))
        }
        "/actions/{type}" => ("/actions/scans".to_owned(), json!({})),
        "/thngs/{id}/actions/{type}" => {
            (format!("/thngs/{}/actions/scans", id(api.create("/thngs", named).await?)), json!({}))
        }
        "/collections/{id}/actions/{type}" => (
            format!("/collections/{}/actions/scans", id(api.create("/collections", named).await?)),
            json!({}),
        ),
        "/products/{id}/actions/{type}" => {
            (format!("/products/{}/actions/scans", id(api.create("/products", named).await?)), json!({}))
        }
        "/redirections" => {
            let thng = id(api.create("/thngs", named).await?);
            (path.to_owned(), json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/"}))
        }
        "/thngs/{id}/redirector" => {
            (format!("/thngs/{}/redirector", id(api.create("/thngs", named).await?)), target)
        }
        "/products/{id}/redirector" => {
            (format!("/products/{}/redirector", id(api.create("/products", named).await?)), target)
        }
        other => panic!("POST {other} creates: say here what to send"),
    })
}

/// A body of `POST /jobs/qr`: the code of a new Thng.
async fn an_order(api: &Api) -> Result<Value> {
    let thng = api.create("/thngs", json!({"name": "Once"})).await?["id"].clone();
    let link = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/"});
    anyhow::ensure!(api.post("/redirections", link).await?.status.is_success());
    Ok(json!({"source": {"list": {"thngs": [thng]}}, "format": "zpl"}))
}

/// A body of `POST /jobs/redirections`: the link of a new Thng.
async fn a_change(api: &Api) -> Result<Value> {
    let thng = an_order(api).await?["source"]["list"]["thngs"][0].clone();
    Ok(json!({"platformId": thng, "patch": {"title": "Once"}}))
}

pub(super) async fn every_create_is_carried_out_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.codes_to_callers().await?;
    let application = application_key(&api).await?;
    for path in creates() {
        let (uri, body) = request_of(&api, path).await?;
        // Only an application makes users.
        let caller = if path == "/auth/evrythng/users" { &application } else { &api.key };
        let key = format!("once {path}");
        let first = api.post_once(caller, Some(&key), &uri, &body).await?;
        let is_made = ["/jobs/qr", "/jobs/redirections"].iter().any(|of| path.starts_with(of))
            && !path.ends_with("/cancel");
        let is_later = path.starts_with("/jobs/") && !is_made || path == "/privacy/erasures";
        assert_eq!(first.status, if is_later { 202 } else { 201 }, "{path}: {first:?}");
        let before = api.fingerprint().await?;
        for _ in 0..2 {
            // What a client says of its patience is no part of the request.
            let again = api.post_once(caller, Some(&key), &format!("/v2{uri}?wait=x"), &body).await;
            let again = match again? {
                refused if refused.status == 400 => api.post_once(caller, Some(&key), &uri, &body).await?,
                answer => answer,
            };
            assert_eq!((again.status, &again.bytes), (first.status, &first.bytes), "{path}");
            for name in ["location", "content-type"] {
                assert_eq!(again.header(name).is_some(), first.header(name).is_some(), "{path} {name}");
            }
        }
        let mut other = body.clone();
        match other.get("defaultRedirectUrl") {
            Some(_) => other["defaultRedirectUrl"] = json!("https://example.com/another"),
            None => other["tags"] = json!(["another"]),
        }
        api.post_once(caller, Some(&key), &uri, &other).await?.problem(409, 40903);
        for wrong in [String::new(), "k".repeat(256)] {
            api.post_once(caller, Some(&wrong), &uri, &body).await?.problem(400, 40001);
        }
        assert_eq!(api.fingerprint().await?, before, "{path}: a repeat wrote something");
        // Another key is another request.
        let (mut uri, mut another) = (uri, body);
        match path {
            "/actions" => another["name"] = json!("_another"),
            "/auth/evrythng/users" => another["email"] = json!("another@example.com"),
            // A Thng takes the step once, a key is replaced once, an address invited once, an order cancelled once, and a
            // change undone once.
            "/thngs/{id}/actions/commissions"
            | "/keys/{id}/rotate"
            | "/accounts/{id}/operatorAccess"
            | "/accounts/{id}/shortDomains"
            | "/jobs/redirections/{changeId}/undo"
            | "/jobs/qr/{id}/cancel" => (uri, another) = request_of(&api, path).await?,
            _ => {}
        }
        let another = api.post_once(caller, Some(&format!("{key} 2")), &uri, &another).await?;
        assert_eq!(another.status, first.status, "{path}");
        assert_ne!(api.fingerprint().await?, before, "{path}");
    }
    Ok(())
}

pub(super) async fn an_idempotency_key_belongs_to_one_account_and_a_successful_request(
    engine: Engine,
) -> Result<()> {
    let api = Api::new(engine).await?;
    let body = json!({"name": "Once"});
    let first = api.post_once(&api.key, Some("shared"), "/products", &body).await?.json();
    let others = api.post_once(&api.other_key, Some("shared"), "/products", &body).await?;
    assert_eq!(others.status, 201);
    assert_ne!(others.json()["id"], first["id"]);
    // A refusal is not kept: the same key serves when the request is right.
    api.post_once(&api.key, Some("fixed"), "/products", &json!({})).await?.problem(400, 40001);
    assert_eq!(api.post_once(&api.key, Some("fixed"), "/products", &body).await?.status, 201);
    // What is kept of an answer cannot be read without the caller's API key.
    let kept = api.fingerprint().await?;
    assert!(!format!("{:?}", kept["idempotency"]).contains("Once"), "{:?}", kept["idempotency"]);
    Ok(())
}

/// The key of an application lies in a public page: what its holder sends must not spoil an operator's key.
pub(super) async fn an_idempotency_key_belongs_to_its_actor(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let stranger = application_key(&api).await?;
    let scan = api.post_once(&stranger, Some("order-1"), "/actions/scans", &json!({})).await?;
    assert_eq!(scan.status, 201, "{scan:?}");
    let body = json!({"name": "Once"});
    let first = api.post_once(&api.key, Some("order-1"), "/products", &body).await?;
    assert_eq!(first.status, 201, "{first:?}");
    let again = api.post_once(&api.key, Some("order-1"), "/products", &body).await?;
    assert_eq!((again.status, &again.bytes), (first.status, &first.bytes));
    api.post_once(&api.key, Some("order-1"), "/places", &body).await?.problem(409, 40903);
    Ok(())
}

/// What a release before kept under the key alone is found by its actor, and spoils nobody else's key.
pub(super) async fn idempotency_keys_of_older_releases_are_found(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let stranger = application_key(&api).await?;
    let body = json!({"name": "Once"});
    let first = api.post_once(&api.key, Some("order-1"), "/products", &body).await?;
    const AS_BEFORE: &str = "UPDATE idempotency SET key = 'order-1'";
    assert_eq!(sql::execute(&api.made.app.core.db, AS_BEFORE).await?, 1);
    let again = api.post_once(&api.key, Some("order-1"), "/products", &body).await?;
    assert_eq!((again.status, &again.bytes), (first.status, &first.bytes));
    assert_eq!(api.post_once(&stranger, Some("order-1"), "/actions/scans", &json!({})).await?.status, 201);
    Ok(())
}

pub(super) async fn concurrent_repeats_get_one_response(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for round in 0..5 {
        let (key, body) = (format!("race {round}"), json!({"name": "Race"}));
        let posts = (0..8).map(|_| api.post_once(&api.key, Some(&key), "/thngs", &body));
        let answers = futures_util::future::try_join_all(posts).await?;
        for answer in &answers {
            assert_eq!((answer.status.as_u16(), &answer.bytes), (201, &answers[0].bytes), "{answer:?}");
        }
    }
    let all = api.get("/thngs?perPage=100").await?.json();
    assert_eq!(all.as_array().context("array")?.len(), 5);
    Ok(())
}

crate::on_both_engines!(
    every_create_is_carried_out_once,
    an_idempotency_key_belongs_to_one_account_and_a_successful_request,
    concurrent_repeats_get_one_response,
    an_idempotency_key_belongs_to_its_actor,
    idempotency_keys_of_older_releases_are_found,
);
