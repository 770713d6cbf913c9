//! Batches of several edges whose effects are written in one transaction. That is so on Postgres; SQLite has one writer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use actions::store::scans::lock_cursor;
use anyhow::{Context, Result, bail, ensure};
use control::{error::ServiceError, worker::ingest_scans::ingest};
use kernel::store::{Conn, Ctx, Db, Tx};
use redirects::service::redirections::{self, DomainChoice};
use shared::{
    problem::Code,
    wire::scan::{ScanBatch, ScanReceipt},
};
use tests::{
    db::{Engine, TestApp},
    product::DEADLINE,
};
use tokio::task::JoinHandle;

use super::{
    races::{pid, until_behind},
    redirections::{create, product},
    scans::{PHONE, batch, record},
};

type Taking = JoinHandle<Result<ScanReceipt, ServiceError>>;

/// Groups that are under way at once.
const LANES: usize = 2;

/// Edges whose batches wait for their cursors, which a transaction of the test holds: all others wait behind them.
struct Busy {
    held: Tx,
    taking: Vec<Taking>,
}

/// An account with some links.
async fn made(links: &[&str]) -> Result<TestApp> {
    let made = TestApp::new(Engine::Postgres).await?;
    let product = product(&made).await?;
    for &link in links {
        create(&made, product, "https://example.com/", Some(link)).await?;
    }
    Ok(made)
}

/// The first batch of an edge: so many scans of a link by one phone.
fn batch_of(made: &TestApp, edge: &str, link: &str, count: i64) -> ScanBatch {
    let now = made.app.core.clock.now().0;
    let records: Vec<_> = (0..count).map(|n| record(link, PHONE, now + n)).collect();
    ScanBatch { edge: edge.into(), ..batch(1, 0, &records) }
}

fn take(made: &TestApp, batch: &ScanBatch) -> Taking {
    let (app, batch) = (Arc::clone(&made.app), batch.clone());
    tokio::spawn(async move { ingest(&app, &batch).await })
}

async fn busy(made: &TestApp) -> Result<Busy> {
    let mut held = made.app.core.db.begin(&Ctx::default()).await?;
    let edges: Vec<String> = (0..LANES).map(|n| format!("busy{n}")).collect();
    for edge in &edges {
        lock_cursor(&mut held, edge, 1).await?;
    }
    let pid = pid(&mut held).await?;
    let mut taking = Vec::new();
    for edge in &edges {
        taking.push(take(made, &batch_of(made, edge, "BUSY", 1)));
        until_behind(&made.db.location, pid, i64::try_from(taking.len())?).await?;
    }
    Ok(Busy { held, taking })
}

impl Busy {
    async fn end(self) -> Result<()> {
        self.held.commit().await?;
        for taken in self.taking {
            ensure!(taken.await??.next_seq == 1);
        }
        Ok(())
    }
}

