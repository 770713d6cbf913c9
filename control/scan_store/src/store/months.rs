//! The tables of a month: made before the first scan, dropped as a whole.

use kernel::{
    on_db,
    store::{Conn, Ctx, Db, StoreError, Tx},
};
use sqlx::AssertSqlSafe;

use crate::domain::month::Month;

const LIST: &str = "SELECT month FROM scan_months ORDER BY month";
const ADD: &str = "INSERT INTO scan_months (month) VALUES ($1) ON CONFLICT (month) DO NOTHING";
const REMOVE: &str = "DELETE FROM scan_months WHERE month = $1";
/// One process at a time makes or drops a table.
const PG_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('waymark_scan_months_' || current_schema()))";

pub(super) const SQLITE_SCANS: &str = "CREATE TABLE scans (seq INTEGER PRIMARY KEY, created_at BIGINT NOT NULL, \
    timestamp BIGINT NOT NULL, account INTEGER NOT NULL, shape INTEGER NOT NULL, agent INTEGER, place INTEGER, \
    referer INTEGER, language INTEGER, rule INTEGER, key BLOB NOT NULL, thng BLOB, ip BLOB, short_id TEXT, \
    entry TEXT, redirect_url TEXT)";
pub(super) const SQLITE_TEXTS: &str = "CREATE TABLE scan_texts (id INTEGER PRIMARY KEY AUTOINCREMENT, \
    account INTEGER NOT NULL, kind INTEGER NOT NULL, hash TEXT NOT NULL, text TEXT NOT NULL, facets TEXT NOT NULL, \
    UNIQUE (account, kind, hash))";
const SQLITE_INDEXES: [&str; 3] = [
    "CREATE INDEX scans_account ON scans (account, created_at)",
    "CREATE INDEX scans_thng ON scans (thng, created_at) WHERE thng IS NOT NULL",
    "CREATE INDEX scans_timestamp ON scans (timestamp)",
];

/// A statement on the tables of a month.
pub(super) fn of_month(sql: &str, month: Month) -> String {
    let number = month.number();
    let sql = sql.replace("scan_texts ", &format!("scan_texts_{number} "));
    let sql = sql.replace(" scans ", &format!(" scans_{number} "));
    // Names of indexes.
    sql.replace(" scans_account ", &format!(" scans_{number}_account "))
        .replace(" scans_thng ", &format!(" scans_{number}_thng "))
        .replace(" scans_timestamp ", &format!(" scans_{number}_timestamp "))
}

/// The months that have tables, the oldest first.
pub(super) async fn list(conn: &mut Conn) -> Result<Vec<Month>, StoreError> {
    let numbers: Vec<i32> = on_db!(conn, |c| sqlx::query_scalar(LIST).fetch_all(c).await)?;
    Ok(numbers.into_iter().filter_map(Month::stored).collect())
}

/// Makes the tables of a month where they are missing.
pub(super) async fn make(db: &Db, month: Month) -> Result<(), StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    lock(&mut tx).await?;
    if list(&mut tx).await?.contains(&month) {
        return Ok(());
    }
    match db {
        Db::Pg(_) => {
            let (number, from, to) = (month.number(), month.start().0, month.end().0);
            let scans =
                format!("CREATE TABLE scans_{number} PARTITION OF scans FOR VALUES FROM ({from}) TO ({to})");
            execute(&mut tx, scans).await?;
            execute(&mut tx, format!("CREATE TABLE scan_texts_{number} (LIKE scan_texts INCLUDING ALL)"))
                .await?;
        }
        Db::Sqlite { .. } => {
            for sql in [SQLITE_SCANS, SQLITE_TEXTS].into_iter().chain(SQLITE_INDEXES) {
                execute(&mut tx, of_month(sql, month)).await?;
            }
        }
    }
    on_db!(&mut *tx, |c| sqlx::query(ADD).bind(month.number()).execute(c).await.map(|_| ()))?;
    tx.commit().await
}

/// Drops the tables of a month.
pub(super) async fn remove(db: &Db, month: Month) -> Result<(), StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    lock(&mut tx).await?;
    for table in ["scans", "scan_texts"] {
        execute(&mut tx, format!("DROP TABLE IF EXISTS {table}_{}", month.number())).await?;
    }
    on_db!(&mut *tx, |c| sqlx::query(REMOVE).bind(month.number()).execute(c).await.map(|_| ()))?;
    tx.commit().await
}

async fn lock(tx: &mut Tx) -> Result<(), StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_LOCK).execute(&mut **c).await?;
    }
    Ok(())
}

async fn execute(conn: &mut Conn, sql: String) -> Result<(), StoreError> {
    on_db!(conn, |c| sqlx::query(AssertSqlSafe(sql)).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// Whether a statement failed because its month was dropped meanwhile.
pub(super) fn is_gone(error: &StoreError) -> bool {
    let StoreError::Sql(sqlx::Error::Database(error)) = error else { return false };
    error.code().as_deref() == Some("42P01") || error.message().starts_with("no such table: scan")
}
