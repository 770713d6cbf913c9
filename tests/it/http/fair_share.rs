//! Requests that wait for those of other accounts.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use axum::http::Method;
use futures_util::FutureExt;
use serde_json::json;
use shared::id::AccountId;
use tests::{db::Engine, product::DEADLINE};

use super::Api;

/// While other accounts have all places a request waits, also one with a body. The platform operator does not, nor does
/// an operation whose row takes no place.
#[tokio::test]
async fn requests_wait_for_places_of_other_accounts() -> Result<()> {
    let api = Api::new(Engine::Sqlite).await?;
    let share = &api.made.app.fair_share;
    let mut held = Vec::new();
    // As many as there are on any machine.
    for n in 0..12 {
        held.extend(share.enter(AccountId::new(1, [n; 16]), false).now_or_never().transpose()?);
    }
    let create = api.post("/thngs", json!({"name": "t"}));
    let mut waiting = Box::pin(async { tokio::try_join!(api.get("/thngs"), create) });
    let begun = Instant::now();
    while share.count_waiting() < 2 {
        // Others keep asking, so places stay limited.
        drop(share.enter(AccountId::new(1, [0; 16]), false).now_or_never());
        ensure!(begun.elapsed() < DEADLINE, "{} wait", share.count_waiting());
        tokio::select! {
            biased;
            done = &mut waiting => bail!("without a place: {done:?}"),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
    let path = "/platform/accounts";
    api.call_as(api.key_for(path), Method::GET, path, None).await?.must_be(200)?;
    api.get("/scans/stats").await?.must_be(200)?;
    ensure!(share.count_waiting() == 2, "{} wait", share.count_waiting());
    drop(held);
    let (list, made) = waiting.await?;
    ensure!(list.status == 200 && made.status == 201, "{list:?} {made:?}");
    ensure!(share.count_waiting() == 0);
    Ok(())
}
