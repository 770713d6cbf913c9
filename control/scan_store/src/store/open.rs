//! Opens the store that belongs to a database.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use kernel::{
    on_db,
    store::{
        Conn, Ctx, Db, StoreError,
        backup::{self, BackupError},
    },
};

use super::sql_scans::SqlScans;
use crate::Scans;

/// Connections to Postgres beside those of the database, for [`Scans::nested`]: one to read while the other waits.
const CONNECTIONS: u32 = 2;

const MONTHS: &str = "SELECT COUNT(*) FROM scan_months";

/// The version of the file's schema, in its header.
const VERSION: i64 = 1;

/// The place of the first scan: [`crate::FIRST_SEQ`].
const SQLITE_COUNTER: &str = "INSERT INTO scan_counter (id, next_seq) VALUES (1, 281474976710656)";

// On Postgres these are in the migrations of the database. `scans` and `scan_texts` stay empty: they are the pattern of
// the tables of each month.
const SQLITE_SCHEMA: [&str; 7] = [
    "CREATE TABLE scan_accounts (id INTEGER PRIMARY KEY AUTOINCREMENT, account_id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE scan_intake (edge_id TEXT NOT NULL, boot BIGINT NOT NULL, next_seq BIGINT NOT NULL, \
     PRIMARY KEY (edge_id, boot)) WITHOUT ROWID",
    "CREATE TABLE scan_months (month INTEGER PRIMARY KEY)",
    "CREATE TABLE scan_counter (id INTEGER PRIMARY KEY CHECK (id = 1), next_seq BIGINT NOT NULL)",
    SQLITE_COUNTER,
    super::months::SQLITE_SCANS,
    super::months::SQLITE_TEXTS,
];

/// The file beside a SQLite database.
#[must_use]
pub fn file_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(".scans");
    path.into()
}

/// The store of a database whose schema is up to date; on SQLite its file is made where it is missing.
///
/// # Errors
/// The file cannot be used.
pub async fn open(db: &Db) -> Result<Scans, StoreError> {
    let [alone, nested] = match db {
        Db::Pg(_) => [db.clone(), db.with_own_pool(CONNECTIONS)].map(SqlScans::new),
        Db::Sqlite { write, .. } => {
            let file = open_file(&file_of(write.connect_options().get_filename())).await?;
            [file.clone(), file].map(SqlScans::new)
        }
    };
    Ok(Scans { alone: Arc::new(alone), nested: Arc::new(nested) })
}

/// Verifies every page and index of a copy of the file; gives its size.
///
/// # Errors
/// It is damaged, or no file of scans.
pub async fn check(file: &Path) -> Result<u64, BackupError> {
    let (bytes, [_months]) = backup::check_file(file, [MONTHS]).await?;
    Ok(bytes)
}

async fn open_file(path: &Path) -> Result<Db, StoreError> {
    // SQLite gives its other files the mode of this one.
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::Unavailable(error.into()))?;
    let db = Db::open_sqlite_shrinking(path).await?;
    if version(&mut db.read().await?).await? == VERSION {
        return Ok(db);
    }
    let mut tx = db.begin(&Ctx::default()).await?;
    let version = version(&mut tx).await?;
    if version > VERSION {
        let fault = format!("{} is of a newer release: it has the version {version}", path.display());
        return Err(StoreError::Row(fault));
    }
    if version < VERSION {
        for sql in SQLITE_SCHEMA {
            execute(&mut tx, sql).await?;
        }
        execute(&mut tx, "PRAGMA user_version = 1").await?;
        tx.commit().await?;
    }
    Ok(db)
}

async fn version(conn: &mut Conn) -> Result<i64, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar("PRAGMA user_version").fetch_one(c).await)?)
}

async fn execute(conn: &mut Conn, sql: &'static str) -> Result<(), StoreError> {
    on_db!(conn, |c| sqlx::query(sql).execute(c).await.map(|_| ()))?;
    Ok(())
}
