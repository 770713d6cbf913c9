//! Accounts as the API reads and changes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{id::AccountId, personal_data::PersonalData, time::UnixMillis};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::{self, fetch_in_list},
    execute, fetch_all, fetch_optional, on_db, parse,
};
use crate::domain::{
    scan_retention::DEFAULT_DAYS, target_hosts::TargetHosts, tenant::Account,
    user_registration::UserRegistration,
};

const LINK_RULES: &str = "SELECT a.doc, EXISTS (SELECT 1 FROM domain_claims c WHERE c.account_id = $1 AND c.host = $2 \
    AND c.state = 'unproven') FROM accounts a WHERE a.id = $1";

/// What the audit trail calls it.
const ACCOUNT: &str = "account";

macro_rules! select_account {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, enterprise, user_rights, provider_sign_in, second_factor_required, personal_data, \
             personal_data_days, approve_bulk_changes, doc, created_at, updated_at FROM accounts WHERE id = $1",
            $rest
        )
    };
}

const FIND_ACCOUNT: &str = select_account!("");
const PG_FIND_ACCOUNT_LOCKED: &str = select_account!(" FOR UPDATE");
const RETENTION: &str = "SELECT id, CAST(doc ->> 'scanRetentionDays' AS BIGINT) FROM accounts ORDER BY id";
const PERSONAL_DATA_DAYS: &str =
    "SELECT id, personal_data_days FROM accounts WHERE personal_data_days IS NOT NULL ORDER BY id";
const PERSONAL_DATA: &str = "SELECT personal_data FROM accounts WHERE id = $1";
const PG_PERSONAL_DATA_OF: &str = "SELECT id, personal_data FROM accounts WHERE id = ANY($1)";
const SQLITE_PERSONAL_DATA_OF: &str =
    "SELECT id, personal_data FROM accounts WHERE id IN (SELECT value FROM json_each($1))";
const UPDATE_ACCOUNT: &str = "UPDATE accounts SET name = $2, doc = $3, updated_at = $4, user_rights = $5, \
    provider_sign_in = $6, second_factor_required = $7, personal_data = $8, personal_data_days = $9, \
    approve_bulk_changes = $10 WHERE id = $1";

const END_PROVIDER_SESSIONS: &str = "UPDATE api_keys SET revoked_at = $2 WHERE account_id = $1 AND kind = 'session' \
    AND revoked_at IS NULL AND hash IN (SELECT s.hash FROM operator_sessions s WHERE s.account_id = $1 AND s.by_provider)";
const END_SINGLE_FACTOR_SESSIONS: &str = "UPDATE api_keys SET revoked_at = $2 WHERE account_id = $1 \
    AND kind = 'session' AND revoked_at IS NULL AND hash IN (SELECT s.hash FROM operator_sessions s \
    WHERE s.account_id = $1 AND NOT s.by_provider AND NOT EXISTS (SELECT 1 FROM operator_authenticators t \
    WHERE t.operator_id = s.operator_id AND t.confirmed_at IS NOT NULL))";
const END_ACTIVATIONS: &str = "UPDATE app_users SET activation = NULL, activation_until = COALESCE(activation_until, $2) \
    WHERE account_id = $1 AND status = 'inactive'";

/// The members that are not queried.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Doc {
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_fields: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thng_writable_custom_fields: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    private_targets: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    target_hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scan_retention_days: Option<u16>,
    #[serde(skip_serializing_if = "UserRegistration::is_default")]
    user_registration: UserRegistration,
}

