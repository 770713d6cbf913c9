//! Scans that were stored before there were statistics, and how far they are counted.

use serde_json::Value;
use shared::{
    id::{AccountId, ProductId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_one, parse};

// The row is locked until the transaction ends: replicas take turns, each behind what the others counted.
const LOCK_PG: &str = "SELECT after_seq, is_done FROM scan_backfill WHERE id = 1 FOR UPDATE";
const LOCK_SQLITE: &str = "SELECT after_seq, is_done FROM scan_backfill WHERE id = 1";
const READ: &str = "SELECT after_seq, is_done FROM scan_backfill WHERE id = 1";
const MOVE: &str = "UPDATE scan_backfill SET after_seq = $1, is_done = is_done OR $2 WHERE id = 1";
const FOLLOW: &str = "UPDATE scan_backfill SET after_seq = $1 WHERE id = 1 AND is_done AND after_seq < $1";
const HEAD: &str = "SELECT COALESCE(MAX(seq), 0) FROM actions";
const NEXT: &str = "SELECT seq, created_at FROM actions WHERE seq > $1 ORDER BY seq LIMIT $2";
const SCANS: &str = "SELECT account_id, product_id, timestamp, doc FROM actions WHERE seq > $1 AND seq <= $2 \
    AND type = 'implicitScans' AND counted IS NULL ORDER BY seq";

/// How far the backfill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to this number is counted.
    pub after: i64,
    /// Whether it was once at the end: what comes later can only be of a replica of an older release.
    pub is_done: bool,
}

/// A scan that is not counted yet.
#[derive(Debug)]
pub struct StoredScan {
    /// Its account.
    pub account: AccountId,
    /// Its product.
    pub product: Option<ProductId>,
    /// When it was.
    pub at: UnixMillis,
    /// The members of its action.
    pub document: Value,
}

/// How far it is.
pub async fn read(conn: &mut Conn) -> Result<Progress, StoreError> {
    let (after, is_done): (i64, bool) = fetch_one!(conn, READ)?;
    Ok(Progress { after, is_done })
}

/// How far it is; nobody else changes it until the transaction ends.
pub async fn lock(tx: &mut Tx) -> Result<Progress, StoreError> {
    let sql = dialect::pick(tx, LOCK_PG, LOCK_SQLITE);
    let (after, is_done): (i64, bool) = fetch_one!(&mut **tx, sql)?;
    Ok(Progress { after, is_done })
}

/// Notes how far it is.
pub async fn save(tx: &mut Tx, progress: Progress) -> Result<(), StoreError> {
    execute!(&mut **tx, MOVE, progress.after, progress.is_done)?;
    Ok(())
}

/// The number of the last action that can be seen.
pub async fn head(conn: &mut Conn) -> Result<i64, StoreError> {
    let (seq,): (i64,) = fetch_one!(conn, HEAD)?;
    Ok(seq)
}

/// Notes that everything up to a number is counted, if the backfill was at its end once; it never goes back.
pub async fn follow(tx: &mut Tx, after: i64) -> Result<(), StoreError> {
    execute!(&mut **tx, FOLLOW, after)?;
    Ok(())
}

/// The next actions of any type: their numbers, and when they were created.
pub async fn list_next(
    conn: &mut Conn,
    after: i64,
    limit: u32,
) -> Result<Vec<(i64, UnixMillis)>, StoreError> {
    let rows: Vec<(i64, i64)> = fetch_all!(conn, NEXT, after, i64::from(limit))?;
    Ok(rows.into_iter().map(|(seq, at)| (seq, UnixMillis(at))).collect())
}

/// Scans behind a number and up to another one that nobody counted.
pub async fn list_uncounted(conn: &mut Conn, after: i64, until: i64) -> Result<Vec<StoredScan>, StoreError> {
    let rows: Vec<(String, Option<String>, i64, Json<Value>)> = fetch_all!(conn, SCANS, after, until)?;
    rows.into_iter()
        .map(|(account, product, at, document)| {
            Ok(StoredScan {
                account: parse("account_id", &account)?,
                product: product.as_deref().map(|id| parse("product_id", id)).transpose()?,
                at: UnixMillis(at),
                document: document.0,
            })
        })
        .collect()
}
