//! Drawn chunks of orders that are under way: where their bytes are.

use kernel::{
    execute, fetch_all, fetch_optional,
    store::{Conn, StoreError, Tx},
};
use serde::{Deserialize, Serialize};

const INSERT: &str = "INSERT INTO print_chunks (print_order, number, blob, doc) VALUES ($1, $2, $3, $4)";
const FIND: &str = "SELECT blob, doc FROM print_chunks WHERE print_order = $1 AND number = $2";
const LIST: &str = "SELECT number, blob FROM print_chunks WHERE print_order = $1 ORDER BY number LIMIT $2";
const DELETE: &str = "DELETE FROM print_chunks WHERE print_order = $1 AND number = $2";

/// A drawn chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredChunk {
    /// The blob with the drawing, and its index behind it.
    #[serde(skip)]
    pub blob: String,
    /// Bytes of the drawing.
    pub body_bytes: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
}

impl StoredChunk {
    /// The blob with the lines of the manifest.
    #[must_use]
    pub fn manifest_blob(blob: &str) -> String {
        format!("{blob}.csv")
    }
}

/// Notes a chunk.
pub async fn insert(tx: &mut Tx, order: i64, number: u64, chunk: &StoredChunk) -> Result<(), StoreError> {
    let doc = serde_json::to_string(chunk).map_err(|error| StoreError::Row(error.to_string()))?;
    execute!(&mut **tx, INSERT, order, number.cast_signed(), &chunk.blob, doc)?;
    Ok(())
}

/// A chunk of an order.
///
/// # Errors
/// There is none.
pub async fn load(conn: &mut Conn, order: i64, number: u64) -> Result<StoredChunk, StoreError> {
    let row: Option<(String, String)> = fetch_optional!(conn, FIND, order, number.cast_signed())?;
    let (blob, doc) =
        row.ok_or_else(|| StoreError::Row(format!("chunk {number} of a print order is gone")))?;
    let chunk: StoredChunk =
        serde_json::from_str(&doc).map_err(|error| StoreError::Row(format!("chunk: {error}")))?;
    Ok(StoredChunk { blob, ..chunk })
}

/// The first chunks of an order: their numbers and blobs.
pub async fn list(conn: &mut Conn, order: i64, limit: u32) -> Result<Vec<(u64, String)>, StoreError> {
    let rows: Vec<(i64, String)> = fetch_all!(conn, LIST, order, i64::from(limit))?;
    Ok(rows.into_iter().map(|(number, blob)| (number.cast_unsigned(), blob)).collect())
}

/// Removes a chunk of an order, whose blobs are gone.
pub async fn delete(tx: &mut Tx, order: i64, number: u64) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, order, number.cast_signed())?;
    Ok(())
}
