//! Counts of requests for unknown ids, which name the networks of clients.

use kernel::{
    execute, on_db,
    store::{Conn, StoreError, Tx},
};
use shared::id::AccountId;

const NEXT: &str = "SELECT MIN(hour) FROM unknown_scans WHERE account_id = $1 AND hour >= $2 AND hour < $3";
const LIST: &str = "SELECT DISTINCT network FROM unknown_scans WHERE account_id = $1 AND hour >= $2 AND hour < $3 ORDER BY network";
const DELETE: &str =
    "DELETE FROM unknown_scans WHERE account_id = $1 AND hour >= $2 AND hour < $3 AND network = $4";

/// The first hour since 1970 with a count, of those from one to before another.
pub async fn find_next(
    conn: &mut Conn,
    account: AccountId,
    from: i32,
    to: i32,
) -> Result<Option<i32>, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(NEXT)
        .bind(account.as_str())
        .bind(from)
        .bind(to)
        .fetch_one(c)
        .await)?)
}

/// The networks of some hours.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    from: i32,
    to: i32,
) -> Result<Vec<String>, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(LIST)
        .bind(account.as_str())
        .bind(from)
        .bind(to)
        .fetch_all(c)
        .await)?)
}

/// Removes the counts of a network; returns how many there were.
pub async fn delete(
    tx: &mut Tx,
    account: AccountId,
    (from, to): (i32, i32),
    network: &str,
) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, DELETE, account.as_str(), from, to, network)?)
}
