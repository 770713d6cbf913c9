//! The table of Thngs.

use std::collections::BTreeMap;

use shared::id::{AccountId, CollectionId, ProductId, ThngId};
use sqlx::types::Json;

use super::{
    Conn, StoreError, dialect,
    documents::{self, Base, Cell, Document, Statements, statements},
    listing::{self, Column, Explained, Selection, Table},
    parse,
    unique_identifiers::Unique,
};
use crate::domain::{common::Stamp, page::Page, quota::Quota, resource::Thng, scopes::Scopes};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.product_id, (SELECT string_agg(m.collection_id, ',') FROM collection_thngs m \
         WHERE m.thng_id = t.id) AS collections, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "thngs",
    columns!(),
    ", facets, product_id",
    ", $6, $7",
    ", facets = $6, product_id = $7",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM thngs t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("createdAt", Column::Whole("t.created_at")),
        ("name", Column::Text("t.name")),
        ("product", Column::Text("t.product_id")),
        ("collections", IN_COLLECTION),
    ],
    identifiers: Some("thng"),
    faceted: true,
    itself: "t.id",
};
const LIST_IN_COLLECTION: Table = Table {
    select: concat!(columns!(), " FROM collection_thngs m JOIN thngs t ON t.id = m.thng_id"),
    order: ("m.created_at", "m.seq"),
    columns: &[
        ("createdAt", Column::Whole("t.created_at")),
        ("name", Column::Text("t.name")),
        ("product", Column::Text("t.product_id")),
        ("collections", IN_COLLECTION),
        ("in", Column::Text("m.collection_id")),
    ],
    identifiers: Some("thng"),
    faceted: true,
    itself: "t.id",
};
const IN_COLLECTION: Column = Column::Clause {
    pg: "t.id IN (SELECT c.thng_id FROM collection_thngs c WHERE c.account_id = $1 AND c.collection_id = {})",
    sqlite: "t.id IN (SELECT c.thng_id FROM collection_thngs c WHERE c.account_id = $1 AND c.collection_id = {})",
};
const PG_SCOPES: &str = "SELECT id, doc -> 'scopes' FROM thngs WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_SCOPES: &str = "SELECT id, doc -> 'scopes' FROM thngs WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";

const PG_TARGETS: &str =
    "SELECT id, product_id, doc -> 'scopes' FROM thngs WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_TARGETS: &str = "SELECT id, product_id, doc -> 'scopes' FROM thngs WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";

/// The columns that only Thngs have.
#[derive(sqlx::FromRow)]
pub struct Links {
    product_id: Option<String>,
    /// Ids with commas between.
    collections: Option<String>,
}

impl Document for Thng {
    type Own = Links;

    const TABLE: &'static Statements = &STATEMENTS;
    const HAS_UNIQUE: bool = true;
    const QUOTA: Option<Quota> = Some(Quota::Things);

    fn unique(&self) -> Option<Unique> {
        let serial = self.details.common.identifiers.as_ref()?.get("gs1:21")?.clone();
        Some(Unique::Serial { product: self.product?.to_string(), serial })
    }

    fn build(id: ThngId, stamp: Stamp, row: Base<Self>, own: Links) -> Result<Self, StoreError> {
        let product = own.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?;
        let collections = read_collections(own.collections.as_deref())?;
        let (name, details, properties) = (row.name, row.details, BTreeMap::new());
        Ok(Self { id, stamp, name, product, collections, details, properties })
    }

    fn own(&self) -> Vec<Cell> {
        vec![Cell::Text(self.product.map(|id| id.to_string()))]
    }
}

fn read_collections(ids: Option<&str>) -> Result<Vec<CollectionId>, StoreError> {
    let ids = ids.into_iter().flat_map(|ids| ids.split(','));
    let mut ids =
        ids.map(|id| parse("collections", id)).collect::<Result<Vec<CollectionId>, StoreError>>()?;
    ids.sort_unstable();
    Ok(ids)
}

/// The statement of a page of Thngs and its plan.
pub async fn explain(conn: &mut Conn, selection: &Selection<'_>) -> Result<Explained, StoreError> {
    listing::explain(conn, &LIST, selection).await
}

/// A page of the Thngs in a collection, which the selection names as `in`.
pub async fn list_in_collection(
    conn: &mut Conn,
    selection: &Selection<'_>,
) -> Result<Page<Thng>, StoreError> {
    documents::list_as(conn, &LIST_IN_COLLECTION, selection).await
}

/// The members of a Thng that an action about it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The Thng.
    pub thng: ThngId,
    /// Its product.
    pub product: Option<ProductId>,
    /// Its scopes.
    pub scopes: Option<Scopes>,
}

/// Those of some ids that are Thngs of the account, as targets of actions; in no order.
pub async fn list_targets(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Vec<Target>, StoreError> {
    type Found = (String, Option<String>, Option<Json<Scopes>>);
    let rows = dialect::fetch_in_list!(conn, Found, PG_TARGETS, SQLITE_TARGETS, [account.as_str()], ids)?;
    let target = |(id, product, scopes): Found| {
        let product = product.as_deref().map(|id| parse("product_id", id)).transpose()?;
        Ok(Target { thng: parse("id", &id)?, product, scopes: scopes.map(|scopes| scopes.0) })
    };
    rows.into_iter().map(target).collect()
}

/// Those of some ids that are Thngs of the account, with their scopes.
pub async fn list_scopes(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Vec<(String, Option<Scopes>)>, StoreError> {
    type Found = (String, Option<Json<Scopes>>);
    let rows = dialect::fetch_in_list!(conn, Found, PG_SCOPES, SQLITE_SCOPES, [account.as_str()], ids)?;
    Ok(rows.into_iter().map(|(id, scopes)| (id, scopes.map(|scopes| scopes.0))).collect())
}
