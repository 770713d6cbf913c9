//! Thngs.

use std::collections::BTreeMap;

use shared::{
    id::{AccountId, CollectionId, ProductId, ThngId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, facets, identifiers,
    listing::{self, Column, Explained, Selection, Table},
    on_db, parse, properties,
};
use crate::domain::{
    page::Page,
    redirection::Scopes,
    resource::{Stamp, Thng, ThngDetails},
};

const KIND: &str = "thng";

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.product_id, (SELECT string_agg(m.collection_id, ',') FROM collection_thngs m \
         WHERE m.thng_id = t.id) AS collections, t.doc, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO thngs (id, account_id, name, product_id, doc, facets, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7) RETURNING seq";
const FIND: &str = concat!(columns!(), " FROM thngs t WHERE account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str =
    concat!(columns!(), " FROM thngs t WHERE account_id = $1 AND id = $2 FOR UPDATE");
const UPDATE: &str = "UPDATE thngs SET name = $2, product_id = $3, doc = $4, facets = $5, \
    updated_at = $6 WHERE id = $1";
const DELETE: &str = "DELETE FROM thngs WHERE account_id = $1 AND id = $2";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM thngs t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("createdAt", Column::Whole("t.created_at")),
        ("name", Column::Text("t.name")),
        ("product", Column::Text("t.product_id")),
        ("collections", IN_COLLECTION),
    ],
    identifiers: Some(KIND),
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
    identifiers: Some(KIND),
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

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    name: String,
    product_id: Option<String>,
    /// Ids with commas between.
    collections: Option<String>,
    doc: Json<ThngDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Thng {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: parse("id", &row.id)?,
            stamp: Stamp {
                seq: row.seq,
                created_at: UnixMillis(row.created_at),
                updated_at: UnixMillis(row.updated_at),
            },
            name: row.name,
            product: row.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?,
            collections: read_collections(row.collections.as_deref())?,
            details: row.doc.0,
            properties: BTreeMap::new(),
        })
    }
}

fn read_collections(ids: Option<&str>) -> Result<Vec<CollectionId>, StoreError> {
    let ids = ids.into_iter().flat_map(|ids| ids.split(','));
    let mut ids =
        ids.map(|id| parse("collections", id)).collect::<Result<Vec<CollectionId>, StoreError>>()?;
    ids.sort_unstable();
    Ok(ids)
}

/// Adds a Thng; it comes back with its place.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    id: ThngId,
    name: String,
    product: Option<ProductId>,
    details: ThngDetails,
    now: UnixMillis,
) -> Result<Thng, StoreError> {
    let facets = facets::of(&details, facets::RESOURCES)?;
    let (seq,): (i64,) = on_db!(&mut **tx, |c| sqlx::query_as(INSERT)
        .bind(id.as_str())
        .bind(account.as_str())
        .bind(&name)
        .bind(product.map(|id| id.to_string()))
        .bind(Json(&details))
        .bind(&facets)
        .bind(now.0)
        .fetch_one(c)
        .await)?;
    if let Some(named) = &details.common.identifiers {
        identifiers::replace(tx, account, KIND, id.as_str(), named).await?;
    }
    let stamp = Stamp { seq, created_at: now, updated_at: now };
    Ok(Thng { id, stamp, name, product, collections: Vec::new(), details, properties: BTreeMap::new() })
}

/// A Thng of an account.
///
/// # Errors
/// The database failed.
pub async fn find(conn: &mut Conn, account: AccountId, id: ThngId) -> Result<Option<Thng>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Thng::try_from).transpose()
}

/// A Thng of an account, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(tx: &mut Tx, account: AccountId, id: ThngId) -> Result<Option<Thng>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    let row: Option<Row> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Thng::try_from).transpose()
}

/// The statement of [`list`] and its plan.
///
/// # Errors
/// The database failed.
pub async fn explain(conn: &mut Conn, selection: &Selection<'_>) -> Result<Explained, StoreError> {
    listing::explain(conn, &LIST, selection).await
}

/// A page of Thngs.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Thng>, StoreError> {
    listing::page::<Row, Thng>(conn, &LIST, selection, |thng| thng.stamp.position()).await
}

/// A page of the Thngs in a collection, which the selection names as `in`.
///
/// # Errors
/// The database failed.
pub async fn list_in_collection(
    conn: &mut Conn,
    selection: &Selection<'_>,
) -> Result<Page<Thng>, StoreError> {
    listing::page::<Row, Thng>(conn, &LIST_IN_COLLECTION, selection, |thng| thng.stamp.position()).await
}

/// Those of some ids that are Thngs of the account, with their scopes.
///
/// # Errors
/// The database failed.
pub async fn list_scopes(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Vec<(String, Option<Scopes>)>, StoreError> {
    type Found = (String, Option<Json<Scopes>>);
    let rows = dialect::fetch_in_list!(conn, Found, PG_SCOPES, SQLITE_SCOPES, [account.as_str()], ids)?;
    Ok(rows.into_iter().map(|(id, scopes)| (id, scopes.map(|scopes| scopes.0))).collect())
}

/// Writes a Thng that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, account: AccountId, thng: &Thng) -> Result<(), StoreError> {
    let facets = facets::of(&thng.details, facets::RESOURCES)?;
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(thng.id.as_str())
        .bind(&thng.name)
        .bind(thng.product.map(|id| id.to_string()))
        .bind(Json(&thng.details))
        .bind(&facets)
        .bind(thng.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    let none = BTreeMap::new();
    let named = thng.details.common.identifiers.as_ref().unwrap_or(&none);
    identifiers::replace(tx, account, KIND, thng.id.as_str(), named).await
}

/// Removes a Thng with its identifiers and properties; gives whether it was there. What points at it stays.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: ThngId) -> Result<bool, StoreError> {
    let gone = on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?
        == 1;
    if gone {
        identifiers::delete(tx, id.as_str()).await?;
        properties::remove_all(tx, account, id.as_str()).await?;
    }
    Ok(gone)
}
