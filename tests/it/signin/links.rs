//! The link that a start prints: it signs the first owner in once.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::{service::Random, store::Ctx};
use serde_json::{Value, json};
use shared::time::Clock;
use signin::{service::links, store::operator_authenticators};
use tests::{
    db::{Engine, SystemRandom},
    fingerprint::fingerprint,
};

use super::{
    ANOTHER, PASSWORD,
    site::{Answer, HOME, KEY, Site},
};

/// What a start prints behind the `#`.
pub(super) async fn made(site: &Site) -> Result<Option<String>> {
    let with = (&*site.clock as &dyn Clock, &SystemRandom as &dyn Random);
    Ok(links::make(&site.made.app.core.db, with).await?)
}

pub(super) async fn follow(site: &Site, code: &str) -> Result<Answer> {
    site.ask(None, (Method::POST, "/session/link"), json!({"code": code}), HOME).await
}

async fn a_link_signs_in_once(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let code = made(&site).await?.context("a link")?;
    ensure!(code.len() == 80, "{code}");
    let stored = format!("{:?}", fingerprint(&site.made.db.location).await?);
    ensure!(!stored.contains(&code), "the code is stored as a hash");
    let answer = follow(&site, &code).await?;
    let cookie = answer.cookie()?;
    let operator = answer.done(200)?["operator"]["id"].clone();
    ensure!(operator == site.made.operator.as_str(), "{operator}");
    ensure!(site.status(&cookie).await? == 200);
    ensure!(site.with(&cookie, Method::GET, "/products", Value::Null).await?.status == 200);
    for code in [code.as_str(), "x", &"a".repeat(80)] {
        let refused = follow(&site, code).await?;
        ensure!(refused.code() == (401, 40103) && refused.headers.get("set-cookie").is_none(), "{refused:?}");
    }
    let trail = site.by_key(KEY, Method::GET, "/audit", Value::Null).await?.done(200)?;
    let operations =
        |name: &str| trail.as_array().is_some_and(|all| all.iter().any(|one| one["operation"] == name));
    ensure!(operations("start") && operations("POST /console/api/session/link"), "{trail}");
    Ok(())
}

async fn a_link_ends_by_time_by_another_start_and_by_a_password(engine: Engine) -> Result<()> {
    let site = Site::with_password(engine).await?;
    let late = made(&site).await?.context("a link")?;
    site.pass(links::LINK_MS - 1);
    let first = made(&site).await?.context("a link")?;
    ensure!(follow(&site, &late).await?.code() == (401, 40103), "another start ended it");
    site.pass(links::LINK_MS);
    ensure!(follow(&site, &first).await?.code() == (401, 40103), "it lasts 15 minutes");
    let code = made(&site).await?.context("a link")?;
    let cookie = site.sign_in().await?;
    let body = json!({"password": PASSWORD, "newPassword": ANOTHER});
    site.with(&cookie, Method::PUT, "/me/password", body).await?.done(200)?;
    ensure!(follow(&site, &code).await?.code() == (401, 40103), "another password ended it");
    Ok(())
}

async fn a_link_goes_round_no_second_factor(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let (account, operator, now) = (site.made.account, site.made.operator, site.clock.now());
    let mut tx = site.made.app.core.db.begin(&Ctx::default()).await?;
    operator_authenticators::put(&mut tx, account, operator, b"sealed", now).await?;
    tx.commit().await?;
    let code = made(&site).await?.context("one that was begun only is not on")?;
    let mut tx = site.made.app.core.db.begin(&Ctx::default()).await?;
    ensure!(operator_authenticators::use_step(&mut tx, account, operator, 1, now).await?);
    tx.commit().await?;
    ensure!(follow(&site, &code).await?.code() == (401, 40103), "it was turned on since");
    ensure!(made(&site).await?.is_none(), "a start makes none");
    Ok(())
}

async fn a_link_is_for_pages_of_the_same_origin(engine: Engine) -> Result<()> {
    let site = Site::new(engine, None).await?;
    let code = made(&site).await?.context("a link")?;
    let outside = site.by_key("", Method::POST, "/console/api/session/link", json!({"code": code})).await?;
    ensure!(outside.code() == (403, 40301), "{outside:?}");
    let faulty = site.ask(None, (Method::POST, "/session/link"), json!({"code": 1, "more": 2}), HOME).await?;
    ensure!(faulty.code() == (400, 40001), "{faulty:?}");
    follow(&site, &code).await?.done(200).map(|_| ())
}

crate::on_both_engines!(
    a_link_signs_in_once,
    a_link_ends_by_time_by_another_start_and_by_a_password,
    a_link_goes_round_no_second_factor,
    a_link_is_for_pages_of_the_same_origin,
);
