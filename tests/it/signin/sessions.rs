//! Sessions: their cookie, who may use it where, and how they end.

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{HeaderValue, Method, Request, header},
};
use serde_json::{Value, json};
use signin::domain::token::Token;
use tests::{db::Engine, json::text};

use super::{
    ANOTHER, HOUR_MS, OWNER, PASSWORD,
    site::{HOME, KEY, Site},
};

const NONE: Value = Value::Null;

async fn a_session_serves_the_console_and_nothing_else(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let cookie = site.sign_in().await?;
    let who = site.with(&cookie, Method::GET, "/session", NONE).await?.done(200)?;
    ensure!(who["operator"]["email"] == OWNER && who["secondFactor"] == false, "{who}");
    ensure!(who["permissions"].as_array().is_some_and(|all| all.len() > 10), "{who}");
    let made = site.with(&cookie, Method::POST, "/products", json!({"name": "p"})).await?;
    let location = made.headers.get(header::LOCATION).context("location")?.to_str()?.to_owned();
    ensure!(made.status == 201 && location.contains("/console/api/products/"), "{location}");
    ensure!(made.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_none(), "{made:?}");
    // The audit trail names the operator and the session.
    let entries = site.by_key(KEY, Method::GET, "/audit?filter=resource=product", NONE).await?.body;
    ensure!(entries[0]["actor"] == site.made.operator.as_str(), "{entries}");
    ensure!(entries[0]["key"] == who["session"]["id"], "{entries}");

    // The cookie is no key, by whatever way, and counts nowhere else.
    let value = cookie.split_once('=').context("pair")?.1;
    for sent in [value, &cookie, &format!("Bearer {value}")] {
        ensure!(site.by_key(sent, Method::GET, "/access", NONE).await?.code() == (401, 40102), "{sent}");
    }
    let outside = Request::get("/access").header(header::COOKIE, &cookie).body(Body::empty())?;
    ensure!(site.send(outside, HOME).await?.code() == (401, 40101));
    let in_query = site.by_key("", Method::GET, &format!("/access?access_token={value}"), NONE).await?;
    ensure!(in_query.code() == (401, 40102), "{in_query:?}");

    // Lists of keys show none, and an operator ends them by itself alone.
    let keys = site.by_key(KEY, Method::GET, "/keys", NONE).await?.body;
    ensure!(keys.as_array().is_some_and(|keys| keys.len() == 1), "{keys}");
    let id = text(&who["session"], "id")?;
    ensure!(site.by_key(KEY, Method::GET, &format!("/keys/{id}"), NONE).await?.status == 404);
    let (_, other) = site.colleague("admin@example.com", "admin").await?;
    ensure!(site.by_key(&other, Method::DELETE, &format!("/keys/{id}"), NONE).await?.status == 404);
    Ok(())
}

