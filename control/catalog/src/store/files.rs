//! The table of files, and blobs without a file.

use shared::{
    id::{AccountId, FileId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, Raw, StoreError, Tx,
    documents::{Base, Cell, Document, Statements, statements},
    execute, fetch_all, fetch_optional,
    listing::{Column, Table},
    parse,
};
use crate::domain::{
    common::Stamp,
    file::{Content, File},
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.doc, t.blob, t.size_bytes, t.etag, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "files",
    columns!(),
    ", facets, blob, size_bytes, etag",
    ", $6, $7, $8, $9",
    ", facets = $6, blob = $7, size_bytes = $8, etag = $9",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM files t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: None,
    faceted: true,
    itself: "t.id",
};

// Signed URLs and content URLs name no account: the id alone leads to the file.
const FIND_ANY: &str = "SELECT t.account_id, a.suspended_at FROM files t JOIN accounts a ON a.id = t.account_id \
    WHERE t.id = $1";
const NOTE_GARBAGE: &str = "INSERT INTO blob_garbage (blob, due_at) VALUES ($1, $2) \
    ON CONFLICT (blob) DO UPDATE SET due_at = $2";
const PG_NOTE_ALL_GARBAGE: &str = "INSERT INTO blob_garbage (blob, due_at) \
    SELECT blob, $2 FROM UNNEST($1::text[]) AS t (blob) ON CONFLICT (blob) DO UPDATE SET due_at = excluded.due_at";
const SQLITE_NOTE_ALL_GARBAGE: &str = "INSERT INTO blob_garbage (blob, due_at) \
    SELECT value, $2 FROM json_each($1) WHERE true ON CONFLICT (blob) DO UPDATE SET due_at = excluded.due_at";
const FORGET_GARBAGE: &str = "DELETE FROM blob_garbage WHERE blob = $1";
const LIST_GARBAGE: &str = "SELECT blob FROM blob_garbage WHERE due_at <= $1 ORDER BY due_at LIMIT $2";

/// The columns that only files have.
#[derive(sqlx::FromRow)]
pub struct Blob {
    blob: Option<String>,
    size_bytes: Option<i64>,
    etag: Option<String>,
}

impl Document for File {
    type Own = Blob;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: FileId, stamp: Stamp, row: Base<Self>, own: Blob) -> Result<Self, StoreError> {
        let content = match (own.blob, own.size_bytes, own.etag) {
            (Some(blob), Some(size), Some(etag)) => {
                let size_bytes =
                    u64::try_from(size).map_err(|_| StoreError::Row(format!("size_bytes: {size}")))?;
                Some(Content { blob, size_bytes, etag })
            }
            _ => None,
        };
        Ok(Self { id, stamp, name: row.name, details: row.details, content })
    }

    fn own(&self) -> Vec<Cell> {
        let content = self.content.as_ref();
        vec![
            Cell::Text(content.map(|content| content.blob.clone())),
            Cell::Whole(content.map(|content| content.size_bytes.cast_signed())),
            Cell::Text(content.map(|content| content.etag.clone())),
        ]
    }
}

/// Whose a file is.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// The account.
    pub account: AccountId,
    /// Whether it is suspended.
    pub is_suspended: bool,
}

/// Whose a file is.
pub async fn find_owner(conn: &mut Conn, id: FileId) -> Result<Option<Owner>, StoreError> {
    let row: Option<(String, Option<i64>)> = fetch_optional!(conn, FIND_ANY, id.as_str())?;
    let owner = |(account, suspended_at): (String, Option<i64>)| {
        Ok(Owner { account: parse("account_id", &account)?, is_suspended: suspended_at.is_some() })
    };
    row.map(owner).transpose()
}

/// Notes a blob that no file has, or will not have by `due_at` unless [`forget_garbage`] is called.
pub async fn note_garbage(tx: &mut Tx, blob: &str, due_at: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, NOTE_GARBAGE, blob, due_at.0)?;
    Ok(())
}

/// [`note_garbage`] of many blobs, none of which is named twice.
pub async fn note_all_garbage(tx: &mut Tx, blobs: &[String], due_at: UnixMillis) -> Result<(), StoreError> {
    match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(PG_NOTE_ALL_GARBAGE).bind(blobs).bind(due_at.0).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(SQLITE_NOTE_ALL_GARBAGE).bind(Json(blobs)).bind(due_at.0).execute(c).await?;
        }
    }
    Ok(())
}

/// Forgets a blob: a file has it, or it is removed.
pub async fn forget_garbage(tx: &mut Tx, blob: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, FORGET_GARBAGE, blob)?;
    Ok(())
}

/// Blobs that no file has and that are due.
pub async fn list_garbage(conn: &mut Conn, now: UnixMillis, limit: u32) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, LIST_GARBAGE, now.0, i64::from(limit))?;
    Ok(rows.into_iter().map(|(blob,)| blob).collect())
}
