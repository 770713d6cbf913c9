//! Projects.

use shared::{
    id::{AccountId, ProjectId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect,
    listing::{self, Column, Selection, Table},
    on_db, parse,
};
use crate::domain::{
    page::Page,
    project::{Project, ProjectDetails},
    resource::Stamp,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO projects (id, account_id, name, doc, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $5) RETURNING seq";
const FIND: &str = concat!(columns!(), " FROM projects t WHERE account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str =
    concat!(columns!(), " FROM projects t WHERE account_id = $1 AND id = $2 FOR UPDATE");
// What is made in a project waits for whoever removes it, and does not hold up each other.
const PG_HOLD: &str = "SELECT id FROM projects WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const HOLD: &str = "SELECT id FROM projects WHERE account_id = $1 AND id = $2";
const UPDATE: &str = "UPDATE projects SET name = $2, doc = $3, updated_at = $4 WHERE id = $1";
const DELETE: &str = "DELETE FROM projects WHERE account_id = $1 AND id = $2";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM projects t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name")), ("scopes.projects", Column::Text("t.id"))],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    name: String,
    doc: Json<ProjectDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Project {
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

/// Adds a project; it comes back with its place.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    id: ProjectId,
    name: String,
    details: ProjectDetails,
    now: UnixMillis,
) -> Result<Project, StoreError> {
    let (seq,): (i64,) = on_db!(&mut **tx, |c| sqlx::query_as(INSERT)
        .bind(id.as_str())
        .bind(account.as_str())
        .bind(&name)
        .bind(Json(&details))
        .bind(now.0)
        .fetch_one(c)
        .await)?;
    Ok(Project { id, stamp: Stamp { seq, created_at: now, updated_at: now }, name, details })
}

/// A project of an account.
///
/// # Errors
/// The database failed.
pub async fn find(conn: &mut Conn, account: AccountId, id: ProjectId) -> Result<Option<Project>, StoreError> {
    fetch(conn, FIND, account, id).await
}

/// A project of an account, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    id: ProjectId,
) -> Result<Option<Project>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    fetch(tx, sql, account, id).await
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    id: ProjectId,
) -> Result<Option<Project>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Project::try_from).transpose()
}

/// Whether a project is there; it stays there until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn hold(tx: &mut Tx, account: AccountId, id: ProjectId) -> Result<bool, StoreError> {
    let sql = dialect::lock_row(tx, PG_HOLD, HOLD);
    let row: Option<(String,)> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    Ok(row.is_some())
}

/// A page of projects.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Project>, StoreError> {
    listing::page::<Row, Project>(conn, &LIST, selection, |row: &Project| row.stamp.position()).await
}

/// Writes a project that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, project: &Project) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(project.id.as_str())
        .bind(&project.name)
        .bind(Json(&project.details))
        .bind(project.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Removes a project; gives whether it was there.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: ProjectId) -> Result<bool, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?
        == 1)
}
