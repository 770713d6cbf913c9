//! The input of jobs in chunks, written once and deleted when they are done.

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::{signed, unsigned},
    execute, fetch_all, fetch_optional,
};
use crate::domain::job_lines::Entry;

const PG_INSERT: &str = "INSERT INTO job_chunks (job, first, entries) \
    SELECT $1, first, entries FROM UNNEST($2::bigint[], $3::text[]) AS t (first, entries)";
const SQLITE_INSERT: &str = "INSERT INTO job_chunks (job, first, entries) \
    SELECT $1, value ->> '$[0]', value ->> '$[1]' FROM json_each($2)";
const NEXT: &str =
    "SELECT first, entries FROM job_chunks WHERE job = $1 AND first >= $2 ORDER BY first LIMIT 1";
const DELETE: &str = "DELETE FROM job_chunks WHERE job = $1 AND first = $2";
const CLEAR: &str = "DELETE FROM job_chunks WHERE job = $1 AND first IN \
    (SELECT first FROM job_chunks WHERE job = $1 ORDER BY first LIMIT $2)";
const LIST_LEFT: &str = "SELECT DISTINCT c.job FROM job_chunks c JOIN jobs j ON j.seq = c.job \
    WHERE j.completed_at IS NOT NULL ORDER BY c.job LIMIT $1";

/// A part of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Place of its first entry in the whole input.
    pub first: u64,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// Adds parts of a job's input.
pub async fn insert(tx: &mut Tx, job: i64, chunks: &[Chunk]) -> Result<(), StoreError> {
    let text = |chunk: &Chunk| {
        serde_json::to_string(&chunk.entries).map_err(|error| StoreError::Row(format!("entries: {error}")))
    };
    let texts = chunks.iter().map(text).collect::<Result<Vec<String>, StoreError>>()?;
    let firsts: Vec<i64> = chunks.iter().map(|chunk| signed(chunk.first)).collect();
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_INSERT).bind(job).bind(firsts).bind(texts).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<(i64, String)> = firsts.into_iter().zip(texts).collect();
            sqlx::query(SQLITE_INSERT).bind(job).bind(sqlx::types::Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// The first part that is left of a job's input, of those that begin at an entry or behind it.
pub async fn find_next(conn: &mut Conn, job: i64, from: u64) -> Result<Option<Chunk>, StoreError> {
    let row: Option<(i64, String)> = fetch_optional!(conn, NEXT, job, signed(from))?;
    let Some((first, text)) = row else { return Ok(None) };
    let entries =
        serde_json::from_str(&text).map_err(|error| StoreError::Row(format!("entries: {error}")))?;
    Ok(Some(Chunk { first: unsigned(first), entries }))
}

/// Removes a part that is carried out.
pub async fn delete(tx: &mut Tx, job: i64, first: u64) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, job, signed(first))?;
    Ok(())
}

/// Removes up to `limit` parts of a job; returns how many.
pub async fn clear(tx: &mut Tx, job: i64, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, CLEAR, job, i64::from(limit))?)
}

/// Jobs that have ended, and of whose input something is left.
pub async fn list_left(conn: &mut Conn, limit: u32) -> Result<Vec<i64>, StoreError> {
    let rows: Vec<(i64,)> = fetch_all!(conn, LIST_LEFT, i64::from(limit))?;
    Ok(rows.into_iter().map(|(job,)| job).collect())
}
