//! A fingerprint of everything in a database, to prove that an operation changed nothing.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use sqlx::{AssertSqlSafe, Connection};

use crate::db::Location;

/// What an entry of the audit trail says, wherever it is.
const AUDIT_COLUMNS: &str = "account_id, at, actor_kind, actor_id, key_id, network, request_id, operation, resource, \
    resource_id, before, after";

/// The rows of each table, in an order of their own.
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
                let omitted = background_columns(&table).join("', '");
                let (columns,): (String,) = match table.as_str() {
                    "audit_entries" => (format!("json_array({AUDIT_COLUMNS})"),),
                    "audit_queue" => ("json(entry)".to_owned(),),
                    _ => {
                        sqlx::query_as(AssertSqlSafe(format!(
                            "SELECT group_concat('quote(\"' || name || '\")', ' || ') \
                             FROM pragma_table_info('{table}') WHERE name NOT IN ('{omitted}')"
                        )))
                        .fetch_one(&mut conn)
                        .await?
                    }
                };
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
                let row = match (table.as_str(), background_columns(&table)) {
                    ("audit_entries", _) => format!("jsonb_build_array({AUDIT_COLUMNS})"),
                    ("audit_queue", _) => "entry::jsonb".to_owned(),
                    (_, []) => "t".to_owned(),
                    (_, omitted) => format!("to_jsonb(t) - '{{{}}}'::text[]", omitted.join(",")),
                };
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
    // Entries get their place in the chain of their account in the background, or when they are asked for.
    tables.remove("audit_chains");
    let waiting = tables.remove("audit_queue").unwrap_or_default();
    let entries = tables.entry("audit_entries".to_owned()).or_default();
    entries.extend(waiting);
    entries.sort_unstable();
    if let Some(rows) = tables.get_mut("sqlite_sequence") {
        rows.retain(|row| !row.starts_with("'audit_entries'"));
    }
    ensure!(tables.len() > 5, "tables are missing: {:?}", tables.keys());
    // So does the store of scans its days, and makes the tables of coming months.
    for table in ["scan_move", "scan_months", "scan_retention"] {
        tables.remove(table);
    }
    tables.retain(|name, rows| !(name.starts_with("scan") && rows.is_empty()));
    Ok(tables)
}

/// Columns that background work sets, whatever is asked: when it does is nobody's choice.
fn background_columns(table: &str) -> &'static [&'static str] {
    match table {
        "api_keys" => &["last_used_at"],
        _ => &[],
    }
}
