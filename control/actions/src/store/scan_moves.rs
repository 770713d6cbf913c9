//! Scans by edges that older releases stored as actions, and how far they were moved.

use sqlx::types::Json;

use serde_json::{Map, Value};
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, dialect, dialect::fetch_in_list, execute, fetch_all, on_db, parse};

const FIND: &str = "SELECT after FROM scan_move WHERE id = 1 AND NOT done";
const PG_LOCK: &str = "SELECT after FROM scan_move WHERE id = 1 AND NOT done FOR UPDATE";
const SET: &str = "UPDATE scan_move SET after = $1, done = $2 WHERE id = 1";
// A replica of an older release may have stored some since, or a transaction with a lower number may have committed later.
const OPEN: &str = "UPDATE scan_move SET done = false, after = CASE WHEN after > $1 THEN after - $1 ELSE 0 END \
    WHERE id = 1 AND done";
const NEXT: &str = "SELECT MIN(seq) FROM actions WHERE seq > $1";
macro_rules! rows {
    ($rest:literal) => {
        concat!(
            "SELECT seq, id, account_id, thng_id, product_id, timestamp, created_at, doc, counted IS NOT NULL \
             OR seq <= (SELECT after_seq FROM scan_backfill WHERE id = 1) AS is_counted FROM actions \
             WHERE type = 'implicitScans' AND seq >= $1 AND seq < $2 ORDER BY seq LIMIT $3",
            $rest
        )
    };
}
const PG_ROWS: &str = rows!(" FOR UPDATE");
const SQLITE_ROWS: &str = rows!("");
const PG_DELETE: &str = "DELETE FROM actions WHERE type = $1 AND seq = ANY($2) RETURNING seq";
const SQLITE_DELETE: &str = "DELETE FROM actions WHERE type = $1 \
    AND seq IN (SELECT value FROM json_each($2)) RETURNING seq";

/// Numbers of actions that one step looks at: most of a database that grew are scans.
const WINDOW: i64 = 5_000;

/// Numbers of actions that are looked at again at each start.
const OVERLAP: i64 = 10_000;

/// A scan as it stands among actions.
#[derive(Debug)]
pub struct LegacyScan {
    /// Its position.
    pub seq: i64,
    /// Its id.
    pub id: ActionId,
    /// Its account.
    pub account: AccountId,
    /// The Thng it is about.
    pub thng: Option<ThngId>,
    /// The product it is about.
    pub product: Option<ProductId>,
    /// When it happened.
    pub timestamp: UnixMillis,
    /// When it was recorded.
    pub created_at: UnixMillis,
    /// Its document.
    pub doc: Value,
    /// Whether statistics have counted it: when it was stored, or by their backfill.
    pub is_counted: bool,
}

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    id: String,
    account_id: String,
    thng_id: Option<String>,
    product_id: Option<String>,
    timestamp: i64,
    created_at: i64,
    doc: Json<Map<String, Value>>,
    is_counted: bool,
}

impl TryFrom<Row> for LegacyScan {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            seq: row.seq,
            id: parse("id", &row.id)?,
            account: parse("account_id", &row.account_id)?,
            thng: row.thng_id.as_deref().map(|id| parse("thng_id", id)).transpose()?,
            product: row.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?,
            timestamp: UnixMillis(row.timestamp),
            created_at: UnixMillis(row.created_at),
            doc: Value::Object(row.doc.0),
            is_counted: row.is_counted,
        })
    }
}

/// The next scans, and how far they reach.
#[derive(Debug)]
pub struct Found {
    /// The scans; `None` for one that cannot be read, which stays.
    pub scans: Vec<(i64, Option<LegacyScan>)>,
    /// The last number that was looked at.
    pub last: i64,
    /// Whether there are later actions.
    pub is_more: bool,
}

/// Looks at the last actions again, because a process of an older release may have stored scans.
pub async fn open(tx: &mut Tx) -> Result<(), StoreError> {
    execute!(&mut **tx, OPEN, OVERLAP)?;
    Ok(())
}

/// The position after which scans are still to be moved; `None` when none are.
pub async fn find(conn: &mut Conn) -> Result<Option<i64>, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(FIND).fetch_optional(c).await)?)
}

/// The same, locked until the transaction ends.
pub async fn lock(tx: &mut Tx) -> Result<Option<i64>, StoreError> {
    let sql = dialect::pick(tx, PG_LOCK, FIND);
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(sql).fetch_optional(c).await)?)
}

/// The next scans after a position; in a transaction of Postgres they are locked until it ends.
pub async fn list(conn: &mut Conn, after: i64, limit: u32) -> Result<Found, StoreError> {
    let Some(next) = next(conn, after).await? else {
        return Ok(Found { scans: Vec::new(), last: after, is_more: false });
    };
    // By the primary key, in windows: nobody knows where the next scan is.
    let end = next.saturating_add(WINDOW);
    let sql = dialect::pick(conn, PG_ROWS, SQLITE_ROWS);
    let rows: Vec<Row> = fetch_all!(conn, sql, next, end, i64::from(limit))?;
    let is_full = rows.len() == limit as usize;
    let last = rows.last().map_or(end - 1, |row| if is_full { row.seq } else { end - 1 });
    let read = |row: Row| {
        let seq = row.seq;
        let scan = LegacyScan::try_from(row);
        let scan = scan.inspect_err(|error| tracing::warn!(%error, seq, "a scan stays where it is"));
        (seq, scan.ok())
    };
    let scans = rows.into_iter().map(read).collect();
    Ok(Found { scans, last, is_more: self::next(conn, last).await?.is_some() })
}

async fn next(conn: &mut Conn, after: i64) -> Result<Option<i64>, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(NEXT).bind(after).fetch_one(c).await)?)
}

/// Removes scans that are stored elsewhere; returns those that were there.
pub async fn delete(tx: &mut Tx, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
    let gone: Vec<(i64,)> =
        fetch_in_list!(&mut **tx, (i64,), PG_DELETE, SQLITE_DELETE, ["implicitScans"], seqs)?;
    Ok(gone.into_iter().map(|(seq,)| seq).collect())
}

/// Notes how far scans are moved, and whether none are left.
pub async fn set(tx: &mut Tx, after: i64, done: bool) -> Result<(), StoreError> {
    execute!(&mut **tx, SET, after, done)?;
    Ok(())
}
