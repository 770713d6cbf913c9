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
                Conn::PgTx(pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
            // In WAL mode a transaction sees the state at its first read.
            Self::Sqlite { read, .. } => Conn::SqliteTx(read.begin().await?),
        })
    }
}
