//! A Postgres session that one task keeps.
//!
//! A pool rotates through its sessions: each has to prepare a statement in its own memory, and is tested when it is
//! returned. A task that does one thing all the time avoids both.

use std::time::Instant;

use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use super::{ACQUIRE_TIMEOUT, Db, StoreError, TRUSTED_IDLE, dialect};

/// A session that is kept as long as it works.
#[derive(Debug)]
pub struct Session {
    db: Db,
    kept: Option<(PgConnection, Instant)>,
}

impl Session {
    /// A session of a database that is opened when it is needed.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self { db, kept: None }
    }

    /// The database.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Takes the session, a new one where there is none or it does not answer any more.
    pub async fn take(&mut self) -> Result<PgConnection, StoreError> {
        if let Some((mut kept, used)) = self.kept.take()
            && (used.elapsed() < TRUSTED_IDLE
                || matches!(timeout(ACQUIRE_TIMEOUT, kept.ping()).await, Ok(Ok(()))))
        {
            return Ok(kept);
        }
        match &self.db {
            // The pool has the time limit and the errors of a connection that cannot be had.
            Db::Pg(pool) => Ok(pool.acquire().await?.detach()),
            Db::Sqlite { .. } => Err(dialect::outside_transaction()),
        }
    }

    /// Gives it back for the next time, if it can still be used after this.
    pub fn keep<T>(&mut self, connection: PgConnection, result: &Result<T, sqlx::Error>) {
        let is_sound = match result {
            Ok(_) => true,
            // The statement failed, and not the session; 57P: an administrator ends it.
            Err(sqlx::Error::Database(error)) => !error.code().is_some_and(|code| code.starts_with("57P")),
            Err(_) => false,
        };
        self.kept = is_sound.then(|| (connection, Instant::now()));
    }
}
