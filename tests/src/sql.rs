//! Statements behind a service, of tests that look at its tables or let time go by.

use anyhow::Result;
use kernel::store::Db;
use sqlx::AssertSqlSafe;

/// Runs a statement; gives how many rows it changed.
pub async fn execute(db: &Db, sql: &str) -> Result<u64> {
    let sql = AssertSqlSafe(sql.to_owned());
    Ok(match db {
        Db::Pg(pool) => sqlx::query(sql).execute(pool).await?.rows_affected(),
        Db::Sqlite { write, .. } => sqlx::query(sql).execute(write).await?.rows_affected(),
    })
}

/// Reads a number.
pub async fn count(db: &Db, sql: &str) -> Result<i64> {
    let sql = AssertSqlSafe(sql.to_owned());
    Ok(match db {
        Db::Pg(pool) => sqlx::query_scalar(sql).fetch_one(pool).await?,
        Db::Sqlite { read, .. } => sqlx::query_scalar(sql).fetch_one(read).await?,
    })
}
