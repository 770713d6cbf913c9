//! The table of products.

use std::collections::BTreeMap;

use shared::id::ProductId;

use super::{
    StoreError,
    documents::{Base, Document, Statements, statements},
    listing::{Column, Table},
    unique_identifiers::Unique,
};
use crate::domain::{common::Stamp, resource::Product};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!("products", columns!(), ", facets", ", $6", ", facets = $6", LIST);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM products t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: Some("product"),
    faceted: true,
    itself: "t.id",
};

impl Document for Product {
    type Own = ();

    const TABLE: &'static Statements = &STATEMENTS;
    const HAS_UNIQUE: bool = true;

    fn unique(&self) -> Option<Unique> {
        self.details.common.identifiers.as_ref()?.get("gs1:01").cloned().map(Unique::Gtin)
    }

    fn build(id: ProductId, stamp: Stamp, row: Base<Self>, (): ()) -> Result<Self, StoreError> {
        Ok(Self { id, stamp, name: row.name, details: row.details, properties: BTreeMap::new() })
    }
}
