//! The table of users of applications.

use std::collections::BTreeMap;

use shared::{
    id::{AccountId, ApplicationId, ProjectId, UserId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_one, fetch_optional,
    listing::{self, Column, Selection, Table},
    on_db, parse, quotas,
};
use crate::domain::{
    app_user::{AppUser, UserDetails, UserStatus},
    common::Stamp,
    page::Page,
    quota::Quota,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.project_id, t.app_id, t.status, t.doc, t.created_at, t.updated_at"
    };
}

// Those of a deleted application are gone for everybody, while they are removed.
macro_rules! there {
    () => {
        " AND NOT EXISTS (SELECT 1 FROM removed_applications r WHERE r.app_id = t.app_id)"
    };
}

const INSERT: &str = "INSERT INTO app_users (id, account_id, project_id, app_id, status, folded, password, \
    activation, activation_until, doc, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) RETURNING seq";
// The address of a user who is still to be removed is free: nobody can sign in with it.
const FREE_ADDRESS: &str = "UPDATE app_users SET folded = NULL WHERE project_id = $1 AND folded = $2 \
    AND EXISTS (SELECT 1 FROM removed_applications r WHERE r.app_id = app_users.app_id)";
const FIND: &str = concat!(columns!(), " FROM app_users t WHERE t.account_id = $1 AND t.id = $2", there!());
const PG_FIND_LOCKED: &str = concat!(
    columns!(),
    " FROM app_users t WHERE t.account_id = $1 AND t.id = $2",
    there!(),
    " FOR UPDATE OF t"
);
const FIND_LOGIN: &str = concat!(
    "SELECT t.id, t.status, t.password FROM app_users t WHERE t.project_id = $1 AND t.folded = $2",
    there!()
);
const FIND_BY_ADDRESS: &str =
    concat!(columns!(), " FROM app_users t WHERE t.project_id = $1 AND t.folded = $2", there!());
const PG_FIND_BY_ADDRESS_LOCKED: &str = concat!(
    columns!(),
    " FROM app_users t WHERE t.project_id = $1 AND t.folded = $2",
    there!(),
    " FOR UPDATE OF t"
);
const FIND_ACTIVATION: &str = "SELECT activation, activation_until FROM app_users WHERE id = $1";
const FIND_PASSWORD: &str = "SELECT folded, password FROM app_users WHERE account_id = $1 AND id = $2";
const ACTIVATE: &str = "UPDATE app_users SET status = $2, activation = NULL, activation_until = NULL, \
    updated_at = $3 WHERE id = $1";
const SET_PASSWORD: &str = "UPDATE app_users SET password = $2, updated_at = $3 WHERE id = $1";
// Of a user whose password changed: every key but the one by which the change came.
const REVOKE_OTHERS: &str = "UPDATE api_keys SET revoked_at = $4 WHERE account_id = $1 AND actor_id = $2 \
    AND hash <> $3 AND revoked_at IS NULL";
const UPDATE: &str = "UPDATE app_users SET doc = $2, updated_at = $3 WHERE id = $1";
const DELETE: &str = "DELETE FROM app_users WHERE account_id = $1 AND id = $2";
const PURGE: &str = "DELETE FROM app_users WHERE status = 'inactive' AND id IN \
    (SELECT id FROM app_users WHERE activation_until <= $1 ORDER BY activation_until, id LIMIT $2) \
    RETURNING account_id";
// An account is no plain column here: SQLite would look through all users of the account in place of those of the application.
const DELETE_OF_APP: &str = "DELETE FROM app_users WHERE account_id || '' = $1 AND id IN \
    (SELECT id FROM app_users WHERE app_id = $2 LIMIT $3) RETURNING id";
