//! A database whose disk is full: it refuses for as long as that lasts, and not longer.

use anyhow::{Context, Result, ensure};
use control::store::{Db, StoreError, write_probe};
use shared::time::UnixMillis;
use sqlx::Executor as _;
use tests::db::{Engine, TestDb};

use crate::on_both_engines;

async fn write(db: &Db, bytes: usize) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    write_probe::write(&mut tx, 7, UnixMillis(1), &vec![7; bytes]).await?;
    tx.commit().await
}

/// SQLite ends the transaction by itself then, and the client library does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_writes_go_on_after_a_full_disk() -> Result<()> {
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
async fn a_connection_that_is_left_in_a_transaction_is_thrown_away() -> Result<()> {
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
    let mut tx = made.db.begin().await?;
    write_probe::forget(&mut tx, UnixMillis(2)).await?;
    tx.commit().await?;
    Ok(())
}

on_both_engines!(the_probe_writes_and_forgets);
