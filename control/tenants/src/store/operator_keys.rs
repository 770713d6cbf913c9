//! Keys of operators, as they are listed and changed; [`super::keys`] looks keys of every kind up.

use serde_json::{Value, json};
use shared::{
    id::{AccountId, ProjectId},
    time::UnixMillis,
};

use super::{
    Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_one, fetch_optional,
    listing::{self, Column, Selection, Table},
    parse,
};
use crate::domain::{api_key::KeyId, operator_key::OperatorKey, page::Page};

// The kinds are literal, so that the index of these keys alone serves.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT t.hash, t.seq, t.label, t.actor_id, t.project_id, t.created_by, t.created_at, t.updated_at, \
             t.last_used_at, t.expires_at, t.life_ms, t.replaced_at, t.revoked_at, t.networks \
             FROM (SELECT * FROM api_keys WHERE kind IN ('operator', 'projectOperator')) t",
            $rest
        )
    };
}

const LIST: Table = Table {
    select: select!(""),
    order: ("t.created_at", "t.seq"),
    columns: &[("scopes.projects", Column::Text("t.project_id"))],
    identifiers: None,
    faceted: false,
    itself: "t.actor_id",
};
const FIND: &str = select!(" WHERE t.account_id = $1 AND t.hash >= $2 AND t.hash <= $3");
const PG_LOCK: &str =
    "SELECT hash FROM api_keys WHERE account_id = $1 AND hash >= $2 AND hash <= $3 FOR UPDATE";
const LOCK: &str = "SELECT hash FROM api_keys WHERE account_id = $1 AND hash >= $2 AND hash <= $3";
const LIST_VALID: &str = select!(
    " WHERE t.account_id = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2) \
     ORDER BY t.created_at, t.seq"
);
const COUNT_VALID: &str = "SELECT COUNT(*), COUNT(CASE WHEN project_id = $3 THEN 1 END), \
    COUNT(CASE WHEN actor_id = $4 THEN 1 END) FROM api_keys \
    WHERE account_id = $1 AND kind IN ('operator', 'projectOperator') AND revoked_at IS NULL \
    AND (expires_at IS NULL OR expires_at > $2)";
const LIST_OF: &str = select!(" WHERE t.account_id = $1 AND t.actor_id = $2 ORDER BY t.created_at, t.seq");
const INSERT: &str = "INSERT INTO api_keys (hash, account_id, kind, actor_id, project_id, label, created_by, created_at, \
    updated_at, expires_at, networks, life_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11)";
const UPDATE: &str = "UPDATE api_keys SET label = $3, updated_at = $4, expires_at = $5, networks = $6, revoked_at = $7, \
    life_ms = $8, replaced_at = $9 \
    WHERE account_id = $1 AND hash = $2";

/// What a key is called that an older release made.
const NO_LABEL: &str = "without a label";

/// What the audit trail calls them.
const KIND: &str = "operatorKey";

fn state_of(key: &OperatorKey) -> Value {
    json!({
        "label": key.label,
        "operator": key.operator,
        "project": key.project,
        "networks": key.networks.texts().collect::<Vec<_>>(),
        "expiresAt": key.expires_at.map(|at| at.0),
        "replacedAt": key.replaced_at.map(|at| at.0),
        "revokedAt": key.revoked_at.map(|at| at.0),
    })
}

#[derive(sqlx::FromRow)]
struct Row {
    hash: Vec<u8>,
    seq: i64,
    label: Option<String>,
    actor_id: String,
    project_id: Option<String>,
    created_by: Option<String>,
    created_at: i64,
    updated_at: Option<i64>,
    last_used_at: Option<i64>,
    expires_at: Option<i64>,
    life_ms: Option<i64>,
    replaced_at: Option<i64>,
    revoked_at: Option<i64>,
    networks: Option<String>,
}