/// The key that follows from a cookie is shown nowhere, and counts only where the gate has put it in.
async fn the_key_of_a_session_is_no_key_of_the_api(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let cookie = site.sign_in().await?;
    let token = Token::find([cookie.as_str()].into_iter()).context("token")?;
    let key = token.key(&site.made.app.core.secrets.sign_in).context("key")?;
    let account = site.made.account.to_string();
    let own = format!("/accounts/{account}/operatorAccess/{}", site.made.operator);
    let lists = ["accesses", "operatorAccess"].map(|name| format!("/accounts/{account}/{name}"));
    for path in lists.iter().map(String::as_str).chain([own.as_str(), "/accessTokens"]) {
        let shown = site.with(&cookie, Method::GET, path, NONE).await?.done(200)?;
        ensure!(!shown.to_string().contains(&key), "{path}: {shown}");
        ensure!(!shown.to_string().contains("apiKey"), "{path}: {shown}");
    }
    let changed = site.with(&cookie, Method::PUT, &own, json!({"firstName": "Ada"})).await?.done(200)?;
    ensure!(changed["firstName"] == "Ada" && changed.get("apiKey").is_none(), "{changed}");
    // An operator's key is shown to who sends it, as clients expect.
    let shown = site.by_key(KEY, Method::GET, &own, NONE).await?.done(200)?;
    ensure!(shown["apiKey"] == KEY, "{shown}");

    for (method, path) in [
        (Method::GET, "/access".to_owned()),
        (Method::POST, "/products".to_owned()),
        (Method::GET, "/events".to_owned()),
        (Method::GET, own.clone()),
    ] {
        let answer = site.by_key(&key, method.clone(), &path, json!({"name": "p"})).await?;
        ensure!(answer.code() == (401, 40102), "{method} {path}: {answer:?}");
        let path = format!("{path}?access_token={key}");
        let answer = site.by_key("", method.clone(), &path, json!({"name": "p"})).await?;
        ensure!(answer.code() == (401, 40102), "{method} {path}: {answer:?}");
    }
    // Nor does it get an answer that was kept for the session.
    let once = async |prefix: &str, cookie: Option<&str>, key: &str| -> Result<u16> {
        let request = Request::post(format!("{prefix}/products")).header("idempotency-key", "once");
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.header("sec-fetch-site", "same-origin").header(header::AUTHORIZATION, key);
        let request = match cookie {
            Some(cookie) => request.header(header::COOKIE, cookie),
            None => request,
        };
        let body = Body::from(json!({"name": "p"}).to_string());
        Ok(site.send(request.body(body)?, HOME).await?.status)
    };
    ensure!(once("/console/api", Some(&cookie), "").await? == 201);
    ensure!(once("/console/api", Some(&cookie), "").await? == 201, "a repeat");
    ensure!(once("", None, &key).await? == 401);
    ensure!(site.status(&cookie).await? == 200);
    Ok(())
}

async fn only_pages_of_the_same_origin_get_through(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let credentials = json!({"email": OWNER, "password": PASSWORD}).to_string();
    for (site_header, origin, passes) in [
        (Some("same-origin"), None, true),
        (Some("cross-site"), None, false),
        (Some("same-site"), Some("https://api.example"), false),
        (Some("none"), None, false),
        (None, Some("https://api.example"), true),
        (None, Some("https://evil.example"), false),
        (None, Some("null"), false),
        (None, None, false),
    ] {
        let cookie = site.sign_in().await?;
        // A sign-in ends the session of the cookie, so it comes last.
        for (method, path) in [
            (Method::GET, "/console/api/session"),
            (Method::POST, "/console/api/products"),
            (Method::OPTIONS, "/console/api/products"),
            (Method::GET, "/v2/console/api/products"),
            (Method::POST, "/console/api/session"),
        ] {
            let mut request =
                Request::builder().method(method.clone()).uri(path).header(header::COOKIE, &cookie);
            for (name, value) in [("sec-fetch-site", site_header), ("origin", origin)] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let body = match path {
                "/console/api/session" => credentials.clone(),
                _ => json!({"name": "x"}).to_string(),
            };
            let request = request.header(header::CONTENT_TYPE, "application/json");
            let is_read = [Method::GET, Method::OPTIONS].contains(&method);
            let body = if is_read { Body::empty() } else { Body::from(body) };
            let answer = site.send(request.body(body)?, HOME).await?;
            let is_refused = answer.code() == (403, 40301);
            ensure!(is_refused != passes, "{site_header:?} {origin:?} {method} {path}: {answer:?}");
            let does_it = (200..300).contains(&answer.status) || method == Method::OPTIONS;
            ensure!(is_refused || does_it, "{site_header:?} {origin:?} {method} {path}: {answer:?}");
            ensure!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
        }
    }
    Ok(())
}