/// Sends a batch that waits behind those that are under way, as the last one of so many.
async fn queue(made: &TestApp, batch: &ScanBatch, count: usize) -> Result<Taking> {
    let taking = take(made, batch);
    let begun = Instant::now();
    while made.app.scan_groups.waiting() < count {
        ensure!(begun.elapsed() < DEADLINE, "it does not wait");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(taking)
}

/// A transaction that holds a link, as a change of it does.
async fn hold_link(made: &TestApp, link: &str) -> Result<Tx> {
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    let Conn::PgTx(c) = &mut *tx else { bail!("no transaction of Postgres") };
    let sql = "SELECT seq FROM redirections WHERE folded = $1 FOR UPDATE";
    let held: Option<i64> = sqlx::query_scalar(sql).bind(link).fetch_optional(&mut **c).await?;
    held.context("no such link")?;
    Ok(tx)
}

async fn hits(made: &TestApp, id: &str) -> Result<i64> {
    Ok(redirections::find(&made.app.redirects, &made.caller(), DomainChoice::default(), id).await?.hits)
}

async fn number(made: &TestApp, sql: &'static str) -> Result<i64> {
    let Db::Pg(pool) = &made.app.core.db else { bail!("not Postgres") };
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}

/// Events, scans of the account by its roll-ups by hour and by day, and those of them by new devices.
async fn counts(made: &TestApp) -> Result<[i64; 4]> {
    const EVENTS: &str = "SELECT COUNT(*) FROM events WHERE kind = 'action'";
    const HOURS: &str =
        "SELECT CAST(COALESCE(SUM(scans), 0) AS BIGINT) FROM scan_statistics WHERE dimension = 1";
    const DAYS: &str =
        "SELECT CAST(COALESCE(SUM(scans), 0) AS BIGINT) FROM scan_statistics_days WHERE dimension = 1";
    const DEVICES: &str =
        "SELECT CAST(COALESCE(SUM(new_devices), 0) AS BIGINT) FROM scan_statistics_days WHERE dimension = 1";
    Ok([
        number(made, EVENTS).await?,
        number(made, HOURS).await?,
        number(made, DAYS).await?,
        number(made, DEVICES).await?,
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_wait_are_written_in_one_transaction() -> Result<()> {
    const TRANSACTIONS: &str =
        "SELECT COUNT(DISTINCT xmin::text) FROM scan_cursors WHERE edge_id IN ('a', 'b', 'c')";
    let made = made(&["BUSY", "A", "B"]).await?;
    let busy = busy(&made).await?;
    let [a, b, c] =
        [("a", "A", 2), ("b", "B", 1), ("c", "A", 3)].map(|(edge, link, n)| batch_of(&made, edge, link, n));
    let mut taking = Vec::new();
    // One comes twice.
    for (n, batch) in (1..).zip([&a, &b, &a, &c]) {
        taking.push(queue(&made, batch, n).await?);
    }
    busy.end().await?;
    for (taken, expected) in taking.into_iter().zip([2, 1, 2, 3]) {
        ensure!(taken.await??.next_seq == expected);
    }
    ensure!(number(&made, TRANSACTIONS).await? == 1);
    ensure!((hits(&made, "A").await?, hits(&made, "B").await?) == (5, 1));
    let intake = &made.app.intake;
    ensure!(intake.repeated.load(Ordering::Relaxed) == 2);
    ensure!(intake.stored.load(Ordering::Relaxed) == 8);
    ensure!(intake.missing.load(Ordering::Relaxed) == 0);
    // One phone scanned all.
    ensure!(counts(&made).await? == [8, 8, 8, 1], "{:?}", counts(&made).await?);
    for batch in [&a, &b, &c] {
        ensure!(ingest(&made.app, batch).await?.next_seq == batch.records.len() as u64);
    }
    ensure!(counts(&made).await? == [8, 8, 8, 1], "{:?}", counts(&made).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_takes_no_other_down() -> Result<()> {
    let made = made(&["BUSY", "A", "B", "HELD"]).await?;
    let change = hold_link(&made, "HELD").await?;
    let busy = busy(&made).await?;
    let [a, b, held] = [("a", "A", 2), ("b", "B", 1), ("c", "HELD", 1)]
        .map(|(edge, link, n)| batch_of(&made, edge, link, n));
    let mut taking = Vec::new();
    for (n, batch) in (1..).zip([&a, &held, &a, &b]) {
        taking.push(queue(&made, batch, n).await?);
    }
    busy.end().await?;
    for (taken, expected) in taking.into_iter().zip([Some(2), None, Some(2), Some(1)]) {
        match (taken.await?, expected) {
            (Ok(receipt), Some(expected)) => ensure!(receipt.next_seq == expected, "{receipt:?}"),
            (Err(error), None) => ensure!(error.code() == Code::Unavailable, "{error}"),
            (taken, expected) => bail!("{taken:?} is not {expected:?}"),
        }
    }
    ensure!((hits(&made, "A").await?, hits(&made, "B").await?, hits(&made, "HELD").await?) == (2, 1, 0));
    ensure!(counts(&made).await? == [5, 5, 5, 1], "{:?}", counts(&made).await?);
    change.commit().await?;
    ensure!(ingest(&made.app, &held).await?.next_seq == 1, "the edge sends it again");
    ensure!(hits(&made, "HELD").await? == 1);
    ensure!(counts(&made).await? == [6, 6, 6, 1], "{:?}", counts(&made).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_whose_leader_leaves_is_written_by_another_one() -> Result<()> {
    let made = made(&["BUSY", "B", "HELD"]).await?;
    let mut change = hold_link(&made, "HELD").await?;
    let pid = pid(&mut change).await?;
    let busy = busy(&made).await?;
    let (first, second) = (batch_of(&made, "a", "HELD", 2), batch_of(&made, "b", "B", 1));
    let leader = queue(&made, &first, 1).await?;
    let other = queue(&made, &second, 2).await?;
    // Amid the transaction of both, which waits for the link.
    tokio::try_join!(busy.end(), until_behind(&made.db.location, pid, 1))?;
    leader.abort();
    ensure!(leader.await.is_err_and(|error| error.is_cancelled()));
    ensure!(other.await??.next_seq == 1);
    ensure!((hits(&made, "HELD").await?, hits(&made, "B").await?) == (0, 1));
    ensure!(counts(&made).await? == [3, 3, 3, 1], "{:?}", counts(&made).await?);
    change.commit().await?;
    for _ in 0..2 {
        ensure!(ingest(&made.app, &first).await?.next_seq == 2);
        ensure!((hits(&made, "HELD").await?, hits(&made, "B").await?) == (2, 1));
        ensure!(counts(&made).await? == [5, 5, 5, 1], "{:?}", counts(&made).await?);
    }
    Ok(())
}
