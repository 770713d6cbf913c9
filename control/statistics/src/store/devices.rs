//! Devices that scanned on a day.

use std::collections::BTreeSet;

use shared::time::UnixMillis;
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect};
use crate::domain::counted_scan::Device;

const PG_ADD: &str = "INSERT INTO scan_devices (day, device) SELECT day, device \
    FROM UNNEST($1::int[], $2::bigint[]) AS t (day, device) ON CONFLICT (day, device) DO NOTHING RETURNING day, device";
const SQLITE_ADD: &str = "INSERT INTO scan_devices (day, device) SELECT value ->> '$[0]', value ->> '$[1]' \
    FROM json_each($1) WHERE TRUE ON CONFLICT (day, device) DO NOTHING RETURNING day, device";
const PURGE: &str = "DELETE FROM scan_devices WHERE (day, device) IN \
    (SELECT day, device FROM scan_devices WHERE day < $1 LIMIT $2)";

/// Adds devices; returns those that were not there. They are written in order, so that two replicas that add the same
/// ones wait for each other and do not lock each other out.
pub async fn add(tx: &mut Tx, devices: &BTreeSet<Device>) -> Result<BTreeSet<Device>, StoreError> {
    if devices.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rows: Vec<(i32, i64)> = match &mut **tx {
        Conn::PgTx(c) => {
            let (days, hashes): (Vec<i32>, Vec<i64>) = devices.iter().map(|one| (one.day, one.hash)).unzip();
            sqlx::query_as(PG_ADD).bind(days).bind(hashes).fetch_all(&mut **c).await?
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<(i32, i64)> = devices.iter().map(|one| (one.day, one.hash)).collect();
            sqlx::query_as(SQLITE_ADD).bind(Json(rows)).fetch_all(&mut **c).await?
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    };
    Ok(rows.into_iter().map(|(day, hash)| Device { day, hash }).collect())
}

/// Removes up to `limit` devices of days before one; returns how many.
pub async fn purge(tx: &mut Tx, before_day: i32, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, UnixMillis(i64::from(before_day)), limit).await
}
