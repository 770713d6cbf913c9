//! Leases by which workers hold orders, on the clock of the database, with a fence that grows with each holder.

use std::time::Duration;

use kernel::{
    execute, fetch_optional,
    store::{
        Db, StoreError, Tx,
        lease::{self, Timed, hold_lease, milliseconds, timed, timed_lock},
    },
};
use sqlx::types::Json;

use super::orders::Row;
use crate::domain::order::Order;

/// How long a claim holds without a step: so long an order stands still when its worker dies. What takes longer renews it.
pub const LEASE: Duration = Duration::from_secs(30);

// Orders of a suspended account wait. Of an order that has ended, what is left is removed.
macro_rules! claim {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE print_orders SET fence = fence + 1, failures = failures + 1, lease_until = ",
            $now,
            " + $1 WHERE seq = (SELECT e.seq FROM print_orders e WHERE e.settled = 0 AND e.lease_until <= ",
            $now,
            " AND NOT EXISTS (SELECT 1 FROM accounts s WHERE s.id = e.account_id AND s.suspended_at IS NOT NULL) \
             ORDER BY e.lease_until, e.seq LIMIT 1",
            $lock,
            ") RETURNING id, seq, account_id, name, status, doc, created_at, updated_at, completed_at, files_until, \
             fence, failures"
        )
    };
}
const CLAIM: Timed = timed_lock!(claim, " FOR UPDATE OF e SKIP LOCKED");
// The status is that of the claim: an order that was cancelled meanwhile stays so.
macro_rules! save {
    ($now:expr) => {
        hold_lease!(
            $now,
            "print_orders",
            ", status = $5, doc = $6, updated_at = $7, completed_at = $8, files_until = $9, settled = $10, failures = 0",
            " AND status = $4"
        )
    };
}
const SAVE: Timed = timed!(save);
macro_rules! hold {
    ($now:expr) => {
        hold_lease!($now, "print_orders", "", " AND status = $4")
    };
}
const HOLD: Timed = timed!(hold);
macro_rules! release {
    ($now:expr) => {
        hold_lease!(
            $now,
            "print_orders",
            ", failures = CASE WHEN failures > $4 THEN $4 ELSE failures END",
            ""
        )
    };
}
const RELEASE: Timed = timed!(release);
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
    let sql = CLAIM.of(tx);
    let row: Option<ClaimedRow> = fetch_optional!(&mut **tx, sql, milliseconds(LEASE))?;
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
    let sql = SAVE.of(tx);
    let saved = execute!(
        &mut **tx,
        sql,
        claimed.order.stamp.seq,
        claimed.fence,
        milliseconds(LEASE),
        claimed.order.status.as_str(),
        order.status.as_str(),
        Json(&order.details),
        order.stamp.updated_at.0,
        order.completed_at.map(|at| at.0),
        order.files_until.map(|at| at.0),
        i64::from(is_settled)
    )?;
    Ok(saved == 1)
}

/// Holds an order for another [`LEASE`], and its row until the transaction ends; `false` when somebody else has taken it or
/// it was cancelled.
pub async fn hold(tx: &mut Tx, claimed: &Claimed) -> Result<bool, StoreError> {
    let sql = HOLD.of(tx);
    let held = execute!(
        &mut **tx,
        sql,
        claimed.order.stamp.seq,
        claimed.fence,
        milliseconds(LEASE),
        claimed.order.status.as_str()
    )?;
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
    let sql = RELEASE.of(tx);
    let released = execute!(
        &mut **tx,
        sql,
        claimed.order.stamp.seq,
        claimed.fence,
        milliseconds(pause),
        i64::try_from(most_failures).unwrap_or(i64::MAX)
    )?;
    Ok(released == 1)
}

/// Releases what an earlier process held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db) -> Result<(), StoreError> {
    lease::free_all(db, FREE).await
}