const LEFT_OF_APP: &str = "SELECT id FROM app_users WHERE account_id || '' = $1 AND app_id = $2 LIMIT 1";
const LIST: Table = Table {
    select: concat!(
        columns!(),
        " FROM (SELECT t.id, t.seq, t.account_id, t.project_id, t.app_id, t.status, t.doc, t.created_at, t.updated_at \
         FROM app_users t WHERE t.id IS NOT NULL",
        there!(),
        ") t"
    ),
    order: ("t.created_at", "t.seq"),
    columns: &[("scopes.projects", Column::Text("t.project_id")), ("scopes.users", Column::Text("t.id"))],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    project_id: String,
    app_id: String,
    status: String,
    doc: Json<UserDetails>,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<Row> for AppUser {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: parse("id", &row.id)?,
            project: parse("project_id", &row.project_id)?,
            app: parse("app_id", &row.app_id)?,
            status: parse("status", &row.status)?,
            stamp: Stamp {
                seq: row.seq,
                created_at: UnixMillis(row.created_at),
                updated_at: UnixMillis(row.updated_at),
            },
            details: row.doc.0,
        })
    }
}

/// A user that is about to be added.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// Its account.
    pub account: AccountId,
    /// Its id.
    pub id: UserId,
    /// Its project.
    pub project: ProjectId,
    /// The application that creates it.
    pub app: ApplicationId,
    /// Its status.
    pub status: UserStatus,
    /// The e-mail address in the form in which it is compared.
    pub folded: Option<String>,
    /// The hashed password.
    pub password: Option<String>,
    /// SHA-256 of the activation code, and when it expires.
    pub activation: Option<([u8; 32], UnixMillis)>,
    /// Everything else.
    pub details: &'a UserDetails,
}

/// Adds a user. Its address is taken from a user of a deleted application who is still to be removed.
///
/// # Errors
/// [`StoreError::Unique`] when the project has the address, [`StoreError::Exceeded`] when the account has as many users
/// as it may have.
pub async fn insert(tx: &mut Tx, row: NewRow<'_>, now: UnixMillis) -> Result<AppUser, StoreError> {
    if let Some(folded) = row.folded.as_deref() {
        execute!(&mut **tx, FREE_ADDRESS, row.project.as_str(), folded)?;
    }
    let (seq,): (i64,) = fetch_one!(
        &mut **tx,
        INSERT,
        row.id.as_str(),
        row.account.as_str(),
        row.project.as_str(),
        row.app.as_str(),
        row.status.as_str(),
        row.folded,
        row.password,
        row.activation.map(|(hash, _)| hash.to_vec()),
        row.activation.map(|(_, until)| until.0),
        Json(row.details),
        now.0
    )?;
    quotas::charge(tx, row.account, Quota::Users, 1, now).await?;
    Ok(AppUser {
        id: row.id,
        project: row.project,
        app: row.app,
        status: row.status,
        stamp: Stamp { seq, created_at: now, updated_at: now },
        details: row.details.clone(),
    })
}

/// A user of an account.
pub async fn find(conn: &mut Conn, account: AccountId, id: UserId) -> Result<Option<AppUser>, StoreError> {
    fetch(conn, FIND, account, id).await
}

/// A user of an account, locked until the transaction ends.
pub async fn find_locked(tx: &mut Tx, account: AccountId, id: UserId) -> Result<Option<AppUser>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_LOCKED, FIND);
    fetch(tx, sql, account, id).await
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    id: UserId,
) -> Result<Option<AppUser>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, sql, account.as_str(), id.as_str())?;
    row.map(AppUser::try_from).transpose()
}

/// The stored credentials of a login.
#[derive(Debug)]
pub struct Login {
    /// The user.
    pub id: UserId,
    /// How far it has come.
    pub status: UserStatus,
    /// The hashed password.
    pub password: Option<String>,
}

/// The user of a project with an e-mail address, in the form in which it is compared.
pub async fn find_login(
    conn: &mut Conn,
    project: ProjectId,
    folded: &str,
) -> Result<Option<Login>, StoreError> {
    let row: Option<(String, String, Option<String>)> =
        fetch_optional!(conn, FIND_LOGIN, project.as_str(), folded)?;
    row.map(|(id, status, password)| {
        Ok(Login { id: parse("id", &id)?, status: parse("status", &status)?, password })
    })
    .transpose()
}

/// SHA-256 of the code that activates a user, until it was used, and when it expires.
pub async fn find_activation(
    conn: &mut Conn,
    id: UserId,
) -> Result<Option<(Vec<u8>, Option<UnixMillis>)>, StoreError> {
    let row: Option<(Option<Vec<u8>>, Option<i64>)> = fetch_optional!(conn, FIND_ACTIVATION, id.as_str())?;
    Ok(row.and_then(|(hash, until)| Some((hash?, until.map(UnixMillis)))))
}

