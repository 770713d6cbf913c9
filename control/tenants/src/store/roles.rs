//! The table of roles that accounts made.

use shared::id::RoleId;

use super::{
    StoreError,
    documents::{Base, Cell, Document, Statements, statements},
    listing::{Column, Table},
    parse,
};
use crate::domain::{common::Stamp, custom_role::Role};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.kind, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "roles",
    columns!(),
    ", kind, permissions",
    ", $6, $7",
    ", kind = $6, permissions = $7",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM roles t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

/// The column that only roles have; the permissions are written for the look-up of keys alone.
#[derive(sqlx::FromRow)]
pub struct Own {
    kind: String,
}

impl Document for Role {
    type Own = Own;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: RoleId, stamp: Stamp, row: Base<Self>, own: Own) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, kind: parse("kind", &own.kind)?, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        let permissions = self.permissions().to_string();
        vec![Cell::Text(Some(self.kind.as_str().to_owned())), Cell::Text(Some(permissions))]
    }
}
