//! Who asks for erasures, and what a deletion of a user asks for.

use ::privacy::service::erasures::users_removed;
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::store::Ctx;
use serde_json::json;
use shared::{id::UserId, time::UnixMillis};
use tests::db::Engine;

use super::{Api, IP, MARKS, Scanned, ask, found, post, receipt, work_all};
use crate::http::authentication::id;

crate::on_both_engines!(
    a_user_that_is_deleted_leaves_its_actions,
    erasures_are_asked_for_and_read_by_operators,
);

/// A project in which an item is.
pub(super) async fn project(api: &Api, thng: &str) -> Result<String> {
    let project = id(&api.create("/projects", json!({"name": "p"})).await?);
    let scopes = json!({"scopes": {"users": [], "projects": [project]}});
    ensure!(api.put(&format!("/thngs/{thng}"), scopes).await?.status == 200);
    Ok(project)
}

/// An application: its path, and its public key.
pub(super) async fn application(api: &Api, project: &str) -> Result<(String, String)> {
    let uri = format!("/projects/{project}/applications");
    let app = api.create(&uri, json!({"name": "a", "reportsContext": true})).await?;
    Ok((format!("{uri}/{}", id(&app)), app["appApiKey"].as_str().context("key")?.to_owned()))
}

/// A user from the marked address who did something with an item: its id, and that of the action.
pub(super) async fn acting_user(api: &Api, public: &str, thng: &str) -> Result<(String, String)> {
    let user = post(api, public, "/auth/evrythng/users?anonymous=true", &json!({"anonymous": true})).await?;
    let key = user["evrythngApiKey"].as_str().context("user's key")?.to_owned();
    let action = post(api, &key, "/actions/checkins", &json!({"thng": thng})).await?;
    let user = user["evrythngUser"].as_str().context("user")?.to_owned();
    ensure!(action["user"] == user.as_str(), "{action}");
    Ok((user, id(&action)))
}

async fn a_user_that_is_deleted_leaves_its_actions(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    let project = project(api, thng).await?;
    let (_, public) = application(api, &project).await?;
    let mut made = Vec::new();
    for _ in 0..2 {
        made.push(acting_user(api, &public, thng).await?);
    }
    let (user, action) = &made[0];
    ensure!(api.delete(&format!("/users/{user}")).await?.status.is_success());
    work_all(api).await?;
    let listed = api.get("/privacy/erasures").await?.json();
    ensure!(listed.as_array().map(Vec::len) == Some(1) && listed[0]["user"] == user.as_str(), "{listed}");
    ensure!(listed[0]["status"] == "COMPLETED" && listed[0]["rows"]["actions"] == 1, "{listed}");
    ensure!(listed[0].get("requestedBy").is_none(), "nobody asked for it: {listed}");
    let cut = api.get(&format!("/actions/checkins/{action}?context=true&withScopes=true")).await?.json();
    ensure!(cut.get("user").is_none() && !cut.to_string().contains(user.as_str()), "{cut}");
    ensure!(cut["context"].get("ipAddress").is_none() && cut["context"]["city"] == "Bern", "{cut}");
    let (other, others_action) = &made[1];
    let kept = api.get(&format!("/actions/checkins/{others_action}?context=true")).await?.json();
    ensure!(kept["user"] == other.as_str() && kept["context"]["ipAddress"] == IP, "{kept}");
    let by_user = api.get(&format!("/actions/checkins?filter=user={user}")).await?.json();
    ensure!(by_user == json!([]), "{by_user}");

    // A user that is there can be erased, too.
    let path = ask(api, json!({"user": other})).await?;
    work_all(api).await?;
    ensure!(receipt(api, &path).await?["rows"]["actions"] == 1);
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

async fn erasures_are_asked_for_and_read_by_operators(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let (api, thng) = (&scanned.api, &scanned.brand_thngs[0]);
    let answer = api.post("/privacy/erasures", json!({"network": "0.0.0.0/0", "to": 1})).await?;
    let faults = answer.problem(400, 40001);
    ensure!(faults.len() == 2, "{faults:?}");
    let mut paths = Vec::new();
    for _ in 0..3 {
        paths.push(ask(api, json!({"thng": thng})).await?);
    }
    let network = json!({"network": "2001:db8::/32", "from": 1, "to": 2});
    paths.push(ask(api, network).await?);
    let page = api.get("/privacy/erasures?perPage=3").await?;
    let link = page.header("link").context("a second page")?;
    ensure!(page.json().as_array().map(Vec::len) == Some(3) && link.contains("next"), "{link}");
    ensure!(page.json()[0]["type"] == "network", "newest first: {page:?}");
    for (filter, count) in
        [("type=network", 1), ("type=thng", 3), ("status=COMPLETED", 0), ("status=ENQUEUED", 4)]
    {
        let listed = api.get(&format!("/privacy/erasures?filter={filter}")).await?.json();
        ensure!(listed.as_array().map(Vec::len) == Some(count), "{filter}: {listed}");
    }
    // Another account sees none of them.
    let of_others = api.call_as(&api.other_key, Method::GET, "/privacy/erasures", None).await?.json();
    ensure!(of_others == json!([]), "{of_others}");
    api.call_as(&api.other_key, Method::GET, &paths[0], None).await?.must_be(404)?;
    // The trail says that somebody asked, and not whose data it is.
    let trail = api.get("/audit?filter=resource=erasure").await?.json();
    ensure!(trail.as_array().map(Vec::len) == Some(4), "{trail}");
    ensure!(!trail.to_string().contains("2001:db8::/32"), "{trail}");
    // There is a bound to what waits; what nobody asked for does not count.
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let removed = vec![UserId::new(1, [7; 16])];
    users_removed(&mut tx, api.made.account, removed, (UnixMillis(1), [7; 16])).await?;
    tx.commit().await?;
    for _ in 4..20 {
        ask(api, json!({"thng": thng})).await?;
    }
    api.post("/privacy/erasures", json!({"thng": thng})).await?.must_be(429)?;
    Ok(())
}
