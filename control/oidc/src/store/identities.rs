//! Identities that are linked to operators, and operators by their address.

use serde_json::{Value, json};
use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_all, on_db, parse};
use crate::domain::identity::LinkedIdentity;

/// What the audit trail calls them.
const KIND: &str = "identity";

// Who signs in names no account, or is asked for one.
const FIND: &str = "SELECT i.account_id, i.operator_id FROM operator_identities i \
    JOIN accounts a ON a.id = i.account_id AND a.provider_sign_in WHERE i.issuer = $1 AND i.subject = $2 \
    ORDER BY i.account_id LIMIT 2";
const FIND_IN_ACCOUNT: &str = "SELECT i.account_id, i.operator_id FROM operator_identities i \
    JOIN accounts a ON a.id = i.account_id AND a.provider_sign_in \
    WHERE i.account_id = $3 AND i.issuer = $1 AND i.subject = $2";
const FIND_PERSONS: &str = "SELECT o.account_id, o.id, o.email FROM operators o \
    JOIN accounts a ON a.id = o.account_id AND a.provider_sign_in WHERE lower(o.email) = lower($1) \
    AND o.kind = 'person' AND o.invitation IS NULL ORDER BY o.account_id, o.seq LIMIT 10";
const FIND_PERSONS_IN_ACCOUNT: &str = "SELECT o.account_id, o.id, o.email FROM operators o \
    JOIN accounts a ON a.id = o.account_id AND a.provider_sign_in WHERE lower(o.email) = lower($1) \
    AND o.kind = 'person' AND o.invitation IS NULL AND o.account_id = $2 ORDER BY o.account_id, o.seq LIMIT 10";
const LIST: &str = "SELECT issuer, subject, email, created_at, last_used_at FROM operator_identities \
    WHERE account_id = $1 AND operator_id = $2 ORDER BY created_at, issuer, subject LIMIT 20";
const TOUCH: &str = "UPDATE operator_identities SET last_used_at = $5 WHERE account_id = $1 AND operator_id = $2 \
    AND issuer = $3 AND subject = $4";
const INSERT: &str = "INSERT INTO operator_identities (account_id, operator_id, issuer, subject, email, created_at, \
    last_used_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
const DELETE: &str = "DELETE FROM operator_identities WHERE account_id = $1 AND operator_id = $2 AND issuer = $3 \
    AND subject = $4";

/// An operator, in its account.
pub type Owner = (AccountId, OperatorId);

/// The operators to whom an identity is linked, in an account or in any that lets the provider sign in; at most two.
pub async fn find(
    conn: &mut Conn,
    (issuer, subject): (&str, &str),
    account: Option<AccountId>,
) -> Result<Vec<Owner>, StoreError> {
    let sql = if account.is_some() { FIND_IN_ACCOUNT } else { FIND };
    let rows: Vec<(String, String)> = on_db!(conn, |c| {
        let query = sqlx::query_as(sql).bind(issuer).bind(subject);
        let query = match &account {
            Some(account) => query.bind(account.as_str()),
            None => query,
        };
        query.fetch_all(c).await
    })?;
    rows.iter().map(|(account, id)| owner(account, id)).collect()
}

/// The people whose address is this but for its case, in an account or in any that lets the provider sign in; at most ten.
/// Those who are invited only are left out.
pub async fn find_persons(
    conn: &mut Conn,
    email: &str,
    account: Option<AccountId>,
) -> Result<Vec<(Owner, String)>, StoreError> {
    let sql = if account.is_some() { FIND_PERSONS_IN_ACCOUNT } else { FIND_PERSONS };
    let rows: Vec<(String, String, String)> = on_db!(conn, |c| {
        let query = sqlx::query_as(sql).bind(email);
        let query = match &account {
            Some(account) => query.bind(account.as_str()),
            None => query,
        };
        query.fetch_all(c).await
    })?;
    rows.into_iter().map(|(account, id, email)| Ok((owner(&account, &id)?, email))).collect()
}

/// The identities of an operator, oldest first; at most 20.
pub async fn list(conn: &mut Conn, (account, operator): Owner) -> Result<Vec<LinkedIdentity>, StoreError> {
    let rows: Vec<(String, String, String, i64, i64)> =
        fetch_all!(conn, LIST, account.as_str(), operator.as_str())?;
    let linked = |(issuer, subject, email, created_at, last_used_at)| LinkedIdentity {
        issuer,
        subject,
        email,
        created_at: UnixMillis(created_at),
        last_used_at: UnixMillis(last_used_at),
    };
    Ok(rows.into_iter().map(linked).collect())
}

/// Notes a sign-in with an identity; `false` when it is not linked to the operator.
pub async fn touch(
    tx: &mut Tx,
    (account, operator): Owner,
    (issuer, subject): (&str, &str),
    at: UnixMillis,
) -> Result<bool, StoreError> {
    let changed = execute!(&mut **tx, TOUCH, account.as_str(), operator.as_str(), issuer, subject, at.0)?;
    Ok(changed == 1)
}

/// Links an identity.
pub async fn insert(tx: &mut Tx, (account, operator): Owner, new: &LinkedIdentity) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT,
        account.as_str(),
        operator.as_str(),
        &new.issuer,
        &new.subject,
        &new.email,
        new.created_at.0,
        new.last_used_at.0
    )?;
    tx.note(account, (KIND, &new.id()), || (None, Some(state(operator, new))));
    Ok(())
}

/// Unlinks an identity; `false` when it is not linked any more.
pub async fn delete(
    tx: &mut Tx,
    (account, operator): Owner,
    old: &LinkedIdentity,
) -> Result<bool, StoreError> {
    let changed =
        execute!(&mut **tx, DELETE, account.as_str(), operator.as_str(), &old.issuer, &old.subject)?;
    if changed == 1 {
        tx.note(account, (KIND, &old.id()), || (Some(state(operator, old)), None));
    }
    Ok(changed == 1)
}

fn state(operator: OperatorId, identity: &LinkedIdentity) -> Value {
    let LinkedIdentity { issuer, subject, email, .. } = identity;
    json!({"operator": operator.as_str(), "issuer": issuer, "subject": subject, "email": email})
}

fn owner(account: &str, id: &str) -> Result<Owner, StoreError> {
    Ok((parse("account_id", account)?, parse("operator_id", id)?))
}
