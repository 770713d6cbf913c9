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
            .pragma("temp_store", "MEMORY")
            .statement_cache_capacity(super::KEPT_STATEMENTS);
        let write = sqlite_pool_options(1).connect_with(options.clone()).await?;
        // To ask for `auto_vacuum` is a write: a connection that reads would wait for the writer when it is opened.
        let options = options.auto_vacuum(SqliteAutoVacuum::None).pragma("query_only", "ON");
        let read = sqlite_pool_options(8).connect_with(options).await?;
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

#[cfg(test)]
mod tests {
    use futures_util::future::try_join_all;

    use super::*;
    use crate::{on_db, store::Ctx};

    #[tokio::test]
    async fn readers_are_opened_while_somebody_writes() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite_shrinking(&folder.path().join("a.db")).await.unwrap();
        let run = async |tx: &mut crate::store::Tx, sql: &'static str| {
            on_db!(&mut **tx, |c| sqlx::query(sql).execute(c).await.map(|_| ())).unwrap();
        };
        let mut tx = db.begin(&Ctx::default()).await.unwrap();
        run(&mut tx, "CREATE TABLE t (n INTEGER)").await;
        tx.commit().await.unwrap();
        let mut tx = db.begin(&Ctx::default()).await.unwrap();
        run(&mut tx, "INSERT INTO t VALUES (1)").await;
        // All of them at once, so that each is a connection of its own.
        let mut readers = try_join_all((0..8).map(|_| db.read())).await.unwrap();
        for conn in &mut readers {
            let count: i64 =
                on_db!(conn, |c| sqlx::query_scalar("SELECT COUNT(*) FROM t").fetch_one(c).await).unwrap();
            assert_eq!(count, 0);
        }
        tx.commit().await.unwrap();
        let mode: i64 =
            on_db!(&mut readers[0], |c| sqlx::query_scalar("PRAGMA auto_vacuum").fetch_one(c).await).unwrap();
        assert_eq!(mode, 2);
    }
}
