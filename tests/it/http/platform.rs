//! What the platform operator does: suspensions, take-downs and keys of the platform, on both engines.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request},
};
use control::http::router;
use events::store::webhooks::{self, Fit};
use hosting::{
    domain::platform_key::{PLATFORM_KEY_PREFIX, PlatformKey},
    service::{By, keys, take_downs},
    store::platform_keys,
};
use jobs::store::job_leases::{self, Phase};
use kernel::{domain::access::hash_key, store::Ctx};
use serde_json::{Value, json};
use tests::{
    db::{Engine, SystemRandom, TestApp},
    wait::until,
};
use tower::ServiceExt;

use super::{
    Answer, Api,
    jobs::{check, list, submit, thng, work},
    paging::next,
    webhooks::receiver::{Receiver, Reply, count, deliver, execute, webhook},
};

/// A key of the platform.
pub(super) async fn platform_key(api: &Api) -> Result<String> {
    let core = &api.made.app.core;
    let by = By::command("platform keys create", core.clock.now());
    Ok(keys::create(&core.db, &SystemRandom, &by, "tests".to_owned(), None).await?)
}

/// A request with the key of the platform that must succeed.
pub(super) async fn ask(
    api: &Api,
    key: &str,
    method: Method,
    uri: &str,
    body: Option<Value>,
) -> Result<Answer> {
    let answer = api.call_as(key, method, uri, body).await?;
    ensure!(answer.status.is_success(), "{uri}: {answer:?}");
    Ok(answer)
}

pub(super) async fn suspend(api: &Api, key: &str) -> Result<Value> {
    let uri = format!("/platform/accounts/{}/suspension", api.made.account);
    Ok(ask(api, key, Method::PUT, &uri, Some(json!({"reason": "unpaid"}))).await?.json())
}

pub(super) async fn resume(api: &Api, key: &str) -> Result<Value> {
    let uri = format!("/platform/accounts/{}/suspension", api.made.account);
    Ok(ask(api, key, Method::DELETE, &uri, None).await?.json())
}

/// A redirection `ABC` of a Thng on `tn.gg`.
pub(super) async fn redirection(api: &Api, target: &str) -> Result<()> {
    let id = thng(api, json!({"name": "t"})).await?;
    let body = json!({"platformId": id, "defaultRedirectUrl": target, "shortId": "ABC"});
    let answer = api.post("/redirections", body).await?;
    ensure!(answer.status.is_success(), "{answer:?}");
    Ok(())
}

/// The entries of the audit trail of a resource, newest first.
pub(super) async fn entries(api: &Api, resource: &str) -> Result<Vec<Value>> {
    let answer = api.get(&format!("/audit?filter=resource={resource}")).await?;
    Ok(answer.json().as_array().context("entries")?.clone())
}

async fn keys_of_a_suspended_account_are_refused_at_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    assert_eq!(api.get("/access").await?.status, 200, "the key is cached");
    let account = suspend(&api, &platform).await?;
    assert_eq!((&account["status"], &account["id"]), (&json!("suspended"), &json!(api.made.account)));
    let suspension = &account["suspension"];
    assert_eq!((&suspension["reason"], &suspension["by"]), (&json!("unpaid"), &json!("key tests")));
    for (method, uri) in [(Method::GET, "/access"), (Method::POST, "/thngs"), (Method::GET, "/audit")] {
        let faults = api.call(method, uri, Some(json!({"name": "t"}))).await?.problem(403, 40303);
        assert_eq!(faults, ["The account is suspended. Contact: abuse@example.com"]);
    }
    assert_eq!(api.call_as(&api.other_key, Method::GET, "/access", None).await?.status, 200, "the other");
    // Suspended again, it keeps the time and gets the new reason; resumed twice, nothing is wrong.
    let since = suspension["since"].clone();
    let uri = format!("/platform/accounts/{}/suspension", api.made.account);
    let again = ask(&api, &platform, Method::PUT, &uri, Some(json!({"reason": "abuse"}))).await?.json();
    assert_eq!((&again["suspension"]["reason"], &again["suspension"]["since"]), (&json!("abuse"), &since));
    assert_eq!(resume(&api, &platform).await?["status"], "active");
    assert_eq!(resume(&api, &platform).await?["status"], "active");
    assert_eq!(api.get("/access").await?.status, 200);
    let found = entries(&api, "suspension").await?;
    assert_eq!(found.len(), 3, "the second resume changed nothing: {found:?}");
    let operation = "DELETE /platform/accounts/{id}/suspension";
    assert_eq!((&found[0]["actorType"], &found[0]["operation"]), (&json!("platform"), &json!(operation)));
    assert_eq!(
        (&found[1]["before"], &found[1]["after"]),
        (&json!({"reason": "unpaid"}), &json!({"reason": "abuse"}))
    );
    assert!(found[2]["key"].as_str().is_some_and(|id| id.len() == 24), "{}", found[2]);
    Ok(())
}

