//! Counts: of what was there before a quota, of accounts that are made later, and after something drifted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use futures_util::future::join_all;
use hosting::{
    domain::quota::Quota,
    service::{By, quotas, quotas_of_accounts},
};
use kernel::store::{Ctx, Db, on_db};
use serde_json::{Value, json};
use shared::id::AccountId;
use tenants::store::{accounts, writers::wait_for_all};
use tests::db::{Engine, TestDb, random16};

use super::{super::Api, HELD, refused};

async fn a_quota_that_is_set_while_others_write_counts_all(engine: Engine) -> Result<()> {
    const WRITERS: usize = 8;
    const EACH: usize = 12;
    let api = Api::new(engine).await?;
    let write = async |n: usize| {
        let mut ids: Vec<String> = Vec::new();
        for k in 0..EACH {
            let made = api.create("/thngs", json!({"name": format!("{n}/{k}")})).await?;
            ids.push(made["id"].as_str().context("id")?.to_owned());
            if k % 4 == 3 {
                api.must_delete(&format!("/thngs/{}", ids.remove(0))).await?;
            }
        }
        Ok::<_, anyhow::Error>(ids.len())
    };
    let set = async {
        for _ in 0..3 {
            tokio::task::yield_now().await;
            api.set_quotas(json!({"things": 10_000})).await?;
            api.set_quotas(json!({"things": "default"})).await?;
        }
        api.set_quotas(json!({"things": 10_000})).await
    };
    let (left, set) = tokio::join!(join_all((0..WRITERS).map(write)), set);
    set?;
    let left: usize = left.into_iter().sum::<Result<usize>>()?;
    assert_eq!(api.quotas().await?["things"]["used"], left);
    let now = api.made.app.core.clock.now();
    let counted = quotas::recount(&api.made.app.core.db, api.made.account.as_str(), now).await?;
    ensure!(counted.len() == 1 && counted[0].1.drift == 0, "{counted:?}");
    Ok(())
}

/// Postgres numbers the transactions of all databases of a server together.
#[tokio::test]
async fn a_first_count_waits_for_writers_of_its_database_alone() -> Result<()> {
    const SOON: Duration = Duration::from_secs(5);
    let (api, other) = (Api::new(Engine::Postgres).await?, TestDb::new(Engine::Postgres).await?);
    let begin_write = async |db: &Db| {
        let mut tx = db.begin(&Ctx::default()).await?;
        on_db!(&mut *tx, |c| sqlx::query("SELECT pg_current_xact_id()").execute(c).await.map(|_| ()))?;
        Ok::<_, anyhow::Error>(tx)
    };
    let elsewhere = begin_write(&other.db).await?;
    let set = api.set_quotas(json!({"things": 2})).await?;
    assert_eq!(set["things"], json!({"limit": 2, "own": true, "used": 0}), "counted beside the other write");
    let db = &api.made.app.core.db;
    let here = begin_write(db).await?;
    ensure!(!wait_for_all(db, Duration::ZERO).await?, "it may not have seen the quota");
    here.commit().await?;
    ensure!(wait_for_all(db, SOON).await?, "it is over");
    Ok(elsewhere.commit().await?)
}

async fn a_recount_corrects_what_drifted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.create("/thngs", json!({"name": "t"})).await?;
    api.set_quotas(json!({"things": 2})).await?;
    let db = &api.made.app.core.db;
    let mut tx = db.begin(&Ctx::default()).await?;
    on_db!(&mut *tx, |c| sqlx::query("UPDATE quota_uses SET used = 7").execute(c).await.map(|_| ()))?;
    tx.commit().await?;
    let post = || api.post("/thngs", json!({"name": "t"}));
    refused(&post().await?, HELD, "things", "7 of 2");
    // In the background once a day; a command does the same at once.
    let now = api.made.app.core.clock.now();
    quotas_of_accounts::count(db, now).await?;
    assert_eq!(api.quotas().await?["things"]["used"], 7, "it was counted today");
    api.made.clock.advance(25 * 60 * 60 * 1_000);
    quotas_of_accounts::count(db, api.made.app.core.clock.now()).await?;
    assert_eq!(api.quotas().await?["things"]["used"], 1);
    assert_eq!(post().await?.status, 201);
    let counted = quotas::recount(db, api.made.account.as_str(), now).await?;
    assert_eq!(
        counted.iter().map(|(quota, found)| (*quota, found.counted, found.drift)).collect::<Vec<_>>(),
        [(Quota::Things, 2, 0)]
    );
    Ok(())
}

