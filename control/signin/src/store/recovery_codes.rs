//! The table of recovery codes that were not used yet, by their keyed hash.

use shared::id::{AccountId, OperatorId};

use super::{Conn, StoreError, Tx, execute, fetch_one};

const INSERT: &str =
    "INSERT INTO operator_recovery_codes (hash, account_id, operator_id) VALUES ($1, $2, $3)";
const TAKE: &str =
    "DELETE FROM operator_recovery_codes WHERE hash = $1 AND account_id = $2 AND operator_id = $3";
const DELETE: &str = "DELETE FROM operator_recovery_codes WHERE account_id = $1 AND operator_id = $2";
const COUNT: &str = "SELECT COUNT(*) FROM operator_recovery_codes WHERE account_id = $1 AND operator_id = $2";

/// Replaces the codes of an operator.
pub async fn replace(
    tx: &mut Tx,
    account: AccountId,
    operator: OperatorId,
    hashes: &[[u8; 32]],
) -> Result<(), StoreError> {
    delete(tx, account, operator).await?;
    for hash in hashes {
        execute!(&mut **tx, INSERT, &hash[..], account.as_str(), operator.as_str())?;
    }
    Ok(())
}

/// Uses a code up; returns whether there was such a code.
pub async fn take(
    tx: &mut Tx,
    account: AccountId,
    operator: OperatorId,
    hash: &[u8; 32],
) -> Result<bool, StoreError> {
    let done = execute!(&mut **tx, TAKE, &hash[..], account.as_str(), operator.as_str())?;
    Ok(done == 1)
}

/// Removes the codes of an operator.
pub async fn delete(tx: &mut Tx, account: AccountId, operator: OperatorId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), operator.as_str())?;
    Ok(())
}

/// How many codes an operator has left.
pub async fn count(conn: &mut Conn, account: AccountId, operator: OperatorId) -> Result<i64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT, account.as_str(), operator.as_str())?;
    Ok(count)
}
