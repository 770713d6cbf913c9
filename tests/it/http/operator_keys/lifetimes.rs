//! How long a key works: expiry, rotation with an overlap, revocation, and when it was last used.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use events::service::connections;
use kernel::service::key_uses;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{super::events::Stream, Api, Made, access, make, pass};

/// What a key that works not any more is answered.
const EXPIRED: (u16, u64) = (401, 40104);
const UNKNOWN: (u16, u64) = (401, 40102);
const OK: (u16, u64) = (200, 0);

async fn rotate(api: &Api, key: &Made, body: Value) -> Result<Made> {
    let answer = api.post(&format!("{}/rotate", key.path()), body).await?;
    ensure!(answer.status == 201 && answer.header("cache-control") == Some("no-store"), "{answer:?}");
    let location = answer.header("location").context("location")?.to_owned();
    let made = Made::new(&answer.json())?;
    ensure!(location.ends_with(&made.path()), "{location}");
    Ok(made)
}

async fn status(api: &Api, key: &Made) -> Result<Value> {
    Ok(api.get(&key.path()).await?.json()["status"].clone())
}

async fn a_key_expires(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let at = api.made.app.core.clock.now().0 + 60_000;
    let key = make(&api, json!({"label": "a minute", "expiresAt": at})).await?;
    assert_eq!(access(&api, &key.key).await?, OK);
    pass(&api, 60_000);
    // Though it was looked up a moment ago.
    let refused = api.call_as(&key.key, Method::GET, "/access", None).await?;
    assert_eq!(refused.problem(401, 40104), ["The API key has expired."]);
    assert_eq!(status(&api, &key).await?, "expired");
    let uri = format!("{}/rotate", key.path());
    let faults = api.post(&uri, json!({})).await?.problem(409, 40901);
    assert_eq!(faults, ["The key has expired: create another."]);
    // It may be given more time.
    let later = json!({"expiresAt": at + 3_600_000});
    assert_eq!(api.put(&key.path(), later).await?.json()["status"], "active");
    assert_eq!(access(&api, &key.key).await?, OK);
    Ok(())
}

async fn a_rotated_key_works_until_the_overlap_is_over(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let first = make(&api, json!({"label": "ci", "networks": ["::/0", "0.0.0.0/0"]})).await?;
    let first = {
        // From an unknown address, as here, only a key without networks works.
        api.put(&first.path(), json!({"networks": []})).await?;
        first
    };
    let second = rotate(&api, &first, json!({"overlap": 60_000})).await?;
    // Its end stands: it is neither rotated again nor prolonged, by itself neither.
    for key in [&api.key, &first.key] {
        let again =
            api.call_as(key, Method::POST, &format!("{}/rotate", first.path()), Some(json!({}))).await?;
        assert_eq!(again.problem(409, 40901), ["The key was replaced: rotate the one that replaced it."]);
        let longer = api.call_as(key, Method::PUT, &first.path(), Some(json!({"expiresAt": 0}))).await?;
        assert_eq!(longer.problem(409, 40901), ["The key was replaced: its end stays."]);
    }
    assert_eq!(api.get(&second.path()).await?.json()["label"], "ci");
    assert_eq!((access(&api, &first.key).await?, access(&api, &second.key).await?), (OK, OK));
    let ends = api.get(&first.path()).await?.json()["expiresAt"].as_i64().context("expiresAt")?;
    ensure!((1..=60_000).contains(&(ends - api.made.app.core.clock.now().0)), "{ends}");
    pass(&api, 60_000);
    assert_eq!((access(&api, &first.key).await?, access(&api, &second.key).await?), (EXPIRED, OK));
    // A request that says nothing ends nothing.
    let silent = api.call(Method::POST, &format!("{}/rotate", second.path()), None).await?;
    silent.problem(400, 40002);
    // Without an overlap the old one ends at once.
    for body in [json!({}), json!({"overlap": 0})] {
        let old = make(&api, json!({"label": "old"})).await?;
        assert_eq!(access(&api, &old.key).await?, OK);
        let new = rotate(&api, &old, body).await?;
        assert_eq!((access(&api, &old.key).await?, access(&api, &new.key).await?), (UNKNOWN, OK));
        assert_eq!(status(&api, &old).await?, "revoked");
        let again = api.post(&format!("{}/rotate", old.path()), json!({})).await?;
        assert_eq!(again.problem(409, 40901), ["The key was revoked."]);
    }
    // The longest overlap, and a life of a day that begins anew.
    let at = api.made.app.core.clock.now().0 + 86_400_000;
    let short = make(&api, json!({"label": "a day", "expiresAt": at})).await?;
    pass(&api, 1_000);
    let next = rotate(&api, &short, json!({"overlap": 30 * 86_400_000_i64})).await?;
    let [old, new] = [api.get(&short.path()).await?.json(), api.get(&next.path()).await?.json()];
    assert_eq!(old["expiresAt"], json!(at), "no longer than it had");
    let life = |key: &Value| Some(key["expiresAt"].as_i64()? - key["createdAt"].as_i64()?);
    assert_eq!(life(&old), life(&new));
    Ok(())
}

