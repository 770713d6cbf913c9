//! The fan-out between accounts: one with many events does not delay another, and loses none.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use axum::http::Method;
use events::service::fan_out;
use kernel::{
    domain::event::Event,
    store::{
        Ctx,
        event_log::{self, Keep},
        events as log,
    },
};
use serde_json::json;
use shared::time::UnixMillis;
use tests::{db::Engine, product::DEADLINE, repetitions};

use super::{
    super::Api,
    receiver::{count, execute},
};
use crate::on_both_engines;

/// Webhooks of the noisy account that keep what they get.
async fn keep(api: &Api, webhooks: usize) -> Result<()> {
    for _ in 0..webhooks {
        let body = json!({"name": "w", "url": "https://webhooks.invalid/hook", "status": "paused"});
        api.create("/webhooks", body).await?;
    }
    Ok(())
}

/// Events of the noisy account; the names of their hosts are in the order of the numbers.
async fn record(api: &Api, numbers: std::ops::Range<usize>) -> Result<()> {
    let event = |n: usize| {
        let host = format!("n{n:06}.example");
        let even = n.is_multiple_of(2);
        (api.made.account, if even { Event::ShortDomain(host, true) } else { Event::Certificate(host, None) })
    };
    let events: Vec<_> = numbers.map(event).collect();
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    log::record(&mut tx, UnixMillis(1), &events).await?;
    Ok(tx.commit().await?)
}

/// Shares out until a statement counts what is wanted.
async fn share_until(api: &Api, sql: &str, is_done: impl Fn(i64) -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_done(count(api, sql).await?) {
        ensure!(begun.elapsed() < DEADLINE, "{sql}: {}", count(api, sql).await?);
        // Transactions of other tests, in this database, may hold up what is settled.
        if !fan_out::step(&api.made.app.events).await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(())
}

/// The event of another account is queued before nearly all that was there before it. Rows that wait are kept, up to the
/// longest time of the log.
async fn a_backlog_of_one_account_does_not_delay_another(engine: Engine) -> Result<()> {
    const WEBHOOKS: usize = 20;
    let api = Api::new(engine).await?;
    keep(&api, WEBHOOKS).await?;
    let body = json!({"name": "w", "url": "https://webhooks.invalid/hook", "status": "paused"});
    ensure!(api.call_as(&api.other_key, Method::POST, "/webhooks", Some(body)).await?.status == 201);
    let rows = repetitions(3_000, 20_000);
    record(&api, 0..rows).await?;
    api.call_as(&api.other_key, Method::POST, "/actions/scans", Some(json!({}))).await?.must_be(201)?;
    let quiet = "SELECT COUNT(*) FROM webhook_messages WHERE type = 'action.scans'";
    share_until(&api, quiet, |found| found == 1).await?;
    let before = count(&api, "SELECT COUNT(*) FROM webhook_messages").await?;
    let all = i64::try_from(rows * WEBHOOKS)?;
    ensure!(before < all / 10, "{before} of {all} were queued before");

    let waiting = count(&api, "SELECT COUNT(*) FROM deferred_events").await?;
    let trim = async |at_most: i64, step: u32| -> Result<u64> {
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        let keep = Keep { since: UnixMillis(i64::MAX), rows: 0, at_most_since: UnixMillis(at_most) };
        let gone = event_log::trim(&mut tx, keep, step).await?;
        tx.commit().await?;
        Ok(gone)
    };
    // In small steps, for which those that wait are no end.
    ensure!(trim(0, 100).await? > 0, "nothing was over");
    while trim(0, 100).await? > 0 {}
    ensure!(count(&api, "SELECT COUNT(*) FROM events").await? == waiting, "not those that wait");
    ensure!(trim(i64::MAX, 100_000).await? == u64::try_from(waiting)?);
    let metrics = &api.made.app.events.webhooks.metrics;
    ensure!(metrics.deferred_lost.get() == 0);
    share_until(&api, "SELECT COUNT(*) FROM deferred_events", |found| found == 0).await?;
    ensure!(i64::try_from(metrics.deferred_lost.get())? == waiting, "those that were lost are counted");
    Ok(())
}

/// Events that were put off come once to each webhook, in the order of the log, before those that are newer.
async fn events_that_waited_stay_in_order(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    keep(&api, 6).await?;
    record(&api, 0..190).await?;
    let deferred = "SELECT COUNT(*) FROM deferred_events";
    share_until(&api, "SELECT COUNT(*) FROM webhook_messages", |found| found > 0).await?;
    ensure!(count(&api, deferred).await? > 0, "nothing was put off");
    record(&api, 190..200).await?;
    share_until(&api, "SELECT COUNT(*) FROM webhook_messages", |found| found >= 6 * 200).await?;
    ensure!(count(&api, "SELECT COUNT(*) FROM webhook_messages").await? == 6 * 200);
    let wrong = "SELECT COUNT(*) FROM webhook_messages a JOIN webhook_messages b \
        ON b.webhook = a.webhook AND b.seq > a.seq AND b.body <= a.body";
    ensure!(count(&api, wrong).await? == 0, "another order, or twice");
    ensure!(count(&api, deferred).await? == 0);
    // What waits when nobody wants it any more is cleared away.
    record(&api, 200..390).await?;
    share_until(&api, deferred, |found| found > 0).await?;
    execute(&api, "UPDATE webhooks SET status = 'disabled'").await?;
    share_until(&api, deferred, |found| found == 0).await?;
    Ok(())
}

/// A step whose transaction fails is done again: only that one counts.
async fn a_step_that_fails_counts_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    keep(&api, 6).await?;
    record(&api, 0..190).await?;
    let (refuse, of_table) = match engine {
        Engine::Postgres | Engine::ClickHouse => {
            let function = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN RAISE EXCEPTION 'no'; END $$";
            execute(&api, function).await?;
            ("FOR EACH ROW EXECUTE FUNCTION refuse()", " ON event_places")
        }
        Engine::Sqlite => ("BEGIN SELECT RAISE(ABORT, 'no'); END", ""),
    };
    execute(&api, &format!("CREATE TRIGGER refuse BEFORE UPDATE ON event_places {refuse}")).await?;
    let begun = Instant::now();
    for _ in 0..2 {
        while fan_out::step(&api.made.app.events).await.is_ok() {
            ensure!(begun.elapsed() < DEADLINE, "no step had anything to do");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let metrics = &api.made.app.events.webhooks.metrics;
    ensure!((metrics.deferred.get(), metrics.resumed.get()) == (0, 0), "nothing was stored");
    execute(&api, &format!("DROP TRIGGER refuse{of_table}")).await?;
    share_until(&api, "SELECT COUNT(*) FROM webhook_messages", |found| found >= 6 * 190).await?;
    share_until(&api, "SELECT COUNT(*) FROM deferred_events", |found| found == 0).await?;
    let (deferred, resumed) = (metrics.deferred.get(), metrics.resumed.get());
    ensure!(deferred > 0 && deferred < 190 && deferred == resumed, "{deferred} and {resumed}");
    Ok(())
}

on_both_engines!(
    a_backlog_of_one_account_does_not_delay_another,
    events_that_waited_stay_in_order,
    a_step_that_fails_counts_nothing,
);
