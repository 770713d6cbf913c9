//! The statements that the two engines spell differently, side by side.
//!
//! Rows in bulk go to Postgres as one array a column (`UNNEST`) and to SQLite as one JSON array
//! (`json_each`): binding value by value is what makes mass inserts slow on both.

use shared::wire::stream::Rev;
use sqlx::types::Json;

use super::{Conn, StoreError, Tx};

/// Fills the column `facets` of rows, given by their place.
pub async fn fill_facets(
    tx: &mut Tx,
    pg: &'static str,
    sqlite: &'static str,
    rows: &[(i64, Vec<String>)],
) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let (seqs, facets): (Vec<i64>, Vec<_>) = rows.iter().map(|(seq, all)| (*seq, Json(all))).unzip();
            sqlx::query(pg).bind(seqs).bind(facets).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            sqlx::query(sqlite).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

/// What a copy of the database differs in: Postgres's system identifier and timeline for one of its files,
/// and the number of a table for one that was restored from a dump, into the same server or not.
///
/// `None` on SQLite, where a file beside the database serves.
pub async fn find_history_id(conn: &mut Conn) -> Result<Option<String>, StoreError> {
    const PG_HISTORY: &str = "SELECT s.system_identifier::text || '/' || c.timeline_id::text || '/' || \
        'log_head'::regclass::oid::text FROM pg_control_system() s, pg_control_checkpoint() c";
    match conn {
        Conn::Pg(c) => Ok(sqlx::query_scalar(PG_HISTORY).fetch_one(&mut **c).await?),
        Conn::PgTx(c) => Ok(sqlx::query_scalar(PG_HISTORY).fetch_one(&mut **c).await?),
        Conn::Sqlite(_) | Conn::SqliteTx(_) => Ok(None),
    }
}

/// The text of a statement that the two engines spell differently, for the engine of a connection. One that locks rows is
/// such a statement: SQLite has one writer anyway.
pub const fn pick(conn: &Conn, pg: &'static str, sqlite: &'static str) -> &'static str {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => pg,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => sqlite,
    }
}

/// Fetches the rows of a statement whose last parameter is a list of texts.
///
/// The statement compares with `= ANY($n)` on Postgres and `IN (SELECT value FROM json_each($n))` on SQLite.
/// Postgres plans it each time: a plan that is kept was made for the table as it was, and a list has
/// from one to a thousand texts.
#[macro_export]
macro_rules! fetch_in_list {
    ($conn:expr, $row:ty, $pg:expr, $sqlite:expr, [$($bind:expr),*], $list:expr) => {
        match $conn.raw() {
            $crate::store::Raw::Pg(c) => {
                sqlx::query_as::<_, $row>($pg).persistent(false)$(.bind($bind))*.bind($list).fetch_all(c).await
            }
            $crate::store::Raw::Sqlite(c) => {
                sqlx::query_as::<_, $row>($sqlite)$(.bind($bind))*.bind(sqlx::types::Json($list)).fetch_all(c).await
            }
        }
    };
}
pub use fetch_in_list;

/// Keys of a statement that Postgres keeps.
pub const FEW: usize = 8;

/// [`fetch_in_list`] by the key of a table. Of a few keys Postgres keeps the statement, as it does for one: planning it each time
/// costs a second round trip. The text of a long list differs, because a statement that is kept is used whatever is asked for.
#[macro_export]
macro_rules! fetch_by_keys {
    ($conn:expr, $row:ty, $pg:expr, $sqlite:expr, [$($bind:expr),*], $keys:expr) => {
        match $conn.raw() {
            $crate::store::Raw::Pg(c) if $keys.len() <= $crate::store::dialect::FEW => {
                sqlx::query_as::<_, $row>($pg)$(.bind($bind))*.bind($keys).fetch_all(c).await
            }
            $crate::store::Raw::Pg(c) => {
                let sql = sqlx::AssertSqlSafe(format!("{} ", $pg));
                sqlx::query_as::<_, $row>(sql).persistent(false)$(.bind($bind))*.bind($keys).fetch_all(c).await
            }
            $crate::store::Raw::Sqlite(c) => {
                sqlx::query_as::<_, $row>($sqlite)$(.bind($bind))*.bind(sqlx::types::Json($keys)).fetch_all(c).await
            }
        }
    };
}
pub use fetch_by_keys;

/// The error of a bulk write that was not given a transaction.
#[must_use]
pub fn outside_transaction() -> StoreError {
    StoreError::Row("a bulk write outside of a transaction".to_owned())
}

/// A revision as the databases hold it; they count to 2^63.
pub fn signed(rev: Rev) -> i64 {
    i64::try_from(rev).unwrap_or(i64::MAX)
}

/// A stored revision; the tables hold none below 0.
pub fn unsigned(rev: i64) -> Rev {
    rev.max(0).unsigned_abs()
}
