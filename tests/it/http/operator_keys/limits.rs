//! Where a key works, which project it is confined to, and that an account keeps one.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, Made, access, call_from, make};

async fn a_key_works_in_its_networks_only(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let key = make(&api, json!({"label": "office", "networks": ["203.0.113.0/24", "2001:db8::/32"]})).await?;
    for (peer, forwarded, expected) in [
        ("203.0.113.9", None, 200),
        ("[2001:db8:1::1]", None, 200),
        ("198.51.100.1", None, 403),
        // Only a trusted proxy (192.0.2.0/24) says who the client is.
        ("198.51.100.1", Some("203.0.113.9"), 403),
        ("192.0.2.1", Some("203.0.113.9"), 200),
        ("192.0.2.1", Some("203.0.113.9, 198.51.100.1"), 403),
    ] {
        let answer = call_from(&api, peer, (&key.key, Method::GET, "/access"), None, forwarded).await?;
        assert_eq!(answer.status, expected, "{peer} {forwarded:?}");
        if expected == 403 {
            let faults = answer.problem(403, 40302);
            assert_eq!(faults, ["The API key may not be used from this network."]);
        }
    }
    assert_eq!(access(&api, &key.key).await?, (403, 40302), "from an unknown address");
    // A create is refused before anything is kept under its idempotency key.
    let body = Some(json!({"name": "x"}));
    let answer = call_from(&api, "198.51.100.1", (&key.key, Method::POST, "/products"), body, None).await?;
    answer.problem(403, 40302);
    assert_eq!(api.get("/products").await?.json(), json!([]));
    Ok(())
}

async fn an_account_keeps_a_key(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let first = format!("/keys/{}", api.get("/keys").await?.json()[0]["id"].as_str().unwrap_or_default());
    let soon = api.made.app.clock.now().0 + 3_600_000;
    let from_here = async |method: Method, uri: &str, body: Option<Value>| {
        call_from(&api, "203.0.113.9", (&api.key, method, uri), body, None).await
    };
    let refused = async |method: Method, uri: &str, body: Option<Value>| {
        let before = api.fingerprint().await?;
        let faults = from_here(method, uri, body).await?.problem(409, 40901);
        ensure!(
            faults[0].starts_with("No other key reaches the whole account from this network"),
            "{faults:?}"
        );
        assert_eq!(api.fingerprint().await?, before);
        Ok(())
    };
    refused(Method::DELETE, &first, None).await?;
    refused(Method::PUT, &first, Some(json!({"networks": ["10.0.0.0/8"]}))).await?;
    refused(Method::PUT, &first, Some(json!({"expiresAt": soon}))).await?;
    // None of these reaches the whole account from here tomorrow.
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    for body in [
        json!({"label": "confined", "project": project}),
        json!({"label": "elsewhere", "networks": ["10.0.0.0/8"]}),
        json!({"label": "not for long", "expiresAt": soon}),
    ] {
        make(&api, body).await?;
    }
    refused(Method::DELETE, &first, None).await?;
    // What leaves it reachable is allowed: this network, and a year.
    let networks = json!({"networks": ["203.0.113.0/24"], "expiresAt": soon + 365 * 86_400_000});
    ensure!(from_here(Method::PUT, &first, Some(networks)).await?.status == 200);
    ensure!(from_here(Method::PUT, &first, Some(json!({"label": "mine"}))).await?.status == 200);
    let second = from_here(Method::POST, "/keys", Some(json!({"label": "second"}))).await?;
    let second = Made::new(&second.json())?;
    ensure!(from_here(Method::DELETE, &first, None).await?.status == 200);
    assert_eq!(access(&api, &api.key).await?, (401, 40102));
    // A rotation leaves one.
    let uri = format!("{}/rotate", second.path());
    let third = api.call_as(&second.key, Method::POST, &uri, Some(json!({}))).await?;
    let third = Made::new(&third.json())?;
    let last = api.call_as(&third.key, Method::DELETE, &third.path(), None).await?;
    last.problem(409, 40901);
    assert_eq!(access(&api, &third.key).await?, (200, 0));
    Ok(())
}

