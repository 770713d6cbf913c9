//! How far the scans of each boot of each edge are charged to the quotas of their accounts, and which are not stored.

use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::{signed, unsigned},
    execute, fetch_optional,
};
use crate::domain::scan_charges::{Charges, NotStored};

const CREATE: &str = "INSERT INTO scan_charges (edge_id, boot, next_seq, not_stored) VALUES ($1, $2, 0, '{}') \
    ON CONFLICT (edge_id, boot) DO NOTHING";
const FIND: &str = "SELECT next_seq, not_stored FROM scan_charges WHERE edge_id = $1 AND boot = $2";
const PG_LOCK: &str =
    "SELECT next_seq, not_stored FROM scan_charges WHERE edge_id = $1 AND boot = $2 FOR UPDATE";
const WRITE: &str = "UPDATE scan_charges SET next_seq = $3, not_stored = $4 WHERE edge_id = $1 AND boot = $2";
// The number of a boot is at least the time of its start.
const DELETE_OLD: &str = "DELETE FROM scan_charges WHERE boot < \
    (SELECT MAX(n.boot) FROM scan_charges n WHERE n.edge_id = scan_charges.edge_id) - $1";

/// Forgets boots that are over for long; their effects have a cursor of their own, which stays.
pub async fn delete_old(tx: &mut Tx, age_ms: i64) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE_OLD, age_ms)?;
    Ok(())
}

/// How far the scans of a boot are charged; nothing of most, because few accounts have a quota.
pub async fn find(conn: &mut Conn, edge: &str, boot: u64) -> Result<Charges, StoreError> {
    fetch(conn, FIND, edge, boot).await
}

/// The same; the row is made, and stays locked until the transaction ends.
pub async fn lock(tx: &mut Tx, edge: &str, boot: u64) -> Result<Charges, StoreError> {
    execute!(&mut **tx, CREATE, edge, signed(boot))?;
    let sql = dialect::pick(tx, PG_LOCK, FIND);
    fetch(tx, sql, edge, boot).await
}

async fn fetch(conn: &mut Conn, sql: &'static str, edge: &str, boot: u64) -> Result<Charges, StoreError> {
    let row: Option<(i64, Json<NotStored>)> = fetch_optional!(conn, sql, edge, signed(boot))?;
    let charges = row.map(|(next, Json(not_stored))| Charges { next_seq: unsigned(next), not_stored });
    Ok(charges.unwrap_or_default())
}

/// Notes what was charged, in the transaction that locked the row.
///
/// # Errors
/// The row is gone.
pub async fn write(tx: &mut Tx, edge: &str, boot: u64, charges: &Charges) -> Result<(), StoreError> {
    let written =
        execute!(&mut **tx, WRITE, edge, signed(boot), signed(charges.next_seq), Json(&charges.not_stored))?;
    if written == 1 { Ok(()) } else { Err(StoreError::Row(format!("the charges of {edge}/{boot} are gone"))) }
}
