//! The store: SQLite or Postgres, one SQL text for both.
//!
//! Statements are constants that run on both engines; the few that cannot stand side by side in
//! [`dialect`]. Every function takes a [`Conn`], be it a pooled connection or the inside of a [`Tx`].

use std::{
    ops::{Deref, DerefMut},
    str::FromStr,
    time::Duration,
};

use shared::time::UnixMillis;
use sqlx::{
    PgConnection, PgPool, Postgres, Sqlite, SqliteConnection, SqlitePool,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

pub mod audit;
pub mod backup;
mod begin;
pub mod claim;
pub mod conditions;
pub mod ctx;
pub mod database;
pub mod dialect;
pub mod documents;
mod error;
pub mod event_log;
pub mod events;
pub mod facets;
pub mod idempotency;
pub mod identifiers;
pub mod keys;
pub mod lease;
pub mod listing;
mod passing;
pub mod pool;
pub mod quota_holders;
pub mod quotas;
pub mod schema;
pub mod session;
mod snapshot;
mod sqlite_file;
pub mod standing;
pub mod texts;
pub mod unique_identifiers;
pub mod watch;
pub mod write_probe;

pub use self::error::StoreError;
pub use self::{ctx::Ctx, pool::PoolState, schema::SchemaError};

/// Longest run of a statement.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest pause within a transaction: a replica that sleeps in the middle of one holds up nobody for longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest wait for a connection: past it the service says that it is busy.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections of a process to Postgres for what is asked of it.
const CONNECTIONS: u32 = 16;

/// How long an idle connection is taken to be alive; past it a request asks before it uses one.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// Reads a stored id (or other parsed text) back; a text that does not parse is a broken row.
pub fn parse<T: FromStr>(column: &str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Row(format!("{column}: {text:?}")))
}

/// An open database.
#[derive(Debug, Clone)]
pub enum Db {
    /// Postgres.
    Pg(PgPool),
    /// SQLite in write-ahead mode: one writer, many readers.
    Sqlite {
        /// The one connection that writes.
        write: SqlitePool,
        /// Connections that read.
        read: SqlitePool,
    },
}

/// A connection or transaction of either engine; what store functions take.
#[derive(Debug)]
pub enum Conn {
    /// A pooled Postgres connection.
    Pg(PoolConnection<Postgres>),
    /// A Postgres transaction.
    PgTx(sqlx::Transaction<'static, Postgres>),
    /// A pooled SQLite connection.
    Sqlite(PoolConnection<Sqlite>),
    /// A SQLite transaction.
    SqliteTx(sqlx::Transaction<'static, Sqlite>),
}

/// The connection inside a [`Conn`], of either engine.
pub enum Raw<'c> {
    /// Postgres.
    Pg(&'c mut PgConnection),
    /// SQLite.
    Sqlite(&'c mut SqliteConnection),
}

impl Conn {
    /// The connection of its engine.
    pub fn raw(&mut self) -> Raw<'_> {
        match self {
            Self::Pg(inner) => Raw::Pg(inner),
            Self::PgTx(inner) => Raw::Pg(inner),
            Self::Sqlite(inner) => Raw::Sqlite(inner),
            Self::SqliteTx(inner) => Raw::Sqlite(inner),
        }
    }
}

/// Runs the same body for the connection of either engine.
#[macro_export]
macro_rules! on_db {
    ($conn:expr, |$c:ident| $body:expr) => {{
        let conn: &mut $crate::store::Conn = $conn;
        match conn.raw() {
            $crate::store::Raw::Pg($c) => $body,
            $crate::store::Raw::Sqlite($c) => $body,
        }
    }};
}
pub use on_db;

/// Executes a statement with the values of its placeholders, in their order; gives how many rows it changed.
#[macro_export]
macro_rules! execute {
    ($conn:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $crate::on_db!($conn, |c| sqlx::query($sql)$(.bind($value))*
            .execute(c)
            .await
            .map(|done| done.rows_affected()))
    };
}
pub use execute;

/// Fetches the one row of a statement with the values of its placeholders, in their order.
#[macro_export]
macro_rules! fetch_one {
    ($conn:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $crate::on_db!($conn, |c| sqlx::query_as($sql)$(.bind($value))*.fetch_one(c).await)
    };
}
pub use fetch_one;

/// [`fetch_one`] where there may be none.
#[macro_export]
macro_rules! fetch_optional {
    ($conn:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $crate::on_db!($conn, |c| sqlx::query_as($sql)$(.bind($value))*.fetch_optional(c).await)
    };
}
pub use fetch_optional;

/// [`fetch_one`] for every row.
#[macro_export]
macro_rules! fetch_all {
    ($conn:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        $crate::on_db!($conn, |c| sqlx::query_as($sql)$(.bind($value))*.fetch_all(c).await)
    };
}
pub use fetch_all;

/// A write transaction; dropped without [`Tx::commit`] it is rolled back.
#[derive(Debug)]
pub struct Tx {
    conn: Conn,
    ctx: Ctx,
    notes: audit::Notes,
    quotas: quotas::Seen,
}

impl Tx {
    /// What it belongs to.
    #[must_use]
    pub const fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// What it does from here on belongs to another request; returns the one before.
    pub const fn set_ctx(&mut self, ctx: Ctx) -> Ctx {
        std::mem::replace(&mut self.ctx, ctx)
    }

    /// Makes the transaction's effects permanent, together with the claim of its request.
    ///
    /// # Errors
    /// The database refused, or the claim is lost; nothing was written.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        quotas::settle(&mut self).await?;
        let entries = self.notes.take();
        if !entries.is_empty() {
            audit::insert(&mut self, &entries).await?;
        }
        if let Some(claim) = self.ctx.claim() {
            claim.write(&mut self).await?;
        }
        match self.conn {
            Conn::PgTx(tx) => tx.commit().await?,
            Conn::SqliteTx(tx) => tx.commit().await?,
            Conn::Pg(_) | Conn::Sqlite(_) => {}
        }
        Ok(())
    }

    /// Marks a point to which [`Tx::rollback_to_savepoint`] returns.
    pub async fn savepoint(&mut self) -> Result<(), StoreError> {
        self.notes.mark();
        self.quotas.mark();
        self.execute("SAVEPOINT item").await
    }

    /// Forgets the savepoint and keeps what was done since.
    pub async fn release_savepoint(&mut self) -> Result<(), StoreError> {
        self.notes.release();
        self.quotas.release();
        self.execute("RELEASE SAVEPOINT item").await
    }

    /// Undoes what was done since the savepoint, and forgets it.
    pub async fn rollback_to_savepoint(&mut self) -> Result<(), StoreError> {
        self.notes.rewind();
        self.quotas.rewind();
        self.execute("ROLLBACK TO SAVEPOINT item").await?;
        self.release_savepoint().await
    }

    /// Runs a statement that deletes up to `limit` rows from before a time; returns how many.
    pub async fn purge(
        &mut self,
        sql: &'static str,
        before: UnixMillis,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let done = execute!(&mut self.conn, sql, before.0, i64::from(limit));
        Ok(done?)
    }

    async fn execute(&mut self, sql: &'static str) -> Result<(), StoreError> {
        execute!(&mut self.conn, sql)?;
        Ok(())
    }
}

impl Deref for Tx {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

fn pool_options(connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        // Each was asked when it came back; only one that lay idle since may be gone.
        .test_before_acquire(false)
        .before_acquire(|conn, state| {
            Box::pin(async move {
                if state.idle_for > TRUSTED_IDLE {
                    sqlx::Connection::ping(conn).await?;
                }
                Ok(true)
            })
        })
        .acquire_timeout(ACQUIRE_TIMEOUT)
}

impl Db {
    /// Connects to Postgres.
    ///
    /// # Errors
    /// The URL is wrong or nothing answers.
    pub async fn connect_postgres(url: &str) -> Result<Self, StoreError> {
        let [timeout_ms, idle_ms] =
            [STATEMENT_TIMEOUT, IDLE_TIMEOUT].map(|timeout| timeout.as_millis().to_string());
        let options = PgConnectOptions::from_str(url)?.options([
            ("statement_timeout", timeout_ms.as_str()),
            ("idle_in_transaction_session_timeout", idle_ms.as_str()),
            // Statements here take less time than compiling them, however badly their rows are guessed.
            ("jit", "off"),
        ]);
        let pool = pool_options(CONNECTIONS).connect_with(options).await?;
        Ok(Self::Pg(pool))
    }