/// Two that revoke each other's key at the same moment.
async fn of_two_last_keys_one_stays(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let fixture = api.get("/keys").await?.json()[0]["id"].as_str().unwrap_or_default().to_owned();
    for _ in 0..5 {
        let keys = [make(&api, json!({"label": "a"})).await?, make(&api, json!({"label": "b"})).await?];
        let end = async |caller: &Made, other: &Made| {
            api.call_as(&caller.key, Method::DELETE, &other.path(), None).await
        };
        // Only these two are left for the moment.
        let fixture = format!("/keys/{fixture}");
        api.call(Method::PUT, &fixture, Some(json!({"networks": ["10.0.0.0/8"]}))).await?;
        let (one, two) = tokio::join!(end(&keys[0], &keys[1]), end(&keys[1], &keys[0]));
        let statuses = [one?.status.as_u16(), two?.status.as_u16()];
        let done = statuses.iter().filter(|status| **status == 200).count();
        ensure!(done == 1, "{statuses:?}");
        let left = if statuses[0] == 200 { &keys[0] } else { &keys[1] };
        let open = api.call_as(&left.key, Method::PUT, &fixture, Some(json!({"networks": []}))).await?;
        ensure!(open.status == 200, "{open:?}");
        ensure!(api.call(Method::DELETE, &left.path(), None).await?.status == 200);
    }
    Ok(())
}

async fn a_confined_key_sees_its_project_only(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = |body: &Value| body["id"].as_str().unwrap_or_default().to_owned();
    let [own, other] = [
        id(&api.create("/projects", json!({"name": "own"})).await?),
        id(&api.create("/projects", json!({"name": "other"})).await?),
    ];
    let key = make(&api, json!({"label": "confined", "project": own})).await?;
    let wide = make(&api, json!({"label": "wide"})).await?;
    let elsewhere = make(&api, json!({"label": "elsewhere", "project": other})).await?;
    let call =
        async |method: Method, uri: &str, body: Option<Value>| api.call_as(&key.key, method, uri, body).await;
    let whose = call(Method::GET, "/access", None).await?.json();
    assert_eq!((&whose["project"], &whose["actor"]["type"]), (&json!(own), &json!("operator")));
    // In its project as the secret key of an application.
    api.create("/products", json!({"name": "of nobody"})).await?;
    let made =
        call(Method::POST, "/products", Some(json!({"name": "mine", "scopes": {"projects": [other]}})))
            .await?;
    ensure!(made.status == 201, "{made:?}");
    let listed = call(Method::GET, "/products?withScopes=true", None).await?.json();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["scopes"]["projects"]), (Some(1), &json!([own])));
    let account = format!("/accounts/{}", api.made.account);
    let secret = format!("/projects/{own}/applications/{own}/secretKey");
    for uri in [
        "/projects",
        "/accounts",
        &account,
        &secret,
        "/files",
        "/webhooks",
        "/jobs/actions",
        "/batches",
        "/status",
    ] {
        call(Method::GET, uri, None).await?.problem(403, 40301);
    }
    // Of keys it sees and makes its like.
    let listed = call(Method::GET, "/keys", None).await?.json();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["id"]), (Some(1), &json!(key.id)));
    for hidden in [&wide, &elsewhere] {
        call(Method::GET, &hidden.path(), None).await?.problem(404, 40401);
        call(Method::PUT, &hidden.path(), Some(json!({"label": "x"}))).await?.problem(404, 40401);
        call(Method::DELETE, &hidden.path(), None).await?.problem(404, 40401);
        let rotate = format!("{}/rotate", hidden.path());
        call(Method::POST, &rotate, Some(json!({}))).await?.problem(404, 40401);
    }
    let body = json!({"label": "x", "project": other});
    let faults = call(Method::POST, "/keys", Some(body)).await?.problem(400, 40001);
    ensure!(faults[0].starts_with("project: "), "{faults:?}");
    let like = call(Method::POST, "/keys", Some(json!({"label": "like"}))).await?.json();
    assert_eq!(like["project"], json!(own), "never wider");
    let like = Made::new(&like)?;
    api.call_as(&like.key, Method::GET, "/projects", None).await?.problem(403, 40301);
    let rotated = call(Method::POST, &format!("{}/rotate", like.path()), Some(json!({}))).await?.json();
    assert_eq!(rotated["project"], json!(own));
    // It may end itself: it is nobody's last key. With the project all of its keys end.
    ensure!(call(Method::DELETE, &key.path(), None).await?.status == 200);
    let rotated = Made::new(&rotated)?;
    assert_eq!(access(&api, &rotated.key).await?, (200, 0));
    ensure!(api.call(Method::DELETE, &format!("/projects/{own}"), None).await?.status == 200);
    assert_eq!(access(&api, &rotated.key).await?, (401, 40102));
    assert_eq!(access(&api, &elsewhere.key).await?, (200, 0));
    assert_eq!(access(&api, &wide.key).await?, (200, 0));
    Ok(())
}

crate::on_both_engines!(
    a_key_works_in_its_networks_only,
    an_account_keeps_a_key,
    of_two_last_keys_one_stays,
    a_confined_key_sees_its_project_only,
);
