//! Opens SQLite files.

use std::path::Path;

use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};

use super::{ACQUIRE_TIMEOUT, Db, STATEMENT_TIMEOUT, StoreError};

impl Db {
    /// Opens (and creates) a SQLite database file; what is committed is on disk.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub async fn open_sqlite(path: &Path) -> Result<Self, StoreError> {
        Self::open_file(path, SqliteAutoVacuum::None).await
    }

    /// [`Self::open_sqlite`] for a file that gives back the space of what is deleted, by `PRAGMA incremental_vacuum`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub async fn open_sqlite_shrinking(path: &Path) -> Result<Self, StoreError> {
        Self::open_file(path, SqliteAutoVacuum::Incremental).await
    }

    async fn open_file(path: &Path, auto_vacuum: SqliteAutoVacuum) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .auto_vacuum(auto_vacuum)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(STATEMENT_TIMEOUT)
            .pragma("cache_size", "-65536")
            .pragma("temp_store", "MEMORY");
        let write = sqlite_pool_options(1).connect_with(options.clone()).await?;
        let read = sqlite_pool_options(8).connect_with(options.pragma("query_only", "ON")).await?;
        Ok(Self::Sqlite { write, read })
    }
}

/// A connection to SQLite is used again only if no transaction is left open on it.
///
/// After some errors (a full disk, a failed write) SQLite ends a transaction by itself, while the client library still
/// counts one: its rollback then fails, and so would every later `BEGIN` on that connection.
fn sqlite_pool_options(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .before_acquire(|conn, _| {
            Box::pin(async move {
                // It is answered after the rollback of a dropped transaction, which was queued before.
                sqlx::Connection::ping(conn).await?;
                let is_sound = !sqlx::Connection::is_in_transaction(conn);
                if !is_sound {
                    tracing::warn!("a connection to SQLite was left in a transaction and is closed");
                }
                Ok(is_sound)
            })
        })
}
