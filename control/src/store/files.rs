//! Files, and the blobs that no file has.

use shared::{
    id::{AccountId, FileId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, facets,
    listing::{self, Column, Selection, Table},
    on_db, parse,
};
use crate::domain::{
    file::{Content, File, FileDetails},
    page::Page,
    resource::Stamp,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.blob, t.size_bytes, t.etag, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO files (id, account_id, name, doc, facets, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING seq";
// Signed URLs and content URLs name no account: the id alone leads to the file.
const FIND_ANY: &str = "SELECT t.account_id FROM files t WHERE id = $1";
const FIND: &str = concat!(columns!(), " FROM files t WHERE account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str =
    concat!(columns!(), " FROM files t WHERE account_id = $1 AND id = $2 FOR UPDATE");
const UPDATE: &str = "UPDATE files SET name = $2, doc = $3, facets = $4, blob = $5, size_bytes = $6, etag = $7, \
    updated_at = $8 WHERE id = $1";
const DELETE: &str = "DELETE FROM files WHERE account_id = $1 AND id = $2";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM files t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: None,
    faceted: true,
    itself: "t.id",
};

const NOTE_GARBAGE: &str = "INSERT INTO blob_garbage (blob, due_at) VALUES ($1, $2) \
    ON CONFLICT (blob) DO UPDATE SET due_at = $2";
const FORGET_GARBAGE: &str = "DELETE FROM blob_garbage WHERE blob = $1";
const LIST_GARBAGE: &str = "SELECT blob FROM blob_garbage WHERE due_at <= $1 ORDER BY due_at LIMIT $2";

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    name: String,
    doc: Json<FileDetails>,
    blob: Option<String>,
    size_bytes: Option<i64>,
    etag: Option<String>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for File {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let content = match (row.blob, row.size_bytes, row.etag) {
            (Some(blob), Some(size), Some(etag)) => {
                let size_bytes =
                    u64::try_from(size).map_err(|_| StoreError::Row(format!("size_bytes: {size}")))?;
                Some(Content { blob, size_bytes, etag })
            }
            _ => None,
        };
        Ok(Self {
            id: parse("id", &row.id)?,
            stamp: Stamp {
                seq: row.seq,
                created_at: UnixMillis(row.created_at),
                updated_at: UnixMillis(row.updated_at),
            },
            name: row.name,
            details: row.doc.0,
            content,
        })
    }
}

/// Adds a file without content.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    id: FileId,
    name: String,
    details: FileDetails,
    now: UnixMillis,
) -> Result<File, StoreError> {
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
    let stamp = Stamp { seq, created_at: now, updated_at: now };
    Ok(File { id, stamp, name, details, content: None })
}

/// The account of a file.
///
/// # Errors
/// The database failed.
pub async fn find_account(conn: &mut Conn, id: FileId) -> Result<Option<AccountId>, StoreError> {
    let row: Option<(String,)> =
        on_db!(conn, |c| sqlx::query_as(FIND_ANY).bind(id.as_str()).fetch_optional(c).await)?;
    row.map(|(account,)| parse("account_id", &account)).transpose()
}

/// A file of an account.
///
/// # Errors
/// The database failed.
pub async fn find(conn: &mut Conn, account: AccountId, id: FileId) -> Result<Option<File>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(File::try_from).transpose()
}

/// A file of an account, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(tx: &mut Tx, account: AccountId, id: FileId) -> Result<Option<File>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    let row: Option<Row> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(File::try_from).transpose()
}

/// A page of files.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<File>, StoreError> {
    listing::page::<Row, File>(conn, &LIST, selection, |file| file.stamp.position()).await
}

/// Writes a file that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, file: &File) -> Result<(), StoreError> {
    let facets = facets::of(&file.details, facets::RESOURCES)?;
    let content = file.content.as_ref();
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(file.id.as_str())
        .bind(&file.name)
        .bind(Json(&file.details))
        .bind(&facets)
        .bind(content.map(|content| content.blob.as_str()))
        .bind(content.map(|content| content.size_bytes.cast_signed()))
        .bind(content.map(|content| content.etag.as_str()))
        .bind(file.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Removes a file; its blob stays until it is removed too.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: FileId) -> Result<bool, StoreError> {
    let gone = on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(gone == 1)
}

/// Notes a blob that no file has, or will not have by `due_at` unless [`forget_garbage`] is called.
///
/// # Errors
/// The database failed.
pub async fn note_garbage(tx: &mut Tx, blob: &str, due_at: UnixMillis) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(NOTE_GARBAGE).bind(blob).bind(due_at.0).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// Forgets a blob: a file has it, or it is removed.
///
/// # Errors
/// The database failed.
pub async fn forget_garbage(tx: &mut Tx, blob: &str) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(FORGET_GARBAGE).bind(blob).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// Blobs that no file has and that are due.
///
/// # Errors
/// The database failed.
pub async fn list_garbage(conn: &mut Conn, now: UnixMillis, limit: u32) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String,)> =
        on_db!(conn, |c| sqlx::query_as(LIST_GARBAGE).bind(now.0).bind(i64::from(limit)).fetch_all(c).await)?;
    Ok(rows.into_iter().map(|(blob,)| blob).collect())
}
