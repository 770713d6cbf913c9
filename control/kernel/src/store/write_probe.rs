//! A small write that tests whether the database accepts writes.

use shared::time::UnixMillis;

use super::{StoreError, Tx, on_db};

const WRITE: &str = "INSERT INTO write_probes (id, written_at, filler) VALUES ($1, $2, $3) \
     ON CONFLICT (id) DO UPDATE SET written_at = excluded.written_at, filler = excluded.filler";
const FORGET: &str = "DELETE FROM write_probes WHERE written_at < $1";

/// Writes the row of a process; `filler` has the size of an ordinary write.
pub async fn write(tx: &mut Tx, id: i64, at: UnixMillis, filler: &[u8]) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(WRITE).bind(id).bind(at.0).bind(filler).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// Deletes the rows of processes that have not written since `before`.
pub async fn forget(tx: &mut Tx, before: UnixMillis) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(FORGET).bind(before.0).execute(c).await.map(|_| ()))?;
    Ok(())
}
