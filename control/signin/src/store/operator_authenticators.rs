//! The table of authenticators: one for each operator, encrypted.

use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_optional, parse};

macro_rules! find {
    ($rest:literal) => {
        concat!(
            "SELECT sealed, confirmed_at, last_step FROM operator_authenticators \
             WHERE account_id = $1 AND operator_id = $2",
            $rest
        )
    };
}

const FIND: &str = find!("");
const PG_FIND_LOCKED: &str = find!(" FOR UPDATE");
const PUT: &str = "INSERT INTO operator_authenticators (operator_id, account_id, sealed, confirmed_at, last_step, \
    created_at) VALUES ($1, $2, $3, NULL, 0, $4) ON CONFLICT (operator_id) DO UPDATE SET sealed = excluded.sealed, \
    confirmed_at = NULL, last_step = 0, created_at = excluded.created_at";
const USE_STEP: &str = "UPDATE operator_authenticators SET last_step = $3, \
    confirmed_at = COALESCE(confirmed_at, $4) WHERE account_id = $1 AND operator_id = $2 AND last_step < $3";
const DELETE: &str = "DELETE FROM operator_authenticators WHERE account_id = $1 AND operator_id = $2";
const LIST: &str = "SELECT operator_id FROM operator_authenticators \
    WHERE account_id = $1 AND confirmed_at IS NOT NULL ORDER BY operator_id LIMIT 1000";

/// An authenticator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticator {
    /// The secret, encrypted.
    pub sealed: Vec<u8>,
    /// Whether a code confirmed it: before that it is not asked for.
    pub is_confirmed: bool,
    /// The time step of the last code that was used.
    pub last_step: i64,
}

/// The authenticator of an operator.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    operator: OperatorId,
) -> Result<Option<Authenticator>, StoreError> {
    fetch(conn, FIND, account, operator).await
}

/// [`find`], with a lock until the transaction ends.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    operator: OperatorId,
) -> Result<Option<Authenticator>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_LOCKED, FIND);
    fetch(tx, sql, account, operator).await
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    operator: OperatorId,
) -> Result<Option<Authenticator>, StoreError> {
    let row: Option<(Vec<u8>, Option<i64>, i64)> =
        fetch_optional!(conn, sql, account.as_str(), operator.as_str())?;
    Ok(row.map(|(sealed, confirmed_at, last_step)| Authenticator {
        sealed,
        is_confirmed: confirmed_at.is_some(),
        last_step,
    }))
}

/// Stores a new authenticator, which nothing has confirmed yet, in the place of the one before.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    operator: OperatorId,
    sealed: &[u8],
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT, operator.as_str(), account.as_str(), sealed, now.0)?;
    Ok(())
}

/// Notes that the code of a time step was used, which also confirms the authenticator; `false` if this code, or a later
/// one, was used before.
pub async fn use_step(
    tx: &mut Tx,
    account: AccountId,
    operator: OperatorId,
    step: i64,
    now: UnixMillis,
) -> Result<bool, StoreError> {
    let done = execute!(&mut **tx, USE_STEP, account.as_str(), operator.as_str(), step, now.0)?;
    Ok(done == 1)
}

/// Removes the authenticator of an operator; returns whether there was one.
pub async fn delete(tx: &mut Tx, account: AccountId, operator: OperatorId) -> Result<bool, StoreError> {
    let done = execute!(&mut **tx, DELETE, account.as_str(), operator.as_str())?;
    Ok(done == 1)
}

/// The operators of an account whose authenticator is confirmed.
pub async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<OperatorId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, LIST, account.as_str())?;
    rows.into_iter().map(|(id,)| parse("operator_id", &id)).collect()
}
