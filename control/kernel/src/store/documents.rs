//! Tables of named resources: one row each, with columns for what is searched, and the rest as a JSON document.
//!
//! A table defines its statements and columns in a [`Document`]; the operations are here, once.

use serde_json::Value;
use shared::{id::AccountId, time::UnixMillis};
use sqlx::{FromRow, postgres::PgRow, sqlite::SqliteRow, types::Json};

use super::{
    Conn, StoreError, Tx, audit, dialect, execute, facets, fetch_optional, identifiers,
    listing::{self, Selection, Table},
    on_db, parse, quotas,
    texts::Texts,
    unique_identifiers::{self, Unique},
};
use crate::domain::{common::Stamp, named::Named, page::Page, quota::Quota};

/// A named resource with a table of its own.
pub trait Document: Named {
    /// The columns that its table has beside those of all; `()` for none.
    type Own: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin;

    /// Its table.
    const TABLE: &'static Statements;

    /// The resource of a row.
    ///
    /// # Errors
    /// [`StoreError::Row`] when a column does not fit.
    fn build(id: Self::Id, stamp: Stamp, row: Base<Self>, own: Self::Own) -> Result<Self, StoreError>;

    /// Whether resources of this kind may have an identifier that no other may have.
    const HAS_UNIQUE: bool = false;

    /// The quota that each counts for.
    const QUOTA: Option<Quota> = None;

    /// The identifier that only one may have, if it has such.
    fn unique(&self) -> Option<Unique> {
        None
    }

    /// The values of its own columns, in the order of the statements.
    fn own(&self) -> Vec<Cell> {
        Vec::new()
    }
}

/// The columns of any table besides id and timestamps.
#[derive(Debug)]
pub struct Base<D: Named> {
    /// The name.
    pub name: String,
    /// The document.
    pub details: D::Details,
}

/// A value of a column.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A text.
    Text(Option<String>),
    /// A whole number.
    Whole(Option<i64>),
    /// A number.
    Real(Option<f64>),
}

impl From<Cell> for Value {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Text(value) => value.into(),
            Cell::Whole(value) => value.into(),
            Cell::Real(value) => value.into(),
        }
    }
}

/// The statements of a table.
#[derive(Debug)]
pub struct Statements {
    /// The own columns, each behind `, `.
    pub own: &'static str,
    /// Inserts a row and gives its place.
    pub insert: &'static str,
    /// Finds a row by account and id.
    pub find: &'static str,
    /// The same, and locks it; SQLite has one writer anyway.
    pub pg_find_locked: &'static str,
    /// Finds rows by a list of ids, on Postgres.
    pub pg_find_many: &'static str,
    /// Finds rows by a list of ids, on SQLite.
    pub sqlite_find_many: &'static str,
    /// Replaces name and document.
    pub update: &'static str,
    /// Deletes a row.
    pub delete: &'static str,
    /// How its list is read.
    pub list: Table,
}

/// The statements of a table: what it selects, its further columns with their values from `$6` on, and its list.
#[macro_export]
macro_rules! statements {
    ($table:expr, $columns:expr, $own:expr, $values:expr, $sets:expr, $list:expr) => {
        $crate::store::documents::Statements {
            own: $own,
            insert: concat!(
                "INSERT INTO ",
                $table,
                " (id, account_id, name, doc, created_at, updated_at",
                $own,
                ") VALUES ($1, $2, $3, $4, $5, $5",
                $values,
                ") RETURNING seq"
            ),
            find: concat!($columns, " FROM ", $table, " t WHERE account_id = $1 AND id = $2"),
            pg_find_locked: concat!(
                $columns,
                " FROM ",
                $table,
                " t WHERE account_id = $1 AND id = $2 FOR UPDATE"
            ),
            pg_find_many: concat!($columns, " FROM ", $table, " t WHERE account_id = $1 AND id = ANY($2)"),
            sqlite_find_many: concat!(
                $columns,
                " FROM ",
                $table,
                " t WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2))"
            ),
            update: concat!(
                "UPDATE ",
                $table,
                " SET name = $3, doc = $4, updated_at = $5",
                $sets,
                " WHERE account_id = $2 AND id = $1"
            ),
            delete: concat!("DELETE FROM ", $table, " WHERE account_id = $1 AND id = $2"),
            list: $list,
        }
    };
}
pub use statements;

/// A row as it is stored: the columns of all tables, and those of one.
#[derive(FromRow)]
pub struct Row<D, O> {
    id: String,
    seq: i64,
    name: String,
    doc: Json<D>,
    created_at: i64,
    updated_at: i64,
    #[sqlx(flatten)]
    own: O,
}

