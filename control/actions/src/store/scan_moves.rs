//! Scans by edges that older releases stored as actions, and how far they were moved.

use sqlx::types::Json;

use serde_json::{Map, Value};
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, dialect, dialect::fetch_in_list, on_db, parse};

const FIND: &str = "SELECT after FROM scan_move WHERE id = 1 AND NOT done";
const PG_LOCK: &str = "SELECT after FROM scan_move WHERE id = 1 AND NOT done FOR UPDATE";
const SET: &str = "UPDATE scan_move SET after = $1, done = $2 WHERE id = 1";
macro_rules! rows {
    ($rest:literal) => {
        concat!(
            "SELECT seq, id, account_id, thng_id, product_id, timestamp, created_at, doc, counted IS NOT NULL \
             OR seq <= (SELECT after_seq FROM scan_backfill WHERE id = 1) AS is_counted FROM actions \
             WHERE type = 'implicitScans' AND seq > $1 ORDER BY seq LIMIT $2",
            $rest
        )
    };
}
const PG_ROWS: &str = rows!(" FOR UPDATE");
const SQLITE_ROWS: &str = rows!("");
const PG_DELETE: &str = "DELETE FROM actions WHERE type = $1 AND seq = ANY($2) RETURNING seq";
const SQLITE_DELETE: &str = "DELETE FROM actions WHERE type = $1 \
    AND seq IN (SELECT value FROM json_each($2)) RETURNING seq";

/// A scan as it stands among actions.
#[derive(Debug)]
pub struct Standing {
    /// Its place.
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

impl TryFrom<Row> for Standing {
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

/// Whether there may be scans to move.
pub async fn is_open(conn: &mut Conn) -> Result<bool, StoreError> {
    let found: Option<i64> = on_db!(conn, |c| sqlx::query_scalar(FIND).fetch_optional(c).await)?;
    Ok(found.is_some())
}

/// The place after which scans are still to be moved, locked until the transaction ends; `None` when none are.
pub async fn lock(tx: &mut Tx) -> Result<Option<i64>, StoreError> {
    let sql = dialect::lock_row(tx, PG_LOCK, FIND);
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(sql).fetch_optional(c).await)?)
}

/// The next scans after a place, locked until the transaction ends.
pub async fn list(tx: &mut Tx, after: i64, limit: u32) -> Result<Vec<Standing>, StoreError> {
    let sql = dialect::pick(tx, PG_ROWS, SQLITE_ROWS);
    let rows: Vec<Row> =
        on_db!(&mut **tx, |c| sqlx::query_as(sql).bind(after).bind(i64::from(limit)).fetch_all(c).await)?;
    rows.into_iter().map(Standing::try_from).collect()
}

/// Removes scans that are stored elsewhere; returns how many there were.
pub async fn delete(tx: &mut Tx, seqs: &[i64]) -> Result<usize, StoreError> {
    let gone: Vec<(i64,)> =
        fetch_in_list!(&mut **tx, (i64,), PG_DELETE, SQLITE_DELETE, ["implicitScans"], seqs)?;
    Ok(gone.len())
}

/// Notes how far scans are moved, and whether none are left.
pub async fn set(tx: &mut Tx, after: i64, done: bool) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(SET).bind(after).bind(done).execute(c).await.map(|_| ()))?;
    Ok(())
}
