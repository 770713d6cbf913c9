//! Streams and uploads: what is open at one time, in all processes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use events::service::connections;
use kernel::{domain::quota::Quota, service::open_quotas::OpenQuotas};
use serde_json::json;
use tests::{db::Engine, product::DEADLINE};
use tokio_util::sync::CancellationToken;

use super::super::Api;

async fn processes_share_what_an_account_may_have_open(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let (db, account) = (&core.db, api.made.account);
    let (one, other) = (OpenQuotas::new("one".to_owned()), OpenQuotas::new("other".to_owned()));
    let early = one.take(db, account, Quota::Streams, core.clock.now()).await?;
    api.set_quotas(json!({"streams": 3})).await?;
    let mut held = Vec::new();
    for process in [&one, &other] {
        held.push(process.take(db, account, Quota::Streams, core.clock.now()).await?);
    }
    // The first process said how many it has when it opened the second one.
    for process in [&one, &other] {
        let refused = process.take(db, account, Quota::Streams, core.clock.now()).await.unwrap_err();
        ensure!(refused.code() as u32 == 42903 && refused.to_string().contains("3 of 3"), "{refused}");
        assert_eq!(process.count_all(db, account, Quota::Streams).await?, 3);
    }
    let elsewhere = other.take(db, api.other_account, Quota::Streams, core.clock.now()).await;
    assert!(elsewhere.is_ok(), "another account");
    assert!(other.take(db, account, Quota::Uploads, core.clock.now()).await.is_ok(), "another quota");
    drop(early);
    // The own process knows at once, the other one when it is told.
    let again = one.take(db, account, Quota::Streams, core.clock.now()).await?;
    drop((again, held.remove(0)));
    let stop = CancellationToken::new();
    let run = one.run(db, stop.clone());
    let wait = async {
        let begun = Instant::now();
        let mut more = Vec::new();
        while more.len() < 2 {
            match other.take(db, account, Quota::Streams, core.clock.now()).await {
                Ok(place) => more.push(place),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            ensure!(begun.elapsed() < DEADLINE, "{} of 2", more.len());
        }
        stop.cancel();
        Ok(more)
    };
    let (more, ()) = tokio::join!(wait, run);
    assert_eq!(more?.len(), 2);
    Ok(())
}

async fn a_client_that_comes_back_takes_its_own_place(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (state, actor) = (&api.made.app.events, api.made.caller().actor);
    api.set_quotas(json!({"streams": 1})).await?;
    let open = |client: &'static str| connections::open(state, &actor, [1; 32], None, Some(client));
    let first = open("a").await?;
    let refused = open("b").await.unwrap_err();
    assert_eq!(refused.code() as u32, 42903, "{refused}");
    let second = open("a").await?;
    assert!(first.ends.is_cancelled(), "the connection of before is ended");
    connections::close(state, &actor, &first.id).await;
    assert_eq!(open("b").await.unwrap_err().code() as u32, 42903, "the place is the second's");
    connections::close(state, &actor, &second.id).await;
    open("b").await?;
    assert_eq!(api.quotas().await?["streams"], json!({"limit": 1, "own": true, "used": 1}));
    Ok(())
}

async fn uploads_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let file = api.create("/files", json!({"name": "f"})).await?["id"].clone();
    api.set_quotas(json!({"uploads": 1})).await?;
    let core = &api.made.app.core;
    let held = core.open_quotas.take(&core.db, api.made.account, Quota::Uploads, core.clock.now()).await?;
    let answer = api.upload(&file, 10).await?;
    super::refused(&answer, (429, 42903), "uploads", "1 of 1");
    assert_eq!(answer.header("retry-after"), Some("1"));
    drop(held);
    assert_eq!(api.upload(&file, 10).await?.status, 200);
    assert_eq!(api.quotas().await?["uploads"]["used"], 0);
    Ok(())
}

crate::on_both_engines!(
    processes_share_what_an_account_may_have_open,
    a_client_that_comes_back_takes_its_own_place,
    uploads_beyond_the_quota_are_refused
);
