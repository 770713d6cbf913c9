//! A database whose disk is full: writes are refused for exactly as long as that lasts.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use control::service::write_probe::probe;
use kernel::store::{Ctx, Db, StoreError, write_probe};
use shared::time::UnixMillis;
use sqlx::Executor as _;
use tests::{
    db::{Engine, TestApp, TestDb},
    product::DEADLINE,
};

use crate::on_both_engines;

async fn write(db: &Db, bytes: usize) -> Result<(), StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    write_probe::write(&mut tx, 7, UnixMillis(1), &vec![7; bytes]).await?;
    tx.commit().await
}

/// SQLite ends the transaction by itself then, and the client library does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_writes_resume_after_a_full_disk() -> Result<()> {
    let made = TestDb::new(Engine::Sqlite).await?;
    let Db::Sqlite { write: pool, .. } = &made.db else { anyhow::bail!("not SQLite") };
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(pool).await?;
    pool.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 4))))
        .await?;
    let refused = write(&made.db, 1 << 20).await;
    ensure!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    // Room again, be it on this connection or on the one after it.
    pool.execute("PRAGMA max_page_count = 1073741823").await?;
    for bytes in [1, 1 << 20] {
        write(&made.db, bytes).await.context("the next write")?;
    }
    Ok(())
}

/// Whatever left a transaction open on the connection: it is not used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_left_in_a_transaction_are_discarded() -> Result<()> {
    let made = TestDb::new(Engine::Sqlite).await?;
    let Db::Sqlite { write: pool, .. } = &made.db else { anyhow::bail!("not SQLite") };
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    tx.execute("ROLLBACK").await?;
    drop(tx);
    write(&made.db, 1).await?;
    Ok(())
}

async fn the_probe_writes_and_forgets(engine: Engine) -> Result<()> {
    let made = TestDb::new(engine).await?;
    for _ in 0..3 {
        write(&made.db, 16 << 10).await?;
    }
    let mut tx = made.db.begin(&Ctx::default()).await?;
    write_probe::forget(&mut tx, UnixMillis(2)).await?;
    tx.commit().await?;
    Ok(())
}

/// A write that has no answer is no proof, two in a row are: the process is not ready then.
async fn a_database_whose_writes_hang_is_not_writable(engine: Engine) -> Result<()> {
    let limit = Duration::from_millis(200);
    let made = TestApp::new(engine).await?;
    let app = &made.app;
    let hold = async || {
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        write_probe::write(&mut tx, 7, UnixMillis(1), &[7; 100]).await?;
        anyhow::Ok(tx)
    };
    let is_writable = || app.write_probe.failing_since().is_none();
    let recovers = async || {
        let begun = Instant::now();
        while !probe(app, 7, Duration::from_secs(5)).await {
            ensure!(begun.elapsed() < DEADLINE, "writes do not come back");
        }
        Ok(())
    };
    for hangs in [1, 2] {
        let held = hold().await?;
        for _ in 0..hangs {
            probe(app, 7, limit).await;
        }
        ensure!(is_writable() == (hangs == 1), "{hangs}");
        drop(held);
        recovers().await?;
        ensure!(is_writable(), "{hangs}");
    }
    Ok(())
}

on_both_engines!(the_probe_writes_and_forgets, a_database_whose_writes_hang_is_not_writable);