type RowOf<D> = Row<<D as Named>::Details, <D as Document>::Own>;

fn read<D: Document>(row: RowOf<D>) -> Result<D, StoreError> {
    let stamp = Stamp {
        seq: row.seq,
        created_at: UnixMillis(row.created_at),
        updated_at: UnixMillis(row.updated_at),
    };
    let base = Base { name: row.name, details: row.doc.0 };
    D::build(parse("id", &row.id)?, stamp, base, row.own)
}

/// Binds the values of a whole row, whose time is `at`.
macro_rules! bind_row {
    ($query:expr, $account:expr, $resource:expr, $at:expr, $facets:expr) => {{
        let query = $query
            .bind($resource.id().to_string())
            .bind($account.as_str())
            .bind($resource.name().to_owned())
            .bind(Json($resource.details()))
            .bind($at.0);
        let query = match $facets {
            Some(facets) => query.bind(facets),
            None => query,
        };
        $resource.own().into_iter().fold(query, |query, cell| match cell {
            Cell::Text(text) => query.bind(text),
            Cell::Whole(number) => query.bind(number),
            Cell::Real(number) => query.bind(number),
        })
    }};
}

/// Adds a resource; it comes back with its place in lists.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists, [`StoreError::Taken`] when another has its identifier,
/// [`StoreError::Exceeded`] when the account has as many as it may have.
pub async fn insert<D: Document>(tx: &mut Tx, account: AccountId, mut new: D) -> Result<D, StoreError> {
    let (facets, at) = (facets_of(&new)?, new.stamp().created_at);
    let (seq,): (i64,) = on_db!(&mut **tx, |c| {
        let query = sqlx::query_as(D::TABLE.insert);
        bind_row!(query, account, new, at, facets).fetch_one(c).await
    })?;
    new.stamp_mut().seq = seq;
    if D::TABLE.list.identifiers.is_some() && new.common().identifiers.is_some() {
        write_identifiers(tx, account, &new).await?;
    }
    if let Some(unique) = new.unique() {
        unique_identifiers::claim(tx, account, &new.id().to_string(), &unique).await?;
    }
    if let Some(quota) = D::QUOTA {
        quotas::charge(tx, account, quota, 1, at).await?;
    }
    tx.note(account, (D::KIND, &new.id().to_string()), || (None, Some(state_of(&new))));
    Ok(new)
}

/// A resource of an account.
pub async fn find<D: Document>(
    conn: &mut Conn,
    account: AccountId,
    id: D::Id,
) -> Result<Option<D>, StoreError> {
    fetch(conn, D::TABLE.find, account, id).await
}

/// A resource of an account, locked until the transaction ends.
pub async fn find_locked<D: Document>(
    tx: &mut Tx,
    account: AccountId,
    id: D::Id,
) -> Result<Option<D>, StoreError> {
    let sql = dialect::pick(tx, D::TABLE.pg_find_locked, D::TABLE.find);
    let found: Option<D> = fetch(tx, sql, account, id).await?;
    if let Some(found) = &found {
        tx.remember(D::KIND, &id.to_string(), || state_of(found));
    }
    Ok(found)
}

async fn fetch<D: Document>(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    id: D::Id,
) -> Result<Option<D>, StoreError> {
    let row: Option<RowOf<D>> = fetch_optional!(conn, sql, account.as_str(), id.to_string())?;
    row.map(read).transpose()
}

