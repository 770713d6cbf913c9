//! Accounts and operators as the API reads and changes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect, on_db, parse};
use crate::domain::{
    target_hosts::TargetHosts,
    tenant::{Account, DEFAULT_ROLE, Operator},
};

/// What the audit trail calls them.
const ACCOUNT: &str = "account";
const OPERATOR: &str = "operator";

macro_rules! select_account {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, enterprise, user_rights, doc, created_at, updated_at FROM accounts WHERE id = $1",
            $rest
        )
    };
}
macro_rules! select_operator {
    ($rest:literal) => {
        concat!(
            "SELECT id, account_id, email, first_name, last_name, doc, created_at, updated_at FROM operators \
             WHERE account_id = $1",
            $rest
        )
    };
}

const FIND_ACCOUNT: &str = select_account!("");
const PG_FIND_ACCOUNT_LOCKED: &str = select_account!(" FOR UPDATE");
const UPDATE_ACCOUNT: &str =
    "UPDATE accounts SET name = $2, doc = $3, updated_at = $4, user_rights = $5 WHERE id = $1";
const FIND_OPERATOR: &str = select_operator!(" AND id = $2");
const PG_FIND_OPERATOR_LOCKED: &str = select_operator!(" AND id = $2 FOR UPDATE");
// Bounded, because operators are people who are added one by one.
const LIST_OPERATORS: &str = select_operator!(" ORDER BY created_at, seq LIMIT 1000");
const UPDATE_OPERATOR: &str =
    "UPDATE operators SET first_name = $2, last_name = $3, doc = $4, updated_at = $5 WHERE id = $1";

/// The members that are not queried.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Doc {
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_fields: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thng_writable_custom_fields: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    private_targets: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    target_hosts: Vec<String>,
}

#[derive(sqlx::FromRow)]
struct AccountRow {
    id: String,
    name: String,
    enterprise: bool,
    user_rights: String,
    doc: Json<Doc>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<AccountRow> for Account {
    type Error = StoreError;

    fn try_from(row: AccountRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: parse("id", &row.id)?,
            name: row.name,
            enterprise: row.enterprise,
            user_rights: parse("user_rights", &row.user_rights)?,
            thng_writable_custom_fields: row.doc.0.thng_writable_custom_fields,
            targets: TargetHosts { private: row.doc.0.private_targets, only: row.doc.0.target_hosts },
            custom_fields: row.doc.0.custom_fields,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at),
        })
    }
}

#[derive(sqlx::FromRow)]
struct OperatorRow {
    id: String,
    account_id: String,
    email: String,
    first_name: String,
    last_name: String,
    doc: Json<Doc>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<OperatorRow> for Operator {
    type Error = StoreError;

    fn try_from(row: OperatorRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: parse("id", &row.id)?,
            account: parse("account_id", &row.account_id)?,
            email: row.email,
            first_name: row.first_name,
            last_name: row.last_name,
            role: row.doc.0.role.unwrap_or_else(|| DEFAULT_ROLE.to_owned()),
            custom_fields: row.doc.0.custom_fields,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at),
        })
    }
}

/// An account.
pub async fn find_account(conn: &mut Conn, id: AccountId) -> Result<Option<Account>, StoreError> {
    fetch_account(conn, FIND_ACCOUNT, id).await
}

/// Which hosts the targets of an account may have; of one that is gone the default.
pub async fn find_target_hosts(conn: &mut Conn, id: AccountId) -> Result<TargetHosts, StoreError> {
    Ok(find_account(conn, id).await?.map(|account| account.targets).unwrap_or_default())
}

/// An account, locked until the transaction ends.
pub async fn find_account_locked(tx: &mut Tx, id: AccountId) -> Result<Option<Account>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_ACCOUNT_LOCKED, FIND_ACCOUNT);
    let found = fetch_account(tx, sql, id).await?;
    if let Some(found) = &found {
        tx.remember(ACCOUNT, id.as_str(), || account_state(found));
    }
    Ok(found)
}

