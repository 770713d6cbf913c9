//! The table of changes as the API reads and writes it; workers use [`super::change_leases`].

use kernel::{
    domain::{common::Stamp, page::Page},
    execute, fetch_all, fetch_optional, on_db,
    store::{
        Conn, StoreError, Tx,
        listing::{self, Column, Selection, Table},
        parse,
    },
};
use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};
use sqlx::types::Json;

use crate::domain::change::{Details, LinkChange};

/// The columns of a change that every statement reads.
macro_rules! columns {
    () => {
        "t.id, t.seq, t.account_id, t.kind, t.of_change, t.made_by, t.status, t.doc, t.created_at, t.updated_at, \
         t.completed_at, t.undo_until"
    };
}

const FIND: &str =
    concat!("SELECT ", columns!(), " FROM link_changes t WHERE t.account_id = $1 AND t.id = $2");
const LIST: Table = Table {
    select: concat!("SELECT ", columns!(), " FROM link_changes t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("status", Column::Text("t.status")),
        ("type", Column::Text("t.kind")),
        (MADE_BY, Column::Text("t.made_by")),
        // It belongs to no project.
        ("scopes.projects", Column::Text("t.id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};
const INSERT: &str = "INSERT INTO link_changes (id, account_id, kind, of_change, made_by, status, doc, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING seq";
const COUNT_OPEN: &str = "SELECT COUNT(*) FROM link_changes WHERE account_id = $1 AND settled = 0";
const COUNT_OPEN_UNDOS: &str =
    "SELECT COUNT(*) FROM link_changes WHERE account_id = $1 AND of_change = $2 AND settled = 0";
// Of a change under way all links count. What an undo gave back is not kept any more.
const COUNT_KEPT: &str = "SELECT CAST(COALESCE(SUM(k.links), 0) AS BIGINT) FROM (\
    SELECT CAST(CASE WHEN t.settled = 0 THEN t.doc ->> 'links' ELSE t.doc ->> 'changed' END AS BIGINT) AS links \
    FROM link_changes t WHERE t.account_id = $1 AND t.kind = 'change' AND (t.settled = 0 OR t.undo_until IS NOT NULL) \
    UNION ALL SELECT -CAST(u.doc ->> 'changed' AS BIGINT) FROM link_changes u JOIN link_changes t ON t.id = u.of_change \
    WHERE u.account_id = $1 AND t.account_id = $1 AND t.undo_until IS NOT NULL) k";
const CANCEL: &str = "UPDATE link_changes SET status = 'cancelled', updated_at = $3, completed_at = $3, undo_until = $4, \
    settled = 1 WHERE account_id = $1 AND id = $2 AND settled = 0";
const APPROVE: &str = "UPDATE link_changes SET status = 'waiting', doc = $3, updated_at = $4 \
    WHERE account_id = $1 AND id = $2 AND status = 'awaitingApproval'";
const LIST_UNAPPROVED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM link_changes t WHERE t.settled = 0 AND t.status = 'awaitingApproval' AND t.created_at <= $1 ORDER BY t.seq LIMIT $2"
);
// It has changed nothing, so there is nothing to undo.
const GIVE_UP: &str = "UPDATE link_changes SET status = 'cancelled', doc = $2, updated_at = $3, completed_at = $3, settled = 1 \
    WHERE seq = $1 AND status = 'awaitingApproval'";
// What is being undone keeps its former values until that has ended.
const LIST_EXPIRED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM link_changes t WHERE t.undo_until <= $1 AND NOT EXISTS (SELECT 1 FROM link_changes u \
     WHERE u.account_id = t.account_id AND u.of_change = t.id AND u.settled = 0) ORDER BY t.undo_until LIMIT $2"
);
const FORGET_FORMER: &str =
    "UPDATE link_changes SET doc = $2, undo_until = NULL WHERE seq = $1 AND undo_until IS NOT NULL";
// The oldest by insertion: bounded without an index on the time, and those that are left over move up in time.
const LIST_ENDED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM (SELECT * FROM link_changes j WHERE j.settled = 1 AND j.undo_until IS NULL ORDER BY j.seq LIMIT $2) t \
     WHERE t.completed_at < $1 ORDER BY t.seq"
);
const DELETE: &str = "DELETE FROM link_changes WHERE seq = $1 AND settled = 1 AND undo_until IS NULL";

/// The field of lists that holds who asked.
pub const MADE_BY: &str = "madeBy";

/// A change as it is stored.
#[derive(sqlx::FromRow)]
pub(super) struct Row {
    id: String,
    seq: i64,
    account_id: String,
    kind: String,
    of_change: Option<String>,
    made_by: String,
    status: String,
    doc: Json<Details>,
    created_at: i64,
    updated_at: i64,
    completed_at: Option<i64>,
    undo_until: Option<i64>,
}

impl TryFrom<Row> for LinkChange {
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
            kind: parse("kind", &row.kind)?,
            of: row.of_change.as_deref().map(|id| parse("of_change", id)).transpose()?,
            made_by: row.made_by,
            stamp,
            status: parse("status", &row.status)?,
            completed_at: row.completed_at.map(UnixMillis),
            undo_until: row.undo_until.map(UnixMillis),
            details: row.doc.0,
        })
    }
}

