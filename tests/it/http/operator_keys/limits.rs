//! Where a key works, which project it is confined to, and that an account keeps one.

use anyhow::{Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, Made, access, call_from, make, pass};
use crate::store::schema::run;

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
    let soon = api.made.app.core.clock.now().0 + 3_600_000;
    let from_here = async |method: Method, uri: &str, body: Option<Value>| {
        call_from(&api, "203.0.113.9", (&api.key, method, uri), body, None).await
    };
    let refused = async |method: Method, uri: &str, body: Option<Value>| {
        let before = api.fingerprint().await?;
        let faults = from_here(method, uri, body).await?.problem(409, 40901);
        ensure!(
            faults[0].starts_with("No other key of an owner reaches the whole account from this network"),
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
    // What does not reach it may end, also when nothing else does.
    let short = make(&api, json!({"label": "short", "expiresAt": soon})).await?;
    let leaked = make(&api, json!({"label": "leaked", "expiresAt": soon})).await?;
    let end_of_first = async |at: &str| {
        let sql = format!("UPDATE api_keys SET expires_at = {at} WHERE kind = 'operator' AND label IS NULL");
        run(&api.made.db.location, &[sql]).await?;
        api.made.app.core.key_lookups.revoked();
        anyhow::Ok(())
    };
    end_of_first(&soon.to_string()).await?;
    let ended =
        call_from(&api, "203.0.113.9", (&short.key, Method::DELETE, &leaked.path()), None, None).await?;
    ensure!(ended.status == 200, "{ended:?}");
    end_of_first("NULL").await?;
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
        api.put(&fixture, json!({"networks": ["10.0.0.0/8"]})).await?;
        let (one, two) = tokio::join!(end(&keys[0], &keys[1]), end(&keys[1], &keys[0]));
        let statuses = [one?.status.as_u16(), two?.status.as_u16()];
        let done = statuses.iter().filter(|status| **status == 200).count();
        ensure!(done == 1, "{statuses:?}");
        let left = if statuses[0] == 200 { &keys[0] } else { &keys[1] };
        api.call_as(&left.key, Method::PUT, &fixture, Some(json!({"networks": []}))).await?.must_be(200)?;
        ensure!(api.delete(&left.path()).await?.status == 200);
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
    ensure!(api.delete(&format!("/projects/{own}")).await?.status == 200);
    assert_eq!(access(&api, &rotated.key).await?, (401, 40102));
    assert_eq!(access(&api, &elsewhere.key).await?, (200, 0));
    assert_eq!(access(&api, &wide.key).await?, (200, 0));
    Ok(())
}

/// The key of a project cannot lose its bounds, nor make keys with fewer.
async fn a_bounded_key_of_a_project_makes_no_wider_one(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    let end = api.made.app.core.clock.now().0 + 7 * 86_400_000;
    let bounds = json!({"label": "contractor", "project": project, "expiresAt": end,
        "networks": ["203.0.113.0/24", "2001:db8::/32"]});
    let key = make(&api, bounds).await?;
    let call = async |method: Method, uri: &str, body: Value| {
        call_from(&api, "203.0.113.9", (&key.key, method, uri), Some(body), None).await
    };
    let before = api.fingerprint().await?;
    for body in [
        json!({"label": "x"}),
        json!({"label": "x", "expiresAt": end}),
        json!({"label": "x", "expiresAt": end + 1, "networks": ["203.0.113.0/24"]}),
        json!({"label": "x", "expiresAt": end, "networks": ["203.0.113.0/24", "198.51.100.1"]}),
        json!({"label": "x", "expiresAt": end, "networks": ["203.0.0.0/16"]}),
    ] {
        let faults = call(Method::POST, "/keys", body).await?.problem(403, 40301);
        ensure!(faults[0].starts_with("Your own key ends earlier"), "{faults:?}");
    }
    for body in [json!({"expiresAt": 0}), json!({"expiresAt": end + 1}), json!({"networks": []})] {
        call(Method::PUT, &key.path(), body).await?.problem(403, 40301);
    }
    assert_eq!(api.fingerprint().await?, before);
    ensure!(call(Method::PUT, &key.path(), json!({"label": "renamed"})).await?.status == 200);
    let narrower = json!({"label": "x", "expiresAt": end - 1, "networks": ["203.0.113.8/29"]});
    ensure!(call(Method::POST, "/keys", narrower).await?.status == 201);
    // Rotated by itself it ends when it would have.
    pass(&api, 1_000);
    let next = call(Method::POST, &format!("{}/rotate", key.path()), json!({})).await?.json();
    assert_eq!(
        (&next["expiresAt"], &next["networks"]),
        (&json!(end), &json!(["203.0.113.0/24", "2001:db8::/32"]))
    );
    Ok(())
}

/// Two keys of one operator in two projects, with one idempotency key.
async fn keys_of_projects_share_no_idempotency_key(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut products = Vec::new();
    for name in ["one", "two"] {
        let project = api.create("/projects", json!({"name": name})).await?["id"].clone();
        let key = make(&api, json!({"label": name, "project": project})).await?;
        let body = json!({"name": "Bag"});
        let made = api.post_once(&key.key, Some("order-1"), "/products", &body).await?;
        ensure!(made.status == 201, "{made:?}");
        products.push(made.json()["id"].clone());
        // Another key of the same project gets the same product, but cannot read the answer of the first.
        let like = api.call_as(&key.key, Method::POST, "/keys", Some(json!({"label": "like"}))).await?;
        let like = Made::new(&like.json())?;
        api.post_once(&like.key, Some("order-1"), "/products", &body).await?.problem(409, 40901);
    }
    ensure!(products[0] != products[1], "{products:?}");
    Ok(())
}

async fn a_project_has_a_hundred_keys(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    let key = make(&api, json!({"label": "first", "project": project})).await?;
    let one = async || api.call_as(&key.key, Method::POST, "/keys", Some(json!({"label": "x"}))).await;
    for _ in 1..100 {
        ensure!(one().await?.status == 201);
    }
    let faults = one().await?.problem(409, 40901);
    ensure!(faults[0].starts_with("An account has at most 1000"), "{faults:?}");
    // The owner may make more, and one that was revoked makes room.
    let more = make(&api, json!({"label": "more", "project": project})).await?;
    for ended in [&more, &key] {
        ensure!(api.delete(&ended.path()).await?.status == 200);
    }
    Ok(())
}

crate::on_both_engines!(
    a_bounded_key_of_a_project_makes_no_wider_one,
    keys_of_projects_share_no_idempotency_key,
    a_project_has_a_hundred_keys,
    a_key_works_in_its_networks_only,
    an_account_keeps_a_key,
    of_two_last_keys_one_stays,
    a_confined_key_sees_its_project_only,
);
