//! The table of codes by which users set a new password.

use shared::{
    id::{AccountId, UserId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_optional, parse};

const INSERT: &str =
    "INSERT INTO password_resets (hash, account_id, user_id, expires_at) VALUES ($1, $2, $3, $4)";
const FIND: &str =
    "SELECT user_id FROM password_resets WHERE hash = $1 AND account_id = $2 AND expires_at > $3";
const TAKE: &str =
    "DELETE FROM password_resets WHERE hash = $1 AND account_id = $2 AND expires_at > $3 RETURNING user_id";
const DELETE_OF_USER: &str = "DELETE FROM password_resets WHERE account_id = $1 AND user_id = $2";
const PURGE: &str = "DELETE FROM password_resets WHERE hash IN \
    (SELECT hash FROM password_resets WHERE expires_at <= $1 ORDER BY expires_at, hash LIMIT $2)";

/// Adds the SHA-256 of a code.
pub async fn insert(
    tx: &mut Tx,
    hash: &[u8; 32],
    account: AccountId,
    user: UserId,
    expires_at: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, &hash[..], account.as_str(), user.as_str(), expires_at.0)?;
    Ok(())
}

/// The user of a code that has not expired.
pub async fn find(
    conn: &mut Conn,
    hash: &[u8; 32],
    account: AccountId,
    now: UnixMillis,
) -> Result<Option<UserId>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, FIND, &hash[..], account.as_str(), now.0)?;
    row.map(|(id,)| parse("user_id", &id)).transpose()
}

/// The user of a code that has not expired; the code is used up.
pub async fn take(
    tx: &mut Tx,
    hash: &[u8; 32],
    account: AccountId,
    now: UnixMillis,
) -> Result<Option<UserId>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(&mut **tx, TAKE, &hash[..], account.as_str(), now.0)?;
    row.map(|(id,)| parse("user_id", &id)).transpose()
}

/// Removes the codes of a user.
pub async fn delete_of_user(tx: &mut Tx, account: AccountId, user: UserId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE_OF_USER, account.as_str(), user.as_str())?;
    Ok(())
}

/// Removes some codes that have expired; returns how many.
pub async fn purge(tx: &mut Tx, now: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, now, limit).await
}