async fn a_revoked_key_is_refused_and_its_streams_end(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let key = make(&api, json!({"label": "stream"})).await?;
    let mut stream = Stream::open(&api, &key.key, "/events", None).await?;
    let mut kept = Stream::open(&api, &api.key, "/events", None).await?;
    assert_eq!(access(&api, &key.key).await?, OK);
    let answer = api.delete(&key.path()).await?;
    ensure!(answer.status == 200 && answer.bytes.is_empty(), "{answer:?}");
    assert_eq!(access(&api, &key.key).await?, UNKNOWN, "the very next request");
    // As the worker does each 400 ms, and when it is woken.
    connections::check_keys(&api.made.app.events).await?;
    while stream.block().await?.is_some() {}
    api.create("/actions/scans", json!({})).await?;
    kept.next().await?;
    let shown = api.get(&key.path()).await?.json();
    ensure!(shown["status"] == "revoked" && shown["revokedAt"].is_i64(), "{shown}");
    for (method, uri) in [
        (Method::DELETE, key.path()),
        (Method::PUT, key.path()),
        (Method::POST, format!("{}/rotate", key.path())),
    ] {
        let body = (method != Method::DELETE).then(|| json!({}));
        assert_eq!(api.call(method, &uri, body).await?.problem(409, 40901), ["The key was revoked."]);
    }
    // An expiry and networks end streams, too.
    for (change, why) in [
        (json!({"expiresAt": api.made.app.core.clock.now().0 + 5_000}), "it expired"),
        (json!({"networks": ["10.0.0.0/8"]}), "another network"),
    ] {
        let key = make(&api, json!({"label": why})).await?;
        let mut stream = Stream::open(&api, &key.key, "/events", None).await?;
        ensure!(api.put(&key.path(), change).await?.status == 200);
        pass(&api, 5_000);
        connections::check_keys(&api.made.app.events).await?;
        while stream.block().await?.is_some() {}
    }
    Ok(())
}

/// To the hour, at most once an hour a key, and not by the request.
async fn the_last_use_is_kept_to_the_hour(engine: Engine) -> Result<()> {
    const HOUR: i64 = 3_600_000;
    let api = Api::new(engine).await?;
    let app = &api.made.app;
    let key = make(&api, json!({"label": "used"})).await?;
    let used = async || anyhow::Ok(api.get(&key.path()).await?.json()["lastUsedAt"].clone());
    key_uses::write(&app.core).await?;
    assert_eq!(used().await?, Value::Null);
    assert_eq!(access(&api, &key.key).await?, OK);
    assert_eq!(used().await?, Value::Null, "the request wrote nothing");
    assert_eq!(key_uses::write(&app.core).await?, 1, "the fixture's key is written already");
    let hour = app.core.clock.now().0 / HOUR * HOUR;
    assert_eq!(used().await?, json!(hour));
    for _ in 0..3 {
        assert_eq!(access(&api, &key.key).await?, OK);
    }
    assert_eq!(key_uses::write(&app.core).await?, 0, "once an hour");
    pass(&api, HOUR);
    assert_eq!(key_uses::write(&app.core).await?, 0, "nobody used one in this hour");
    assert_eq!(access(&api, &key.key).await?, OK);
    key_uses::write(&app.core).await?;
    assert_eq!(used().await?, json!(hour + HOUR));
    // A refused key is not used.
    let refused = make(&api, json!({"label": "elsewhere", "networks": ["10.0.0.0/8"]})).await?;
    assert_eq!(access(&api, &refused.key).await?, (403, 40302));
    key_uses::write(&app.core).await?;
    ensure!(api.get(&refused.path()).await?.json().get("lastUsedAt").is_none());
    Ok(())
}

crate::on_both_engines!(
    a_key_expires,
    a_rotated_key_works_until_the_overlap_is_over,
    a_revoked_key_is_refused_and_its_streams_end,
    the_last_use_is_kept_to_the_hour,
);
