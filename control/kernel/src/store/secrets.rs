//! Random secrets that all replicas share, created once.

use super::{Conn, StoreError, Tx, on_db};

const INSERT: &str =
    "INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
const FIND: &str = "SELECT value FROM secrets WHERE name = $1";

/// Stores `fresh` under `name` unless there is a secret already; returns the stored one.
///
/// # Errors
/// The stored secret has another length.
pub async fn find_or_insert(
    tx: &mut Tx,
    name: &str,
    fresh: [u8; 32],
    at_ms: i64,
) -> Result<[u8; 32], StoreError> {
    let value = fresh.to_vec();
    on_db!(&mut **tx, |c| sqlx::query(INSERT)
        .bind(name)
        .bind(value)
        .bind(at_ms)
        .execute(c)
        .await
        .map(|_| ()))?;
    find(tx, name).await?.ok_or_else(|| StoreError::Row(format!("secret {name} is missing")))
}

async fn find(conn: &mut Conn, name: &str) -> Result<Option<[u8; 32]>, StoreError> {
    let row: Option<(Vec<u8>,)> = on_db!(conn, |c| sqlx::query_as(FIND).bind(name).fetch_optional(c).await)?;
    row.map(|(value,)| {
        value.try_into().map_err(|_| StoreError::Row(format!("secret {name} has a wrong length")))
    })
    .transpose()
}
