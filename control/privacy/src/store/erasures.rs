//! The table of erasures, and the leases by which workers hold them.

use std::time::Duration;

use kernel::{
    domain::{common::Stamp, page::Page},
    execute, fetch_one, fetch_optional, on_db,
    store::{
        Conn, Db, StoreError, Tx, dialect,
        lease::{self, Timed, hold_lease, milliseconds, timed, timed_lock},
        listing::{self, Column, Selection, Table},
        parse,
    },
};
use shared::{
    id::{AccountId, ErasureId},
    time::UnixMillis,
};
use sqlx::types::Json;

use crate::domain::erasure::{Details, Erasure};

/// How long a claim holds without a step: so long an erasure stands still when its worker dies. A step that may take longer
/// renews it.
pub const LEASE: Duration = Duration::from_secs(300);

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.account_id, t.status, t.doc, t.created_at, t.updated_at"
    };
}
// What nobody asked for is no receipt.
const FIND: &str =
    concat!(columns!(), " FROM erasures t WHERE t.account_id = $1 AND t.id = $2 AND t.type <> 'age'");
const AGE: &str = concat!(columns!(), " FROM erasures t WHERE t.account_id = $1 AND t.type = 'age'");
macro_rules! begin_again {
    ($now:expr) => {
        concat!(
            "UPDATE erasures SET status = 'ENQUEUED', doc = $2, updated_at = $3, lease_until = ",
            $now,
            ", paused_until = ",
            $now,
            " + 1000 WHERE seq = $1 AND status = 'COMPLETED' AND updated_at = $4"
        )
    };
}
const BEGIN_AGAIN: Timed = timed!(begin_again);
const LIST: Table = Table {
    select: concat!(
        columns!(),
        " FROM (SELECT e.id, e.seq, e.account_id, e.type, e.status, e.doc, e.created_at, e.updated_at \
        FROM erasures e WHERE e.type <> 'age') t"
    ),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("status", Column::Text("t.status")),
        ("type", Column::Text("t.type")),
        // It is scoped to no project.
        ("scopes.projects", Column::Text("t.id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};
// It waits from now on, as if it had been released: an account that asks again and again would else always be first.
macro_rules! insert {
    ($now:expr) => {
        concat!(
            "INSERT INTO erasures (id, account_id, type, status, doc, created_at, updated_at, lease_until, paused_until) \
             VALUES ($1, $2, $3, $4, $5, $6, $6, ",
            $now,
            ", ",
            $now,
            " + 1000)"
        )
    };
}
const INSERT: Timed = timed!(insert);
// What nobody asked for, as where users were removed, does not count.
const COUNT_OPEN: &str = "SELECT COUNT(*) FROM erasures WHERE account_id = $1 AND status <> 'COMPLETED' \
    AND type <> 'age' AND doc ->> 'requestedBy' IS NOT NULL";
// What is begun again each day is as old as its last step. A deleted application whose users are still being removed asks for
// erasures until they are.
const STANDING: &str = "SELECT COUNT(*), COALESCE(MIN(t.since), 0) FROM (SELECT CASE WHEN e.type = 'age' THEN e.updated_at \
    ELSE e.created_at END AS since FROM erasures e WHERE e.status <> 'COMPLETED' \
    UNION ALL SELECT r.created_at FROM removed_applications r) t";
// One process at a time claims: two at once would not see what the other one takes.
const PG_CLAIM_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('waymark_erasures_' || current_schema()))";
// Not while a worker holds another one of the account: each would write what the other one has cut.
macro_rules! claim {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE erasures SET fence = fence + 1, lease_until = ",
            $now,
            " + $1 WHERE seq = (SELECT e.seq FROM erasures e WHERE e.status <> 'COMPLETED' AND e.lease_until <= ",
            $now,
            " AND NOT EXISTS (SELECT 1 FROM erasures h WHERE h.account_id = e.account_id AND h.status <> 'COMPLETED' \
             AND h.lease_until > h.paused_until AND h.lease_until > ",
            $now,
            ") ORDER BY e.lease_until, e.seq LIMIT 1",
            $lock,
            ") RETURNING id, seq, account_id, status, doc, created_at, updated_at, fence"
        )
    };
}
const CLAIM: Timed = timed_lock!(claim, " FOR UPDATE SKIP LOCKED");
// A lease that has expired is lost: another erasure of the account may be under way. So is one that expires within 40 s. A claim
// does not see what is not committed, and Postgres ends a transaction only when it has paused for 30 s, or a statement of it
// has run for 5 s.
macro_rules! save {
    ($now:expr) => {
        hold_lease!(
            $now,
            "erasures",
            ", status = $4, doc = $5, updated_at = $6",
            concat!(" AND status <> 'COMPLETED' AND lease_until > ", $now, " + 40000")
        )
    };
}
const SAVE: Timed = timed!(save);
macro_rules! renew {
    ($now:expr) => {
        hold_lease!($now, "erasures", "", concat!(" AND lease_until > ", $now, " + 40000"))
    };
}
const RENEW: Timed = timed!(renew);
// The clock may go on between the two.
macro_rules! release {
    ($now:expr) => {
        hold_lease!($now, "erasures", concat!(", paused_until = ", $now, " + $3 + 1000"), "")
    };
}
const RELEASE: Timed = timed!(release);
macro_rules! waiting {
    ($length:literal, $lock:literal) => {
        concat!(
            columns!(),
            " FROM erasures t WHERE t.account_id = $1 AND t.status <> 'COMPLETED' AND t.status = 'ENQUEUED' AND t.fence = 0 \
             AND t.type = 'user' AND t.doc ->> 'requestedBy' IS NULL AND ",
            $length,
            " <= $2 ORDER BY t.seq LIMIT 1",
            $lock
        )
    };
}
// Who deletes users does not wait for another one who does.
const PG_WAITING: &str = waiting!("jsonb_array_length(t.doc #> '{target,users}')", " FOR UPDATE SKIP LOCKED");
const SQLITE_WAITING: &str = waiting!("json_array_length(t.doc, '$.target.users')", "");
const JOIN: &str = "UPDATE erasures SET doc = $2, updated_at = $3 WHERE seq = $1 AND fence = 0";
const FREE: &str = "UPDATE erasures SET lease_until = 0 WHERE status <> 'COMPLETED' AND lease_until > 0";

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    account_id: String,
    status: String,
    doc: Json<Details>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Erasure {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let stamp = Stamp {
            seq: row.seq,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at),
        };
        Ok(Self {
            id: parse("id", &row.id)?,
            account: parse("account_id", &row.account_id)?,
            stamp,
            status: parse("status", &row.status)?,
            details: row.doc.0,
        })
    }
}

