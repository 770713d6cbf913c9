//! The table of projects.

use shared::id::ProjectId;
pub use tenants::store::projects::hold;

use super::{
    StoreError,
    documents::{Base, Document, Statements, statements},
    listing::{Column, Table},
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

impl Document for Project {
    type Own = ();

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: ProjectId, stamp: Stamp, row: Base<Self>, (): ()) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, details: row.details })
    }
}
