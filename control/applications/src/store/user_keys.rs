//! Keys of users, one for each login, in the table of keys.

use shared::{
    id::{AccountId, UserId},
    time::UnixMillis,
};

use super::{StoreError, Tx, execute};

const KEEP_NEWEST: &str = "UPDATE api_keys SET revoked_at = $4 WHERE account_id = $1 AND actor_id = $2 AND kind = 'user' \
    AND revoked_at IS NULL AND hash NOT IN (SELECT k.hash FROM api_keys k WHERE k.account_id = $1 AND k.actor_id = $2 \
    AND k.kind = 'user' AND k.revoked_at IS NULL ORDER BY k.created_at DESC, k.hash LIMIT $3)";
const DELETE_OF: &str = "DELETE FROM api_keys WHERE account_id = $1 AND actor_id = $2 AND kind = 'user'";
// Of whatever account: they only age.
const PURGE: &str = "DELETE FROM api_keys WHERE hash IN (SELECT k.hash FROM api_keys k WHERE k.kind = 'user' \
    AND k.revoked_at <= $1 ORDER BY k.revoked_at, k.hash LIMIT $2)";

/// Revokes the keys of a user but the newest `most`.
pub async fn keep_newest(
    tx: &mut Tx,
    account: AccountId,
    user: UserId,
    most: i64,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, KEEP_NEWEST, account.as_str(), user.as_str(), most, now.0)?;
    Ok(())
}

/// Removes the keys of a user.
pub async fn delete_of(tx: &mut Tx, account: AccountId, user: UserId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE_OF, account.as_str(), user.as_str())?;
    Ok(())
}

/// Removes some keys that were revoked before a time; returns how many.
pub async fn purge(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, before, limit).await
}
