//! What the store may fail with.

use super::passing::is_passing;

/// What the store may fail with.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique constraint was violated; holds its name, or the columns on SQLite.
    #[error("unique: {0}")]
    Unique(String),
    /// Another resource has an identifier that only one may have; a sentence for whoever asked.
    #[error("taken: {0}")]
    Taken(String),
    /// The write would exceed a quota of its account.
    #[error("quota: {0}")]
    Exceeded(crate::domain::quota::Exceeded),
    /// A statement ran longer than allowed.
    #[error("statement timeout")]
    Timeout,
    /// No connection became free in time.
    #[error("no connection became free")]
    Busy,
    /// The database is away, or somebody else holds what this needs: the same may work a moment later.
    #[error("unavailable: {0}")]
    Unavailable(sqlx::Error),
    /// The store is closed.
    #[error("the store is closed")]
    Stopped,
    /// A stored row does not fit its type.
    #[error("row: {0}")]
    Row(String),
    /// The blob store failed.
    #[error("blobs: {0}")]
    Blob(Box<dyn std::error::Error + Send + Sync>),
    /// Anything else the database said.
    #[error(transparent)]
    Sql(sqlx::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => Self::Busy,
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => Self::Stopped,
            sqlx::Error::Database(inner) if inner.is_unique_violation() => {
                Self::Unique(inner.constraint().unwrap_or_else(|| inner.message()).to_owned())
            }
            // query_canceled: statement_timeout of Postgres; SQLITE_INTERRUPT: see `watch`.
            sqlx::Error::Database(inner) if matches!(inner.code().as_deref(), Some("57014" | "9")) => {
                Self::Timeout
            }
            sqlx::Error::Database(inner) if inner.code().is_some_and(|code| is_passing(&code)) => {
                Self::Unavailable(sqlx::Error::Database(inner))
            }
            sqlx::Error::Io(inner) => Self::Unavailable(sqlx::Error::Io(inner)),
            other => Self::Sql(other),
        }
    }
}

impl StoreError {
    /// The error of a blob store.
    pub fn blob(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Blob(Box::new(error))
    }
}
