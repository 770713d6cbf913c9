//! Opens the store that belongs to a database.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use kernel::{
    execute, on_db,
    store::{
        Conn, Ctx, Db, StoreError,
        backup::{self, BackupError},
    },
};

use shared::id::AccountId;

use super::{clickhouse::ClickHouseScans, months::is_gone, sql_scans::SqlScans};
use crate::{ScanStore as _, Scans, domain::scan_server::ScanServer};

/// Connections to Postgres beside those of the database, for [`Scans::reserved`]: one to read while the other waits.
const CONNECTIONS: u32 = 2;

/// Connections to Postgres for batches that ClickHouse stores: each is held while it does.
const BATCH_CONNECTIONS: u32 = 4;

const MONTHS: &str = "SELECT COUNT(*) FROM scan_months";

/// The version of the file's schema, in its header.
const VERSION: i64 = 1;

const USER_VERSION: &str = "PRAGMA user_version";
const AUTO_VACUUM: &str = "PRAGMA auto_vacuum";

/// What gives the space of dropped months back.
const INCREMENTAL: i64 = 2;

/// The position of the first scan: [`crate::FIRST_SEQ`].
const SQLITE_COUNTER: &str = "INSERT INTO scan_counter (id, next_seq) VALUES (1, 281474976710656)";

// On Postgres these are in the migrations of the database. `scans`, `scan_texts` and `scan_facets` stay empty: they
// are the pattern of the tables of each month.
const SQLITE_SCHEMA: [&str; 9] = [
    "CREATE TABLE scan_accounts (id INTEGER PRIMARY KEY AUTOINCREMENT, account_id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE scan_intake (edge_id TEXT NOT NULL, boot BIGINT NOT NULL, next_seq BIGINT NOT NULL, \
     PRIMARY KEY (edge_id, boot)) WITHOUT ROWID",
    "CREATE TABLE scan_months (month INTEGER PRIMARY KEY)",
    "CREATE TABLE scan_counter (id INTEGER PRIMARY KEY CHECK (id = 1), next_seq BIGINT NOT NULL)",
    SQLITE_COUNTER,
    super::months::SQLITE_SCANS,
    super::months::SQLITE_TEXTS,
    super::months::SQLITE_FACETS,
    "CREATE TABLE scan_retention (id INTEGER PRIMARY KEY CHECK (id = 1), day INTEGER NOT NULL)",
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
    let file = match db {
        Db::Pg(_) => None,
        Db::Sqlite { write, .. } => Some(open_file(&file_of(write.connect_options().get_filename())).await?),
    };
    Ok(scans_in(db, file))
}

/// The store of a database, for commands that read it: they make no file, which would be that of another user.
///
/// # Errors
/// The store is not there, because this release has not started on the database.
pub async fn open_existing(db: &Db) -> Result<Scans, StoreError> {
    let file = match db {
        Db::Pg(_) => None,
        Db::Sqlite { write, .. } => {
            let path = file_of(write.connect_options().get_filename());
            if !path.is_file() {
                return Err(StoreError::Row(format!(
                    "{} is not there: start this release first",
                    path.display()
                )));
            }
            Some(Db::open_sqlite_shrinking(&path).await?)
        }
    };
    let mut conn = file.as_ref().unwrap_or(db).read().await?;
    let months: Result<i64, sqlx::Error> =
        on_db!(&mut conn, |c| sqlx::query_scalar(MONTHS).fetch_one(c).await);
    match months.map_err(StoreError::from) {
        Err(error) if is_gone(&error) => {
            Err(StoreError::Row("it has no store of scans: start this release first".to_owned()))
        }
        Err(error) => Err(error),
        Ok(_) => Ok(scans_in(db, file)),
    }
}

/// The store of a database, or the server of scans that is set beside it.
///
/// # Errors
/// The file or the server cannot be used.
pub async fn open_in(db: &Db, server: Option<ScanServer>) -> Result<Scans, StoreError> {
    match server {
        None => open(db).await,
        Some(server) => connect(db, server).await,
    }
}

/// The same for commands that read it, as [`open_existing`].
///
/// # Errors
/// The store is not there, or the server cannot be used.
pub async fn open_existing_in(db: &Db, server: Option<ScanServer>) -> Result<Scans, StoreError> {
    let existing = open_existing(db).await?;
    match server {
        None => Ok(existing),
        Some(server) => {
            existing.reserved.close().await;
            connect(db, server).await
        }
    }
}

async fn connect(db: &Db, server: ScanServer) -> Result<Scans, StoreError> {
    // No read waits for a connection of the database, so that one store does for both kinds of callers.
    let cursors = cursors_of(db).await?;
    let scans = Arc::new(ClickHouseScans::open(server, cursors, BATCH_CONNECTIONS as usize).await?);
    Ok(Scans { pool: scans.clone(), reserved: scans })
}

/// Moves the scans of a database to a server, and removes them here; `says` hears of each account and its scans. Nobody may
/// store scans meanwhile.
///
/// # Errors
/// The server cannot be used, or a scan cannot be moved: then none was removed. It may be begun again.
pub async fn move_scans(
    db: &Db,
    server: ScanServer,
    says: impl FnMut(AccountId, u64),
) -> Result<(), StoreError> {
    let cursors = cursors_of(db).await?;
    let scans = ClickHouseScans::connect(server, cursors, BATCH_CONNECTIONS as usize).await?;
    let moved = scans.move_in(says).await;
    scans.close().await;
    moved
}

/// The database of the cursors, with connections of its own.
async fn cursors_of(db: &Db) -> Result<Db, StoreError> {
    match db {
        Db::Pg(_) => Ok(db.with_own_pool(BATCH_CONNECTIONS)),
        Db::Sqlite { write, .. } => open_file(&file_of(write.connect_options().get_filename())).await,
    }
}

fn scans_in(db: &Db, file: Option<Db>) -> Scans {
    let [pool, reserved] = match file {
        None => [db.clone(), db.with_own_pool(CONNECTIONS)].map(SqlScans::new),
        Some(file) => [file.clone(), file].map(SqlScans::new),
    };
    Scans { pool: Arc::new(pool), reserved: Arc::new(reserved) }
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
    if number(&mut db.read().await?, AUTO_VACUUM).await? != INCREMENTAL {
        tracing::warn!(path = %path.display(), "the file does not shrink: it was copied without auto_vacuum");
    }
    if number(&mut db.read().await?, USER_VERSION).await? == VERSION {
        return Ok(db);
    }
    let mut tx = db.begin(&Ctx::default()).await?;
    let version = number(&mut tx, USER_VERSION).await?;
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

async fn number(conn: &mut Conn, pragma: &'static str) -> Result<i64, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(pragma).fetch_one(c).await)?)
}

async fn execute(conn: &mut Conn, sql: &'static str) -> Result<(), StoreError> {
    execute!(conn, sql)?;
    Ok(())
}
