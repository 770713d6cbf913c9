//! The database as it is at one moment.

use super::{Conn, Db, StoreError};

impl Db {
    /// A connection that sees the database as it is at its first read, however long it is used; dropped, it ends.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when none becomes free in time.
    pub async fn snapshot(&self) -> Result<Conn, StoreError> {
        Ok(match self {
            Self::Pg(pool) => {
                let pool = pool.clone();
                let begin =
                    async move { pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await };
                // In a task of its own, as in `Db::begin`.
                Conn::PgTx(tokio::spawn(begin).await.map_err(|_| StoreError::Stopped)??)
            }
            // In WAL mode a transaction sees the state at its first read.
            Self::Sqlite { read, .. } => Conn::SqliteTx(read.begin().await?),
        })
    }
}
