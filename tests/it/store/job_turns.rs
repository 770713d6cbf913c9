//! Fair scheduling of jobs: accounts are served in rotation, however many jobs one has.

use std::time::{Duration, Instant};

use ::jobs::{
    domain::{
        job::{Job, JobStatus},
        job_input::JobDraft,
    },
    store::{
        job_leases::{self, Claimed, Phase},
        jobs,
    },
};
use anyhow::{Context, Result, ensure};
use kernel::store::Ctx;
use serde_json::json;
use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};
use tenants::store::accounts;
use tests::{
    db::{Engine, TestDb, random16},
    product::DEADLINE,
};

async fn job(db: &TestDb, account: AccountId) -> Result<JobId> {
    let body = json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": ["a"]}});
    let request =
        JobDraft::parse(&body).map_err(|faults| anyhow::anyhow!("{faults:?}"))?.request.context("request")?;
    let id = JobId::new(1, random16()?);
    let mut tx = db.db.begin(&Ctx::default()).await?;
    jobs::insert(&mut tx, &Job::new(id, account, None, request, None, UnixMillis(1_000))).await?;
    tx.commit().await?;
    Ok(id)
}

async fn claim(db: &TestDb) -> Result<Option<Claimed>> {
    // Leases are ordered by the database's clock, in milliseconds.
    tokio::time::sleep(Duration::from_millis(3)).await;
    let mut tx = db.db.begin(&Ctx::default()).await?;
    let claimed = job_leases::claim(&mut tx, Phase::Load, &[]).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn release(db: &TestDb, claimed: &Claimed) -> Result<bool> {
    let mut tx = db.db.begin(&Ctx::default()).await?;
    let released = job_leases::release(&mut tx, claimed, Duration::ZERO, u64::MAX).await?;
    tx.commit().await?;
    Ok(released)
}

async fn accounts_take_turns_and_so_do_their_jobs(engine: Engine) -> Result<()> {
    let db = TestDb::new(engine).await?;
    let mut all = Vec::new();
    let mut tx = db.db.begin(&Ctx::default()).await?;
    for _ in 0..2 {
        let account = AccountId::new(1, random16()?);
        accounts::insert(&mut tx, account, "Test", true, 1).await?;
        all.push(account);
    }
    tx.commit().await?;
    let (many, few) = (all[0], all[1]);
    let mut of_many = Vec::new();
    for _ in 0..3 {
        of_many.push(job(&db, many).await?);
    }
    let of_few = job(&db, few).await?;
    // Held for a moment each, as workers do.
    let mut order = Vec::new();
    for _ in 0..8 {
        let claimed = claim(&db).await?.context("a job")?;
        ensure!(release(&db, &claimed).await?, "it was held");
        order.push(claimed.item.id);
    }
    let [a, b, c] = of_many[..] else { unreachable!() };
    ensure!(order == [a, of_few, b, of_few, c, of_few, a, of_few], "{order:?}");
    let standing = job_leases::standing(&mut db.db.read().await?).await?;
    ensure!(standing.open == [(JobStatus::Enqueued, 4)], "{standing:?}");
    ensure!(standing.waiting_seconds < 60.0, "each was served: {standing:?}");
    // An account whose inputs take all lanes that it gets is passed over.
    let full = [many.to_string()];
    for _ in 0..2 {
        let mut tx = db.db.begin(&Ctx::default()).await?;
        let claimed = job_leases::claim(&mut tx, Phase::Load, &full).await?.context("a job")?;
        tx.commit().await?;
        ensure!(claimed.item.id == of_few && release(&db, &claimed).await?);
    }
    let full = [many.to_string(), few.to_string()];
    ensure!(!job_leases::is_ready(&mut db.db.read().await?, Phase::Load, &full).await?);
    // One that nobody was served from waits since it was made, in 1970.
    job(&db, few).await?;
    let standing = job_leases::standing(&mut db.db.read().await?).await?;
    ensure!(standing.waiting_seconds > 1e9, "{standing:?}");
    Ok(())
}

/// A lease that ran out: the next holder's fence is higher, and the one before may do nothing any more.
async fn a_fenced_off_worker_cannot_write(engine: Engine) -> Result<()> {
    let db = TestDb::new(engine).await?;
    let account = AccountId::new(1, random16()?);
    let mut tx = db.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, account, "Test", true, 1).await?;
    tx.commit().await?;
    job(&db, account).await?;
    let first = claim(&db).await?.context("a job")?;
    ensure!(claim(&db).await?.is_none(), "it is held");
    let held = async |claimed: &Claimed| -> Result<bool> {
        let mut tx = db.db.begin(&Ctx::default()).await?;
        let held = job_leases::hold(&mut tx, claimed).await?.is_some();
        tx.commit().await?;
        Ok(held)
    };
    ensure!(held(&first).await?);
    ensure!(release(&db, &first).await?);
    let begun = Instant::now();
    let second = loop {
        if let Some(claimed) = claim(&db).await? {
            break claimed;
        }
        ensure!(begun.elapsed() < DEADLINE, "it was let go of");
    };
    ensure!(second.fence > first.fence && second.failures == first.failures + 1);
    ensure!(!held(&first).await? && !release(&db, &first).await?, "it has another holder");
    let mut tx = db.db.begin(&Ctx::default()).await?;
    ensure!(!job_leases::write(&mut tx, &first, &first.item).await?);
    tx.commit().await?;
    ensure!(held(&second).await?);
    Ok(())
}

crate::on_both_engines!(accounts_take_turns_and_so_do_their_jobs, a_fenced_off_worker_cannot_write,);