/// The user of a project with an e-mail address, in the form in which it is compared; locked until the transaction ends.
pub async fn find_by_address_locked(
    tx: &mut Tx,
    project: ProjectId,
    folded: &str,
) -> Result<Option<AppUser>, StoreError> {
    let sql = dialect::pick(tx, PG_FIND_BY_ADDRESS_LOCKED, FIND_BY_ADDRESS);
    let row: Option<Row> = fetch_optional!(&mut **tx, sql, project.as_str(), folded)?;
    row.map(AppUser::try_from).transpose()
}

/// Address, in the form in which it is compared, and hashed password of a user.
pub async fn find_password(
    conn: &mut Conn,
    account: AccountId,
    id: UserId,
) -> Result<Option<(String, String)>, StoreError> {
    let row: Option<(Option<String>, Option<String>)> =
        fetch_optional!(conn, FIND_PASSWORD, account.as_str(), id.as_str())?;
    Ok(row.and_then(|(folded, password)| folded.zip(password)))
}

/// Gives a user another password, hashed.
pub async fn set_password(tx: &mut Tx, id: UserId, password: &str, at: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, SET_PASSWORD, id.as_str(), password, at.0)?;
    Ok(())
}

/// Revokes the keys of a user but one, by its SHA-256.
pub async fn revoke_other_keys(
    tx: &mut Tx,
    account: AccountId,
    id: UserId,
    kept: &[u8; 32],
    at: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, REVOKE_OTHERS, account.as_str(), id.as_str(), &kept[..], at.0)?;
    Ok(())
}

/// Activates a user; its code is used up.
pub async fn activate(tx: &mut Tx, id: UserId, at: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, ACTIVATE, id.as_str(), UserStatus::Active.as_str(), at.0)?;
    Ok(())
}

/// A page of users.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<AppUser>, StoreError> {
    listing::page::<Row, AppUser>(conn, &LIST, selection, |user| user.stamp.position()).await
}

/// Writes a user that [`find_locked`] gave, changed.
pub async fn update(tx: &mut Tx, user: &AppUser) -> Result<(), StoreError> {
    execute!(&mut **tx, UPDATE, user.id.as_str(), Json(&user.details), user.stamp.updated_at.0)?;
    Ok(())
}

/// Removes a user; returns whether it was there.
pub async fn delete(tx: &mut Tx, account: AccountId, id: UserId) -> Result<bool, StoreError> {
    let gone = execute!(&mut **tx, DELETE, account.as_str(), id.as_str())?;
    quotas::release(tx, account, Quota::Users, gone);
    Ok(gone == 1)
}

/// Removes some users who never confirmed their address, and whose code expired before; returns how many.
pub async fn purge(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(&mut **tx, PURGE, before.0, i64::from(limit))?;
    // In one order, so that two of these never wait for each other.
    let mut gone: BTreeMap<AccountId, u64> = BTreeMap::new();
    for (account,) in &rows {
        *gone.entry(parse("account_id", account)?).or_default() += 1;
    }
    for (account, count) in gone {
        quotas::release(tx, account, Quota::Users, count);
    }
    Ok(rows.len() as u64)
}

/// Removes users of an application, at most `limit`; returns which.
pub async fn delete_of_app(
    tx: &mut Tx,
    account: AccountId,
    app: ApplicationId,
    limit: u32,
) -> Result<Vec<UserId>, StoreError> {
    let rows: Vec<String> = on_db!(&mut **tx, |c| sqlx::query_scalar(DELETE_OF_APP)
        .bind(account.as_str())
        .bind(app.as_str())
        .bind(i64::from(limit))
        .fetch_all(c)
        .await)?;
    quotas::release(tx, account, Quota::Users, rows.len() as u64);
    rows.iter().map(|id| parse("id", id)).collect()
}

/// Whether an application has users.
pub async fn are_left_of_app(
    conn: &mut Conn,
    account: AccountId,
    app: ApplicationId,
) -> Result<bool, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, LEFT_OF_APP, account.as_str(), app.as_str())?;
    Ok(row.is_some())
}
