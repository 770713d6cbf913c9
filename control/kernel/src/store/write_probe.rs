//! A small write that tests whether the database accepts writes.

use shared::time::UnixMillis;

use super::{StoreError, Tx, execute};

const WRITE: &str = "INSERT INTO write_probes (id, written_at, filler) VALUES ($1, $2, $3) \
     ON CONFLICT (id) DO UPDATE SET written_at = excluded.written_at, filler = excluded.filler";
const FORGET: &str = "DELETE FROM write_probes WHERE written_at < $1";

/// Writes the row of a process; `filler` has the size of an ordinary write.
pub async fn write(tx: &mut Tx, id: i64, at: UnixMillis, filler: &[u8]) -> Result<(), StoreError> {
    execute!(&mut **tx, WRITE, id, at.0, filler)?;
    Ok(())
}

/// Deletes the rows of processes that have not written since `before`.
pub async fn forget(tx: &mut Tx, before: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, FORGET, before.0)?;
    Ok(())
}
