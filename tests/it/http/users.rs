//! Users of applications: registration, activation, logins, logout, and the user records.

use anyhow::Result;
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::text};

use super::{Api, Application};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// An application of a new project: its path and its public key.
async fn application(api: &Api) -> Result<(String, String)> {
    let Application { path, public, .. } = api.application(json!({"name": "a"})).await?;
    Ok((path, public))
}

async fn register(api: &Api, key: &str, email: &str) -> Result<Value> {
    let body = json!({"firstName": "Ada", "lastName": "L", "email": email, "password": "password"});
    Ok(api.call_as(key, Method::POST, "/auth/evrythng/users", Some(body)).await?.must_be(201)?.json())
}

async fn activate(api: &Api, key: &str, registered: &Value) -> Result<Value> {
    let uri = format!("/auth/evrythng/users/{}/validate", text(registered, "evrythngUser")?);
    let body = json!({"activationCode": registered["activationCode"]});
    Ok(api.call_as(key, Method::POST, &uri, Some(body)).await?.must_be(201)?.json())
}

pub(super) async fn a_named_user_registers_logs_in_and_out(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.codes_to_callers().await?;
    let (_, app) = application(&api).await?;
    let registered = register(&api, &app, "Ada@Example.com").await?;
    assert_eq!(
        (&registered["status"], &registered["email"]),
        (&json!("inactive"), &json!("Ada@Example.com"))
    );
    assert_eq!(registered.get("evrythngApiKey"), None);
    let id = text(&registered, "evrythngUser")?;
    let login = json!({"email": "ada@EXAMPLE.com", "password": "password"});
    let log_in =
        async |body: &Value| api.call_as(&app, Method::POST, "/users/login", Some(body.clone())).await;

    // One answer to whoever may not log in, whatever the reason.
    let inactive = log_in(&login).await?.problem(401, 40103);
    let wrong = json!({"email": "ada@example.com", "password": "Password"});
    let unknown = json!({"email": "bob@example.com", "password": "password"});
    assert_eq!(log_in(&wrong).await?.problem(401, 40103), inactive);
    assert_eq!(log_in(&unknown).await?.problem(401, 40103), inactive);

    let uri = format!("/auth/evrythng/users/{id}/validate");
    let bad = api.call_as(&app, Method::POST, &uri, Some(json!({"activationCode": "x"}))).await?;
    bad.problem(400, 40001);
    let activated = activate(&api, &app, &registered).await?;
    assert_eq!((&activated["status"], &activated["evrythngUser"]), (&json!("active"), &json!(id)));
    let used = json!({"activationCode": registered["activationCode"]});
    api.call_as(&app, Method::POST, &uri, Some(used)).await?.problem(400, 40001);
    assert_eq!(log_in(&wrong).await?.problem(401, 40103), inactive);

    let logged_in = log_in(&login).await?;
    assert_eq!(logged_in.status, 200, "{logged_in:?}");
    let logged_in = logged_in.json();
    assert_eq!((&logged_in["id"], &logged_in["firstName"]), (&json!(id), &json!("Ada")));
    assert_eq!(logged_in["access"]["apiKey"], logged_in["evrythngApiKey"]);
    let older = api.call_as(&app, Method::POST, "/auth/evrythng", Some(login.clone())).await?.json();
    let first = text(&activated, "evrythngApiKey")?;
    let second = text(&logged_in, "evrythngApiKey")?;
    let third = text(&older, "evrythngApiKey")?;
    let mut keys = vec![first.clone(), second.clone(), third.clone()];
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);
    for key in &keys {
        assert_eq!(key.len(), 80);
        let access = api.call_as(key, Method::GET, "/access", None).await?.json();
        assert_eq!(access["actor"], json!({"type": "userInApp", "id": id}));
        assert!(access["project"].is_string());
        let own = api.call_as(key, Method::GET, &format!("/users/{id}"), None).await?.json();
        assert_eq!((&own["email"], &own["lastName"]), (&json!("Ada@Example.com"), &json!("L")));
    }

    let out = api.call_as(&first, Method::POST, "/auth/all/logout", None).await?;
    assert_eq!(out.json(), json!({"logout": "ok"}));
    api.call_as(&first, Method::GET, "/access", None).await?.problem(401, 40102);
    assert_eq!(api.call_as(&second, Method::GET, "/access", None).await?.status, 200);

    let stored = format!("{:?}", api.fingerprint().await?);
    for secret in [&first, &second, &text(&registered, "activationCode")?] {
        assert!(!stored.contains(secret.as_str()));
    }
    assert!(stored.contains("$argon2id$") && !stored.contains("'password'"));

    assert_eq!(api.delete(&format!("/users/{id}")).await?.status, 200);
    for key in [&second, &third] {
        api.call_as(key, Method::GET, "/access", None).await?.problem(401, 40102);
    }
    assert_eq!(log_in(&login).await?.problem(401, 40103), inactive);
    Ok(())
}

