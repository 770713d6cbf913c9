//! The table of custom action types.

use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, audit::state_of, dialect, execute, fetch_all, fetch_one, fetch_optional, on_db,
};
use crate::domain::{
    action_type::{CustomType, NewType},
    common::{Common, Stamp},
};

macro_rules! columns {
    () => {
        "SELECT seq, name, doc, created_at, updated_at FROM action_types WHERE account_id = $1"
    };
}

/// What the audit trail calls them.
const KIND: &str = "actionType";

const INSERT: &str = "INSERT INTO action_types (account_id, name, doc, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $4) RETURNING seq";
const LIST: &str = concat!(columns!(), " ORDER BY created_at, seq");
const FIND: &str = concat!(columns!(), " AND name = $2");
const PG_FIND_LOCKED: &str = concat!(columns!(), " AND name = $2 FOR UPDATE");
const COUNT: &str = "SELECT COUNT(*) FROM action_types WHERE account_id = $1";
const UPDATE: &str = "UPDATE action_types SET doc = $3, updated_at = $4 WHERE account_id = $1 AND name = $2";
const DELETE: &str = "DELETE FROM action_types WHERE account_id = $1 AND name = $2";

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    name: String,
    doc: Json<Common>,
    created_at: i64,
    updated_at: i64,
}

impl From<Row> for CustomType {
    fn from(row: Row) -> Self {
        let (created_at, updated_at) = (UnixMillis(row.created_at), UnixMillis(row.updated_at));
        Self { name: row.name, stamp: Stamp { seq: row.seq, created_at, updated_at }, details: row.doc.0 }
    }
}

/// Adds a type; it comes back with its place.
///
/// # Errors
/// [`StoreError::Unique`] when the account has a type of this name.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    new: NewType,
    now: UnixMillis,
) -> Result<CustomType, StoreError> {
    let (seq,): (i64,) =
        fetch_one!(&mut **tx, INSERT, account.as_str(), &new.name, Json(&new.details), now.0)?;
    tx.note(account, (KIND, &new.name), || (None, Some(state_of(&new.details))));
    let stamp = Stamp { seq, created_at: now, updated_at: now };
    Ok(CustomType { name: new.name, stamp, details: new.details })
}

/// All types of an account, oldest first; there are few of them.
pub async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<CustomType>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST, account.as_str())?;
    Ok(rows.into_iter().map(CustomType::from).collect())
}

/// How many types an account has.
pub async fn count(conn: &mut Conn, account: AccountId) -> Result<i64, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(COUNT).bind(account.as_str()).fetch_one(c).await)?)
}

/// A type by its name.
pub async fn find(conn: &mut Conn, account: AccountId, name: &str) -> Result<Option<CustomType>, StoreError> {
    fetch(conn, FIND, account, name).await
}

/// A type by its name, locked until the transaction ends.
pub async fn find_locked(
    tx: &mut Tx,
    account: AccountId,
    name: &str,
) -> Result<Option<CustomType>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_LOCKED, FIND);
    let found = fetch(tx, sql, account, name).await?;
    if let Some(found) = &found {
        tx.remember(KIND, name, || state_of(&found.details));
    }
    Ok(found)
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    name: &str,
) -> Result<Option<CustomType>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, sql, account.as_str(), name)?;
    Ok(row.map(CustomType::from))
}

/// Writes a type that [`find_locked`] gave, changed.
pub async fn update(tx: &mut Tx, account: AccountId, changed: &CustomType) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        UPDATE,
        account.as_str(),
        &changed.name,
        Json(&changed.details),
        changed.stamp.updated_at.0
    )?;
    let before = tx.remembered(KIND, &changed.name);
    tx.note(account, (KIND, &changed.name), || (before, Some(state_of(&changed.details))));
    Ok(())
}

/// Removes a type; returns whether it was there. Its actions stay.
pub async fn delete(tx: &mut Tx, account: AccountId, name: &str) -> Result<bool, StoreError> {
    let gone = execute!(&mut **tx, DELETE, account.as_str(), name)?;
    let before = tx.remembered(KIND, name);
    tx.note(account, (KIND, name), || (before, None));
    Ok(gone == 1)
}
