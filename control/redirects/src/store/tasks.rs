//! The table of tasks of batches; `name` is the type.

use shared::{
    id::{AccountId, BatchId, TaskId},
    time::UnixMillis,
};

use super::{
    Conn, StoreError, Tx,
    documents::{Base, Cell, Document, Statements, statements},
    execute, fetch_all, fetch_one,
    listing::{Column, Table},
    parse,
};
use crate::domain::{common::Stamp, task::Task};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.batch_id, t.status, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements =
    statements!("tasks", columns!(), ", batch_id, status", ", $6, $7", ", batch_id = $6, status = $7", LIST);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM tasks t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("type", Column::Text("t.name")),
        ("status", Column::Text("t.status")),
        ("batch", Column::Text("t.batch_id")),
        // A task is scoped to no project.
        ("scopes.projects", Column::Text("t.id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};
const COUNT_OPEN: &str = "SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND status = 'EXECUTING'";
// Those of suspended accounts wait, and hide no others.
const LIST_STALE: &str = "SELECT account_id, id FROM tasks t WHERE status = 'EXECUTING' AND updated_at < $1 \
    AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = t.account_id AND a.suspended_at IS NOT NULL) \
    ORDER BY updated_at LIMIT 100";
const DELETE_OF_BATCH: &str = "DELETE FROM tasks WHERE account_id = $1 AND batch_id = $2";

/// The columns that only tasks have.
#[derive(sqlx::FromRow)]
pub struct Own {
    batch_id: String,
    status: String,
}

impl Document for Task {
    type Own = Own;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: TaskId, stamp: Stamp, row: Base<Self>, own: Own) -> Result<Self, StoreError> {
        let batch = parse("batch_id", &own.batch_id)?;
        let status = parse("status", &own.status)?;
        Ok(Self { id, stamp, kind: row.name, batch, status, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        vec![Cell::Text(Some(self.batch.to_string())), Cell::Text(Some(self.status.as_str().to_owned()))]
    }
}

/// How many tasks of an account have not ended.
pub async fn count_open(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT_OPEN, account.as_str())?;
    Ok(count.unsigned_abs())
}

/// Tasks of all accounts in service that have not ended and did not move since a time, at most 100.
pub async fn list_stale(conn: &mut Conn, before: UnixMillis) -> Result<Vec<(AccountId, TaskId)>, StoreError> {
    let rows: Vec<(String, String)> = fetch_all!(conn, LIST_STALE, before.0)?;
    rows.iter().map(|(account, id)| Ok((parse("account_id", account)?, parse("id", id)?))).collect()
}

/// Removes the tasks of a batch.
pub async fn delete_of_batch(tx: &mut Tx, account: AccountId, batch: BatchId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE_OF_BATCH, account.as_str(), batch.as_str())?;
    Ok(())
}
