//! Keys that are derived, of applications and Things: their generations, prefixes and rotation.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::{
    domain::access::{ActorKind, Generation, derive_key, hash_key},
    store::{Ctx, keys},
};
use serde_json::{Value, json};
use tenants::service::first_keys::{self, Named};
use tests::{db::Engine, json::text};

use super::Api;
use crate::store::schema::run;

async fn status(api: &Api, key: &str) -> Result<(u16, u64)> {
    let answer = api.call_as(key, Method::GET, "/access", None).await?;
    Ok((answer.status.as_u16(), answer.json()["code"].as_u64().unwrap_or_default()))
}

const OK: (u16, u64) = (200, 0);
const UNKNOWN: (u16, u64) = (401, 40102);
const EXPIRED: (u16, u64) = (401, 40104);

async fn post(api: &Api, uri: &str, body: Option<Value>) -> Result<Value> {
    let answer = api.call(Method::POST, uri, body).await?;
    ensure!(answer.status == 201 && answer.header("cache-control") == Some("no-store"), "{answer:?}");
    Ok(answer.json())
}

fn pass(api: &Api, milliseconds: i64) {
    for _ in 0..milliseconds {
        api.made.app.core.clock.now();
    }
}

/// An application: its path and its two keys.
async fn application(api: &Api) -> Result<(String, String, String)> {
    let project = text(&api.create("/projects", json!({"name": "p"})).await?, "id")?;
    let applications = format!("/projects/{project}/applications");
    let app = api.create(&applications, json!({"name": "a"})).await?;
    let path = format!("{applications}/{}", text(&app, "id")?);
    let secret = text(&api.get(&format!("{path}/secretKey")).await?.json(), "secretApiKey")?;
    Ok((path, text(&app, "appApiKey")?, secret))
}

async fn keys_of_applications_rotate(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (path, public, secret) = application(&api).await?;
    ensure!(public.starts_with("wmap") && secret.starts_with("wmta"), "{public} {secret}");
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
    let user = text(&user, "evrythngApiKey")?;
    ensure!(user.starts_with("wmus") && user.len() == 80, "{user}");

    // The secret key, with an overlap: the public one stays.
    let rotated = post(&api, &format!("{path}/secretKey/rotate"), Some(json!({"overlap": 60_000}))).await?;
    let next = text(&rotated, "secretApiKey")?;
    ensure!(
        next.starts_with("wmta") && next != secret && rotated.as_object().map(|all| all.len()) == Some(1)
    );
    assert_eq!(api.get(&format!("{path}/secretKey")).await?.json(), rotated, "it can be read again");
    for key in [&secret, &next, &public] {
        assert_eq!(status(&api, key).await?, OK);
    }
    pass(&api, 60_000);
    assert_eq!((status(&api, &secret).await?, status(&api, &next).await?), (EXPIRED, OK));

    // The public key, at once: the answer is the application. Its users stay.
    let before = api.get(&path).await?.json();
    let rotated = post(&api, &format!("{path}/appApiKey/rotate"), Some(json!({}))).await?;
    let other = text(&rotated, "appApiKey")?;
    ensure!(other.starts_with("wmap") && other != public, "{rotated}");
    ensure!(rotated["updatedAt"].as_i64() > before["updatedAt"].as_i64(), "{rotated}");
    assert_eq!(api.get(&path).await?.json(), rotated);
    let own = api.call_as(&next, Method::GET, "/applications/me", None).await?.json();
    assert_eq!(own["appApiKey"], rotated["appApiKey"]);
    assert_eq!((status(&api, &public).await?, status(&api, &other).await?), (UNKNOWN, OK));
    assert_eq!((status(&api, &user).await?, status(&api, &next).await?), (OK, OK));
    // A change of the application changes no key, and an old one never comes back.
    let changed = api.put(&path, json!({"name": "b"})).await?.json();
    assert_eq!(changed["appApiKey"], rotated["appApiKey"]);
    let third = text(&post(&api, &format!("{path}/appApiKey/rotate"), Some(json!({}))).await?, "appApiKey")?;
    ensure!(third != public && third != other);
    assert_eq!((status(&api, &other).await?, status(&api, &third).await?), (UNKNOWN, OK));

    for uri in [format!("{path}/secretKey/rotate"), format!("{path}/appApiKey/rotate")] {
        for (body, code) in [(json!({"overlap": 2_592_000_001_i64}), 40001), (json!({"overlap": "x"}), 40001)]
        {
            api.post(&uri, body).await?.problem(400, code);
        }
        api.call_as(&next, Method::POST, &uri, Some(json!({}))).await?.problem(403, 40301);
        api.call_as(&api.other_key, Method::POST, &uri, Some(json!({}))).await?.problem(404, 40401);
    }
    // With the application all of its keys go.
    ensure!(api.delete(&path).await?.status == 200);
    for key in [&next, &third, &user] {
        assert_eq!(status(&api, key).await?, UNKNOWN);
    }
    Ok(())
}

