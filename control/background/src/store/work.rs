//! Leases by which workers hold items, on the clock of the database, with a fence that grows with each holder.

use std::time::Duration;

use kernel::{
    execute, fetch_optional,
    store::{
        Db, StoreError, Tx,
        lease::{self, Timed, milliseconds},
    },
};
use serde::Serialize;
use shared::time::UnixMillis;
use sqlx::{FromRow, postgres::PgRow, sqlite::SqliteRow, types::Json};

/// How long a claim holds without a step: so long an item stands still when its worker dies. What takes longer renews it.
pub const LEASE: Duration = Duration::from_secs(30);

/// Claims the item that was worked on longest ago, of those that are not settled, for `$1` milliseconds. Items of a suspended
/// account wait. `$and` has more conditions on `e`, and `$columns` is what [`claim`] reads.
#[macro_export]
macro_rules! claim_work {
    ($now:expr, $lock:expr, $table:expr, $and:expr, $columns:expr) => {
        concat!(
            "UPDATE ",
            $table,
            " SET fence = fence + 1, failures = failures + 1, lease_until = ",
            $now,
            " + $1 WHERE seq = (SELECT e.seq FROM ",
            $table,
            " e WHERE e.settled = 0 AND e.lease_until <= ",
            $now,
            $and,
            " AND NOT EXISTS (SELECT 1 FROM accounts s WHERE s.id = e.account_id AND s.suspended_at IS NOT NULL) \
             ORDER BY e.lease_until, e.seq LIMIT 1",
            $lock,
            ") RETURNING ",
            $columns,
            ", fence, failures"
        )
    };
}

/// Writes an item after a step; `$until` is the column of the last of [`Stored::times`]. The status is that of the claim: an item that was
/// cancelled meanwhile stays so.
#[macro_export]
macro_rules! save_work {
    ($now:expr, $table:expr, $until:expr) => {
        $crate::hold_lease!(
            $now,
            $table,
            concat!(
                ", status = $5, doc = $6, updated_at = $7, completed_at = $8, ",
                $until,
                " = $9, settled = $10, failures = 0"
            ),
            " AND status = $4"
        )
    };
}

/// Holds an item that still has the status of the claim.
#[macro_export]
macro_rules! hold_work {
    ($now:expr, $table:expr) => {
        $crate::hold_lease!($now, $table, "", " AND status = $4")
    };
}

/// Releases an item; of its failures at most `$4` are kept.
#[macro_export]
macro_rules! release_work {
    ($now:expr, $table:expr) => {
        $crate::hold_lease!(
            $now,
            $table,
            ", failures = CASE WHEN failures > $4 THEN $4 ELSE failures END",
            ""
        )
    };
}

/// The [`Timed`] of a macro that takes the present time and a table.
#[macro_export]
macro_rules! timed_on {
    ($statement:ident, $table:expr) => {
        $crate::Timed {
            pg: $statement!($crate::pg_now!(), $table),
            sqlite: $statement!($crate::sqlite_now!(), $table),
        }
    };
}

/// An item of a kind of work, as it is stored.
pub trait Work: Clone + Send + Sync + 'static {
    /// A [`release_work`].
    const RELEASE: Timed;
    /// Releases all that is held.
    const FREE: &'static str;

    /// What workers decide by.
    fn mark(&self) -> Mark<'_>;
}

/// What workers decide by.
#[derive(Debug, Clone, Copy)]
pub struct Mark<'a> {
    /// The id of an item.
    pub id: &'a str,
    /// The key of its row.
    pub seq: i64,
    /// The name of its status.
    pub status: &'static str,
    /// Whether it has ended; what it leaves may still have to be removed.
    pub is_over: bool,
}

/// An item whose row is written by a [`save_work`].
pub trait Stored: Work {
    /// A [`hold_work`].
    const HOLD: Timed;
    /// A [`save_work`].
    const SAVE: Timed;
    /// The column `doc`.
    type Details: Serialize + Sync;

    /// What has no column of its own.
    fn details(&self) -> &Self::Details;
    /// When it last moved on, when it ended, and until when something of it is kept.
    fn times(&self) -> (UnixMillis, Option<UnixMillis>, Option<UnixMillis>);
}

/// An item in the hands of a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed<T> {
    /// It, as it is stored.
    pub item: T,
    /// How often it was taken in a row without moving on.
    pub failures: u64,
    /// Grows with each holder.
    pub fence: i64,
}

#[derive(sqlx::FromRow)]
struct ClaimedRow<T> {
    #[sqlx(flatten)]
    row: T,
    fence: i64,
    failures: i64,
}

/// Executes a [`claim_work`].
pub async fn claim<R, T>(tx: &mut Tx, sql: Timed) -> Result<Option<Claimed<T>>, StoreError>
where
    R: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
    T: TryFrom<R, Error = StoreError>,
{
    let sql = sql.of(tx);
    let row: Option<ClaimedRow<R>> = fetch_optional!(&mut **tx, sql, milliseconds(LEASE))?;
    row.map(|ClaimedRow { row, fence, failures }| {
        Ok(Claimed { item: row.try_into()?, failures: failures.unsigned_abs(), fence })
    })
    .transpose()
}

/// Writes an item after a step and holds it for another [`LEASE`]; `false`, and nothing is written, when somebody else has taken it
/// or it was cancelled. `is_settled`: nothing of its work is left.
pub async fn save<T: Stored>(
    tx: &mut Tx,
    claimed: &Claimed<T>,
    next: &T,
    is_settled: bool,
) -> Result<bool, StoreError> {
    let (sql, mark) = (T::SAVE.of(tx), claimed.item.mark());
    let (updated_at, completed_at, kept_until) = next.times();
    let saved = execute!(
        &mut **tx,
        sql,
        mark.seq,
        claimed.fence,
        milliseconds(LEASE),
        mark.status,
        next.mark().status,
        Json(next.details()),
        updated_at.0,
        completed_at.map(|at| at.0),
        kept_until.map(|at| at.0),
        i64::from(is_settled)
    )?;
    Ok(saved == 1)
}

/// Holds an item for another [`LEASE`], and its row until the transaction ends; `false` when somebody else has taken it or it was
/// cancelled.
pub async fn hold<T: Stored>(tx: &mut Tx, claimed: &Claimed<T>) -> Result<bool, StoreError> {
    let (sql, mark) = (T::HOLD.of(tx), claimed.item.mark());
    let held = execute!(&mut **tx, sql, mark.seq, claimed.fence, milliseconds(LEASE), mark.status)?;
    Ok(held == 1)
}

/// Releases an item, so that it can be claimed again after `pause`; returns whether it was still held. Of its failures at most
/// `most_failures` are kept.
pub async fn release<T: Work>(
    tx: &mut Tx,
    claimed: &Claimed<T>,
    pause: Duration,
    most_failures: u64,
) -> Result<bool, StoreError> {
    let sql = T::RELEASE.of(tx);
    let (seq, most) = (claimed.item.mark().seq, i64::try_from(most_failures).unwrap_or(i64::MAX));
    let released = execute!(&mut **tx, sql, seq, claimed.fence, milliseconds(pause), most)?;
    Ok(released == 1)
}

/// Releases what an earlier process held, where there is one process only: on SQLite.
pub async fn free_all<T: Work>(db: &Db) -> Result<(), StoreError> {
    lease::free_all(db, T::FREE).await
}
