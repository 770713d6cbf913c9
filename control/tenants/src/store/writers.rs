//! Transactions that write: whoever changes what others decide by waits for those that may have read what was before.
//!
//! On Postgres they are those of this database alone. A snapshot names the transactions of every database of the server,
//! for which nobody here has to wait.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Conn, Db, Raw, StoreError};

// Whoever may connect sees these columns, of the sessions of others too.
const PG_WRITERS: &str = "SELECT backend_xid::text FROM pg_stat_activity \
    WHERE datname = current_database() AND backend_xid IS NOT NULL";
const PG_STILL: &str = "SELECT COUNT(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND backend_xid::text = ANY($1)";

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until every transaction of this database that had begun to write is over; `false`: some still run after so long.
pub async fn wait_for_all(db: &Db, most: Duration) -> Result<bool, StoreError> {
    let begun = Instant::now();
    let writers = list_writers(&mut db.read().await?).await?;
    while !writers.is_empty() && still_run(&mut db.read().await?, &writers).await? {
        if begun.elapsed() >= most {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
    Ok(true)
}

/// The transactions that write now; none on SQLite, where whoever begins to write has waited for the one before.
async fn list_writers(conn: &mut Conn) -> Result<Vec<String>, StoreError> {
    match conn.raw() {
        Raw::Pg(c) => Ok(sqlx::query_scalar(PG_WRITERS).fetch_all(c).await?),
        Raw::Sqlite(_) => Ok(Vec::new()),
    }
}

async fn still_run(conn: &mut Conn, writers: &[String]) -> Result<bool, StoreError> {
    let count: i64 = match conn.raw() {
        Raw::Pg(c) => sqlx::query_scalar(PG_STILL).bind(writers).fetch_one(c).await?,
        Raw::Sqlite(_) => 0,
    };
    Ok(count > 0)
}
