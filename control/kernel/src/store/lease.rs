//! Leases by the clock of the database, so that no clock of a replica decides.

use std::time::Duration;

use super::{Conn, Ctx, Db, StoreError, Tx, dialect, execute};

/// Now in milliseconds, on Postgres.
#[macro_export]
macro_rules! pg_now {
    () => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}
pub use pg_now;
/// Now in milliseconds, on SQLite.
#[macro_export]
macro_rules! sqlite_now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}
pub use sqlite_now;

/// A statement that reads this clock, as each engine spells it.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    /// For Postgres.
    pub pg: &'static str,
    /// For SQLite.
    pub sqlite: &'static str,
}

impl Timed {
    /// The text for the engine of a connection.
    pub const fn of(self, conn: &Conn) -> &'static str {
        dialect::pick(conn, self.pg, self.sqlite)
    }
}

/// The [`Timed`] of a macro that takes the present time.
#[macro_export]
macro_rules! timed {
    ($statement:ident) => {
        $crate::store::lease::Timed {
            pg: $statement!($crate::pg_now!()),
            sqlite: $statement!($crate::sqlite_now!()),
        }
    };
}
pub use timed;

/// The [`Timed`] of a macro that also takes what locks the rows it selects: SQLite has one writer, and no such words.
#[macro_export]
macro_rules! timed_lock {
    ($statement:ident, $lock:expr) => {
        $crate::store::lease::Timed {
            pg: $statement!($crate::pg_now!(), $lock),
            sqlite: $statement!($crate::sqlite_now!(), ""),
        }
    };
}
pub use timed_lock;

/// Leases the row with the `seq` `$1` for `$3` milliseconds from now on, if `$2` still is its fence. `$set` assigns more, and
/// `$and` has more conditions and what is returned.
#[macro_export]
macro_rules! hold_lease {
    ($now:expr, $table:expr, $set:expr, $and:expr) => {
        concat!(
            "UPDATE ",
            $table,
            " SET lease_until = ",
            $now,
            " + $3",
            $set,
            " WHERE seq = $1 AND fence = $2",
            $and
        )
    };
}
pub use hold_lease;

/// Executes a [`hold_lease`] that has no more placeholders; returns whether the row was still held.
pub async fn hold(
    tx: &mut Tx,
    sql: Timed,
    seq: i64,
    fence: i64,
    lease: Duration,
) -> Result<bool, StoreError> {
    let sql = sql.of(tx);
    let held = execute!(&mut **tx, sql, seq, fence, milliseconds(lease))?;
    Ok(held == 1)
}

/// Executes a statement that releases all that an earlier process held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db, sql: &'static str) -> Result<(), StoreError> {
    if let Db::Sqlite { .. } = db {
        let mut tx = db.begin(&Ctx::default()).await?;
        execute!(&mut *tx, sql)?;
        tx.commit().await?;
    }
    Ok(())
}

/// A length as the statements take it.
pub fn milliseconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