    /// The same database over connections of its own, at most so many, opened when they are needed; SQLite's
    /// are one process's own anyhow. Needs a runtime.
    #[must_use]
    pub fn with_own_pool(&self, connections: u32) -> Self {
        match self {
            Self::Pg(pool) => {
                let options = PgConnectOptions::clone(&pool.connect_options());
                Self::Pg(pool_options(connections).connect_lazy_with(options))
            }
            Self::Sqlite { .. } => self.clone(),
        }
    }

    /// Tries once whether Postgres answers at a URL.
    ///
    /// # Errors
    /// [`StoreError::Busy`] and [`StoreError::Unavailable`] where it may a moment later.
    pub async fn probe_postgres(url: &str) -> Result<(), StoreError> {
        let options = PgConnectOptions::from_str(url)?;
        let connect = sqlx::ConnectOptions::connect(&options);
        let connected = tokio::time::timeout(STATEMENT_TIMEOUT, connect).await;
        let conn = connected.map_err(|_| StoreError::Busy)??;
        // It answered, however the parting goes.
        let _ = sqlx::Connection::close(conn).await;
        Ok(())
    }

    /// A connection for reads.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when none becomes free in time.
    pub async fn read(&self) -> Result<Conn, StoreError> {
        Ok(match self {
            Self::Pg(pool) => Conn::Pg(pool.acquire().await?),
            Self::Sqlite { read, .. } => Conn::Sqlite(read.acquire().await?),
        })
    }

    /// Begins a write transaction of a request; on SQLite it holds the one writer from here on.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when the writer or a connection does not become free in time.
    pub async fn begin(&self, ctx: &Ctx) -> Result<Tx, StoreError> {
        let conn = match self {
            Self::Pg(pool) => Conn::PgTx(begin::begin(pool, None).await?),
            Self::Sqlite { write, .. } => Conn::SqliteTx(write.begin_with("BEGIN IMMEDIATE").await?),
        };
        let (notes, quotas) = (audit::Notes::default(), quotas::Seen::default());
        Ok(Tx { conn, ctx: ctx.clone(), notes, quotas })
    }

    /// Waits for running statements and closes every connection.
    pub async fn close(&self) {
        match self {
            Self::Pg(pool) => pool.close().await,
            Self::Sqlite { write, read } => {
                read.close().await;
                write.close().await;
            }
        }
    }
}
