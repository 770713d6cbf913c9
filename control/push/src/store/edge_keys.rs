//! Keys of edges. Only their hashes are stored.

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional};

const INSERT: &str = "INSERT INTO edge_keys (edge_id, hash, created_at) VALUES ($1, $2, $3) RETURNING seq";
const VALID: &str = "SELECT hash, edge_id FROM edge_keys WHERE revoked_at IS NULL ORDER BY seq";
const FIND: &str = "SELECT edge_id FROM edge_keys WHERE hash = $1 AND revoked_at IS NULL";
const LIST: &str = "SELECT seq, edge_id, created_at, revoked_at FROM edge_keys ORDER BY edge_id, seq";
const REVOKE: &str = "UPDATE edge_keys SET revoked_at = $2 WHERE seq = $1 AND revoked_at IS NULL";
const REVOKE_ALL: &str = "UPDATE edge_keys SET revoked_at = $2 WHERE edge_id = $1 AND revoked_at IS NULL";

/// A key of an edge, without the key.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct EdgeKeyRow {
    /// Number of the key.
    pub seq: i64,
    /// Name of the edge.
    pub edge_id: String,
    /// Creation time, in milliseconds since 1970.
    pub created_at: i64,
    /// When it was revoked, if it was.
    pub revoked_at: Option<i64>,
}

/// Adds a key of an edge; returns its number.
pub async fn insert(tx: &mut Tx, edge: &str, hash: &[u8; 32], at_ms: i64) -> Result<i64, StoreError> {
    let (seq,): (i64,) = fetch_one!(&mut **tx, INSERT, edge, &hash[..], at_ms)?;
    Ok(seq)
}

/// Every key that is not revoked: hash and edge.
pub async fn list_valid(conn: &mut Conn) -> Result<Vec<([u8; 32], String)>, StoreError> {
    let rows: Vec<(Vec<u8>, String)> = fetch_all!(conn, VALID)?;
    let broken = |_| StoreError::Row("the hash of an edge's key has a wrong length".to_owned());
    rows.into_iter().map(|(hash, edge)| Ok((hash.try_into().map_err(broken)?, edge))).collect()
}

/// The edge of a key that is not revoked.
pub async fn find(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<String>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, FIND, &hash[..])?;
    Ok(row.map(|(edge,)| edge))
}

/// Every key, by edge and age.
pub async fn list(conn: &mut Conn) -> Result<Vec<EdgeKeyRow>, StoreError> {
    Ok(fetch_all!(conn, LIST)?)
}

/// Revokes one key by its number; returns whether it was valid until now.
pub async fn revoke(tx: &mut Tx, seq: i64, at_ms: i64) -> Result<bool, StoreError> {
    Ok(execute!(&mut **tx, REVOKE, seq, at_ms)? == 1)
}

/// Revokes every key of an edge; returns how many there were.
pub async fn revoke_all(tx: &mut Tx, edge: &str, at_ms: i64) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, REVOKE_ALL, edge, at_ms)?)
}
