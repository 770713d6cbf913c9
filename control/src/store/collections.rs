//! Collections.

use shared::{
    id::{AccountId, CollectionId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, facets, identifiers,
    listing::{self, Column, Selection, Table},
    on_db, parse,
};
use crate::domain::{
    collection::{Collection, CollectionDetails},
    page::Page,
    resource::Stamp,
};

const KIND: &str = "collection";

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO collections (id, account_id, name, doc, facets, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING seq";
const FIND: &str = concat!(columns!(), " FROM collections t WHERE account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str =
    concat!(columns!(), " FROM collections t WHERE account_id = $1 AND id = $2 FOR UPDATE");
const PG_FIND_MANY: &str = concat!(columns!(), " FROM collections t WHERE account_id = $1 AND id = ANY($2)");
const SQLITE_FIND_MANY: &str = concat!(
    columns!(),
    " FROM collections t WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2))"
);
const UPDATE: &str = "UPDATE collections SET name = $2, doc = $3, facets = $4, updated_at = $5 WHERE id = $1";
const LIST_IN_COLLECTION: Table = Table {
    select: concat!(columns!(), " FROM collection_collections m JOIN collections t ON t.id = m.member_id"),
    order: ("m.created_at", "m.seq"),
    columns: &[("name", Column::Text("t.name")), ("in", Column::Text("m.collection_id"))],
    identifiers: Some(KIND),
    faceted: true,
    itself: "t.id",
};
const DELETE: &str = "DELETE FROM collections WHERE account_id = $1 AND id = $2";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM collections t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: Some(KIND),
    faceted: true,
    itself: "t.id",
};

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    name: String,
    doc: Json<CollectionDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Collection {
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
            details: row.doc.0,
        })
    }
}

/// Adds a collection; it comes back with its place in lists.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    id: CollectionId,
    name: String,
    details: CollectionDetails,
    now: UnixMillis,
) -> Result<Collection, StoreError> {
    let facets = facets::of(&details, facets::RESOURCES)?;
    let (seq,): (i64,) = on_db!(&mut **tx, |c| sqlx::query_as(INSERT)
        .bind(id.as_str())
        .bind(account.as_str())
        .bind(&name)
        .bind(Json(&details))
        .bind(&facets)
        .bind(now.0)
        .fetch_one(c)
        .await)?;
    if let Some(named) = &details.common.identifiers {
        identifiers::replace(tx, account, KIND, id.as_str(), named).await?;
    }
    let stamp = Stamp { seq, created_at: now, updated_at: now };
    Ok(Collection { id, stamp, name, details })
}

/// A collection of an account.
///
/// # Errors
/// The database failed.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    id: CollectionId,
) -> Result<Option<Collection>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Collection::try_from).transpose()
}

/// A collection of an account, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    id: CollectionId,
) -> Result<Option<Collection>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    let row: Option<Row> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Collection::try_from).transpose()
}

/// Those of some ids that are collections of the account, in no order.
///
/// # Errors
/// The database failed.
pub async fn find_many(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Vec<Collection>, StoreError> {
    let rows = dialect::fetch_in_list!(conn, Row, PG_FIND_MANY, SQLITE_FIND_MANY, [account.as_str()], ids)?;
    rows.into_iter().map(Collection::try_from).collect()
}

/// A page of collections.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Collection>, StoreError> {
    listing::page::<Row, Collection>(conn, &LIST, selection, |row| row.stamp.position()).await
}

/// A page of the collections in a collection, which the selection names as `in`.
///
/// # Errors
/// The database failed.
pub async fn list_in_collection(
    conn: &mut Conn,
    selection: &Selection<'_>,
) -> Result<Page<Collection>, StoreError> {
    listing::page::<Row, Collection>(conn, &LIST_IN_COLLECTION, selection, |row| row.stamp.position()).await
}

/// Writes a collection that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, account: AccountId, collection: &Collection) -> Result<(), StoreError> {
    let facets = facets::of(&collection.details, facets::RESOURCES)?;
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(collection.id.as_str())
        .bind(&collection.name)
        .bind(Json(&collection.details))
        .bind(&facets)
        .bind(collection.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    let none = std::collections::BTreeMap::new();
    let named = collection.details.common.identifiers.as_ref().unwrap_or(&none);
    identifiers::replace(tx, account, KIND, collection.id.as_str(), named).await
}

/// Removes a collection and its identifiers; gives whether it was there. What points at it stays.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: CollectionId) -> Result<bool, StoreError> {
    let gone = on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?
        == 1;
    if gone {
        identifiers::delete(tx, id.as_str()).await?;
    }
    Ok(gone)
}
