//! Applications of projects.

use shared::{
    id::{AccountId, ApplicationId, ProjectId},
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
    project::{Application, ApplicationDetails},
    resource::Stamp,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.project_id, t.name, t.doc, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO applications (id, account_id, project_id, name, doc, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING seq";
const FIND: &str =
    concat!(columns!(), " FROM applications t WHERE account_id = $1 AND project_id = $2 AND id = $3");
const PG_FIND_LOCKED: &str = concat!(
    columns!(),
    " FROM applications t WHERE account_id = $1 AND project_id = $2 AND id = $3 FOR UPDATE"
);
// What an application makes waits for whoever removes it, and does not hold up each other.
const PG_HOLD: &str = "SELECT id FROM applications WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const HOLD: &str = "SELECT id FROM applications WHERE account_id = $1 AND id = $2";
const UPDATE: &str = "UPDATE applications SET name = $2, doc = $3, updated_at = $4 WHERE id = $1";
const DELETE: &str = "DELETE FROM applications WHERE id = $1";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM applications t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("name", Column::Text("t.name")),
        ("scopes.projects", Column::Text("t.project_id")),
        ("project", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};
const IDS: &str = "SELECT id FROM applications WHERE account_id = $1 AND project_id = $2 ORDER BY seq";

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    project_id: String,
    name: String,
    doc: Json<ApplicationDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for Application {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: parse("id", &row.id)?,
            project: parse("project_id", &row.project_id)?,
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

/// Adds an application; it comes back with its place.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
    id: ApplicationId,
    name: String,
    details: ApplicationDetails,
    now: UnixMillis,
) -> Result<Application, StoreError> {
    let (seq,): (i64,) = on_db!(&mut **tx, |c| sqlx::query_as(INSERT)
        .bind(id.as_str())
        .bind(account.as_str())
        .bind(project.as_str())
        .bind(&name)
        .bind(Json(&details))
        .bind(now.0)
        .fetch_one(c)
        .await)?;
    let stamp = Stamp { seq, created_at: now, updated_at: now };
    Ok(Application { id, project, stamp, name, details })
}

/// An application of a project.
///
/// # Errors
/// The database failed.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    project: ProjectId,
    id: ApplicationId,
) -> Result<Option<Application>, StoreError> {
    fetch(conn, FIND, account, project, id).await
}

/// An application of a project, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
    id: ApplicationId,
) -> Result<Option<Application>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    fetch(tx, sql, account, project, id).await
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    project: ProjectId,
    id: ApplicationId,
) -> Result<Option<Application>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(project.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Application::try_from).transpose()
}

/// Whether an application is there; it stays there until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn hold(tx: &mut Tx, account: AccountId, id: ApplicationId) -> Result<bool, StoreError> {
    let sql = dialect::lock_row(tx, PG_HOLD, HOLD);
    let row: Option<(String,)> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    Ok(row.is_some())
}

/// A page of applications; the path's project is the field `project`.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Application>, StoreError> {
    listing::page::<Row, Application>(conn, &LIST, selection, |row: &Application| row.stamp.position()).await
}

/// The ids of all applications of a project.
///
/// # Errors
/// The database failed.
pub async fn list_ids(
    conn: &mut Conn,
    account: AccountId,
    project: ProjectId,
) -> Result<Vec<ApplicationId>, StoreError> {
    let rows: Vec<(String,)> = on_db!(conn, |c| sqlx::query_as(IDS)
        .bind(account.as_str())
        .bind(project.as_str())
        .fetch_all(c)
        .await)?;
    rows.iter().map(|(id,)| parse("id", id)).collect()
}

/// Writes an application that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, application: &Application) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(application.id.as_str())
        .bind(&application.name)
        .bind(Json(&application.details))
        .bind(application.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Removes an application that is known to be the account's.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, id: ApplicationId) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE).bind(id.as_str()).execute(c).await.map(|_| ()))?;
    Ok(())
}
