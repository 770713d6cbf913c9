//! Kills, stops and changes at random moments.

use std::time::Duration;

use anyhow::{Result, ensure};
use reqwest::Method;
use tests::{
    db::Engine,
    is_long,
    kills::expire_leases,
    product::{Options, Product},
    repetitions,
};

use super::{DONE, check_results, number, read, submit, thngs, wait_for};

/// kill -9 of the whole product at moments that differ, with three jobs under way.
async fn a_kill_at_any_step_neither_duplicates_nor_loses_actions(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(submit(&product, &ids, 12_000).await?);
    }
    let kills = if engine == Engine::Sqlite { repetitions(6, 12) } else { 4 };
    for kill in 0..kills {
        let seen: u64 = number(&read(&product, &jobs[0]).await?, DONE);
        // In the reading of inputs first, then in the middle of steps.
        if kill > 0 {
            wait_for(&product, &jobs[0], seen + 1).await?;
        }
        let random = getrandom::u32().map_err(|error| anyhow::anyhow!("{error}"))?;
        tokio::time::sleep(Duration::from_micros(u64::from(random % 60_000))).await;
        product.kill()?;
        // On Postgres what was held is free only when its lease has run out.
        if !is_long() {
            expire_leases(&product).await?;
        }
        product.start_again()?;
        let after = number(&read(&product, &jobs[0]).await?, DONE);
        ensure!(after >= seen, "{after} operations after a kill, {seen} before");
    }
    check_results(&product, &jobs, false).await
}

/// A stop lets go of jobs at once, and a start goes on with them; many small ones among them.
async fn a_restart_resumes_every_job(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let mut jobs = vec![submit(&product, &ids, 20_000).await?];
    for _ in 0..repetitions(29, 99) {
        jobs.push(submit(&product, &ids, 100).await?);
    }
    wait_for(&product, &jobs[0], 1).await?;
    ensure!(product.stop()?.success());
    product.start_again()?;
    // What was let go of needs no lease to run out.
    check_results(&product, &jobs, false).await
}

/// Thngs that go while a job runs are failed operations, and a cancel keeps what was created.
async fn thngs_can_be_deleted_and_jobs_cancelled_while_running(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let entries = repetitions(12_000, 30_000);
    let jobs = [submit(&product, &ids, entries).await?, submit(&product, &ids, entries).await?];
    wait_for(&product, &jobs[0], 1).await?;
    product.must_answer(200, Method::DELETE, &format!("/thngs/{}", ids[0]), None).await?;
    wait_for(&product, &jobs[1], entries as u64 / 3).await?;
    let (status, body) = product.call(Method::POST, &format!("{}/cancel", jobs[1].path), None).await?;
    ensure!(status == 202 || status == 409, "{status}: {body}");
    check_results(&product, &jobs, true).await
}

crate::on_both_engines!(
    a_kill_at_any_step_neither_duplicates_nor_loses_actions,
    a_restart_resumes_every_job,
    thngs_can_be_deleted_and_jobs_cancelled_while_running,
);
