//! Erasures of one account take turns, and a profile that cannot be made again holds up nothing else.

use std::time::Duration;

use ::privacy::{
    service::{
        ages,
        steps::{self, Stepped},
    },
    store::erasures::{self, Claimed},
    worker::work,
};
use anyhow::{Context, Result, ensure};
use assessment::store::scan_profiles;
use axum::http::Method;
use kernel::store::{Ctx, Db};
use serde_json::json;
use shared::{
    id::{AccountId, ThngId},
    time::UnixMillis,
};
use tests::db::Engine;
use tokio_util::sync::CancellationToken;

use super::{Api, BEGIN, END, IP, MARKS, Scanned, aged::DAY, ask, found, marked, other, receipt, work_all};
use crate::store::schema::run;

crate::on_both_engines!(
    one_erasure_of_an_account_is_under_way,
    who_has_waited_longest_is_next,
    a_lease_about_to_expire_is_lost,
    workers_write_nothing_back,
    a_profile_that_fails_holds_up_no_other,
);

async fn claim(db: &Db) -> Result<Option<Claimed>> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let claimed = erasures::claim(&mut tx).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn release(db: &Db, claimed: &Claimed) -> Result<()> {
    let mut tx = db.begin(&Ctx::default()).await?;
    erasures::release(&mut tx, claimed, Duration::ZERO).await?;
    Ok(tx.commit().await?)
}

/// Asks for an erasure in the other account.
async fn ask_as_other(api: &Api) -> Result<()> {
    let network = Some(json!({"network": IP, "from": 1, "to": 2}));
    api.call_as(&api.other_key, Method::POST, "/privacy/erasures", network).await?.must_be(202)?;
    Ok(())
}

