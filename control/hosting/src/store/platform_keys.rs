//! The table of keys of the platform.

use shared::time::UnixMillis;

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_optional};
use crate::domain::{api_key::KeyId, platform_key::PlatformKey};

const INSERT: &str =
    "INSERT INTO platform_keys (hash, label, created_at, expires_at) VALUES ($1, $2, $3, $4)";
const FIND: &str = "SELECT hash, label, created_at, expires_at, revoked_at FROM platform_keys WHERE hash = $1 \
    AND revoked_at IS NULL";
const LIST: &str =
    "SELECT hash, label, created_at, expires_at, revoked_at FROM platform_keys ORDER BY created_at, seq";
const REVOKE: &str =
    "UPDATE platform_keys SET revoked_at = $3 WHERE hash >= $1 AND hash <= $2 AND revoked_at IS NULL";

type Row = (Vec<u8>, String, i64, Option<i64>, Option<i64>);

fn read((hash, label, created_at, expires_at, revoked_at): Row) -> Result<PlatformKey, StoreError> {
    Ok(PlatformKey {
        hash: hash.try_into().map_err(|_| StoreError::Row("hash: another length".to_owned()))?,
        label,
        created_at: UnixMillis(created_at),
        expires_at: expires_at.map(UnixMillis),
        revoked_at: revoked_at.map(UnixMillis),
    })
}

/// Adds a key.
pub async fn insert(tx: &mut Tx, key: &PlatformKey) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, &key.hash[..], &key.label, key.created_at.0, key.expires_at.map(|at| at.0))?;
    Ok(())
}

/// A key that is not revoked.
pub async fn find(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<PlatformKey>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, &hash[..])?;
    row.map(read).transpose()
}

/// Every key, oldest first.
pub async fn list(conn: &mut Conn) -> Result<Vec<PlatformKey>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST)?;
    rows.into_iter().map(read).collect()
}

/// Revokes the key with an id; returns whether it was valid until now.
pub async fn revoke(tx: &mut Tx, id: KeyId, at: UnixMillis) -> Result<bool, StoreError> {
    let (first, last) = id.range();
    let revoked = execute!(&mut **tx, REVOKE, &first[..], &last[..], at.0)?;
    Ok(revoked > 0)
}