async fn a_sign_in_never_takes_over_a_session(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let body = json!({"email": OWNER, "password": PASSWORD});
    // A cookie that an attacker planted: well-formed and of nobody, or of a session of its own.
    let planted = format!("__Host-waymark={}", "A".repeat(43));
    site.colleague("mallory@example.com", "viewer").await?;
    let answer =
        site.try_sign_in(json!({"email": "mallory@example.com", "password": PASSWORD}), HOME).await?;
    let own = answer.cookie()?;
    for planted in [&planted, &own] {
        let answer = site.ask(Some(planted), (Method::POST, "/session"), body.clone(), HOME).await?;
        let cookie = answer.cookie()?;
        ensure!(&cookie != planted && site.status(&cookie).await? == 200);
        ensure!(site.status(planted).await? == 401, "the session that the cookie named has ended");
    }
    // Each sign-in is a session of its own.
    let (one, two) = (site.sign_in().await?, site.sign_in().await?);
    ensure!(one != two && site.status(&one).await? == 200 && site.status(&two).await? == 200);
    // A sign-in that fails ends none.
    let wrong = json!({"email": OWNER, "password": ANOTHER});
    ensure!(site.ask(Some(&one), (Method::POST, "/session"), wrong, HOME).await?.status == 401);
    ensure!(site.status(&one).await? == 200);
    Ok(())
}

async fn sessions_are_listed_and_ended(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let one = site.sign_in().await?;
    site.pass(60_000);
    let body = json!({"email": OWNER, "password": PASSWORD});
    let two = site.try_sign_in(body, "203.0.113.9").await?.cookie()?;
    let listed = site.with(&one, Method::GET, "/sessions", NONE).await?.done(200)?;
    let listed = listed.as_array().context("list")?;
    let networks: Vec<&Value> = listed.iter().map(|session| &session["network"]).collect();
    ensure!(networks == ["198.51.100.0/24", "203.0.113.0/24"], "{listed:?}");
    ensure!(listed[0]["current"] == true && listed[1]["current"] == false, "{listed:?}");
    ensure!(listed.iter().all(|session| session["agent"] == "Firefox, Linux"), "{listed:?}");
    ensure!(listed[0].as_object().is_some_and(|members| members.len() == 7), "{listed:?}");

    // Nobody ends the session of another.
    site.colleague("mallory@example.com", "owner").await?;
    let answer =
        site.try_sign_in(json!({"email": "mallory@example.com", "password": PASSWORD}), HOME).await?;
    let mallory = answer.cookie()?;
    let of_two = format!("/sessions/{}", text(&listed[1], "id")?);
    ensure!(site.with(&mallory, Method::DELETE, &of_two, NONE).await?.code() == (404, 40401));
    ensure!(site.status(&two).await? == 200);
    site.with(&one, Method::DELETE, &of_two, NONE).await?.done(200)?;
    ensure!(site.status(&two).await? == 401);
    ensure!(site.with(&one, Method::DELETE, &of_two, NONE).await?.status == 404);

    // A cookie that was stolen is worth nothing after the sign-out.
    let out = site.with(&one, Method::DELETE, "/session", NONE).await?;
    let cleared = out.headers.get(header::SET_COOKIE).context("cookie")?.to_str()?.to_owned();
    ensure!(out.status == 200 && cleared.ends_with("; Max-Age=0"), "{cleared}");
    for path in ["/session", "/products", "/sessions"] {
        ensure!(site.with(&one, Method::GET, path, NONE).await?.code() == (401, 40102), "{path}");
    }
    // A page gets rid of a cookie whose session is over.
    let out = site.with(&one, Method::DELETE, "/session", NONE).await?;
    let cleared = out.headers.get(header::SET_COOKIE).context("cookie")?.to_str()?;
    ensure!(out.code() == (401, 40102) && cleared.ends_with("; Max-Age=0"), "{out:?}");
    Ok(())
}

