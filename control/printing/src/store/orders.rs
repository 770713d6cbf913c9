//! The table of print orders as the API reads and writes it; workers use [`super::leases`].

use kernel::{
    domain::{common::Stamp, page::Page, quota::Quota},
    execute, fetch_all, fetch_one, fetch_optional, on_db,
    store::{
        Conn, StoreError, Tx,
        listing::{self, Column, Selection, Table},
        parse, quotas,
    },
};
use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};
use sqlx::types::Json;

use crate::domain::order::{Details, Order, Standing, Status};

/// The columns of an order that every statement reads.
macro_rules! columns {
    () => {
        "t.id, t.seq, t.account_id, t.name, t.status, t.doc, t.created_at, t.updated_at, t.completed_at, t.files_until"
    };
}

const FIND: &str =
    concat!("SELECT ", columns!(), " FROM print_orders t WHERE t.account_id = $1 AND t.id = $2");
const LIST: Table = Table {
    select: concat!("SELECT ", columns!(), " FROM print_orders t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("status", Column::Text("t.status")),
        ("name", Column::Text("t.name")),
        // It belongs to no project.
        ("scopes.projects", Column::Text("t.id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};
const INSERT: &str = "INSERT INTO print_orders (id, account_id, name, status, doc, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING seq";
// What has not ended is not settled: the index of those is small, the table grows with every order.
const COUNT_OPEN: &str =
    "SELECT COUNT(*) FROM print_orders WHERE account_id = $1 AND settled = 0 AND completed_at IS NULL";
const CANCEL: &str = "UPDATE print_orders SET status = 'cancelled', updated_at = $3, completed_at = $3 \
    WHERE account_id = $1 AND id = $2 AND completed_at IS NULL";
const STANDING: &str = "SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM print_orders \
    WHERE settled = 0 AND completed_at IS NULL";
const LIST_EXPIRED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM print_orders t WHERE t.files_until <= $1 ORDER BY t.files_until LIMIT $2"
);
const FORGET_FILES: &str = "UPDATE print_orders SET doc = $2, files_until = NULL \
    WHERE seq = $1 AND completed_at IS NOT NULL AND files_until IS NOT NULL";
// The oldest by insertion: bounded without an index on the time, and those that are left over move up in time. Those that may
// never end, as of a suspended account, are not among them.
const LIST_ENDED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM (SELECT * FROM print_orders j WHERE j.settled = 1 ORDER BY j.seq LIMIT $2) t \
     WHERE t.completed_at < $1 ORDER BY t.seq"
);
const DELETE: &str = "DELETE FROM print_orders WHERE seq = $1 AND settled = 1 RETURNING doc";

/// An order as it is stored.
#[derive(sqlx::FromRow)]
pub(super) struct Row {
    id: String,
    seq: i64,
    account_id: String,
    name: String,
    status: String,
    doc: Json<Details>,
    created_at: i64,
    updated_at: i64,
    completed_at: Option<i64>,
    files_until: Option<i64>,
}

impl TryFrom<Row> for Order {
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
            name: row.name,
            stamp,
            status: parse::<Status>("status", &row.status)?,
            completed_at: row.completed_at.map(UnixMillis),
            files_until: row.files_until.map(UnixMillis),
            details: row.doc.0,
        })
    }
}

/// Adds an order; returns its place.
pub async fn insert(tx: &mut Tx, order: &Order) -> Result<i64, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(INSERT)
        .bind(order.id.as_str())
        .bind(order.account.as_str())
        .bind(&order.name)
        .bind(order.status.as_str())
        .bind(Json(&order.details))
        .bind(order.stamp.created_at.0)
        .fetch_one(c)
        .await)?)
}

/// An order of an account.
pub async fn find(conn: &mut Conn, account: AccountId, id: JobId) -> Result<Option<Order>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), id.as_str())?;
    row.map(Order::try_from).transpose()
}

/// A page of orders.
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be read.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Order>, StoreError> {
    listing::page::<Row, Order>(conn, &LIST, selection, Order::position).await
}

/// How many orders of an account have not ended.
pub async fn count_open(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let count: i64 =
        on_db!(conn, |c| sqlx::query_scalar(COUNT_OPEN).bind(account.as_str()).fetch_one(c).await)?;
    Ok(count.unsigned_abs())
}

/// Ends an order that has not ended, whoever holds it; returns whether it had not.
pub async fn cancel(tx: &mut Tx, order: &Order, at: UnixMillis) -> Result<bool, StoreError> {
    let cancelled = execute!(&mut **tx, CANCEL, order.account.as_str(), order.id.as_str(), at.0)?;
    Ok(cancelled == 1)
}

/// How the orders of all accounts stand.
pub async fn standing(conn: &mut Conn) -> Result<Standing, StoreError> {
    let (count, oldest): (i64, i64) = fetch_one!(conn, STANDING)?;
    Ok(Standing { open: count.unsigned_abs(), oldest: UnixMillis(oldest) })
}

/// Orders of all accounts whose files are due to go, the oldest first.
pub async fn list_expired(conn: &mut Conn, now: UnixMillis, limit: u32) -> Result<Vec<Order>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_EXPIRED, now.0, i64::from(limit))?;
    rows.into_iter().map(Order::try_from).collect()
}

/// Writes that the files of an order are gone; returns whether nobody had written it.
pub async fn forget_files(tx: &mut Tx, order: &Order) -> Result<bool, StoreError> {
    let forgotten = execute!(&mut **tx, FORGET_FILES, order.stamp.seq, Json(&order.details))?;
    Ok(forgotten == 1)
}

/// Orders of all accounts that ended before a time, of the `window` oldest that are settled.
pub async fn list_ended(conn: &mut Conn, before: UnixMillis, window: u32) -> Result<Vec<Order>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_ENDED, before.0, i64::from(window))?;
    rows.into_iter().map(Order::try_from).collect()
}

/// Removes an order that is settled, and counts its files as removed; returns whether it was there.
pub async fn delete(tx: &mut Tx, account: AccountId, seq: i64) -> Result<bool, StoreError> {
    // The row says which files were counted: somebody may have removed them since the order was read.
    let deleted: Option<Json<Details>> =
        on_db!(&mut **tx, |c| sqlx::query_scalar(DELETE).bind(seq).fetch_optional(c).await)?;
    let Some(Json(details)) = deleted else { return Ok(false) };
    quotas::release(tx, account, Quota::StorageBytes, details.file_bytes());
    Ok(true)
}
