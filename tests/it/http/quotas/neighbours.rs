//! What an account with a quota does never holds up the others.

use anyhow::{Context, Result};
use axum::http::Method;
use futures_util::future::{join, join_all, join3};
use kernel::{
    domain::quota::Quota,
    store::{Ctx, StoreError, quotas},
};
use serde_json::json;
use tests::db::Engine;

use super::{
    super::{
        Api,
        authentication::{BERN, Brand, trigger},
        batches::{finished, populate},
    },
    refused,
};

/// A request that writes many Thngs holds the use of its account until it ends. A population and a deletion of the account
/// wait for it, but not while they hold the order of changes, which everybody needs.
async fn a_population_waits_for_its_account_without_holding_up_others(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].clone();
    let tasks = format!("/batches/{}/tasks", batch.as_str().context("id")?);
    let gone = api.create("/thngs", json!({"name": "t"})).await?["id"].as_str().context("id")?.to_owned();
    api.set_quotas(json!({"things": 5})).await?;
    let product = api.call_as(&api.other_key, Method::POST, "/products", Some(json!({"name": "p"}))).await?;
    let link = json!({"platformId": product.json()["id"], "defaultRedirectUrl": "https://example.com/"});
    let core = &api.made.app.core;
    let now = core.clock.now();
    // SQLite has one writer: there is nothing to hold beside it.
    let held = match engine {
        Engine::Sqlite => None,
        Engine::Postgres | Engine::ClickHouse => {
            let mut tx = core.db.begin(&Ctx::default()).await?;
            quotas::lock(&mut tx, api.made.account, Quota::Things, now).await?.context("a limit")?;
            Some(tx)
        }
    };
    if held.is_some() {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let locked = quotas::lock_soon(&mut tx, api.made.account, &[Quota::Links, Quota::Things]).await;
        assert!(matches!(locked, Err(StoreError::Unavailable(_))), "{locked:?}");
    }
    // A deletion locks the use before it takes the order of changes.
    let path = format!("/thngs/{gone}");
    let gone = api.delete(&path);
    let populated = finished(&api, &tasks, populate(3, &json!({})));
    let others = async {
        for _ in 0..5 {
            let body = Some(link.clone());
            let answer = api.call_as(&api.other_key, Method::POST, "/redirections", body).await?;
            assert!(answer.status.is_success(), "{answer:?}");
        }
        drop(held);
        Ok::<_, anyhow::Error>(())
    };
    let (populated, gone, others) = join3(populated, gone, others).await;
    others?;
    assert_eq!(gone?.status, 200);
    assert_eq!(populated?["status"], "COMPLETED");
    assert_eq!(api.quotas().await?["things"]["used"], 3);
    Ok(())
}

/// Assessments of several accounts are written together; those above a quota are refused alone.
async fn assessments_of_others_do_not_notice_a_quota(engine: Engine) -> Result<()> {
    const EACH: usize = 8;
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let mut things = Vec::new();
    for n in 0..EACH {
        things.push(brand.thng(&format!("S{n}")).await?);
    }
    let used = api.set_quotas(json!({"eventsPerDay": 1_000})).await?["eventsPerDay"]["used"].clone();
    let limit = used.as_u64().context("use")? + 3;
    api.set_quotas(json!({"eventsPerDay": limit})).await?;
    let ask = |key, body| api.call_as(key, Method::POST, "/authentication", Some(body));
    let own = things.iter().map(|thng| ask(&api.key, trigger(Some(thng), BERN)));
    let others = (0..EACH).map(|_| ask(&api.other_key, trigger(None, BERN)));
    let (own, others) = join(join_all(own), join_all(others)).await;
    let own = own.into_iter().collect::<Result<Vec<_>>>()?;
    for answer in others {
        let answer = answer?;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let (stored, rest): (Vec<_>, Vec<_>) = own.iter().partition(|answer| answer.status == 200);
    assert_eq!(stored.len(), 3, "{own:?}");
    for answer in rest {
        refused(answer, (429, 42902), "eventsPerDay", &format!("of {limit}"));
    }
    let results = api.get("/actions/authenticationResults?perPage=100").await?.json();
    assert_eq!(results.as_array().context("list")?.len(), 3);
    Ok(())
}

/// Values that a new Thng or product has from the start count as those that are written later.
async fn initial_properties_count(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.set_quotas(json!({"eventsPerDay": 3})).await?;
    let with_two = json!({"name": "n", "properties": {"a": 1, "b": 2}});
    let post = |uri: &'static str| api.post(uri, with_two.clone());
    assert_eq!(post("/thngs").await?.status, 201);
    for uri in ["/products", "/thngs"] {
        refused(&post(uri).await?, (429, 42902), "eventsPerDay", "2 of 3");
    }
    assert_eq!(api.get("/products").await?.json(), json!([]));
    assert_eq!(api.quotas().await?["eventsPerDay"]["used"], 2);
    Ok(())
}

crate::on_both_engines!(
    a_population_waits_for_its_account_without_holding_up_others,
    assessments_of_others_do_not_notice_a_quota,
    initial_properties_count
);
