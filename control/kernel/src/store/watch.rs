//! The statement timeout of SQLite, which has none of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Conn, StoreError};

/// Instructions of SQLite's virtual machine between two checks of the clock: a fraction of a millisecond.
const STEPS: i32 = 10_000;

/// Interrupts statements of a SQLite connection that exceed a limit, until dropped; on Postgres the server does.
#[derive(Debug)]
pub struct Watch(Option<Arc<AtomicBool>>);

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn begin(conn: &mut Conn, limit: Duration) -> Result<Self, StoreError> {
        let mut handle = match conn {
            Conn::Pg(_) | Conn::PgTx(_) => return Ok(Self(None)),
            Conn::Sqlite(inner) => inner.lock_handle().await?,
            Conn::SqliteTx(inner) => inner.lock_handle().await?,
        };
        let (ends, watching) = (Instant::now() + limit, Arc::new(AtomicBool::new(true)));
        let seen = watching.clone();
        // It stays on the connection until the next one; statements that are no longer watched continue.
        handle.set_progress_handler(STEPS, move || !seen.load(Ordering::Relaxed) || Instant::now() < ends);
        Ok(Self(Some(watching)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watching) = &self.0 {
            watching.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Db, on_db};

    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    const LONG: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT COUNT(*) FROM n";

    async fn count(conn: &mut Conn, sql: &'static str) -> Result<i64, StoreError> {
        Ok(on_db!(conn, |c| sqlx::query_scalar(sql).fetch_one(c).await)?)
    }

    #[tokio::test]
    async fn only_long_statements_are_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&dir.path().join("a.db")).await.unwrap();
        let mut conn = db.read().await.unwrap();
        let watch = Watch::begin(&mut conn, Duration::from_millis(20)).await.unwrap();
        assert!(matches!(count(&mut conn, ENDLESS).await, Err(StoreError::Timeout)));
        drop(watch);
        // The limit has passed long ago, and no watch is set.
        assert_eq!(count(&mut conn, LONG).await.unwrap(), 300_000);
        let _watch = Watch::begin(&mut conn, Duration::from_secs(600)).await.unwrap();
        assert_eq!(count(&mut conn, LONG).await.unwrap(), 300_000);
    }
}