#[derive(sqlx::FromRow)]
struct ClaimedRow {
    #[sqlx(flatten)]
    erasure: Row,
    fence: i64,
}

/// An erasure in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// It, as it is stored.
    pub erasure: Erasure,
    fence: i64,
}

/// Adds an erasure.
pub async fn insert(tx: &mut Tx, erasure: &Erasure) -> Result<(), StoreError> {
    let Erasure { id, account, stamp, status, details } = erasure;
    let sql = INSERT.of(tx);
    execute!(
        &mut **tx,
        sql,
        id.as_str(),
        account.as_str(),
        details.target.kind(),
        status.as_str(),
        Json(details),
        stamp.created_at.0
    )?;
    Ok(())
}

/// An erasure of an account.
pub async fn find(conn: &mut Conn, account: AccountId, id: ErasureId) -> Result<Option<Erasure>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), id.as_str())?;
    row.map(Erasure::try_from).transpose()
}

/// What was cut of an account because of its age, and how far.
pub async fn find_age(conn: &mut Conn, account: AccountId) -> Result<Option<Erasure>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, AGE, account.as_str())?;
    row.map(Erasure::try_from).transpose()
}

/// Lets an erasure that has ended begin again with other details; `false` when somebody else did.
pub async fn begin_again(
    tx: &mut Tx,
    ended: &Erasure,
    details: &Details,
    now: UnixMillis,
) -> Result<bool, StoreError> {
    let sql = BEGIN_AGAIN.of(tx);
    let begun = execute!(
        &mut **tx,
        sql,
        ended.stamp.seq,
        Json(details),
        now.0.max(ended.stamp.updated_at.0 + 1),
        ended.stamp.updated_at.0
    )?;
    Ok(begun == 1)
}