async fn keys_of_things_rotate(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t", "identifiers": {"gs1:21": "S1"}})).await?;
    let id = text(&thng, "id")?;
    let path = format!("/auth/evrythng/thngs/{id}");
    // It has none yet.
    api.post(&format!("{path}/rotate"), json!({})).await?.problem(404, 40401);
    let create =
        async || text(&api.create("/auth/evrythng/thngs", json!({"thngId": id})).await?, "thngApiKey");
    let first = create().await?;
    ensure!(first.starts_with("wmth") && first.len() == 80, "{first}");
    assert_eq!(create().await?, first);
    // By another name of the Thng.
    let uri = "/auth/evrythng/thngs/gs1:21:S1/rotate";
    let rotated = post(&api, uri, Some(json!({"overlap": 60_000}))).await?;
    let second = text(&rotated, "thngApiKey")?;
    assert_eq!((&rotated["thngId"], second.starts_with("wmth")), (&json!(id), true));
    assert_eq!((status(&api, &first).await?, status(&api, &second).await?), (OK, OK));
    assert_eq!(api.get(&path).await?.json(), rotated, "the newest is shown");
    assert_eq!(create().await?, second);
    pass(&api, 60_000);
    assert_eq!((status(&api, &first).await?, status(&api, &second).await?), (EXPIRED, OK));
    let third = text(&post(&api, &format!("{path}/rotate"), Some(json!({}))).await?, "thngApiKey")?;
    assert_eq!((status(&api, &second).await?, status(&api, &third).await?), (UNKNOWN, OK));
    api.post(&format!("{path}/rotate"), json!({"overlap": 2_592_000_001_i64})).await?.problem(400, 40001);
    // A revocation ends all of them; the next key is another.
    let fourth =
        text(&post(&api, &format!("{path}/rotate"), Some(json!({"overlap": 60_000}))).await?, "thngApiKey")?;
    ensure!(api.delete(&path).await?.status == 200);
    api.get(&path).await?.problem(404, 40401);
    let fifth = create().await?;
    for key in [&first, &second, &third, &fourth] {
        ensure!(*key != fifth && status(&api, key).await?.0 == 401);
    }
    assert_eq!(status(&api, &fifth).await?, OK);
    // One that has ended is not shown again when the one that replaced it is revoked.
    let sixth =
        text(&post(&api, &format!("{path}/rotate"), Some(json!({"overlap": 60_000}))).await?, "thngApiKey")?;
    pass(&api, 60_000);
    let (app, named) = (&api.made.app, Named::Secret(sixth));
    ensure!(first_keys::revoke(&app.core.db, &*app.core.clock, &named).await?);
    app.core.key_lookups.revoked();
    api.get(&path).await?.problem(404, 40401);
    let seventh = create().await?;
    assert_eq!((status(&api, &fifth).await?, status(&api, &seventh).await?), (EXPIRED, OK));
    Ok(())
}

