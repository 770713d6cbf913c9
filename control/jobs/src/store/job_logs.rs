//! The log of jobs: one row for each operation that failed.

use serde_json::{Value, json};
use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::signed,
    execute,
    listing::{self, Column, Selection, Table},
    parse,
};
use crate::domain::{
    job::{ERROR, JobLog},
    page::{Page, Position},
};

const PG_INSERT: &str = "INSERT INTO job_logs (account_id, job_id, entry, type, payload, message, created_at) \
    SELECT $1, $2, entry, $3, payload, message, $4 FROM UNNEST($5::bigint[], $6::jsonb[], $7::text[]) \
    WITH ORDINALITY AS t (entry, payload, message, place) ORDER BY place";
const SQLITE_INSERT: &str = "INSERT INTO job_logs (account_id, job_id, entry, type, payload, message, created_at) \
    SELECT $1, $2, value ->> '$[0]', $3, value -> '$[1]', value ->> '$[2]', $4 FROM json_each($5)";
const CLEAR: &str = "DELETE FROM job_logs WHERE seq IN \
    (SELECT seq FROM job_logs WHERE job_id = $1 ORDER BY created_at, seq LIMIT $2)";
const LIST: Table = Table {
    select: "SELECT t.seq, t.job_id, t.payload, t.message, t.created_at FROM job_logs t",
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("jobId", Column::Text("t.job_id")),
        ("type", Column::Text("t.type")),
        ("scopes.projects", OF_PROJECT),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.job_id",
};
const OF_PROJECT: Column = Column::Clause {
    pg: "t.job_id IN (SELECT j.id FROM jobs j WHERE j.account_id = $1 AND j.project_id = {})",
    sqlite: "t.job_id IN (SELECT j.id FROM jobs j WHERE j.account_id = $1 AND j.project_id = {})",
};

/// An operation that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLog {
    /// Its place in the input.
    pub entry: u64,
    /// The payload of the failed operation.
    pub payload: Value,
    /// Why it failed.
    pub message: String,
}

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    job_id: String,
    payload: Json<Value>,
    message: String,
    created_at: i64,
}

impl TryFrom<Row> for JobLog {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            job: parse("job_id", &row.job_id)?,
            position: Position { at: UnixMillis(row.created_at), seq: row.seq },
            payload: row.payload.0,
            message: row.message,
        })
    }
}

/// Adds entries, each operation at most once.
///
/// # Errors
/// [`StoreError::Unique`] when an operation has an entry.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    job: JobId,
    at: UnixMillis,
    logs: &[NewLog],
) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_INSERT)
                .bind(account.as_str())
                .bind(job.as_str())
                .bind(ERROR)
                .bind(at.0)
                .bind(logs.iter().map(|log| signed(log.entry)).collect::<Vec<_>>())
                .bind(logs.iter().map(|log| Json(&log.payload)).collect::<Vec<_>>())
                .bind(logs.iter().map(|log| log.message.as_str()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> =
                logs.iter().map(|log| json!([log.entry, log.payload, log.message])).collect();
            sqlx::query(SQLITE_INSERT)
                .bind(account.as_str())
                .bind(job.as_str())
                .bind(ERROR)
                .bind(at.0)
                .bind(Json(rows))
                .execute(&mut **c)
                .await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// A page of entries; the selection names the job.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<JobLog>, StoreError> {
    listing::page::<Row, JobLog>(conn, &LIST, selection, |log| log.position).await
}

/// Removes up to `limit` entries of a job; returns how many.
pub async fn clear(tx: &mut Tx, job: JobId, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, CLEAR, job.as_str(), i64::from(limit))?)
}