#[derive(sqlx::FromRow)]
struct AccountRow {
    id: String,
    name: String,
    enterprise: bool,
    user_rights: String,
    provider_sign_in: bool,
    second_factor_required: bool,
    personal_data: String,
    personal_data_days: Option<i64>,
    approve_bulk_changes: bool,
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
            user_registration: row.doc.0.user_registration,
            provider_sign_in: row.provider_sign_in,
            second_factor_required: row.second_factor_required,
            approve_bulk_changes: row.approve_bulk_changes,
            thng_writable_custom_fields: row.doc.0.thng_writable_custom_fields,
            targets: TargetHosts { private: row.doc.0.private_targets, only: row.doc.0.target_hosts },
            scan_retention_days: row.doc.0.scan_retention_days.unwrap_or(DEFAULT_DAYS),
            personal_data: parse("personal_data", &row.personal_data)?,
            personal_data_days: row.personal_data_days.and_then(|days| u16::try_from(days).ok()),
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

/// [`find_target_hosts`], and whether the proof of a short domain that the account has claimed is gone: no links are made on it
/// then. One look for a new link.
pub async fn find_link_rules(
    conn: &mut Conn,
    id: AccountId,
    host: &str,
) -> Result<(TargetHosts, bool), StoreError> {
    let row: Option<(Json<Doc>, bool)> = fetch_optional!(conn, LINK_RULES, id.as_str(), host)?;
    let hosts = |doc: Doc| TargetHosts { private: doc.private_targets, only: doc.target_hosts };
    Ok(row.map(|(Json(doc), is_unproven)| (hosts(doc), is_unproven)).unwrap_or_default())
}

/// How much an account keeps of people; of one that is gone nothing.
pub async fn find_personal_data(conn: &mut Conn, id: AccountId) -> Result<PersonalData, StoreError> {
    let found: Option<String> =
        on_db!(conn, |c| sqlx::query_scalar(PERSONAL_DATA).bind(id.as_str()).fetch_optional(c).await)?;
    found.map_or(Ok(PersonalData::None), |kept| parse("personal_data", &kept))
}

/// How much some accounts keep of people.
pub async fn list_personal_data(
    conn: &mut Conn,
    ids: &[AccountId],
) -> Result<BTreeMap<AccountId, PersonalData>, StoreError> {
    let ids: Vec<&str> = ids.iter().map(AccountId::as_str).collect();
    let rows = fetch_in_list!(conn, (String, String), PG_PERSONAL_DATA_OF, SQLITE_PERSONAL_DATA_OF, [], ids)?;
    rows.into_iter().map(|(id, kept)| Ok((parse("id", &id)?, parse("personal_data", &kept)?))).collect()
}

/// How many days each account keeps scans by edges.
pub async fn list_scan_retention(conn: &mut Conn) -> Result<Vec<(AccountId, u16)>, StoreError> {
    let rows: Vec<(String, Option<i64>)> = fetch_all!(conn, RETENTION)?;
    let days = |days: Option<i64>| days.and_then(|days| u16::try_from(days).ok()).unwrap_or(DEFAULT_DAYS);
    rows.into_iter().map(|(id, kept)| Ok((parse("id", &id)?, days(kept)))).collect()
}

/// The accounts that cut what is left of people, each with the days after which they do.
pub async fn list_personal_data_days(conn: &mut Conn) -> Result<Vec<(AccountId, u16)>, StoreError> {
    let rows: Vec<(String, i64)> = fetch_all!(conn, PERSONAL_DATA_DAYS)?;
    // More days than there are in a `u16` would be those of a later release.
    let days = |days: i64| u16::try_from(days).unwrap_or(u16::MAX);
    rows.into_iter().map(|(id, kept)| Ok((parse("id", &id)?, days(kept)))).collect()
}

/// An account, locked until the transaction ends.
pub async fn find_account_locked(tx: &mut Tx, id: AccountId) -> Result<Option<Account>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_ACCOUNT_LOCKED, FIND_ACCOUNT);
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
    let row: Option<AccountRow> = fetch_optional!(conn, sql, id.as_str())?;
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
        // The default of a later release holds for those who did not choose.
        scan_retention_days: Some(account.scan_retention_days).filter(|days| *days != DEFAULT_DAYS),
        user_registration: account.user_registration,
    });
    execute!(
        &mut **tx,
        UPDATE_ACCOUNT,
        account.id.as_str(),
        &account.name,
        doc,
        account.updated_at.0,
        account.user_rights.as_str(),
        account.provider_sign_in,
        account.second_factor_required,
        account.personal_data.as_str(),
        account.personal_data_days.map(i64::from),
        account.approve_bulk_changes
    )?;
    Ok(())
}

/// Ends the sessions of an account that the provider of identities began.
pub async fn end_provider_sessions(tx: &mut Tx, id: AccountId, now: UnixMillis) -> Result<(), StoreError> {
    end(tx, END_PROVIDER_SESSIONS, id, now).await
}

/// Ends the sessions of an account that a password alone began.
pub async fn end_single_factor_sessions(
    tx: &mut Tx,
    id: AccountId,
    now: UnixMillis,
) -> Result<(), StoreError> {
    end(tx, END_SINGLE_FACTOR_SESSIONS, id, now).await
}

/// Ends the codes of all users of an account who were not activated yet; they are removed some time after `now`.
pub async fn end_activations(tx: &mut Tx, id: AccountId, now: UnixMillis) -> Result<(), StoreError> {
    end(tx, END_ACTIVATIONS, id, now).await
}

async fn end(tx: &mut Tx, sql: &'static str, id: AccountId, now: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, sql, id.as_str(), now.0)?;
    Ok(())
}

fn account_state(account: &Account) -> Value {
    json!({
        "name": account.name,
        "userRights": account.user_rights.as_str(),
        "userRegistration": account.user_registration.as_str(),
        "providerSignIn": account.provider_sign_in,
        "secondFactorRequired": account.second_factor_required,
        "approveBulkChanges": account.approve_bulk_changes,
        "thngWritableCustomFields": account.thng_writable_custom_fields,
        "privateTargets": account.targets.private,
        "targetHosts": account.targets.only,
        "scanRetentionDays": account.scan_retention_days,
        "personalData": account.personal_data,
        "personalDataDays": account.personal_data_days,
        "customFields": account.custom_fields,
    })
}