/// A page of erasures.
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be read.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Erasure>, StoreError> {
    listing::page::<Row, Erasure>(conn, &LIST, selection, |erasure| erasure.stamp.position()).await
}

/// How many erasures of an account that somebody asked for have not ended.
pub async fn count_open(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let count: i64 =
        on_db!(conn, |c| sqlx::query_scalar(COUNT_OPEN).bind(account.as_str()).fetch_one(c).await)?;
    Ok(count.unsigned_abs())
}

/// How many erasures of all accounts have not ended, with deleted applications that have users left, and when the oldest
/// one was asked for.
pub async fn standing(conn: &mut Conn) -> Result<(u64, UnixMillis), StoreError> {
    let (count, oldest): (i64, i64) = fetch_one!(conn, STANDING)?;
    Ok((count.unsigned_abs(), UnixMillis(oldest)))
}

/// An erasure of removed users that nobody asked for and no worker has looked at, with `most` users or fewer; on Postgres it
/// is locked. One that somebody else has locked is passed over.
pub async fn find_waiting(
    tx: &mut Tx,
    account: AccountId,
    most: usize,
) -> Result<Option<Erasure>, StoreError> {
    let sql = dialect::pick(tx, PG_WAITING, SQLITE_WAITING);
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    let row: Option<Row> = fetch_optional!(&mut **tx, sql, account.as_str(), most)?;
    row.map(Erasure::try_from).transpose()
}

/// Writes an erasure that [`find_waiting`] found in this transaction.
pub async fn join(tx: &mut Tx, waiting: &Erasure) -> Result<(), StoreError> {
    execute!(&mut **tx, JOIN, waiting.stamp.seq, Json(&waiting.details), waiting.stamp.updated_at.0)?;
    Ok(())
}

/// Claims the erasure that has waited longest, of those that nobody holds, in an account of which nobody holds another
/// one. On Postgres other claims wait until the transaction ends.
pub async fn claim(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_CLAIM_LOCK).execute(&mut **c).await?;
    }
    let sql = CLAIM.of(tx);
    let row: Option<ClaimedRow> = fetch_optional!(&mut **tx, sql, milliseconds(LEASE))?;
    row.map(|row| Ok(Claimed { erasure: row.erasure.try_into()?, fence: row.fence })).transpose()
}

/// Writes an erasure after a step and holds it for another [`LEASE`]; `false` when the lease has expired or is about to, or
/// somebody else has taken it. The row stays locked until the transaction ends.
pub async fn save(tx: &mut Tx, claimed: &mut Claimed, erasure: Erasure) -> Result<bool, StoreError> {
    let sql = SAVE.of(tx);
    let saved = execute!(
        &mut **tx,
        sql,
        erasure.stamp.seq,
        claimed.fence,
        milliseconds(LEASE),
        erasure.status.as_str(),
        Json(&erasure.details),
        erasure.stamp.updated_at.0
    )?;
    claimed.erasure = erasure;
    Ok(saved == 1)
}

/// Releases an erasure, so that it can be claimed again after `pause`; meanwhile others of the account can be.
pub async fn release(tx: &mut Tx, claimed: &Claimed, pause: Duration) -> Result<(), StoreError> {
    lease::hold(tx, RELEASE, claimed.erasure.stamp.seq, claimed.fence, pause).await?;
    Ok(())
}

/// Holds an erasure for another [`LEASE`]; `false` when the lease has expired or is about to, or somebody else has taken it.
pub async fn renew(tx: &mut Tx, claimed: &Claimed) -> Result<bool, StoreError> {
    lease::hold(tx, RENEW, claimed.erasure.stamp.seq, claimed.fence, LEASE).await
}

/// Releases what an earlier process held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db) -> Result<(), StoreError> {
    lease::free_all(db, FREE).await
}
