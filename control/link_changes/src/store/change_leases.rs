//! Leases by which workers hold changes, on the clock of the database, with a fence that grows with each holder.

use std::time::Duration;

use kernel::{
    execute, fetch_optional,
    store::{
        Db, StoreError, Tx,
        lease::{self, Timed, hold_lease, milliseconds, timed, timed_lock},
    },
};
use sqlx::types::Json;

use super::changes::Row;
use crate::domain::change::LinkChange;

/// How long a claim holds without a step: so long a change stands still when its worker dies.
pub const LEASE: Duration = Duration::from_secs(30);

// Changes of a suspended account wait, and those that nobody has approved.
macro_rules! claim {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE link_changes SET fence = fence + 1, failures = failures + 1, lease_until = ",
            $now,
            " + $1 WHERE seq = (SELECT e.seq FROM link_changes e WHERE e.settled = 0 AND e.status <> 'awaitingApproval' \
             AND e.lease_until <= ",
            $now,
            " AND NOT EXISTS (SELECT 1 FROM accounts s WHERE s.id = e.account_id AND s.suspended_at IS NOT NULL) \
             ORDER BY e.lease_until, e.seq LIMIT 1",
            $lock,
            ") RETURNING id, seq, account_id, kind, of_change, made_by, status, doc, created_at, updated_at, \
             completed_at, undo_until, fence, failures"
        )
    };
}
const CLAIM: Timed = timed_lock!(claim, " FOR UPDATE OF e SKIP LOCKED");
// The status is that of the claim: a change that was cancelled meanwhile stays so.
macro_rules! save {
    ($now:expr) => {
        hold_lease!(
            $now,
            "link_changes",
            ", status = $5, doc = $6, updated_at = $7, completed_at = $8, undo_until = $9, settled = $10, failures = 0",
            " AND status = $4"
        )
    };
}
const SAVE: Timed = timed!(save);
macro_rules! hold {
    ($now:expr) => {
        hold_lease!($now, "link_changes", "", " AND status = $4")
    };
}
const HOLD: Timed = timed!(hold);
macro_rules! release {
    ($now:expr) => {
        hold_lease!(
            $now,
            "link_changes",
            ", failures = CASE WHEN failures > $4 THEN $4 ELSE failures END",
            ""
        )
    };
}
const RELEASE: Timed = timed!(release);
const FREE: &str = "UPDATE link_changes SET lease_until = 0 WHERE settled = 0 AND lease_until > 0";

#[derive(sqlx::FromRow)]
struct ClaimedRow {
    #[sqlx(flatten)]
    change: Row,
    fence: i64,
    failures: i64,
}

/// A change in the hands of a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// It, as it is stored.
    pub change: LinkChange,
    /// How often it was taken in a row without moving on.
    pub failures: u64,
    fence: i64,
}

/// Claims the change that was worked on longest ago, if nobody holds it.
pub async fn claim(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    let sql = CLAIM.of(tx);
    let row: Option<ClaimedRow> = fetch_optional!(&mut **tx, sql, milliseconds(LEASE))?;
    row.map(|row| {
        let failures = row.failures.unsigned_abs();
        Ok(Claimed { change: row.change.try_into()?, failures, fence: row.fence })
    })
    .transpose()
}

/// Writes a change after a step and holds it for another [`LEASE`]; `false`, and nothing is written, when somebody else has
/// taken it or it was cancelled.
pub async fn save(tx: &mut Tx, claimed: &Claimed, change: &LinkChange) -> Result<bool, StoreError> {
    let sql = SAVE.of(tx);
    let saved = execute!(
        &mut **tx,
        sql,
        claimed.change.stamp.seq,
        claimed.fence,
        milliseconds(LEASE),
        claimed.change.status.as_str(),
        change.status.as_str(),
        Json(&change.details),
        change.stamp.updated_at.0,
        change.completed_at.map(|at| at.0),
        change.undo_until.map(|at| at.0),
        i64::from(change.status.is_terminal())
    )?;
    Ok(saved == 1)
}

/// Holds a change for another [`LEASE`], and its row until the transaction ends; `false` when somebody else has taken it or
/// it was cancelled.
pub async fn hold(tx: &mut Tx, claimed: &Claimed) -> Result<bool, StoreError> {
    let sql = HOLD.of(tx);
    let held = execute!(
        &mut **tx,
        sql,
        claimed.change.stamp.seq,
        claimed.fence,
        milliseconds(LEASE),
        claimed.change.status.as_str()
    )?;
    Ok(held == 1)
}

/// Releases a change, so that it can be claimed again after `pause`; returns whether it was still held. Of its failures at most
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
        claimed.change.stamp.seq,
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