pub(super) async fn an_anonymous_user_has_a_key(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (path, app) = application(&api).await?;
    let made = api
        .call_as(&app, Method::POST, "/v2/auth/evrythng/users?anonymous=true", Some(json!({})))
        .await?
        .must_be(201)?;
    let location = made.header("location").unwrap_or_default().to_owned();
    let made = made.json();
    let id = text(&made, "evrythngUser")?;
    assert_eq!(made["status"], "anonymous");
    assert_eq!(location, format!("http://api.example:8080/v2/users/{id}"));
    let key = text(&made, "evrythngApiKey")?;
    let uri = format!("/users/{id}");
    assert_eq!(api.call_as(&key, Method::GET, &uri, None).await?.json()["id"], json!(id));
    assert_eq!(api.call_as(&key, Method::GET, "/users", None).await?.json()[0]["id"], json!(id));
    let change =
        json!({"firstName": "updated", "email": "x@y", "scopes": {"users": ["all"], "projects": []}});
    let updated = api.put(&uri, change).await?.json();
    assert_eq!((&updated["firstName"], updated.get("email")), (&json!("updated"), None));
    assert_eq!(api.get("/users").await?.json(), json!([updated]));

    // A user sees itself only; its application cannot read users.
    let other =
        api.call_as(&app, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({}))).await?;
    let other = format!("/users/{}", text(&other.json(), "evrythngUser")?);
    api.call_as(&key, Method::GET, &other, None).await?.problem(404, 40401);
    api.call_as(&key, Method::PUT, &other, Some(json!({"firstName": "x"}))).await?.problem(404, 40401);
    assert_eq!(
        api.call_as(&key, Method::GET, "/users", None).await?.json().as_array().map(Vec::len),
        Some(1)
    );
    api.call_as(&key, Method::DELETE, &uri, None).await?.problem(403, 40301);
    api.call_as(&app, Method::GET, &uri, None).await?.problem(403, 40301);
    api.post("/auth/evrythng/users?anonymous=true", json!({})).await?.problem(403, 40301);
    api.call(Method::POST, "/auth/all/logout", None).await?.problem(403, 40301);
    api.call_as(&app, Method::POST, "/auth/evrythng/users?anonymous=1", Some(json!({})))
        .await?
        .problem(400, 40003);

    // A user goes with its application.
    assert_eq!(api.delete(&path).await?.status, 200);
    api.call_as(&key, Method::GET, "/access", None).await?.problem(401, 40102);
    assert_eq!(api.get("/users").await?.json(), json!([]));
    Ok(())
}

pub(super) async fn an_email_address_is_unique_in_a_project(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.codes_to_callers().await?;
    let (_, first) = application(&api).await?;
    let (_, second) = application(&api).await?;
    let one = register(&api, &first, "a@example.com").await?;
    let body = json!({"email": "A@Example.com", "password": "password"});
    api.call_as(&first, Method::POST, "/auth/evrythng/users", Some(body)).await?.problem(409, 40901);
    let two = register(&api, &second, "a@example.com").await?;
    // Another application's user is not there for it.
    let uri = format!("/auth/evrythng/users/{}/validate", text(&one, "evrythngUser")?);
    let code = json!({"activationCode": one["activationCode"]});
    api.call_as(&second, Method::POST, &uri, Some(code)).await?.problem(404, 40401);
    let unknown = format!("/auth/evrythng/users/{UNKNOWN}/validate");
    api.call_as(&first, Method::POST, &unknown, Some(json!({"activationCode": "x"})))
        .await?
        .problem(404, 40401);
    activate(&api, &second, &two).await?;
    let login = json!({"email": "a@example.com", "password": "password"});
    api.call_as(&first, Method::POST, "/users/login", Some(login.clone())).await?.problem(401, 40103);
    let user = api.call_as(&second, Method::POST, "/users/login", Some(login)).await?;
    assert_eq!(user.json()["id"], two["evrythngUser"]);
    for (uri, body, fault) in [
        ("/auth/evrythng/users", json!({"email": "x", "password": "password"}), "email"),
        ("/auth/evrythng/users", json!({"email": "a@b", "password": "p".repeat(257)}), "password"),
        ("/users/login", json!({"email": "a@b"}), "password is required"),
        ("/users/login", json!({"email": "a@b", "password": "p".repeat(1_000_000)}), "password"),
    ] {
        let errors = api.call_as(&first, Method::POST, uri, Some(body)).await?.problem(400, 40001);
        assert!(errors.len() == 1 && errors[0].contains(fault), "{errors:?}");
        assert!(!errors[0].contains("ppp"), "a password came back");
    }
    Ok(())
}

/// A repeat gets the first user and its key again, readable with the application's key alone.
pub(super) async fn repeated_registrations_create_one_user(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_, app) = application(&api).await?;
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = axum::http::Request::post("/auth/evrythng/users?anonymous=true")
            .header("authorization", &app)
            .header("content-type", "application/json")
            .header("idempotency-key", "once")
            .body(axum::body::Body::from("{}"))?;
        let answer = api.send(request).await?;
        assert_eq!(answer.status, 201, "{answer:?}");
        answers.push(answer.json());
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(api.get("/users").await?.json().as_array().map(Vec::len), Some(1));
    let key = text(&answers[0], "evrythngApiKey")?;
    assert!(!format!("{:?}", api.fingerprint().await?).contains(&key));
    Ok(())
}

crate::on_both_engines!(
    a_named_user_registers_logs_in_and_out,
    an_anonymous_user_has_a_key,
    an_email_address_is_unique_in_a_project,
    repeated_registrations_create_one_user,
);
