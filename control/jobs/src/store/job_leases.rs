//! Leases by which workers hold jobs, on the database's clock, with a fence that grows with each holder.

pub use background::store::work::release;
use background::{
    release_work,
    store::work::{self, LEASE, Mark, Work},
    timed_on,
};
use shared::id::AccountId;
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::{fetch_in_list, signed, unsigned},
    events, execute, fetch_all, fetch_optional, jobs,
    lease::{Timed, hold_lease, milliseconds, pg_now, sqlite_now, timed},
};
use crate::domain::{
    event::Event,
    job::{Job, JobStatus, Standing},
};

/// A job in the hands of a worker.
pub type Claimed = work::Claimed<Job>;

/// The phase for which a worker claims a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// To read its input: `ENQUEUED` and `STARTING`.
    Load,
    /// To carry its operations out, or to end it: `EXECUTING` and `CANCELLING`.
    Execute,
}

// Jobs of a suspended account wait; one that is being worked on stops after its step.
macro_rules! is_served {
    () => {
        " AND NOT EXISTS (SELECT 1 FROM accounts s WHERE s.id = j.account_id AND s.suspended_at IS NOT NULL)"
    };
}
macro_rules! ready {
    ($now:expr, $full:expr) => {
        concat!(
            "SELECT COUNT(*) FROM (SELECT 1 AS one FROM jobs j WHERE j.completed_at IS NULL AND j.lease_until <= ",
            $now,
            " AND (j.status IN ('ENQUEUED', 'STARTING')) = $1 AND ",
            $full,
            is_served!(),
            " LIMIT 1) t"
        )
    };
}
// The account that was served longest ago, and of its jobs the one that was: a job of millions alternates with one of
// ten, of any account.
macro_rules! claim {
    ($now:expr, $full:expr, $lock:expr) => {
        concat!(
            "UPDATE jobs SET fence = fence + 1, failures = failures + 1, served_at = ",
            $now,
            ", lease_until = ",
            $now,
            " + $2 WHERE seq = (SELECT j.seq FROM jobs j LEFT JOIN job_turns a ON a.account_id = j.account_id \
             WHERE j.completed_at IS NULL AND j.lease_until <= ",
            $now,
            " AND (j.status IN ('ENQUEUED', 'STARTING')) = $1 AND ",
            $full,
            is_served!(),
            " ORDER BY COALESCE(a.served_at, 0), j.served_at, j.seq LIMIT 1",
            $lock,
            ") RETURNING account_id, id, fence, failures"
        )
    };
}
macro_rules! turn {
    ($now:expr) => {
        concat!(
            "INSERT INTO job_turns (account_id, served_at) VALUES ($1, ",
            $now,
            ") ON CONFLICT (account_id) DO UPDATE SET served_at = excluded.served_at"
        )
    };
}
// Jobs without a holder: never claimed, released, or left by a worker that died.
macro_rules! standing {
    ($now:expr) => {
        concat!(
            "SELECT j.status, COUNT(*), COALESCE(MAX(CASE WHEN j.lease_until > ",
            $now,
            " THEN 0 WHEN j.served_at > j.created_at THEN ",
            $now,
            " - j.served_at ELSE ",
            $now,
            " - j.created_at END), 0) FROM jobs j WHERE j.completed_at IS NULL",
            is_served!(),
            " GROUP BY j.status"
        )
    };
}
macro_rules! renew {
    ($now:expr) => {
        hold_lease!($now, "jobs AS j", "", concat!(" AND j.status = $4", is_served!(), " RETURNING done"))
    };
}

const PG_READY: &str = ready!(pg_now!(), "j.account_id <> ALL($2)");
const SQLITE_READY: &str = ready!(sqlite_now!(), "j.account_id NOT IN (SELECT value FROM json_each($2))");
const PG_CLAIM: &str = claim!(pg_now!(), "j.account_id <> ALL($3)", " FOR UPDATE OF j SKIP LOCKED");
const SQLITE_CLAIM: &str = claim!(sqlite_now!(), "j.account_id NOT IN (SELECT value FROM json_each($3))", "");
const TURN: Timed = timed!(turn);
const STANDING: Timed = timed!(standing);
const RENEW: Timed = timed!(renew);
const WRITE: &str = "UPDATE jobs SET status = $4, history = $5, message = $6, blob = $7, requested = $8, done = $9, \
    failed = $10, updated_at = $11, completed_at = $12, failures = 0 WHERE seq = $1 AND fence = $2 AND status = $3";
