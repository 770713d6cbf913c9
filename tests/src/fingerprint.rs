//! A fingerprint of everything in a database, to prove that an operation changed nothing.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use sqlx::{AssertSqlSafe, Connection};

use crate::db::Location;

/// The rows of each table, in an order of their own.
///
/// # Errors
/// The database cannot be read.
pub async fn fingerprint(location: &Location) -> Result<BTreeMap<String, Vec<String>>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    match location {
        Location::Sqlite(path) => {
            let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
            let names: Vec<(String,)> =
                sqlx::query_as("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
                    .fetch_all(&mut conn)
                    .await?;
            for (table,) in names {
                let (columns,): (String,) = sqlx::query_as(AssertSqlSafe(format!(
                    "SELECT group_concat('quote(\"' || name || '\")', ' || ') FROM pragma_table_info('{table}') \
                     WHERE '{table}' <> 'audit_entries' OR name NOT IN ('number', 'hash')"
                )))
                .fetch_one(&mut conn)
                .await?;
                let sql = format!("SELECT {columns} FROM \"{table}\" ORDER BY 1");
                let rows: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
                tables.insert(table, rows.into_iter().map(|(row,)| row).collect());
            }
            conn.close().await?;
        }
        Location::Postgres(url) => {
            let mut conn = sqlx::PgConnection::connect(url).await?;
            let names: Vec<(String,)> = sqlx::query_as(
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
            )
            .fetch_all(&mut conn)
            .await?;
            for (table,) in names {
                let row =
                    if table == "audit_entries" { "to_jsonb(t) - '{number,hash}'::text[]" } else { "t" };
                let sql = format!("SELECT ({row})::text FROM \"{table}\" t ORDER BY 1");
                let rows: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut conn).await?;
                tables.insert(table, rows.into_iter().map(|(row,)| row).collect());
            }
            conn.close().await?;
        }
    }
    // A process says that it is there, and that it can write, whatever is asked of it.
    tables.remove("replicas");
    tables.remove("write_probes");
    // Entries get their place in the chain of their account in the background.
    tables.remove("audit_chains");
    ensure!(tables.len() > 5, "tables are missing: {:?}", tables.keys());
    // So does the store of scans its days, and makes the tables of coming months.
    for table in ["scan_move", "scan_months", "scan_retention"] {
        tables.remove(table);
    }
    tables.retain(|name, rows| !(name.starts_with("scan") && rows.is_empty()));
    Ok(tables)
}
