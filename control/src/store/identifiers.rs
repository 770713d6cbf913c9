//! The identifiers of products and Thngs: from `<key>:<value>` to whatever has it.

use std::collections::BTreeMap;

use shared::{id::AccountId, identifier::Identifier};

use super::{Conn, StoreError, Tx, on_db};

const INSERT: &str =
    "INSERT INTO identifiers (account_id, kind, key, value, resource_id) VALUES ($1, $2, $3, $4, $5)";
const DELETE: &str = "DELETE FROM identifiers WHERE resource_id = $1";
const FIND: &str = "SELECT resource_id FROM identifiers WHERE account_id = $1 AND kind = $2 AND key = $3 \
    AND value = $4 ORDER BY resource_id LIMIT $5";
const COUNT: &str =
    "SELECT COUNT(*) FROM identifiers WHERE account_id = $1 AND kind = $2 AND key = $3 AND value = $4";

/// What an identifier leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// Nothing has it.
    None,
    /// One resource has it.
    One(String),
    /// So many have it.
    Many(i64),
}

/// Replaces the identifiers of a resource.
///
/// # Errors
/// The database failed.
pub(super) async fn replace(
    tx: &mut Tx,
    account: AccountId,
    kind: &str,
    resource: &str,
    identifiers: &BTreeMap<String, String>,
) -> Result<(), StoreError> {
    delete(tx, resource).await?;
    for (key, value) in identifiers {
        on_db!(&mut **tx, |c| sqlx::query(INSERT)
            .bind(account.as_str())
            .bind(kind)
            .bind(key)
            .bind(value)
            .bind(resource)
            .execute(c)
            .await
            .map(|_| ()))?;
    }
    Ok(())
}

/// Removes the identifiers of a resource.
///
/// # Errors
/// The database failed.
pub(super) async fn delete(tx: &mut Tx, resource: &str) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE).bind(resource).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// Finds what has an identifier; `kind` is `thng` or `product`.
///
/// # Errors
/// The database failed.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    kind: &str,
    identifier: &Identifier,
) -> Result<Match, StoreError> {
    let mut rows: Vec<(String,)> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(kind)
        .bind(&identifier.key)
        .bind(&identifier.value)
        .bind(2_i64)
        .fetch_all(c)
        .await)?;
    match (rows.pop(), rows.is_empty()) {
        (None, _) => Ok(Match::None),
        (Some((id,)), true) => Ok(Match::One(id)),
        (Some(_), false) => {
            let (count,): (i64,) = on_db!(conn, |c| sqlx::query_as(COUNT)
                .bind(account.as_str())
                .bind(kind)
                .bind(&identifier.key)
                .bind(&identifier.value)
                .fetch_one(c)
                .await)?;
            Ok(Match::Many(count))
        }
    }
}
