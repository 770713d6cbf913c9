//! The table of projects.

use shared::id::{AccountId, ProjectId};

use super::{
    StoreError, Tx, dialect,
    documents::{Base, Document, Statements, statements},
    listing::{Column, Table},
    on_db,
};
use crate::domain::{common::Stamp, project::Project};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!("projects", columns!(), "", "", "", LIST);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM projects t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name")), ("scopes.projects", Column::Text("t.id"))],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

// Creates in a project wait for a transaction that deletes it, but not for each other.
const PG_HOLD: &str = "SELECT id FROM projects WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const HOLD: &str = "SELECT id FROM projects WHERE account_id = $1 AND id = $2";

impl Document for Project {
    type Own = ();

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: ProjectId, stamp: Stamp, row: Base<Self>, (): ()) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, details: row.details })
    }
}

/// Whether a project exists; it cannot be deleted until the transaction ends.
pub async fn hold(tx: &mut Tx, account: AccountId, id: ProjectId) -> Result<bool, StoreError> {
    let sql = dialect::lock_row(tx, PG_HOLD, HOLD);
    let row: Option<(String,)> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    Ok(row.is_some())
}