async fn one_erasure_of_an_account_is_under_way(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    scanned.scan(&[marked("A", 1)?, other("B", 2)?]).await?;
    let api = &scanned.api;
    let (db, state) = (&api.made.app.core.db, &api.made.app.privacy);
    let paths = [
        ask(api, json!({"thng": scanned.brand_thngs[0]})).await?,
        ask(api, json!({"network": IP, "from": BEGIN, "to": END})).await?,
    ];
    ask_as_other(api).await?;

    // Many replicas at once.
    let claims = futures_util::future::try_join_all((0..6).map(|_| claim(db))).await?;
    let mut held: Vec<Claimed> = claims.into_iter().flatten().collect();
    ensure!(held.len() == 2, "one of each account: {held:?}");
    ensure!(held[0].erasure.account != held[1].erasure.account, "{held:?}");
    let mine = held.iter().position(|one| one.erasure.account == api.made.account).context("mine")?;
    let mut mine = held.swap_remove(mine);
    ensure!(claim(db).await?.is_none());

    // A lease that runs out frees the account, and its holder writes nothing more.
    let expired = format!("UPDATE erasures SET lease_until = 1 WHERE id = '{}'", mine.erasure.id);
    let waited_longer = "UPDATE erasures SET lease_until = 0 WHERE fence = 0".to_owned();
    run(&api.made.db.location, &[expired, waited_longer]).await?;
    let mut next = claim(db).await?.context("the other erasure")?;
    ensure!(next.erasure.account == api.made.account && next.erasure.id != mine.erasure.id, "{next:?}");
    ensure!(steps::step(state, &mut mine).await? == Stepped::Lost, "an expired lease writes");
    ensure!(steps::step(state, &mut next).await? == Stepped::Moved);
    ensure!(claim(db).await?.is_none());

    // One that waits after a failure holds up no other.
    let mut tx = db.begin(&Ctx::default()).await?;
    erasures::release(&mut tx, &next, Duration::from_secs(3_600)).await?;
    tx.commit().await?;
    let again = claim(db).await?.context("the first one")?;
    ensure!(again.erasure.id == mine.erasure.id, "{again:?}");
    ensure!(claim(db).await?.is_none());

    let free = "UPDATE erasures SET lease_until = 0, paused_until = 0".to_owned();
    run(&api.made.db.location, &[free]).await?;
    work_all(api).await?;
    for path in paths {
        receipt(api, &path).await?;
    }
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

/// An account that asks again and again was always first: what is new had waited since 1970.
async fn who_has_waited_longest_is_next(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let api = &scanned.api;
    let db = &api.made.app.core.db;
    ask(api, json!({"thng": scanned.brand_thngs[0]})).await?;
    let mine = claim(db).await?.context("mine")?;
    release(db, &mine).await?;
    ask_as_other(api).await?;

    let first = claim(db).await?.context("the first one")?;
    ensure!(first.erasure.id == mine.erasure.id, "{first:?}");
    let second = claim(db).await?.context("the second one")?;
    ensure!(second.erasure.account != api.made.account, "{second:?}");
    Ok(())
}

/// A claim does not see a step that is not committed: its worker went on beside another erasure of the account.
async fn a_lease_about_to_expire_is_lost(engine: Engine) -> Result<()> {
    let scanned = Scanned::new(engine).await?;
    let api = &scanned.api;
    let (db, state) = (&api.made.app.core.db, &api.made.app.privacy);
    ask(api, json!({"thng": scanned.brand_thngs[0]})).await?;
    let mut held = claim(db).await?.context("a claim")?;
    ensure!(steps::step(state, &mut held).await? == Stepped::Moved, "a whole lease");

    // Half a minute of the five is left.
    let later = "UPDATE erasures SET lease_until = lease_until - 270000".to_owned();
    run(&api.made.db.location, &[later]).await?;
    let mut tx = db.begin(&Ctx::default()).await?;
    ensure!(!erasures::renew(&mut tx, &held).await?, "it was renewed");
    tx.commit().await?;
    ensure!(steps::step(state, &mut held).await? == Stepped::Lost, "it was written");
    Ok(())
}

/// An erasure because of age keeps the referer: it must not write back one that another erasure has cut.
async fn workers_write_nothing_back(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    let records = (0..60).map(|hour| marked("A", hour)).collect::<Result<Vec<_>>>()?;
    scanned.scan(&records).await?;
    scanned.keep_days(json!(1)).await?;
    let api = &scanned.api;
    let state = &api.made.app.privacy;
    let tomorrow = UnixMillis(api.made.app.core.clock.now().0 + 2 * DAY);
    ensure!(ages::schedule(state, tomorrow).await? == 1);
    let path = ask(api, json!({"thng": scanned.brand_thngs[0]})).await?;
    let stop = CancellationToken::new();
    let worker = async || -> Result<()> {
        while work(state, 1, &stop).await? {}
        Ok(())
    };
    futures_util::future::try_join_all((0..3).map(|_| worker())).await?;
    work_all(api).await?;
    receipt(api, &path).await?;
    let left = found(api, &MARKS).await?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

async fn a_profile_that_fails_holds_up_no_other(engine: Engine) -> Result<()> {
    let mut scanned = Scanned::new(engine).await?;
    scanned.scan(&[marked("A", 1)?, marked("B", 2)?]).await?;
    let api = &scanned.api;
    let (_, others_thng) = api.others().await?;
    let (broken, empty) = match engine {
        Engine::Sqlite => ("x'ff'", "x''"),
        Engine::Postgres | Engine::ClickHouse => (r"'\xff'", "''"),
    };
    let broken_thng = &scanned.brand_thngs[0];
    let set = |to: &str| format!("UPDATE scan_profiles SET profile = {to} WHERE thng_id = '{broken_thng}'");
    let of_others = format!(
        "INSERT INTO scan_profiles (thng_id, account_id, profile) VALUES ('{others_thng}', '{}', {empty})",
        api.other_account
    );
    run(&api.made.db.location, &[set(broken), of_others]).await?;
    let path = ask(api, json!({"network": IP, "from": BEGIN, "to": END})).await?;
    work_all(api).await?;

    let failing = api.get(&path).await?.json();
    ensure!(failing["status"] == "EXECUTING" && failing["profilesFailed"] == 1, "{failing}");
    ensure!((&failing["rows"]["scans"], &failing["rows"]["profiles"]) == (&json!(2), &json!(2)), "{failing}");
    let is_outdated = async |account: AccountId, thng: &str| -> Result<bool> {
        let mut conn = api.made.app.core.db.read().await?;
        Ok(scan_profiles::load(&mut conn, account, thng.parse::<ThngId>()?).await?.is_outdated)
    };
    ensure!(!is_outdated(api.made.account, &scanned.brand_thngs[1]).await?, "the other item waits");
    scanned.profile_fits(1).await?;

    // Repaired, it is made again at the next try.
    run(&api.made.db.location, &[set(empty), "UPDATE erasures SET lease_until = 0".to_owned()]).await?;
    work_all(api).await?;
    let ended = receipt(api, &path).await?;
    ensure!(ended.get("profilesFailed").is_none() && ended["rows"] == failing["rows"], "{ended}");
    ensure!(!is_outdated(api.made.account, broken_thng).await?);
    scanned.profile_fits(0).await?;
    ensure!(is_outdated(api.other_account, &others_thng).await?, "a profile of another account was made");
    Ok(())
}
