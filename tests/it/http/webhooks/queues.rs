//! Queues of webhooks: their order and their bounds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::json;
use tests::{db::Engine, product::DEADLINE};

use super::{
    super::Api,
    receiver::{Receiver, Reply, count, deliver, deliveries, execute, until, webhook},
};
use crate::on_both_engines;

/// In order, one that is refused holds up the others until its time has come, and not the workers.
pub(super) async fn an_ordered_queue_waits_for_its_first_message(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _deliver = deliver(&api);
    let open = Arc::new(AtomicUsize::new(0));
    let is_open = open.clone();
    let receiver = Receiver::new(move |_| match is_open.load(Ordering::SeqCst) {
        0 => Reply::Refuse(500),
        _ => Reply::Take,
    });
    let receiver = receiver.await?;
    let id = webhook(&api, &receiver, json!({"ordered": true})).await?;
    let mut made = Vec::new();
    for _ in 0..4 {
        let action = api.create("/actions/scans", json!({})).await?;
        made.push(action["id"].as_str().context("id")?.to_owned());
    }
    let begun = Instant::now();
    while receiver.asked() == 0 {
        ensure!(begun.elapsed() < DEADLINE, "nothing came");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Its next try is far away; then the webhook is woken before it, as by a change: it must go back to sleep.
    let begun = Instant::now();
    loop {
        let first = deliveries(&api, &id, "pending").await?;
        if first.iter().any(|one| one["attempts"] == 1) {
            break;
        }
        ensure!(begun.elapsed() < DEADLINE, "{first:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let far = "UPDATE webhook_messages SET next_at = next_at + 3600000 WHERE attempts > 0";
    execute(&api, far).await?;
    execute(&api, "UPDATE webhooks SET next_at = 0").await?;
    let begun = Instant::now();
    let soon_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis() + 600_000;
    while count(&api, &format!("SELECT COUNT(*) FROM webhooks WHERE next_at > {soon_ms}")).await? == 0 {
        ensure!(begun.elapsed() < DEADLINE, "its workers do not rest");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    open.store(1, Ordering::SeqCst);
    let body = json!({"status": "active"});
    ensure!(api.call(Method::PUT, &format!("/webhooks/{id}"), Some(body)).await?.status == 200);
    let came: Vec<String> = receiver.wait(4).await?.into_iter().map(|came| came.id).collect();
    ensure!(came == made, "{came:?}");
    Ok(())
}

/// A queue that is full takes no more, and says how many are lost; that of another webhook takes them.
pub(super) async fn a_queue_is_bounded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let url = "https://webhooks.invalid/hook";
    let body = json!({"name": "w", "url": url, "status": "paused"});
    let (full, other) = (api.create("/webhooks", body.clone()).await?, api.create("/webhooks", body).await?);
    let numbers = match engine {
        Engine::Postgres | Engine::ClickHouse => "generate_series(1, 99999) AS g (n)",
        Engine::Sqlite => {
            "(WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 99999) SELECT n FROM g)"
        }
    };
    let fill = format!(
        "INSERT INTO webhook_messages (webhook, account_id, message_id, type, body, created_at, status) \
         SELECT w.seq, w.account_id, 'm' || n, 'action.scans', '{{}}', 1, 'pending' FROM webhooks w, {numbers} \
         WHERE w.id = '{}'",
        full["id"].as_str().context("id")?
    );
    execute(&api, &fill).await?;
    let _deliver = deliver(&api);
    for _ in 0..3 {
        api.create("/actions/scans", json!({})).await?;
    }
    until(&api, other["id"].as_str().context("id")?, "pending", 3).await?;
    for (webhook, dropped) in [(&full, 2), (&other, 0)] {
        let read = api.get(&format!("/webhooks/{}", webhook["id"].as_str().context("id")?)).await?.json();
        ensure!(read["dropped"] == dropped, "{read}");
    }
    ensure!(count(&api, "SELECT COUNT(*) FROM webhook_messages").await? == 100_003);
    Ok(())
}

/// One account whose receivers all hang leaves places to the others.
pub(super) async fn deliveries_of_an_account_are_bounded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let hanging = Receiver::new(|_| Reply::Hang).await?;
    for _ in 0..60 {
        webhook(&api, &hanging, json!({})).await?;
    }
    let good = Receiver::new(|_| Reply::Take).await?;
    let body = json!({"name": "w", "url": good.url()});
    ensure!(api.call_as(&api.other_key, Method::POST, "/webhooks", Some(body)).await?.status == 201);
    api.create("/actions/scans", json!({})).await?;
    let _deliver = deliver(&api);
    // All places of the account are taken, and no more than these are asked for while they are.
    let begun = Instant::now();
    while hanging.asked() < 32 {
        ensure!(begun.elapsed() < DEADLINE, "{} are asked", hanging.asked());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    api.call_as(&api.other_key, Method::POST, "/actions/scans", Some(json!({}))).await?.must_be(201)?;
    good.wait(1).await?;
    // After 15 s the first are given up, and others are sent.
    let is_late = begun.elapsed() > Duration::from_secs(10);
    ensure!(is_late || hanging.asked() == 32, "{} are asked at once", hanging.asked());
    Ok(())
}

on_both_engines!(
    an_ordered_queue_waits_for_its_first_message,
    a_queue_is_bounded,
    deliveries_of_an_account_are_bounded
);
