//! How large a database gets by scans and by the results of their assessments.

use std::{fs, io::Write, path::PathBuf};

use ::assessment::service::assessment;
use actions::domain::context::Origin;
use anyhow::{Context, Result, bail};
use serde_json::json;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tests::db::Location;

use super::Bench;

/// Scans that are made and assessed.
pub(super) const RESULTS: usize = 5_000;

/// Scans of each item.
const SCANS: usize = 10;

/// Makes scans, assesses each, and says what both took on the disk.
pub(super) async fn measure(bench: &Bench, results: usize, out: &mut impl Write) -> Result<()> {
    let empty = bytes_of(bench).await?;
    let mut items = Vec::new();
    for n in 0..results / SCANS {
        items.push(bench.scanned_as(&format!("size {n}"), SCANS).await?);
    }
    let before = bytes_of(bench).await?;
    for (thng, _) in &items {
        for scan in bench.scans_of(*thng).await? {
            let body = json!({"id": scan});
            let asked = verdicts::domain::assessment::trigger::Asked::parse(&body)
                .map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
            assessment::authenticate(&bench.made.app.assessment, &bench.caller, &asked, Origin::default())
                .await?;
        }
    }
    let after = bytes_of(bench).await?;
    let made = items.len() * SCANS;
    let each = |bytes: u64| bytes as f64 / made.max(1) as f64;
    writeln!(
        out,
        "{made} scans with their items: {:.1} MB, {:.0} bytes each; {made} results: {:.1} MB, {:.0} bytes each",
        (before - empty) as f64 / 1e6,
        each(before - empty),
        (after - before) as f64 / 1e6,
        each(after - before)
    )?;
    Ok(())
}

/// Bytes of the database once its log is written into it.
async fn bytes_of(bench: &Bench) -> Result<u64> {
    let path: PathBuf = match &bench.made.db.location {
        Location::Sqlite(path) => path.clone(),
        Location::Postgres(..) => bail!("the size is measured on SQLite"),
    };
    let mut conn = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await?;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut conn).await?;
    conn.close().await?;
    fs::metadata(&path).map(|file| file.len()).context("the file")
}