async fn jobs_and_webhooks_of_a_suspended_account_wait(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    let receiver = Receiver::new(|_| Reply::Take).await?;
    webhook(&api, &receiver, json!({"types": ["action.scans"]})).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    let job = submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    api.create("/actions/scans", json!({"thng": id})).await?;
    suspend(&api, &platform).await?;
    let (_work, _deliver) = (work(&api), deliver(&api));
    let pending = "SELECT COUNT(*) FROM webhook_messages WHERE status = 'pending'";
    until("a message", async || Ok(count(&api, pending).await? > 0)).await?;
    let mut conn = api.made.app.core.db.read().await?;
    assert!(!webhooks::is_due(&mut conn, Fit::Any, &[]).await?);
    assert!(!job_leases::is_ready(&mut conn, Phase::Load, &[]).await?);
    drop(conn);
    // What the next round of the worker would take.
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    assert!(webhooks::claim(&mut tx, 10, Duration::from_secs(1), Fit::Any, &[]).await?.is_empty());
    drop(tx);
    assert_eq!(receiver.asked(), 0);
    assert_eq!(count(&api, "SELECT COUNT(*) FROM jobs WHERE status = 'ENQUEUED'").await?, 1);
    resume(&api, &platform).await?;
    check(&api, &job, "COMPLETED", 1, 0).await?;
    receiver.wait(2).await?;
    Ok(())
}

async fn abuse_is_reported_where_pages_and_security_txt_say(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let bare = async |uri: &str| api.call_as("", Method::GET, uri, None).await;
    for uri in ["/.well-known/security.txt", "/v2/.well-known/security.txt"] {
        let answer = bare(uri).await?;
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type")),
            (200, Some("text/plain; charset=utf-8"))
        );
        let text = String::from_utf8(answer.bytes)?;
        assert!(text.starts_with("Contact: mailto:abuse@example.com\nExpires: 20"), "{text}");
    }
    for uri in ["/docs", "/docs/guide/", "/docs/guide/platform"] {
        let text = String::from_utf8(bare(uri).await?.bytes)?;
        let contact = "<a href=\"mailto:abuse@example.com\">abuse@example.com</a></small></p></body></html>";
        assert!(text.ends_with(contact), "{uri}: {}", &text[text.len().saturating_sub(200)..]);
    }
    let made = TestApp::with(engine, |parts| parts.contact = None).await?;
    let request = Request::get("/.well-known/security.txt").body(Body::empty())?;
    assert_eq!(router(made.app.clone()).oneshot(request).await?.status(), 404);
    Ok(())
}