/// Keys that were made before there were prefixes work and are shown until they are rotated.
async fn keys_without_a_prefix_stay(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (path, ..) = application(&api).await?;
    let app = path.rsplit('/').next().context("id")?.to_owned();
    let thng = text(&api.create("/thngs", json!({"name": "t"})).await?, "id")?;
    // As a release before prefixes left them.
    run(
        &api.made.db.location,
        &[
            "DELETE FROM api_keys WHERE kind <> 'operator'".to_owned(),
            "UPDATE applications SET app_generation = 0, trusted_generation = 0".to_owned(),
        ],
    )
    .await?;
    let secret = &api.made.app.core.secrets.api_key;
    let derived = |kind, id: &str, number| {
        derive_key(secret, kind, id, Generation::WithoutPrefix(number)).context("derived")
    };
    let mut owner = api.made.caller().actor;
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    for kind in [ActorKind::App, ActorKind::TrustedApp] {
        (owner.kind, owner.id) = (kind, app.clone());
        owner.project = Some(path.split('/').nth(2).context("project")?.parse()?);
        owner.app = Some(app.parse()?);
        keys::insert_of(&mut tx, &hash_key(&derived(kind, &app, 0)?), &owner, None, 1).await?;
    }
    (owner.kind, owner.id, owner.project, owner.app) = (ActorKind::Thng, thng.clone(), None, None);
    for number in 0..3 {
        let hash = hash_key(&derived(ActorKind::Thng, &thng, number)?);
        keys::insert_of(&mut tx, &hash, &owner, None, 1).await?;
        // Two were revoked.
        if number < 2 {
            keys::revoke(&mut tx, &hash, 2).await?;
        }
    }
    tx.commit().await?;
    let [public, trusted] = [derived(ActorKind::App, &app, 0)?, derived(ActorKind::TrustedApp, &app, 0)?];
    let of_thng = derived(ActorKind::Thng, &thng, 2)?;
    assert_eq!(api.get(&path).await?.json()["appApiKey"], json!(public));
    assert_eq!(api.get(&format!("{path}/secretKey")).await?.json()["secretApiKey"], json!(trusted));
    let own = format!("/auth/evrythng/thngs/{thng}");
    assert_eq!(api.get(&own).await?.json()["thngApiKey"], json!(of_thng));
    let again = api.create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
    assert_eq!(again["thngApiKey"], json!(of_thng));
    for key in [&public, &trusted, &of_thng] {
        assert_eq!(status(&api, key).await?, OK);
    }
    // A rotation gives the new form, beside the old key for a while.
    let overlap = || Some(json!({"overlap": 60_000}));
    let next = [
        text(&post(&api, &format!("{path}/appApiKey/rotate"), overlap()).await?, "appApiKey")?,
        text(&post(&api, &format!("{path}/secretKey/rotate"), overlap()).await?, "secretApiKey")?,
        text(&post(&api, &format!("{own}/rotate"), overlap()).await?, "thngApiKey")?,
    ];
    for ((old, new), prefix) in
        [&public, &trusted, &of_thng].into_iter().zip(&next).zip(["wmap", "wmta", "wmth"])
    {
        ensure!(new.starts_with(prefix), "{new}");
        assert_eq!((status(&api, old).await?, status(&api, new).await?), (OK, OK));
    }
    pass(&api, 60_000);
    for (old, new) in [&public, &trusted, &of_thng].into_iter().zip(&next) {
        assert_eq!((status(&api, old).await?, status(&api, new).await?), (EXPIRED, OK));
    }
    assert_eq!(api.get(&own).await?.json()["thngApiKey"], json!(next[2]));
    Ok(())
}

crate::on_both_engines!(keys_of_applications_rotate, keys_of_things_rotate, keys_without_a_prefix_stay);