async fn fetch_account(
    conn: &mut Conn,
    sql: &'static str,
    id: AccountId,
) -> Result<Option<Account>, StoreError> {
    let row: Option<AccountRow> =
        on_db!(conn, |c| sqlx::query_as(sql).bind(id.as_str()).fetch_optional(c).await)?;
    row.map(Account::try_from).transpose()
}

/// Writes an account that [`find_account_locked`] gave, changed.
pub async fn update_account(tx: &mut Tx, account: &Account) -> Result<(), StoreError> {
    let before = tx.remembered(ACCOUNT, account.id.as_str());
    tx.note(account.id, (ACCOUNT, account.id.as_str()), || (before, Some(account_state(account))));
    let doc = Json(Doc {
        custom_fields: account.custom_fields.clone(),
        thng_writable_custom_fields: account.thng_writable_custom_fields.clone(),
        private_targets: account.targets.private,
        target_hosts: account.targets.only.clone(),
        ..Doc::default()
    });
    on_db!(&mut **tx, |c| sqlx::query(UPDATE_ACCOUNT)
        .bind(account.id.as_str())
        .bind(&account.name)
        .bind(doc)
        .bind(account.updated_at.0)
        .bind(account.user_rights.as_str())
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// An operator of an account.
pub async fn find_operator(
    conn: &mut Conn,
    account: AccountId,
    id: OperatorId,
) -> Result<Option<Operator>, StoreError> {
    fetch_operator(conn, FIND_OPERATOR, account, id).await
}

/// An operator of an account, locked until the transaction ends.
pub async fn find_operator_locked(
    tx: &mut Tx,
    account: AccountId,
    id: OperatorId,
) -> Result<Option<Operator>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_OPERATOR_LOCKED, FIND_OPERATOR);
    let found = fetch_operator(tx, sql, account, id).await?;
    if let Some(found) = &found {
        tx.remember(OPERATOR, id.as_str(), || operator_state(found));
    }
    Ok(found)
}

fn account_state(account: &Account) -> Value {
    json!({
        "name": account.name,
        "userRights": account.user_rights.as_str(),
        "thngWritableCustomFields": account.thng_writable_custom_fields,
        "privateTargets": account.targets.private,
        "targetHosts": account.targets.only,
        "customFields": account.custom_fields,
    })
}

fn operator_state(operator: &Operator) -> Value {
    json!({
        "firstName": operator.first_name,
        "lastName": operator.last_name,
        "role": operator.role,
        "customFields": operator.custom_fields,
    })
}

async fn fetch_operator(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    id: OperatorId,
) -> Result<Option<Operator>, StoreError> {
    let row: Option<OperatorRow> = on_db!(conn, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Operator::try_from).transpose()
}

/// The operators of an account, oldest first; at most 1,000.
pub async fn list_operators(conn: &mut Conn, account: AccountId) -> Result<Vec<Operator>, StoreError> {
    let rows: Vec<OperatorRow> =
        on_db!(conn, |c| sqlx::query_as(LIST_OPERATORS).bind(account.as_str()).fetch_all(c).await)?;
    rows.into_iter().map(Operator::try_from).collect()
}

/// Writes an operator that [`find_operator_locked`] gave, changed.
pub async fn update_operator(tx: &mut Tx, operator: &Operator) -> Result<(), StoreError> {
    let before = tx.remembered(OPERATOR, operator.id.as_str());
    let of = (OPERATOR, operator.id.as_str());
    tx.note(operator.account, of, || (before, Some(operator_state(operator))));
    let doc = Json(Doc {
        custom_fields: operator.custom_fields.clone(),
        role: Some(operator.role.clone()),
        ..Doc::default()
    });
    on_db!(&mut **tx, |c| sqlx::query(UPDATE_OPERATOR)
        .bind(operator.id.as_str())
        .bind(&operator.first_name)
        .bind(&operator.last_name)
        .bind(doc)
        .bind(operator.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}
