//! Usage of the connection pools, for metrics.

use sqlx::{Database, Pool};

use super::Db;

/// One pool of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolState {
    /// `all` on Postgres, `write` and `read` on SQLite.
    pub name: &'static str,
    /// Connections that are open.
    pub open: u32,
    /// Open connections that are not in use.
    pub idle: u32,
    /// Most connections that may be open.
    pub most: u32,
}

impl PoolState {
    fn of<DB: Database>(name: &'static str, pool: &Pool<DB>) -> Self {
        let open = pool.size();
        let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX).min(open);
        Self { name, open, idle, most: pool.options().get_max_connections() }
    }
}

impl Db {
    /// The pools, without asking the database.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolState> {
        match self {
            Self::Pg(pool) => vec![PoolState::of("all", pool)],
            Self::Sqlite { write, read } => vec![PoolState::of("write", write), PoolState::of("read", read)],
        }
    }
}
