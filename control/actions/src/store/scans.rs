//! Scan cursors: how far the effects of the scans of each boot of each edge are written.
//!
//! The scans themselves have a cursor in their own store (crate `scan_store`).

use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::{signed, unsigned},
    execute, fetch_one, on_db,
};

const CREATE: &str = "INSERT INTO scan_cursors (edge_id, boot, next_seq) VALUES ($1, $2, 0) ON CONFLICT (edge_id, boot) DO NOTHING";
const LOAD_PG: &str = "SELECT next_seq FROM scan_cursors WHERE edge_id = $1 AND boot = $2 FOR UPDATE";
const LOAD: &str = "SELECT next_seq FROM scan_cursors WHERE edge_id = $1 AND boot = $2";
const MOVE: &str = "UPDATE scan_cursors SET next_seq = $4 WHERE edge_id = $1 AND boot = $2 AND next_seq = $3";

// Those that are not counted yet wait for statistics.
const DELETE_OLD: &str = "DELETE FROM actions WHERE seq IN (SELECT a.seq FROM actions a WHERE a.account_id = $1 \
         AND a.type = 'implicitScans' AND a.created_at < $2 AND a.doc ->> 'scanSource' = 'edge' \
         AND (a.counted IS NOT NULL OR a.seq <= (SELECT after_seq FROM scan_backfill WHERE id = 1)) \
         ORDER BY a.created_at LIMIT $3)";

/// Removes up to so many scans by edges of an account that stand here and were created before a time; returns how many.
pub async fn delete_before(
    tx: &mut Tx,
    account: AccountId,
    before: UnixMillis,
    limit: u32,
) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, DELETE_OLD, account.as_str(), before.0, i64::from(limit))?)
}

/// The sequence number expected next of a boot.
pub async fn find_cursor(conn: &mut Conn, edge: &str, boot: u64) -> Result<u64, StoreError> {
    let boot = signed(boot);
    let next: Option<i64> =
        on_db!(conn, |c| sqlx::query_scalar(LOAD).bind(edge).bind(boot).fetch_optional(c).await)?;
    Ok(next.map_or(0, unsigned))
}

/// The sequence number expected next of a boot; the row stays locked until the transaction ends.
pub async fn lock_cursor(tx: &mut Tx, edge: &str, boot: u64) -> Result<u64, StoreError> {
    let boot = signed(boot);
    execute!(&mut **tx, CREATE, edge, boot)?;
    let sql = dialect::pick(tx, LOAD_PG, LOAD);
    let (next,): (i64,) = fetch_one!(&mut **tx, sql, edge, boot)?;
    Ok(unsigned(next))
}

/// Moves the cursor from the expected value.
///
/// # Errors
/// The cursor is not where the caller saw it.
pub async fn move_cursor(tx: &mut Tx, edge: &str, boot: u64, from: u64, to: u64) -> Result<(), StoreError> {
    let moved = execute!(&mut **tx, MOVE, edge, signed(boot), signed(from), signed(to))?;
    if moved == 1 {
        Ok(())
    } else {
        Err(StoreError::Row(format!("scan cursor {edge}/{boot} is not at {from}")))
    }
}
