//! The tables of a month: made before the first scan, dropped as a whole.

use kernel::{
    execute, on_db,
    store::{Conn, Ctx, Db, StoreError, Tx},
};
use sqlx::AssertSqlSafe;

use crate::domain::month::Month;

const LIST: &str = "SELECT month FROM scan_months ORDER BY month";
const ADD: &str = "INSERT INTO scan_months (month) VALUES ($1) ON CONFLICT (month) DO NOTHING";
const REMOVE: &str = "DELETE FROM scan_months WHERE month = $1";
/// One process at a time makes or drops a table.
const PG_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('waymark_scan_months_' || current_schema()))";

/// Time that a drop waits for whoever reads the tables, such as a dump; it is tried again later.
const PG_PATIENCE: &str = "SET LOCAL lock_timeout = '200ms'";
/// There is no primary key, and a logical replication of deletions needs something in its place.
const PG_IDENTITY: &str = "REPLICA IDENTITY FULL";

pub(super) const SQLITE_SCANS: &str = "CREATE TABLE scans (seq INTEGER PRIMARY KEY, created_at BIGINT NOT NULL, \
    timestamp BIGINT NOT NULL, account INTEGER NOT NULL, shape INTEGER NOT NULL, agent INTEGER, place INTEGER, \
    referer INTEGER, language INTEGER, rule INTEGER, key BLOB NOT NULL, thng BLOB, ip BLOB, short_id TEXT, \
    entry TEXT, redirect_url TEXT)";
pub(super) const SQLITE_TEXTS: &str = "CREATE TABLE scan_texts (id INTEGER PRIMARY KEY AUTOINCREMENT, \
    account INTEGER NOT NULL, last_day INTEGER NOT NULL, kind INTEGER NOT NULL, \
    is_loose BOOLEAN NOT NULL DEFAULT false, hash BLOB NOT NULL, text TEXT NOT NULL, UNIQUE (account, kind, hash))";
pub(super) const SQLITE_FACETS: &str = "CREATE TABLE scan_facets (account INTEGER NOT NULL, facet TEXT NOT NULL, \
    id INTEGER NOT NULL, PRIMARY KEY (account, facet, id)) WITHOUT ROWID";
const SQLITE_INDEXES: [&str; 6] = [
    "CREATE INDEX scans_account ON scans (account, created_at)",
    "CREATE INDEX scans_thng ON scans (thng, created_at) WHERE thng IS NOT NULL",
    "CREATE INDEX scans_link ON scans (account, short_id, created_at) WHERE short_id IS NOT NULL",
    "CREATE INDEX scans_shape ON scans (shape, created_at)",
    "CREATE INDEX scans_timestamp ON scans (timestamp)",
    "CREATE INDEX scan_texts_loose ON scan_texts (account) WHERE is_loose",
];

/// The tables that each month has.
pub(super) const TABLES: [&str; 3] = ["scans", "scan_texts", "scan_facets"];

/// A statement on the tables of a month. Names of indexes begin as those of their tables.
pub(super) fn of_month(sql: &str, month: Month) -> String {
    let number = month.number();
    let mut sql = sql.to_owned();
    // What ends with a space comes second, because it then ends with a sign.
    for end in ["_", " "] {
        for table in TABLES {
            sql = sql.replace(&format!(" {table}{end}"), &format!(" {table}_{number}{end}"));
        }
    }
    sql
}

/// The months that have tables, the oldest first.
pub(super) async fn list(conn: &mut Conn) -> Result<Vec<Month>, StoreError> {
    let numbers: Vec<i32> = on_db!(conn, |c| sqlx::query_scalar(LIST).fetch_all(c).await)?;
    Ok(numbers.into_iter().filter_map(Month::stored).collect())
}

/// Makes the tables of a month where they are missing.
pub(super) async fn make(db: &Db, month: Month) -> Result<(), StoreError> {
    if list(&mut db.read().await?).await?.contains(&month) {
        return Ok(());
    }
    let mut tx = db.begin(&Ctx::default()).await?;
    lock(&mut tx).await?;
    if list(&mut tx).await?.contains(&month) {
        return Ok(());
    }
    match db {
        Db::Pg(_) => {
            for table in TABLES {
                let name = format!("{table}_{}", month.number());
                execute(&mut tx, format!("CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")).await?;
            }
            execute(&mut tx, format!("ALTER TABLE scans_{} {PG_IDENTITY}", month.number())).await?;
        }
        Db::Sqlite { .. } => {
            for sql in [SQLITE_SCANS, SQLITE_TEXTS, SQLITE_FACETS].into_iter().chain(SQLITE_INDEXES) {
                execute(&mut tx, of_month(sql, month)).await?;
            }
        }
    }
    execute!(&mut *tx, ADD, month.number())?;
    tx.commit().await
}

/// Drops the tables of a month; `false` when somebody reads them.
pub(super) async fn remove(db: &Db, month: Month) -> Result<bool, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    lock(&mut tx).await?;
    if let Conn::PgTx(c) = &mut *tx {
        sqlx::query(PG_PATIENCE).execute(&mut **c).await?;
    }
    for table in TABLES {
        match execute(&mut tx, format!("DROP TABLE IF EXISTS {table}_{}", month.number())).await {
            Err(error) if is_locked(&error) => return Ok(false),
            dropped => dropped?,
        }
    }
    execute!(&mut *tx, REMOVE, month.number())?;
    tx.commit().await?;
    Ok(true)
}

async fn lock(tx: &mut Tx) -> Result<(), StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_LOCK).execute(&mut **c).await?;
    }
    Ok(())
}

async fn execute(conn: &mut Conn, sql: String) -> Result<(), StoreError> {
    execute!(conn, AssertSqlSafe(sql))?;
    Ok(())
}

/// Whether a statement failed because its month was dropped meanwhile.
pub(super) fn is_gone(error: &StoreError) -> bool {
    let StoreError::Sql(sqlx::Error::Database(error)) = error else { return false };
    error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table: scan")
}

/// Whether a statement gave up waiting for a lock.
fn is_locked(error: &StoreError) -> bool {
    let StoreError::Unavailable(sqlx::Error::Database(error)) = error else { return false };
    error.code().as_deref() == Some("55P03")
}
