//! Products.

use std::collections::BTreeMap;

use shared::{
    id::{AccountId, ProductId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, facets, identifiers,
    listing::{self, Column, Selection, Table},
    on_db, parse, properties,
};
use crate::domain::{
    page::Page,
    resource::{Product, ProductDetails, Stamp},
};

const KIND: &str = "product";

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO products (id, account_id, name, doc, facets, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING seq";
const FIND: &str = concat!(columns!(), " FROM products t WHERE account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str =
    concat!(columns!(), " FROM products t WHERE account_id = $1 AND id = $2 FOR UPDATE");
const UPDATE: &str = "UPDATE products SET name = $2, doc = $3, facets = $4, updated_at = $5 \
    WHERE id = $1";
const DELETE: &str = "DELETE FROM products WHERE account_id = $1 AND id = $2";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM products t"),
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
    doc: Json<ProductDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Product {
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
            properties: BTreeMap::new(),
        })
    }
}

/// Adds a product; it comes back with its place.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    id: ProductId,
    name: String,
    details: ProductDetails,
    now: UnixMillis,
) -> Result<Product, StoreError> {
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
    Ok(Product {
        id,
        stamp: Stamp { seq, created_at: now, updated_at: now },
        name,
        details,
        properties: BTreeMap::new(),
    })
}

/// A product of an account.
///
/// # Errors
/// The database failed.
pub async fn find(conn: &mut Conn, account: AccountId, id: ProductId) -> Result<Option<Product>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Product::try_from).transpose()
}

/// A product of an account, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    id: ProductId,
) -> Result<Option<Product>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    let row: Option<Row> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Product::try_from).transpose()
}

/// A page of products.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Product>, StoreError> {
    listing::page::<Row, Product>(conn, &LIST, selection, |product| product.stamp.position()).await
}

/// Writes a product that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, account: AccountId, product: &Product) -> Result<(), StoreError> {
    let facets = facets::of(&product.details, facets::RESOURCES)?;
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(product.id.as_str())
        .bind(&product.name)
        .bind(Json(&product.details))
        .bind(&facets)
        .bind(product.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    let none = BTreeMap::new();
    let named = product.details.common.identifiers.as_ref().unwrap_or(&none);
    identifiers::replace(tx, account, KIND, product.id.as_str(), named).await
}

/// Removes a product with its identifiers and properties; gives whether it was there. What points at it stays.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: ProductId) -> Result<bool, StoreError> {
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