async fn a_link_that_was_taken_down_cannot_be_changed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    redirection(&api, "https://example.com/a").await?;
    let uri = "/platform/takedowns/links/TN.gg/abc";
    let until = api.made.app.core.clock.now().0 + 1_000_000;
    let body = json!({"reason": "phishing", "until": until});
    let made = ask(&api, &platform, Method::PUT, uri, Some(body)).await?.json();
    assert_eq!((&made["shortDomain"], &made["shortId"]), (&json!("tn.gg"), &json!("ABC")));
    assert_eq!((&made["account"], &made["until"]), (&json!(api.made.account), &json!(until)));
    // Its owner sees it, in the list too, and cannot repoint it.
    for shown in
        [api.get("/redirections/ABC").await?.json(), api.get("/redirections").await?.json()[0].clone()]
    {
        let taken_down = &shown["takenDown"];
        assert_eq!(
            (&taken_down["reason"], &taken_down["until"]),
            (&json!("phishing"), &json!(until)),
            "{shown}"
        );
        assert!(taken_down.get("host").is_none());
    }
    let change = json!({"defaultRedirectUrl": "https://example.com/b"});
    let faults = api.put("/redirections/ABC", change.clone()).await?.problem(409, 40901);
    assert_eq!(faults, ["The redirection ABC was taken down: phishing"]);
    api.put("/redirections?ids=ABC", change.clone()).await?.problem(409, 40901);
    assert_eq!(api.get("/redirections/ABC").await?.json()["defaultRedirectUrl"], "https://example.com/a");
    assert_eq!(ask(&api, &platform, Method::GET, uri, None).await?.json(), made);
    assert_eq!(ask(&api, &platform, Method::GET, "/platform/takedowns", None).await?.json(), json!([made]));
    let released = ask(&api, &platform, Method::DELETE, uri, None).await?;
    assert!(released.bytes.is_empty());
    api.call_as(&platform, Method::DELETE, uri, None).await?.problem(404, 40401);
    ask(&api, &api.key, Method::PUT, "/redirections/ABC", Some(change)).await?;
    assert!(api.get("/redirections/ABC").await?.json().get("takenDown").is_none());
    let found = entries(&api, "takeDown").await?;
    assert!(found.len() == 2 && found.iter().all(|entry| entry["resourceId"] == "tn.gg/ABC"), "{found:?}");
    Ok(())
}

async fn nothing_new_leads_to_a_blocked_host(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    redirection(&api, "https://shop.evil.example/a").await?;
    let uri = "/platform/takedowns/hosts/Evil.example";
    ask(&api, &platform, Method::PUT, uri, Some(json!({"reason": "malware"}))).await?;
    let shown = api.get("/redirections/ABC").await?.json()["takenDown"].clone();
    assert_eq!((&shown["reason"], &shown["host"]), (&json!("malware"), &json!("evil.example")));
    let before = api.fingerprint().await?;
    let blocked = "must not lead to evil.example, which whoever runs this service has blocked.";
    let id = thng(&api, json!({"name": "t"})).await?;
    for key in [&api.key, &api.other_key] {
        let body = json!({"rules": [{"match": "hour>1", "redirectUrl": "https://evil.example/r"}]});
        let faults = api.call_as(key, Method::PUT, "/redirector", Some(body)).await?.problem(400, 40001);
        assert_eq!(faults, [format!("rules[0].redirectUrl {blocked}")]);
    }
    let new = json!({"platformId": id, "defaultRedirectUrl": "https://EVIL.example./x"});
    let faults = api.post("/redirections", new.clone()).await?.problem(400, 40001);
    assert_eq!(faults, [format!("defaultRedirectUrl {blocked}")]);
    let many = api.post("/redirections", json!([new])).await?.json();
    assert_eq!(many[0]["status"], 400, "{many}");
    let change = json!({"defaultRedirectUrl": "https://a.evil.example/"});
    let faults = api.put("/redirections/ABC", change).await?.problem(400, 40001);
    assert_eq!(faults, [format!("defaultRedirectUrl {blocked}")]);
    let mut after = api.fingerprint().await?;
    let unchanged = ["redirections", "redirect_log", "redirect_rules"];
    after.retain(|table, _| unchanged.contains(&&**table));
    assert!(after.iter().all(|(table, rows)| before.get(table) == Some(rows)), "a refusal changed something");
    // Its owner may lead it elsewhere.
    let change = json!({"defaultRedirectUrl": "https://notevil.example/"});
    ask(&api, &api.key, Method::PUT, "/redirections/ABC", Some(change)).await?;
    assert!(api.get("/redirections/ABC").await?.json().get("takenDown").is_none());
    ask(&api, &platform, Method::DELETE, uri, None).await?;
    ask(&api, &api.key, Method::POST, "/redirections", Some(new)).await?;
    Ok(())
}