async fn sessions_end_when_they_are_idle_old_or_too_many(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let used = site.sign_in().await?;
    let idle = site.sign_in().await?;
    site.pass(11 * HOUR_MS);
    ensure!(site.status(&used).await? == 200);
    site.pass(HOUR_MS);
    ensure!((site.status(&used).await?, site.status(&idle).await?) == (200, 401), "12 hours idle");
    // However it is used, it ends after 30 days.
    let mut hours = 12;
    while site.status(&used).await? == 200 {
        site.pass(4 * HOUR_MS);
        hours += 4;
        ensure!(hours <= 30 * 24, "{hours}");
    }
    ensure!(hours == 30 * 24, "{hours}");

    let mut cookies = Vec::new();
    for _ in 0..21 {
        site.pass(1_000);
        cookies.push(site.sign_in().await?);
    }
    ensure!(site.status(&cookies[0]).await? == 401, "the oldest made room");
    ensure!(site.status(&cookies[1]).await? == 200);
    let listed = site.with(&cookies[20], Method::GET, "/sessions", NONE).await?.body;
    ensure!(listed.as_array().is_some_and(|listed| listed.len() == 20), "{listed}");
    // What is over is removed in the end.
    site.pass(48 * HOUR_MS);
    ensure!(signin::service::throttles::purge(&site.made.app.sign_in).await? >= 40);
    let rows = tests::fingerprint::fingerprint(&site.made.db.location).await?;
    ensure!(rows["operator_sessions"].is_empty() && rows["api_keys"].len() == 1, "{:?}", rows["api_keys"]);
    Ok(())
}

async fn sessions_end_with_what_their_operator_may(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let project = site.by_key(KEY, Method::POST, "/projects", json!({"name": "p"})).await?.done(201)?;
    let (id, _) = site.colleague("ada@example.com", "editor").await?;
    let access = format!("/accounts/{}/operatorAccess/{id}", site.made.account);
    let sign_in = async || -> Result<String> {
        let body = json!({"email": "ada@example.com", "password": PASSWORD});
        site.try_sign_in(body, HOME).await?.cookie()
    };
    for change in
        [json!({"role": "viewer"}), json!({"conditions": [format!("project={}", text(&project, "id")?)]})]
    {
        let cookie = sign_in().await?;
        ensure!(site.status(&cookie).await? == 200);
        site.by_key(KEY, Method::PUT, &access, change.clone()).await?.done(200)?;
        ensure!(site.status(&cookie).await? == 401, "{change}");
    }
    // A cookie of another application with other bytes hides none.
    let cookie = sign_in().await?;
    let mut both = b"theirs=\xc3\xbc\xff; ".to_vec();
    both.extend(cookie.as_bytes());
    let request = Request::get("/console/api/session").header("sec-fetch-site", "same-origin");
    let request = request.header(header::COOKIE, HeaderValue::from_bytes(&both)?).body(Body::empty())?;
    ensure!(site.send(request, HOME).await?.status == 200);
    // Names alone end nothing.
    let cookie = sign_in().await?;
    site.by_key(KEY, Method::PUT, &access, json!({"firstName": "Ada"})).await?.done(200)?;
    ensure!(site.status(&cookie).await? == 200);
    // Now a viewer of one project, by the session too.
    let made = site.with(&cookie, Method::POST, "/products", json!({"name": "p"})).await?;
    ensure!(made.code() == (403, 40301), "{made:?}");
    // The project is deleted: the session ends, and no other begins.
    let uri = format!("/projects/{}", text(&project, "id")?);
    site.by_key(KEY, Method::DELETE, &uri, NONE).await?.done(200)?;
    ensure!(site.status(&cookie).await? == 401);
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let refused = site.try_sign_in(body, HOME).await?;
    ensure!(refused.code() == (403, 40301) && refused.body.to_string().contains("deleted"), "{refused:?}");
    site.by_key(KEY, Method::PUT, &access, json!({"conditions": []})).await?.done(200)?;
    let cookie = sign_in().await?;
    site.by_key(KEY, Method::DELETE, &access, NONE).await?.done(200)?;
    ensure!(site.status(&cookie).await? == 401, "removed");
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    ensure!(site.try_sign_in(body, HOME).await?.code() == (401, 40103), "its password went with it");
    Ok(())
}

crate::on_both_engines!(
    a_session_serves_the_console_and_nothing_else,
    the_key_of_a_session_is_no_key_of_the_api,
    only_pages_of_the_same_origin_get_through,
    a_sign_in_never_takes_over_a_session,
    sessions_are_listed_and_ended,
    sessions_end_when_they_are_idle_old_or_too_many,
    sessions_end_with_what_their_operator_may,
);
