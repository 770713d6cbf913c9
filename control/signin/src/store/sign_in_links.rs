//! The table of links that sign an operator in once.

use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, on_db, parse};

const INSERT: &str = "INSERT INTO operator_sign_in_links (hash, account_id, operator_id, expires_at) \
    VALUES ($1, $2, $3, $4)";
// The code is all that is known of who asks.
const FIND: &str =
    "SELECT account_id, operator_id FROM operator_sign_in_links WHERE hash = $1 AND expires_at > $2";
const TAKE: &str = "DELETE FROM operator_sign_in_links WHERE hash = $1 AND account_id = $2 AND operator_id = $3 \
    AND expires_at > $4";
const DELETE: &str = "DELETE FROM operator_sign_in_links WHERE account_id = $1 AND operator_id = $2";
const PURGE: &str = "DELETE FROM operator_sign_in_links WHERE hash IN \
    (SELECT hash FROM operator_sign_in_links WHERE expires_at <= $1 ORDER BY expires_at, hash LIMIT $2)";

/// Adds the SHA-256 of the code of a link.
pub async fn insert(
    tx: &mut Tx,
    hash: &[u8; 32],
    account: AccountId,
    operator: OperatorId,
    expires_at: UnixMillis,
) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(INSERT)
        .bind(&hash[..])
        .bind(account.as_str())
        .bind(operator.as_str())
        .bind(expires_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// The account and operator of a code that has not expired.
pub async fn find(
    conn: &mut Conn,
    hash: &[u8; 32],
    now: UnixMillis,
) -> Result<Option<(AccountId, OperatorId)>, StoreError> {
    let row: Option<(String, String)> =
        on_db!(conn, |c| sqlx::query_as(FIND).bind(&hash[..]).bind(now.0).fetch_optional(c).await)?;
    let read = |(account, operator): (String, String)| {
        Ok((parse("account_id", &account)?, parse("operator_id", &operator)?))
    };
    row.map(read).transpose()
}

/// Uses a code of an operator up; returns whether it was there and had not expired.
pub async fn take(
    tx: &mut Tx,
    hash: &[u8; 32],
    account: AccountId,
    operator: OperatorId,
    now: UnixMillis,
) -> Result<bool, StoreError> {
    let done = on_db!(&mut **tx, |c| sqlx::query(TAKE)
        .bind(&hash[..])
        .bind(account.as_str())
        .bind(operator.as_str())
        .bind(now.0)
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(done == 1)
}

/// Removes the links of an operator.
pub async fn delete_of(tx: &mut Tx, account: AccountId, operator: OperatorId) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(operator.as_str())
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Removes some links that have expired; returns how many.
pub async fn purge(tx: &mut Tx, now: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, now, limit).await
}
