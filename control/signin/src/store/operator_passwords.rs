//! The table of operators' passwords.

use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_optional, parse};

// Somebody who signs in need not know the account, so the address is looked for in all of them. One statement answers
// everything that a sign-in asks before it compares, so that its time says nothing of the address.
const FIND_BY_EMAIL: &str = "SELECT p.operator_id, p.account_id, p.password, EXISTS (SELECT 1 FROM operator_networks n \
    WHERE n.operator_id = p.operator_id AND n.network = $2) FROM operator_passwords p \
    WHERE p.email = $1 AND (CAST($3 AS TEXT) IS NULL OR p.account_id = $3) ORDER BY 4 DESC, p.operator_id LIMIT $4";
const FIND: &str = "SELECT password FROM operator_passwords WHERE account_id = $1 AND operator_id = $2";
const PUT: &str = "INSERT INTO operator_passwords (operator_id, account_id, email, password, changed_at) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (operator_id) DO UPDATE SET password = excluded.password, \
    email = excluded.email, changed_at = excluded.changed_at";
const LIST: &str =
    "SELECT operator_id FROM operator_passwords WHERE account_id = $1 ORDER BY operator_id LIMIT 1000";

/// An operator who has a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The operator.
    pub operator: OperatorId,
    /// Its account.
    pub account: AccountId,
    /// The password as it is stored.
    pub password: String,
    /// Whether the operator signed in from the network before.
    pub is_known_network: bool,
}

/// Operators with an address, in the form in which it is compared; of one account if it is given. At most `limit`, first
/// those who signed in from the network before.
pub async fn find_by_email(
    conn: &mut Conn,
    email: &str,
    network: Option<&str>,
    account: Option<AccountId>,
    limit: i64,
) -> Result<Vec<Found>, StoreError> {
    let rows: Vec<(String, String, String, bool)> = fetch_all!(
        conn,
        FIND_BY_EMAIL,
        email,
        network.unwrap_or_default(),
        account.map(|id| id.to_string()),
        limit
    )?;
    let read = |(operator, account, password, is_known_network): (String, String, String, bool)| {
        Ok(Found {
            operator: parse("operator_id", &operator)?,
            account: parse("account_id", &account)?,
            password,
            is_known_network,
        })
    };
    rows.into_iter().map(read).collect()
}

/// The password of an operator as it is stored.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    operator: OperatorId,
) -> Result<Option<String>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, FIND, account.as_str(), operator.as_str())?;
    Ok(row.map(|(password,)| password))
}

/// Sets the password of an operator; `email` is its address in the form in which it is compared.
pub async fn put(
    tx: &mut Tx,
    (account, operator): (AccountId, OperatorId),
    email: &str,
    password: &str,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT, operator.as_str(), account.as_str(), email, password, now.0)?;
    Ok(())
}

/// The operators of an account who have a password.
pub async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<OperatorId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, LIST, account.as_str())?;
    rows.into_iter().map(|(id,)| parse("operator_id", &id)).collect()
}