impl TryFrom<Row> for OperatorKey {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            hash: row.hash.try_into().map_err(|_| StoreError::Row("hash: another length".to_owned()))?,
            seq: row.seq,
            label: row.label.unwrap_or_else(|| NO_LABEL.to_owned()),
            operator: row.actor_id,
            project: row.project_id.map(|id| parse::<ProjectId>("project_id", &id)).transpose()?,
            created_by: row.created_by,
            created_at: UnixMillis(row.created_at),
            updated_at: UnixMillis(row.updated_at.unwrap_or(row.created_at)),
            last_used_at: row.last_used_at.map(UnixMillis),
            expires_at: row.expires_at.map(UnixMillis),
            life_ms: row.life_ms,
            replaced_at: row.replaced_at.map(UnixMillis),
            revoked_at: row.revoked_at.map(UnixMillis),
            networks: parse("networks", row.networks.as_deref().unwrap_or_default())?,
        })
    }
}

/// Adds a key.
///
/// # Errors
/// [`StoreError::Unique`] when the key exists.
pub async fn insert(tx: &mut Tx, account: AccountId, key: &OperatorKey) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT,
        &key.hash[..],
        account.as_str(),
        key.kind().as_str(),
        &key.operator,
        key.project.map(|id| id.to_string()),
        &key.label,
        &key.created_by,
        key.created_at.0,
        key.expires_at.map(|at| at.0),
        networks(key),
        key.life_ms
    )?;
    tx.note(account, (KIND, &key.id().to_string()), || (None, Some(state_of(key))));
    Ok(())
}

/// Null where there are none.
fn networks(key: &OperatorKey) -> Option<String> {
    Some(key.networks.to_string()).filter(|text| !text.is_empty())
}

/// A key of the account.
pub async fn find(conn: &mut Conn, account: AccountId, id: KeyId) -> Result<Option<OperatorKey>, StoreError> {
    let (first, last) = id.range();
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), &first[..], &last[..])?;
    row.map(OperatorKey::try_from).transpose()
}

/// [`find`], with a lock until the transaction ends.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    id: KeyId,
) -> Result<Option<OperatorKey>, StoreError> {
    let (first, last) = id.range();
    let sql = dialect::pick(tx, PG_LOCK, LOCK);
    let _: Option<(Vec<u8>,)> = fetch_optional!(&mut **tx, sql, account.as_str(), &first[..], &last[..])?;
    let found = find(tx, account, id).await?;
    if let Some(found) = &found {
        tx.remember(KIND, &id.to_string(), || state_of(found));
    }
    Ok(found)
}

/// A page of the keys of the account.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<OperatorKey>, StoreError> {
    listing::page::<Row, OperatorKey>(conn, &LIST, selection, OperatorKey::position).await
}

/// The keys of the account that work now, oldest first.
pub async fn list_valid(
    conn: &mut Conn,
    account: AccountId,
    now: UnixMillis,
) -> Result<Vec<OperatorKey>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_VALID, account.as_str(), now.0)?;
    rows.into_iter().map(OperatorKey::try_from).collect()
}

/// How many keys of the account work now, and how many of these are of a project, and of an operator.
pub async fn count_valid(
    conn: &mut Conn,
    account: AccountId,
    (project, operator): (Option<ProjectId>, &str),
    now: UnixMillis,
) -> Result<(i64, i64, i64), StoreError> {
    Ok(fetch_one!(conn, COUNT_VALID, account.as_str(), now.0, project.map(|id| id.to_string()), operator)?)
}

/// Every key that an operator has or had, oldest first.
pub async fn list_of(
    conn: &mut Conn,
    account: AccountId,
    operator: &str,
) -> Result<Vec<OperatorKey>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_OF, account.as_str(), operator)?;
    rows.into_iter().map(OperatorKey::try_from).collect()
}

/// Writes a key that [`find_locked`] gave, changed.
pub async fn update(tx: &mut Tx, account: AccountId, key: &OperatorKey) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        UPDATE,
        account.as_str(),
        &key.hash[..],
        &key.label,
        key.updated_at.0,
        key.expires_at.map(|at| at.0),
        networks(key),
        key.revoked_at.map(|at| at.0),
        key.life_ms,
        key.replaced_at.map(|at| at.0)
    )?;
    let id = key.id().to_string();
    let before = tx.remembered(KIND, &id);
    tx.note(account, (KIND, &id), || (before, Some(state_of(key))));
    Ok(())
}