/// Those of some ids that are resources of this kind, in no order.
pub async fn find_many<D: Document>(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Vec<D>, StoreError> {
    let (pg, sqlite) = (D::TABLE.pg_find_many, D::TABLE.sqlite_find_many);
    let rows = dialect::fetch_in_list!(conn, RowOf<D>, pg, sqlite, [account.as_str()], ids)?;
    rows.into_iter().map(read).collect()
}

/// A page of a table.
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be read.
pub async fn list<D: Document>(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<D>, StoreError> {
    list_as(conn, &D::TABLE.list, selection).await
}

/// A page of a table in another order, or joined with another one.
pub async fn list_as<D: Document>(
    conn: &mut Conn,
    table: &Table,
    selection: &Selection<'_>,
) -> Result<Page<D>, StoreError> {
    listing::page_of(conn, table, selection, read, |row: &D| row.stamp().position()).await
}

/// Writes a resource that [`find_locked`] gave, changed.
///
/// # Errors
/// [`StoreError::Taken`] when another has its new identifier.
pub async fn update<D: Document>(tx: &mut Tx, account: AccountId, resource: &D) -> Result<(), StoreError> {
    if D::HAS_UNIQUE {
        claim_changed(tx, account, resource).await?;
    }
    let (facets, at) = (facets_of(resource)?, resource.stamp().updated_at);
    on_db!(&mut **tx, |c| {
        let query = sqlx::query(D::TABLE.update);
        bind_row!(query, account, resource, at, facets).execute(c).await.map(|_| ())
    })?;
    if D::TABLE.list.identifiers.is_some() {
        write_identifiers(tx, account, resource).await?;
    }
    let id = resource.id().to_string();
    let before = tx.remembered(D::KIND, &id);
    tx.note(account, (D::KIND, &id), || (before, Some(state_of(resource))));
    Ok(())
}

/// Removes a resource with its identifiers; returns whether it was there. What points at it stays.
pub async fn delete<D: Document>(tx: &mut Tx, account: AccountId, id: D::Id) -> Result<bool, StoreError> {
    // What goes along with another resource was not read before.
    if tx.is_audited() && !tx.has_remembered(D::KIND, &id.to_string()) {
        find_locked::<D>(tx, account, id).await?;
    }
    let id = id.to_string();
    let gone = execute!(&mut **tx, D::TABLE.delete, account.as_str(), &id)? == 1;
    if gone && D::TABLE.list.identifiers.is_some() {
        identifiers::delete(tx, &id).await?;
    }
    if gone && D::HAS_UNIQUE {
        unique_identifiers::release(tx, &id).await?;
    }
    if gone && let Some(quota) = D::QUOTA {
        quotas::release(tx, account, quota, 1);
    }
    if gone {
        let before = tx.remembered(D::KIND, &id);
        tx.note(account, (D::KIND, &id), || (before, None));
    }
    Ok(gone)
}

/// Claims the unique identifier of a resource that is about to be written, if it is a new one.
async fn claim_changed<D: Document>(tx: &mut Tx, account: AccountId, resource: &D) -> Result<(), StoreError> {
    let (id, wanted) = (resource.id().to_string(), resource.unique());
    let name = wanted.as_ref().map(Unique::name);
    let held = unique_identifiers::find_held(tx, &id).await?;
    if held == name {
        return Ok(());
    }
    if held.is_some() {
        unique_identifiers::release(tx, &id).await?;
    } else {
        // A duplicate from before there were claims is kept.
        let stored: Option<D> = find(tx, account, resource.id()).await?;
        if stored.and_then(|stored| stored.unique()).map(|unique| unique.name()) == name {
            return Ok(());
        }
    }
    match wanted {
        Some(wanted) => unique_identifiers::claim(tx, account, &id, &wanted).await,
        None => Ok(()),
    }
}

async fn write_identifiers<D: Document>(
    tx: &mut Tx,
    account: AccountId,
    resource: &D,
) -> Result<(), StoreError> {
    let named = resource.common().identifiers.clone().unwrap_or_default();
    identifiers::replace(tx, account, D::KIND, &resource.id().to_string(), &named).await
}

/// The names of own columns, as the statements list them. Facets are made from the document.
fn own_columns(listed: &'static str) -> impl Iterator<Item = &'static str> {
    listed.split(", ").filter(|name| !name.is_empty() && *name != "facets")
}

/// A URL without its query, where receivers have their tokens.
fn without_query(url: &str) -> String {
    url.split_once('?').map_or_else(|| url.to_owned(), |(path, _)| format!("{path}?…"))
}

/// Members that the audit trail does not keep: where an item was, and what may hold secrets of other services.
const HIDDEN: [&str; 2] = ["location", "socialNetworks"];

/// What the audit trail shows of a resource: its name and its document.
fn state_of<D: Document>(resource: &D) -> Value {
    let mut state = audit::state_of(resource.details());
    if let Value::Object(members) = &mut state {
        for hidden in HIDDEN {
            members.remove(hidden);
        }
        members.insert("name".to_owned(), resource.name().into());
        for (column, value) in own_columns(D::TABLE.own).zip(resource.own()) {
            members.insert(column.strip_suffix("_id").unwrap_or(column).to_owned(), value.into());
        }
        if let Some(Value::String(url)) = members.get_mut("url") {
            *url = without_query(url);
        }
    }
    state
}

fn facets_of<D: Document>(resource: &D) -> Result<Option<Texts>, StoreError> {
    let is_faceted = D::TABLE.list.faceted;
    is_faceted.then(|| facets::of(resource.details(), facets::RESOURCES)).transpose()
}
