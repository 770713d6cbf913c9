//! Responses to requests with an `Idempotency-Key`, kept for a day.

use serde_json::Value;
use shared::id::AccountId;
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, execute, fetch_optional};
use crate::domain::access::{Actor, ActorKind};

/// How long an answer is kept.
pub const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

const FIND: &str =
    "SELECT request, response FROM idempotency WHERE account_id = $1 AND key = $2 AND created_at > $3";
// Rows of releases whose keys were the account's: the hash of the request holds the actor.
const FIND_OLDER: &str = "SELECT request, response FROM idempotency \
    WHERE account_id = $1 AND key = $2 AND created_at > $3 AND request = $4";
const UPDATE: &str = "UPDATE idempotency SET response = $5 \
    WHERE account_id = $1 AND (key = $2 OR (key = $3 AND request = $4))";
const DELETE_OLD: &str = "DELETE FROM idempotency WHERE account_id = $1 AND key = $2 AND created_at <= $3";
const INSERT: &str =
    "INSERT INTO idempotency (account_id, key, request, response, created_at) VALUES ($1, $2, $3, $4, $5)";
// The subquery keeps one step short: it ends at the time of the row that fills it.
const PURGE: &str = "DELETE FROM idempotency WHERE created_at <= (SELECT MAX(created_at) FROM \
    (SELECT created_at FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2) t)";

/// A key in the hands of one actor: what others send under the same key is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedKey {
    kind: ActorKind,
    actor: String,
    key: String,
}

impl OwnedKey {
    /// The key that an actor sent.
    #[must_use]
    pub fn new(actor: &Actor, key: String) -> Self {
        Self { kind: actor.kind, actor: actor.own_name(), key }
    }

    /// The key as it was sent.
    #[must_use]
    pub fn as_sent(&self) -> &str {
        &self.key
    }

    /// The stored form of the key. A key from a client contains no tab, so it cannot equal another caller's.
    fn stored(&self) -> String {
        format!("{}\t{}\t{}", self.kind.as_str(), self.actor, self.key)
    }
}

/// The request's hash and the answer kept under a key, if it is not older than a day.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    key: &OwnedKey,
    request: &[u8; 32],
    now_ms: i64,
) -> Result<Option<(Vec<u8>, Value)>, StoreError> {
    let stored = key.stored();
    let row: Option<(Vec<u8>, Json<Value>)> =
        fetch_optional!(conn, FIND, account.as_str(), &stored, now_ms - KEPT_MS)?;
    let row = match row {
        Some(row) => Some(row),
        None => fetch_optional!(
            conn,
            FIND_OLDER,
            account.as_str(),
            key.as_sent(),
            now_ms - KEPT_MS,
            &request[..]
        )?,
    };
    Ok(row.map(|(request, Json(response))| (request, response)))
}

/// Keeps an answer in the transaction that carries the request out.
///
/// # Errors
/// [`StoreError::Unique`] when another replica answers the same key at this moment.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    key: &OwnedKey,
    request: &[u8; 32],
    response: &Value,
    now_ms: i64,
) -> Result<(), StoreError> {
    let key = key.stored();
    // Replaces an expired row, which `find` no longer returns.
    execute!(&mut **tx, DELETE_OLD, account.as_str(), &key, now_ms - KEPT_MS)?;
    execute!(&mut **tx, INSERT, account.as_str(), &key, &request[..], Json(response), now_ms)?;
    Ok(())
}

/// Exchanges the answer kept under a key.
pub async fn update(
    tx: &mut Tx,
    account: AccountId,
    key: &OwnedKey,
    request: &[u8; 32],
    response: &Value,
) -> Result<(), StoreError> {
    let stored = key.stored();
    execute!(&mut **tx, UPDATE, account.as_str(), &stored, key.as_sent(), &request[..], Json(response))?;
    Ok(())
}

/// Removes about `limit` of the answers older than a day, oldest first; returns how many, 0 when none is left.
pub async fn purge(tx: &mut Tx, now_ms: i64, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, shared::time::UnixMillis(now_ms - KEPT_MS), limit).await
}
