//! The table of jobs as the API reads and writes it; workers use `job_leases`.

use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::unsigned,
    execute, fetch_all, fetch_one, fetch_optional,
    listing::{self, Column, Selection, Table},
    parse,
};
use crate::domain::{
    job::{ACTION_CREATION, Job, JobStatus, Progress, Step},
    job_input::JobRequest,
    page::Page,
};

/// The columns of a job that every statement reads; the request has its own column.
macro_rules! columns {
    () => {
        "SELECT t.seq, t.id, t.account_id, t.project_id, t.status, t.history, t.message, t.blob, t.requested, \
         t.done, t.failed, t.created_at, t.updated_at, t.completed_at"
    };
}

const INSERT: &str = "INSERT INTO jobs (id, account_id, project_id, type, status, history, request, blob, requested, \
    done, failed, created_at, updated_at, fence, lease_until, served_at, failures) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $10, 0, 0, 0, 0)";
const FIND: &str = concat!(columns!(), ", t.request FROM jobs t WHERE account_id = $1 AND id = $2");
const MOVE: &str = "UPDATE jobs SET status = $4, history = $5, updated_at = $6, completed_at = $7 \
    WHERE account_id = $1 AND id = $2 AND status = $3";
const COUNT_OPEN: &str = "SELECT COUNT(*) FROM jobs WHERE account_id = $1 AND completed_at IS NULL";
const IS_INPUT: &str = "SELECT COUNT(*) FROM jobs WHERE blob = $1";
// The oldest by insertion: bounded without an index on the time, and those that are left over move up in time.
const LIST_ENDED: &str = "SELECT seq, id FROM \
    (SELECT j.seq, j.id, j.completed_at FROM jobs j ORDER BY j.seq LIMIT $2) oldest \
    WHERE completed_at < $1 ORDER BY seq";
const DELETE: &str = "DELETE FROM jobs WHERE seq = $1 AND completed_at IS NOT NULL";
const LIST: Table = Table {
    select: concat!(columns!(), ", NULL AS request FROM jobs t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("status", Column::Text("t.status")),
        ("type", Column::Text("t.type")),
        ("scopes.projects", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

/// A job as it is stored.
#[derive(sqlx::FromRow)]
pub struct Row {
    seq: i64,
    id: String,
    account_id: String,
    project_id: Option<String>,
    status: String,
    history: Json<Vec<Step>>,
    message: Option<String>,
    blob: Option<String>,
    requested: i64,
    done: i64,
    failed: i64,
    created_at: i64,
    updated_at: i64,
    completed_at: Option<i64>,
    request: Option<Json<JobRequest>>,
}

impl TryFrom<Row> for Job {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let status = row
            .status
            .parse::<JobStatus>()
            .map_err(|()| StoreError::Row(format!("status: {:?}", row.status)))?;
        Ok(Self {
            id: parse("id", &row.id)?,
            seq: row.seq,
            account: parse("account_id", &row.account_id)?,
            project: row.project_id.as_deref().map(|id| parse("project_id", id)).transpose()?,
            status,
            history: row.history.0,
            progress: Progress {
                requested: unsigned(row.requested),
                done: unsigned(row.done),
                failed: unsigned(row.failed),
            },
            message: row.message,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at),
            completed_at: row.completed_at.map(UnixMillis),
            request: row.request.map(|request| request.0),
            blob: row.blob,
        })
    }
}

/// Adds a job.
pub async fn insert(tx: &mut Tx, job: &Job) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT,
        job.id.as_str(),
        job.account.as_str(),
        job.project.map(|id| id.to_string()),
        ACTION_CREATION,
        job.status.as_str(),
        Json(&job.history),
        Json(&job.request),
        &job.blob,
        job.progress.requested.cast_signed(),
        job.created_at.0
    )?;
    Ok(())
}

/// A job of an account, with its request.
pub async fn find(conn: &mut Conn, account: AccountId, id: JobId) -> Result<Option<Job>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), id.as_str())?;
    row.map(Job::try_from).transpose()
}

/// A page of jobs, without their requests.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Job>, StoreError> {
    listing::page::<Row, Job>(conn, &LIST, selection, Job::position).await
}

/// Writes the state of a job that is in another one so far; returns whether it still was.
pub async fn change_status(tx: &mut Tx, job: &Job, from: JobStatus) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        MOVE,
        job.account.as_str(),
        job.id.as_str(),
        from.as_str(),
        job.status.as_str(),
        Json(&job.history),
        job.updated_at.0,
        job.completed_at.map(|at| at.0)
    )?;
    Ok(changed == 1)
}

/// How many jobs of an account have not ended.
pub async fn count_open(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT_OPEN, account.as_str())?;
    Ok(unsigned(count))
}

/// Whether a job has still to read a blob.
pub async fn is_input(conn: &mut Conn, blob: &str) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, IS_INPUT, blob)?;
    Ok(count > 0)
}

/// Jobs of all accounts that ended before a time, of the `window` oldest; their places and ids.
pub async fn list_ended(
    conn: &mut Conn,
    before: UnixMillis,
    window: u32,
) -> Result<Vec<(i64, JobId)>, StoreError> {
    let rows: Vec<(i64, String)> = fetch_all!(conn, LIST_ENDED, before.0, i64::from(window))?;
    rows.into_iter().map(|(seq, id)| Ok((seq, parse("id", &id)?))).collect()
}

/// Removes a job that has ended; its log must have gone before. Gives whether it was there.
pub async fn delete(tx: &mut Tx, seq: i64) -> Result<bool, StoreError> {
    let deleted = execute!(&mut **tx, DELETE, seq)?;
    Ok(deleted == 1)
}
