//! Leases by which workers hold orders, on the clock of the database, with a fence that grows with each holder.

use std::time::Duration;

use kernel::{
    on_db,
    store::{
        Ctx, Db, StoreError, Tx, dialect,
        lease::{pg_now, sqlite_now},
    },
};
use sqlx::types::Json;

use super::orders::Row;
use crate::domain::order::Order;

/// How long a claim holds without a step: so long an order stands still when its worker dies. What takes longer renews it.
pub const LEASE: Duration = Duration::from_secs(30);

// Orders of a suspended account wait. Of an order that has ended, what is left is removed.
macro_rules! claim {
    ($now:expr, $stages:expr, $lock:expr) => {
        concat!(
            "UPDATE print_orders SET fence = fence + 1, failures = failures + 1, lease_until = ",
            $now,
            " + $1 WHERE seq = (SELECT e.seq FROM print_orders e WHERE e.settled = 0 AND e.lease_until <= ",
            $now,
            $stages,
            " AND NOT EXISTS (SELECT 1 FROM accounts s WHERE s.id = e.account_id AND s.suspended_at IS NOT NULL) \
             ORDER BY e.lease_until, e.seq LIMIT 1",
            $lock,
            ") RETURNING id, seq, account_id, name, status, doc, created_at, updated_at, completed_at, files_until, \
             fence, failures"
        )
    };
}
// What makes links needs the writer, and what waits for edges a replica among them.
macro_rules! without_edges {
    () => {
        " AND (e.completed_at IS NOT NULL OR e.doc ->> 'stage' NOT IN ('make', 'publish'))"
    };
}
const PG_CLAIM: &str = claim!(pg_now!(), "", " FOR UPDATE OF e SKIP LOCKED");
const SQLITE_CLAIM: &str = claim!(sqlite_now!(), "", "");
const PG_CLAIM_DRAWING: &str = claim!(pg_now!(), without_edges!(), " FOR UPDATE OF e SKIP LOCKED");
const SQLITE_CLAIM_DRAWING: &str = claim!(sqlite_now!(), without_edges!(), "");
// The status is that of the claim: an order that was cancelled meanwhile stays so.
macro_rules! save {
    ($now:expr) => {
        concat!(
            "UPDATE print_orders SET status = $4, doc = $5, updated_at = $6, completed_at = $7, files_until = $8, \
             settled = $9, failures = 0, lease_until = ",
            $now,
            " + $10 WHERE seq = $1 AND fence = $2 AND status = $3"
        )
    };
}
const PG_SAVE: &str = save!(pg_now!());
const SQLITE_SAVE: &str = save!(sqlite_now!());
macro_rules! hold {
    ($now:expr) => {
        concat!(
            "UPDATE print_orders SET lease_until = ",
            $now,
            " + $4 WHERE seq = $1 AND fence = $2 AND status = $3"
        )
    };
}
const PG_HOLD: &str = hold!(pg_now!());
const SQLITE_HOLD: &str = hold!(sqlite_now!());
macro_rules! release {
    ($now:expr) => {
        concat!(
            "UPDATE print_orders SET lease_until = ",
            $now,
            " + $3, failures = CASE WHEN failures > $4 THEN $4 ELSE failures END WHERE seq = $1 AND fence = $2"
        )
    };
}
const PG_RELEASE: &str = release!(pg_now!());
const SQLITE_RELEASE: &str = release!(sqlite_now!());
const FREE: &str = "UPDATE print_orders SET lease_until = 0 WHERE settled = 0 AND lease_until > 0";

#[derive(sqlx::FromRow)]
struct ClaimedRow {
    #[sqlx(flatten)]
    order: Row,
    fence: i64,
    failures: i64,
}

/// An order in the hands of a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// It, as it is stored.
    pub order: Order,
    /// How often it was taken in a row without moving on.
    pub failures: u64,
    fence: i64,
}

/// Claims the order that was worked on longest ago, if nobody holds it.
pub async fn claim(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    let sql = dialect::pick(tx, PG_CLAIM, SQLITE_CLAIM);
    claim_by(tx, sql).await
}

/// The same among orders whose next step makes no links and waits for no edge: see [`Stage::is_drawing`].
///
/// [`Stage::is_drawing`]: crate::domain::order::Stage::is_drawing
pub async fn claim_drawing(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    let sql = dialect::pick(tx, PG_CLAIM_DRAWING, SQLITE_CLAIM_DRAWING);
    claim_by(tx, sql).await
}

async fn claim_by(tx: &mut Tx, sql: &'static str) -> Result<Option<Claimed>, StoreError> {
    let row: Option<ClaimedRow> =
        on_db!(&mut **tx, |c| sqlx::query_as(sql).bind(milliseconds(LEASE)).fetch_optional(c).await)?;
    row.map(|row| {
        let failures = row.failures.unsigned_abs();
        Ok(Claimed { order: row.order.try_into()?, failures, fence: row.fence })
    })
    .transpose()
}

/// Writes an order after a step and holds it for another [`LEASE`]; `false`, and nothing is written, when somebody else has
/// taken it or it was cancelled. `is_settled`: nothing of its work is left.
pub async fn save(
    tx: &mut Tx,
    claimed: &Claimed,
    order: &Order,
    is_settled: bool,
) -> Result<bool, StoreError> {
    let sql = dialect::pick(tx, PG_SAVE, SQLITE_SAVE);
    let saved = on_db!(&mut **tx, |c| sqlx::query(sql)
        .bind(claimed.order.stamp.seq)
        .bind(claimed.fence)
        .bind(claimed.order.status.as_str())
        .bind(order.status.as_str())
        .bind(Json(&order.details))
        .bind(order.stamp.updated_at.0)
        .bind(order.completed_at.map(|at| at.0))
        .bind(order.files_until.map(|at| at.0))
        .bind(i64::from(is_settled))
        .bind(milliseconds(LEASE))
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(saved == 1)
}

/// Holds an order for another [`LEASE`], and its row until the transaction ends; `false` when somebody else has taken it or
/// it was cancelled.
pub async fn hold(tx: &mut Tx, claimed: &Claimed) -> Result<bool, StoreError> {
    let sql = dialect::pick(tx, PG_HOLD, SQLITE_HOLD);
    let held = on_db!(&mut **tx, |c| sqlx::query(sql)
        .bind(claimed.order.stamp.seq)
        .bind(claimed.fence)
        .bind(claimed.order.status.as_str())
        .bind(milliseconds(LEASE))
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(held == 1)
}

/// Releases an order, so that it can be claimed again after `pause`; returns whether it was still held. Of its failures at most
/// `most_failures` are kept.
pub async fn release(
    tx: &mut Tx,
    claimed: &Claimed,
    pause: Duration,
    most_failures: u64,
) -> Result<bool, StoreError> {
    let sql = dialect::pick(tx, PG_RELEASE, SQLITE_RELEASE);
    let released = on_db!(&mut **tx, |c| sqlx::query(sql)
        .bind(claimed.order.stamp.seq)
        .bind(claimed.fence)
        .bind(milliseconds(pause))
        .bind(i64::try_from(most_failures).unwrap_or(i64::MAX))
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(released == 1)
}

/// Releases what an earlier process held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db) -> Result<(), StoreError> {
    if let Db::Sqlite { .. } = db {
        let mut tx = db.begin(&Ctx::default()).await?;
        on_db!(&mut *tx, |c| sqlx::query(FREE).execute(c).await.map(|_| ()))?;
        tx.commit().await?;
    }
    Ok(())
}

fn milliseconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