async fn a_take_down_ends_by_itself(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let platform = platform_key(&api).await?;
    let hosts = "/platform/takedowns/hosts";
    for (host, lasts) in
        [("soon.example", Some(1_000)), ("late.example", Some(1_000_000)), ("never.example", None)]
    {
        let until = lasts.map(|ms| core.clock.now().0 + ms);
        let body = json!({"reason": "x", "until": until});
        ask(&api, &platform, Method::PUT, &format!("{hosts}/{host}"), Some(body)).await?;
    }
    let by = By::platform("the end of a take-down", core.clock.now());
    execute(&api, "UPDATE withheld SET ends_at = 32503680000000 WHERE ends_at IS NOT NULL").await?;
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 0);
    let head = count(&api, "SELECT head FROM log_head").await?;
    execute(&api, "UPDATE withheld SET ends_at = 1 WHERE subject = 'soon.example'").await?;
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 1);
    assert_eq!(take_downs::release_over(&core.db, &by).await?, 0);
    assert_eq!(count(&api, "SELECT head FROM log_head").await?, head + 1, "edges learn of it");
    api.call_as(&platform, Method::GET, &format!("{hosts}/soon.example"), None).await?.problem(404, 40401);
    let all = ask(&api, &platform, Method::GET, "/platform/takedowns?perPage=1", None).await?;
    assert_eq!(all.json()[0]["host"], "never.example", "newest first");
    let more = next(&all).context("a next page")?;
    let more = more.strip_prefix("http://api.example:8080").context(more.clone())?;
    let all = ask(&api, &platform, Method::GET, more, None).await?;
    assert!(all.json()[0]["host"] == "late.example" && next(&all).is_none(), "{all:?}");
    Ok(())
}

async fn what_is_wrong_is_named_and_changes_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    redirection(&api, "https://example.com/a").await?;
    let before = api.fingerprint().await?;
    let account = format!("/platform/accounts/{}/suspension", api.made.account);
    let (link, host) = ("/platform/takedowns/links/tn.gg/ABC", "/platform/takedowns/hosts/evil.example");
    let why = json!({"reason": "x"});
    for (uri, body, status, code, faults) in [
        (&*account, json!({}), 400, 40001, 1),
        (&account, json!({"reason": ""}), 400, 40001, 1),
        (&account, json!([]), 400, 40001, 1),
        ("/platform/accounts/UKXAGyEf8SQ5eTDmVgGpHqAa/suspension", why.clone(), 404, 40401, 1),
        ("/platform/accounts/none/suspension", why.clone(), 404, 40401, 1),
        (link, json!({"until": 1}), 400, 40001, 2),
        (host, json!({"reason": 1, "until": "x"}), 400, 40001, 2),
        ("/platform/takedowns/links/tn.gg/NONE", why.clone(), 404, 40401, 1),
        ("/platform/takedowns/links/nowhere.gg/ABC", why.clone(), 404, 40401, 1),
        ("/platform/takedowns/hosts/com", why.clone(), 400, 40003, 1),
        ("/platform/takedowns/hosts/*.evil.example", why.clone(), 400, 40003, 1),
        ("/platform/takedowns/hosts/tn.gg", why.clone(), 400, 40003, 1),
    ] {
        let answer = api.call_as(&platform, Method::PUT, uri, Some(body.clone())).await?;
        assert_eq!(answer.problem(status, code).len(), faults, "{uri} {body}");
    }
    let uri = format!("{account}?wait=all");
    api.call_as(&platform, Method::PUT, &uri, Some(why.clone())).await?.problem(400, 40003);
    assert_eq!(api.fingerprint().await?, before);
    let body = json!({"reason": "x", "until": null, "colour": "red"});
    let answer = ask(&api, &platform, Method::PUT, host, Some(body)).await?;
    assert_eq!(answer.header("x-ignored"), Some("colour"));
    Ok(())
}