/// Adds a change; returns its place.
pub async fn insert(tx: &mut Tx, change: &LinkChange) -> Result<i64, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(INSERT)
        .bind(change.id.as_str())
        .bind(change.account.as_str())
        .bind(change.kind.as_str())
        .bind(change.of.as_ref().map(JobId::as_str))
        .bind(&change.made_by)
        .bind(change.status.as_str())
        .bind(Json(&change.details))
        .bind(change.stamp.created_at.0)
        .fetch_one(c)
        .await)?)
}

/// A change of an account.
pub async fn find(conn: &mut Conn, account: AccountId, id: JobId) -> Result<Option<LinkChange>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), id.as_str())?;
    row.map(LinkChange::try_from).transpose()
}

/// A page of changes.
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be read.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<LinkChange>, StoreError> {
    listing::page::<Row, LinkChange>(conn, &LIST, selection, LinkChange::position).await
}

/// How many changes of an account have not ended.
pub async fn count_open(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let count: i64 =
        on_db!(conn, |c| sqlx::query_scalar(COUNT_OPEN).bind(account.as_str()).fetch_one(c).await)?;
    Ok(count.unsigned_abs())
}

/// Links of an account whose former values are kept, or will be by changes under way.
pub async fn count_kept(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let count: i64 =
        on_db!(conn, |c| sqlx::query_scalar(COUNT_KEPT).bind(account.as_str()).fetch_one(c).await)?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// Whether an undo of a change has not ended.
pub async fn is_being_undone(conn: &mut Conn, account: AccountId, id: JobId) -> Result<bool, StoreError> {
    let count: i64 = on_db!(conn, |c| sqlx::query_scalar(COUNT_OPEN_UNDOS)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_one(c)
        .await)?;
    Ok(count > 0)
}

/// Ends a change that has not ended, whoever holds it; returns whether it had not.
pub async fn cancel(tx: &mut Tx, change: &LinkChange, at: UnixMillis) -> Result<bool, StoreError> {
    let cancelled = execute!(
        &mut **tx,
        CANCEL,
        change.account.as_str(),
        change.id.as_str(),
        at.0,
        change.undo_end(at).map(|at| at.0)
    )?;
    Ok(cancelled == 1)
}

/// Lets a change begin that waits for an approval; returns whether it did.
pub async fn approve(tx: &mut Tx, change: &LinkChange) -> Result<bool, StoreError> {
    let approved = execute!(
        &mut **tx,
        APPROVE,
        change.account.as_str(),
        change.id.as_str(),
        Json(&change.details),
        change.stamp.updated_at.0
    )?;
    Ok(approved == 1)
}

/// Changes of all accounts that were asked for until `before` and that nobody has approved.
pub async fn list_unapproved(
    conn: &mut Conn,
    before: UnixMillis,
    limit: u32,
) -> Result<Vec<LinkChange>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_UNAPPROVED, before.0, i64::from(limit))?;
    rows.into_iter().map(LinkChange::try_from).collect()
}

/// Ends a change that nobody has approved, as cancelled; returns whether nobody had.
pub async fn give_up(tx: &mut Tx, change: &LinkChange) -> Result<bool, StoreError> {
    let given_up =
        execute!(&mut **tx, GIVE_UP, change.stamp.seq, Json(&change.details), change.stamp.updated_at.0)?;
    Ok(given_up == 1)
}

/// Changes of all accounts whose former values are due to go, the oldest first.
pub async fn list_expired(
    conn: &mut Conn,
    now: UnixMillis,
    limit: u32,
) -> Result<Vec<LinkChange>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_EXPIRED, now.0, i64::from(limit))?;
    rows.into_iter().map(LinkChange::try_from).collect()
}

/// Writes that the former values of a change are gone; returns whether nobody had written it.
pub async fn forget_former(tx: &mut Tx, change: &LinkChange) -> Result<bool, StoreError> {
    let forgotten = execute!(&mut **tx, FORGET_FORMER, change.stamp.seq, Json(&change.details))?;
    Ok(forgotten == 1)
}

/// Changes of all accounts that ended before a time and have no former values, of the `window` oldest.
pub async fn list_ended(
    conn: &mut Conn,
    before: UnixMillis,
    window: u32,
) -> Result<Vec<LinkChange>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_ENDED, before.0, i64::from(window))?;
    rows.into_iter().map(LinkChange::try_from).collect()
}

/// Removes a change that has ended and has no former values; returns whether it was there.
pub async fn delete(tx: &mut Tx, seq: i64) -> Result<bool, StoreError> {
    let deleted = execute!(&mut **tx, DELETE, seq)?;
    Ok(deleted == 1)
}