// A worker that is stopped in the middle of a transaction must not hold its locks for ever: the lease runs out
// after this, and then another one needs them.
const PG_IDLE: &str = "SET LOCAL idle_in_transaction_session_timeout = '15s'";

impl Work for Job {
    const RELEASE: Timed = timed_on!(release_work, "jobs");
    const FREE: &'static str =
        "UPDATE jobs SET lease_until = 0 WHERE completed_at IS NULL AND lease_until > 0";

    fn mark(&self) -> Mark<'_> {
        let (status, is_over) = (self.status.as_str(), self.status.is_terminal());
        Mark { id: self.id.as_str(), seq: self.seq, status, is_over }
    }
}

/// Whether there is a job to claim, but of the accounts `full`; cheap, and claims nothing.
pub async fn is_ready(conn: &mut Conn, phase: Phase, full: &[String]) -> Result<bool, StoreError> {
    let is_load = phase == Phase::Load;
    let (count,): (i64,) = fetch_in_list!(conn, (i64,), PG_READY, SQLITE_READY, [is_load], full)?
        .pop()
        .ok_or_else(|| StoreError::Row("no count".to_owned()))?;
    Ok(count > 0)
}

/// Claims the next job, except those of the accounts `full`.
pub async fn claim(tx: &mut Tx, phase: Phase, full: &[String]) -> Result<Option<Claimed>, StoreError> {
    type Row = (String, String, i64, i64);
    let (is_load, lease) = (phase == Phase::Load, milliseconds(LEASE));
    let mut rows = fetch_in_list!(tx, Row, PG_CLAIM, SQLITE_CLAIM, [is_load, lease], full)?;
    let Some((account, id, fence, failures)) = rows.pop() else { return Ok(None) };
    let account: AccountId = super::parse("account_id", &account)?;
    let sql = TURN.of(tx);
    execute!(&mut **tx, sql, account.as_str())?;
    let job = jobs::find(tx, account, super::parse("id", &id)?).await?;
    let item = job.ok_or_else(|| StoreError::Row(format!("job {id} is gone")))?;
    Ok(Some(Claimed { item, fence, failures: unsigned(failures) }))
}

/// Holds a job for another [`LEASE`], and its row until the transaction ends; returns how many of its operations
/// are carried out. `None` when somebody else has taken it, its state is another, or its account is suspended.
pub async fn hold(tx: &mut Tx, claimed: &Claimed) -> Result<Option<u64>, StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_IDLE).execute(&mut **c).await?;
    }
    let sql = RENEW.of(tx);
    let row: Option<(i64,)> = fetch_optional!(
        &mut **tx,
        sql,
        claimed.item.seq,
        claimed.fence,
        milliseconds(LEASE),
        claimed.item.status.as_str()
    )?;
    Ok(row.map(|(done,)| unsigned(done)))
}

/// Writes the new state of a job, if it is still held in the old one; returns whether it was. The end of a job is
/// recorded in the event log.
pub async fn write(tx: &mut Tx, claimed: &Claimed, job: &Job) -> Result<bool, StoreError> {
    let from: JobStatus = claimed.item.status;
    let written = execute!(
        &mut **tx,
        WRITE,
        job.seq,
        claimed.fence,
        from.as_str(),
        job.status.as_str(),
        Json(&job.history),
        &job.message,
        &job.blob,
        signed(job.progress.requested),
        signed(job.progress.done),
        signed(job.progress.failed),
        job.updated_at.0,
        job.completed_at.map(|at| at.0)
    )?;
    if written == 1 && job.status.is_terminal() {
        let project = job.project.map(|project| project.to_string());
        let event = Event::Job { id: job.id, status: job.status.as_str().to_owned(), project };
        events::record(tx, job.updated_at, &[(job.account, event)]).await?;
    }
    Ok(written == 1)
}

/// How the jobs of all accounts stand.
pub async fn standing(conn: &mut Conn) -> Result<Standing, StoreError> {
    let sql = STANDING.of(conn);
    let rows: Vec<(String, i64, i64)> = fetch_all!(conn, sql)?;
    let mut standing = Standing::default();
    for (status, count, waiting_ms) in rows {
        let status =
            status.parse::<JobStatus>().map_err(|()| StoreError::Row(format!("status: {status:?}")))?;
        standing.open.push((status, unsigned(count)));
        standing.waiting_seconds = standing.waiting_seconds.max(waiting_ms as f64 / 1e3);
    }
    Ok(standing)
}
