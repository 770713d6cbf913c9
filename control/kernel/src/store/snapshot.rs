//! The database as it is at one moment.

use sqlx::SqlSafeStr;

use super::{Conn, Db, StoreError, begin};

impl Db {
    /// A connection that sees the database as it is at its first read, however long it is used; dropped, it ends.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when none becomes free in time.
    pub async fn snapshot(&self) -> Result<Conn, StoreError> {
        Ok(match self {
            Self::Pg(pool) => {
                let statement = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY".into_sql_str();
                Conn::PgTx(begin::begin(pool, Some(statement)).await?)
            }
            // In WAL mode a transaction sees the state at its first read.
            Self::Sqlite { read, .. } => Conn::SqliteTx(read.begin().await?),
        })
    }
}
