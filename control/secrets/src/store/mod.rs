//! Secrets that all replicas share, encrypted.

use ::kernel::store::{Conn, Db, Raw, StoreError, Tx, execute, fetch_all};

const LIST: &str = "SELECT name, value FROM secrets ORDER BY name";
const INSERT: &str =
    "INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
const EXCHANGE: &str = "UPDATE secrets SET value = $3 WHERE name = $1 AND value = $2";
// SQLite leaves the bytes of a row that was replaced in its file, unless it is told to overwrite them.
const OVERWRITE: &str = "PRAGMA secure_delete = ON";
const LEAVE: &str = "PRAGMA secure_delete = OFF";
const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Name and stored value of each secret, in the order of names.
pub async fn list(conn: &mut Conn) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    Ok(fetch_all!(conn, LIST)?)
}

/// Stores a value, unless there is one under this name.
pub async fn insert(tx: &mut Tx, name: &str, value: &[u8], at_ms: i64) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, name, value, at_ms)?;
    Ok(())
}

/// Exchanges a value; `false` when it is not `old` any more.
pub async fn exchange(tx: &mut Tx, name: &str, old: &[u8], new: &[u8]) -> Result<bool, StoreError> {
    if let Raw::Sqlite(c) = tx.raw() {
        sqlx::query(OVERWRITE).execute(c).await?;
    }
    let changed = execute!(&mut **tx, EXCHANGE, name, old, new)?;
    Ok(changed == 1)
}

/// Writes what was exchanged into the file of SQLite, so that the bytes of before are gone; does nothing on Postgres.
pub async fn checkpoint(db: &Db) -> Result<(), StoreError> {
    if let Db::Sqlite { write, .. } = db {
        sqlx::query(LEAVE).execute(write).await?;
        sqlx::query(CHECKPOINT).execute(write).await?;
    }
    Ok(())
}