async fn a_key_of_the_platform_is_for_the_platform_alone(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let platform = platform_key(&api).await?;
    assert!(platform.len() == 80 && platform.starts_with(PLATFORM_KEY_PREFIX));
    // No operation of an account knows it, and none of the platform takes another.
    let document = control::http::document();
    for (path, item) in document["paths"].as_object().context("paths")? {
        for method in item.as_object().context("item")?.keys() {
            let method: Method = method.to_uppercase().parse()?;
            let uri = path.replace("{id}", "UKXAGyEf8SQ5eTDmVgGpHqAa").replace(['{', '}'], "");
            // These take no key.
            if ["/invitations", "/redirections/{shortId}/reports"].contains(&&**path) {
                continue;
            }
            let (key, expected) = match path.split('/').nth(1) {
                Some("platform") => (&*api.key, 403),
                // There a session counts, and no key is taken.
                Some("console") => (&*platform, 403),
                _ => (&*platform, 401),
            };
            let body = (method == Method::POST || method == Method::PUT).then(|| json!({}));
            let answer = api.call_as(key, method.clone(), &uri, body).await?;
            assert_eq!(answer.status, expected, "{method} {path}: {answer:?}");
        }
    }
    let uri = "/platform/accounts";
    api.call_as("", Method::GET, uri, None).await?.problem(401, 40101);
    api.call_as(&"C".repeat(80), Method::GET, uri, None).await?.problem(401, 40102);
    let in_query = format!("{uri}?access_token={platform}");
    api.call_as("", Method::GET, &in_query, None).await?.problem(401, 40101);
    // Both accounts, newest first.
    let all = ask(&api, &platform, Method::GET, uri, None).await?.json();
    let names: Vec<&str> =
        all.as_array().context("list")?.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["Other", "Test"]);
    let one = format!("{uri}/{}", api.other_account);
    assert_eq!(ask(&api, &platform, Method::GET, &one, None).await?.json(), all[0]);
    // It expires, and is revoked.
    let by = By::command("platform keys create", core.clock.now());
    let until = Some(core.clock.now());
    let expired = keys::create(&core.db, &SystemRandom, &by, "short".to_owned(), until).await?;
    api.call_as(&expired, Method::GET, uri, None).await?.problem(401, 40104);
    let known = keys::list(&core.db).await?;
    let id = known.iter().find(|key| key.label == "tests").context("the key")?.id();
    keys::revoke(&core.db, &by, id).await?;
    api.call_as(&platform, Method::GET, uri, None).await?.problem(401, 40102);
    assert!(keys::revoke(&core.db, &by, id).await.is_err());
    assert_eq!(entries(&api, "platformKey").await?, [Value::Null; 0], "no account has them in its trail");
    // A key of another form is looked up with those of accounts alone, which cost less.
    let (other, created_at) = ("Q".repeat(80), core.clock.now());
    let (hash, label) = (hash_key(&other), "other".to_owned());
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let stored = PlatformKey { hash, label, created_at, expires_at: None, revoked_at: None };
    platform_keys::insert(&mut tx, &stored).await?;
    tx.commit().await?;
    api.call_as(&other, Method::GET, uri, None).await?.problem(401, 40102);
    let stored = api.fingerprint().await?;
    assert!(stored.values().flatten().all(|row| !row.contains(&platform)), "only its hash is stored");
    Ok(())
}

crate::on_both_engines!(
    keys_of_a_suspended_account_are_refused_at_once,
    jobs_and_webhooks_of_a_suspended_account_wait,
    abuse_is_reported_where_pages_and_security_txt_say,
    a_link_that_was_taken_down_cannot_be_changed,
    nothing_new_leads_to_a_blocked_host,
    a_take_down_ends_by_itself,
    what_is_wrong_is_named_and_changes_nothing,
    a_key_of_the_platform_is_for_the_platform_alone,
);
