//! The table of networks from which operators signed in.

use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_all};

const PUT: &str = "INSERT INTO operator_networks (operator_id, account_id, network, last_at) \
    VALUES ($1, $2, $3, $4) ON CONFLICT (operator_id, network) DO UPDATE SET last_at = excluded.last_at";
const KEEP_NEWEST: &str = "DELETE FROM operator_networks WHERE account_id = $1 AND operator_id = $2 AND network NOT IN \
    (SELECT n.network FROM operator_networks n WHERE n.account_id = $1 AND n.operator_id = $2 \
     ORDER BY n.last_at DESC, n.network LIMIT $3)";
const DELETE_OF: &str = "DELETE FROM operator_networks WHERE account_id = $1 AND operator_id = $2";
const LIST: &str = "SELECT network FROM operator_networks WHERE account_id = $1 AND operator_id = $2 \
    ORDER BY last_at DESC, network LIMIT $3";

/// Notes that an operator signed in from a network, and forgets all but the newest `most`.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    operator: OperatorId,
    network: &str,
    now: UnixMillis,
    most: i64,
) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT, operator.as_str(), account.as_str(), network, now.0)?;
    execute!(&mut **tx, KEEP_NEWEST, account.as_str(), operator.as_str(), most)?;
    Ok(())
}

/// The networks from which an operator signed in, the newest first; at most `most`.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    operator: OperatorId,
    most: i64,
) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, LIST, account.as_str(), operator.as_str(), most)?;
    Ok(rows.into_iter().map(|(network,)| network).collect())
}

/// Forgets the networks of an operator.
pub async fn delete_of(tx: &mut Tx, account: AccountId, operator: OperatorId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE_OF, account.as_str(), operator.as_str())?;
    Ok(())
}
