//! The table of batches.

use shared::id::BatchId;

use super::{
    StoreError,
    documents::{Base, Document, Statements, statements},
    listing::{Column, Table},
};
use crate::domain::{batch::Batch, common::Stamp};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!("batches", columns!(), ", facets", ", $6", ", facets = $6", LIST);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM batches t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: Some("batch"),
    faceted: true,
    itself: "t.id",
};

impl Document for Batch {
    type Own = ();

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: BatchId, stamp: Stamp, row: Base<Self>, (): ()) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, details: row.details })
    }
}