async fn a_limit_of_all_accounts_holds_for_each_that_has_no_own(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let set = async |quotas: Value| {
        let uri = "/platform/quotas";
        let answer = api.call_as(&api.platform_key, Method::PUT, uri, Some(quotas)).await?.must_be(200)?;
        Ok::<_, anyhow::Error>(answer.json())
    };
    let make = |key: &str| {
        let key = key.to_owned();
        let api = &api;
        async move { api.call_as(&key, Method::POST, "/thngs", Some(json!({"name": "t"}))).await }
    };
    for key in [&api.key, &api.other_key] {
        assert_eq!(make(key).await?.status, 201);
    }
    assert_eq!(set(json!({"things": 1, "streams": 5})).await?, json!({"things": 1, "streams": 5}));
    let before = api.quotas().await?;
    assert_eq!(before["things"], json!({"limit": 1, "own": false}), "not counted yet");
    quotas_of_accounts::count(&core.db, core.clock.now()).await?;
    assert_eq!(api.quotas().await?["things"], json!({"limit": 1, "own": false, "used": 1}));
    for key in [&api.key, &api.other_key] {
        refused(&make(key).await?, HELD, "things", "1 of 1");
    }
    // An own limit wins, and so does none.
    api.set_quotas(json!({"things": "unlimited"})).await?;
    assert_eq!(make(&api.key).await?.status, 201);
    set(json!({"things": 0})).await?;
    assert_eq!(make(&api.key).await?.status, 201);
    refused(&make(&api.other_key).await?, HELD, "things", "1 of 0");
    assert_eq!(api.quotas().await?["things"], json!({"own": true, "used": 3}));
    // A new account has it from the start.
    let account = AccountId::new(core.clock.now().0, random16()?);
    let mut tx = core.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, account, "New", true, core.clock.now().0).await?;
    tx.commit().await?;
    let shown = quotas_of_accounts::list(core, account).await?;
    let things = shown.iter().find(|usage| usage.quota == Quota::Things).context("things")?;
    assert_eq!((things.limit, things.used, things.is_own), (Some(0), Some(0), false));
    api.set_quotas(json!({"things": "default"})).await?;
    refused(&make(&api.key).await?, HELD, "things", "3 of 0");
    set(json!({"things": "unlimited"})).await?;
    for key in [&api.key, &api.other_key] {
        assert_eq!(make(key).await?.status, 201);
    }
    // What an older release left: an account without the limit, and one with a limit that is set no more.
    set(json!({"links": 7})).await?;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    for sql in ["DELETE FROM quota_uses WHERE kind = 'links'", "UPDATE quota_uses SET kind = 'uploads'"] {
        on_db!(&mut *tx, |c| sqlx::query(sql).execute(c).await.map(|_| ()))?;
    }
    tx.commit().await?;
    let limits = async || {
        let quotas = api.quotas().await?;
        Ok::<_, anyhow::Error>(["links", "uploads"].map(|name| quotas[name].get("limit").cloned()))
    };
    assert_eq!(limits().await?, [None, Some(json!(5))]);
    quotas_of_accounts::apply_defaults(&core.db, core.clock.now()).await?;
    assert_eq!(limits().await?, [Some(json!(7)), None]);
    set(json!({"links": "unlimited"})).await?;
    let by = By::command("platform quotas set", core.clock.now());
    quotas::set_defaults(&core.db, &by, &[]).await?;
    assert_eq!(set(json!({})).await?, json!({"streams": 5}));
    Ok(())
}

crate::on_both_engines!(
    a_quota_that_is_set_while_others_write_counts_all,
    a_recount_corrects_what_drifted,
    a_limit_of_all_accounts_holds_for_each_that_has_no_own
);
