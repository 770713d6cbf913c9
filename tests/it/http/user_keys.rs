//! How many keys users have, and how long what nobody uses is kept.

use anyhow::Result;
use axum::http::Method;
use kernel::{
    domain::access::{Actor, ActorKind, UserRights, hash_key},
    store::{Ctx, keys},
};
use serde_json::{Value, json};
use tests::{db::Engine, json::text};

use super::Api;
use crate::store::redirections::execute;

const DAY_MS: i64 = 24 * 3_600_000;

/// An application: its path, its ids and its public key.
async fn application(api: &Api) -> Result<(String, Value)> {
    let project = text(&api.create("/projects", json!({"name": "p"})).await?, "id")?;
    let applications = format!("/projects/{project}/applications");
    let app = api.create(&applications, json!({"name": "a"})).await?;
    Ok((applications, app))
}

async fn anonymous(api: &Api, app: &Value) -> Result<(String, String)> {
    let uri = "/auth/evrythng/users?anonymous=true";
    let made = api.call_as(&text(app, "appApiKey")?, Method::POST, uri, Some(json!({}))).await?.json();
    Ok((text(&made, "evrythngUser")?, text(&made, "evrythngApiKey")?))
}

async fn a_user_keeps_its_newest_keys(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.codes_to_callers().await?;
    let (_, app) = application(&api).await?;
    let public = text(&app, "appApiKey")?;
    let ask = async |uri: &str, body: Value| {
        anyhow::Ok(api.call_as(&public, Method::POST, uri, Some(body)).await?.json())
    };
    let login = json!({"email": "ada@example.com", "password": "a long sentence is best"});
    let new = ask("/auth/evrythng/users", login.clone()).await?;
    let user = text(&new, "evrythngUser")?;
    let code = json!({"activationCode": new["activationCode"]});
    let first = text(&ask(&format!("/auth/evrythng/users/{user}/validate"), code).await?, "evrythngApiKey")?;
    // As if it had logged in 48 times more.
    let actor = Actor {
        account: api.made.account,
        kind: ActorKind::User,
        id: user.clone(),
        project: Some(text(&app, "project")?.parse()?),
        app: Some(text(&app, "id")?.parse()?),
        enterprise: true,
        user_rights: UserRights::default(),
        permissions: kernel::domain::subject::Permissions::ALL,
        confined_to: Vec::new(),
    };
    let now = api.made.app.core.clock.now().0;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    for n in 1..49 {
        keys::insert_of(&mut tx, &hash_key(&n.to_string()), &actor, None, now + n).await?;
    }
    tx.commit().await?;
    api.made.clock.advance(1_000);
    let status = async |key: &str| {
        api.made.app.core.key_lookups.revoked();
        anyhow::Ok(api.call_as(key, Method::GET, "/access", None).await?.status.as_u16())
    };
    // The fiftieth, and one more: the oldest ends.
    let fiftieth = text(&ask("/users/login", login.clone()).await?, "evrythngApiKey")?;
    assert_eq!((status(&first).await?, status(&fiftieth).await?), (200, 200));
    api.made.clock.advance(1_000);
    let last = text(&ask("/users/login", login).await?, "evrythngApiKey")?;
    assert_eq!((status(&first).await?, status(&fiftieth).await?, status(&last).await?), (401, 200, 200));

    // A key that has ended is removed a day later.
    let count = async || {
        let rows = api.fingerprint().await?;
        anyhow::Ok(rows["api_keys"].iter().filter(|row| row.contains(&user)).count())
    };
    let purge = async || applications::service::users::purge(&api.made.app.core).await;
    purge().await?;
    assert_eq!(count().await?, 51);
    api.made.clock.advance(DAY_MS);
    purge().await?;
    assert_eq!(count().await?, 50);
    assert_eq!(status(&last).await?, 200);
    Ok(())
}

async fn anonymous_users_whom_nobody_sees_are_removed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (_, app) = application(&api).await?;
    let (gone, _) = anonymous(&api, &app).await?;
    let (used, key) = anonymous(&api, &app).await?;
    let (changed, _) = anonymous(&api, &app).await?;
    let thng = api.create("/thngs", json!({"name": "t", "scopes": {"users": [gone]}})).await?;
    let get = async |id: &str| anyhow::Ok(api.get(&format!("/users/{id}")).await?.status.as_u16());
    let purge = async || applications::service::users::purge(&api.made.app.core).await;
    api.made.clock.advance(300 * DAY_MS);
    // Uses are written in the background, to the hour.
    let at = api.made.app.core.clock.now().0;
    let sql = format!("UPDATE api_keys SET last_used_at = {at} WHERE actor_id = '{used}'");
    execute(&api.made, &sql).await?;
    let uri = format!("/users/{changed}");
    api.put(&uri, json!({"firstName": "A"})).await?;
    api.made.clock.advance(64 * DAY_MS);
    assert_eq!(purge().await?, 0, "a year is not over");
    api.made.clock.advance(2 * DAY_MS);
    assert_eq!(purge().await?, 1);
    assert_eq!((get(&gone).await?, get(&used).await?, get(&changed).await?), (404, 200, 200));
    assert_eq!(purge().await?, 0);
    let rows = api.fingerprint().await?;
    assert!(!rows["api_keys"].iter().any(|row| row.contains(&gone)), "its key goes with it");
    assert_eq!(api.call_as(&key, Method::GET, "/access", None).await?.status, 200);
    // What it made stays.
    let uri = format!("/thngs/{}", text(&thng, "id")?);
    assert_eq!(api.get(&uri).await?.status, 200);
    // A year after they were last seen the others go, too.
    api.made.clock.advance(300 * DAY_MS);
    assert_eq!(purge().await?, 2);
    assert_eq!((get(&used).await?, get(&changed).await?), (404, 404));
    Ok(())
}

/// Users may do at once what a change of many applications lets them.
async fn a_change_of_many_applications_reaches_their_users_at_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.open_rights().await?;
    let (applications, app) = application(&api).await?;
    let (_, key) = anonymous(&api, &app).await?;
    let role = text(&api.create("/roles", json!({"name": "users", "type": "userInApp"})).await?, "id")?;
    assert_eq!(api.call_as(&key, Method::GET, "/thngs", None).await?.status, 200);
    let uri = format!("{applications}?ids={}", text(&app, "id")?);
    api.put(&uri, json!({"userRole": role})).await?.must_be(204)?;
    api.call_as(&key, Method::GET, "/thngs", None).await?.must_be(403)?;
    Ok(())
}

crate::on_both_engines!(
    a_user_keeps_its_newest_keys,
    anonymous_users_whom_nobody_sees_are_removed,
    a_change_of_many_applications_reaches_their_users_at_once,
);
