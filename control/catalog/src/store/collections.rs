//! The table of collections.

use shared::id::CollectionId;

use super::{
    Conn, StoreError,
    documents::{self, Base, Document, Statements, statements},
    listing::{Column, Selection, Table},
};
use crate::domain::{collection::Collection, common::Stamp, page::Page};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements =
    statements!("collections", columns!(), ", facets", ", $6", ", facets = $6", LIST);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM collections t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: Some("collection"),
    faceted: true,
    itself: "t.id",
};
const LIST_IN_COLLECTION: Table = Table {
    select: concat!(columns!(), " FROM collection_collections m JOIN collections t ON t.id = m.member_id"),
    order: ("m.created_at", "m.seq"),
    columns: &[("name", Column::Text("t.name")), ("in", Column::Text("m.collection_id"))],
    identifiers: Some("collection"),
    faceted: true,
    itself: "t.id",
};

impl Document for Collection {
    type Own = ();

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: CollectionId, stamp: Stamp, row: Base<Self>, (): ()) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, details: row.details })
    }
}

/// A page of the collections in a collection, which the selection names as `in`.
pub async fn list_in_collection(
    conn: &mut Conn,
    selection: &Selection<'_>,
) -> Result<Page<Collection>, StoreError> {
    documents::list_as(conn, &LIST_IN_COLLECTION, selection).await
}
