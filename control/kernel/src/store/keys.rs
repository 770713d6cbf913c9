//! The table of API keys, by their hash.

use std::collections::{HashMap, HashSet};

use shared::{
    id::{AccountId, ApplicationId, ProjectId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, on_db, parse};
use crate::domain::access::{Actor, ActorKind};

const INSERT: &str =
    "INSERT INTO api_keys (hash, account_id, kind, actor_id, created_at) VALUES ($1, $2, $3, $4, $5)";
const INSERT_OF: &str = "INSERT INTO api_keys (hash, account_id, kind, actor_id, project_id, app_id, created_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (hash) DO NOTHING";
// An application takes all its keys and those of its users with it, even one that is being created concurrently.
macro_rules! find {
    ($which:literal) => {
        concat!(
            "SELECT k.hash, k.account_id, k.kind, k.actor_id, k.project_id, k.app_id, a.enterprise, \
             a.user_rights FROM api_keys k \
             JOIN accounts a ON a.id = k.account_id LEFT JOIN applications p ON p.id = k.app_id WHERE ",
            $which,
            " AND k.revoked_at IS NULL AND (k.app_id IS NULL OR p.id IS NOT NULL)"
        )
    };
}

const FIND: &str = find!("k.hash = $1");
const PG_FIND_MANY: &str = find!("k.hash = ANY($1)");
const IS_REVOKED: &str = "SELECT revoked_at IS NOT NULL FROM api_keys WHERE hash = $1";
const REVOKE: &str = "UPDATE api_keys SET revoked_at = $2 WHERE hash = $1 AND revoked_at IS NULL";
const REVOKE_ALL: &str = "UPDATE api_keys SET revoked_at = $3 WHERE account_id = $1 AND actor_id = $2 \
    AND revoked_at IS NULL";
const LIST_OF: &str = "SELECT hash, created_at, revoked_at FROM api_keys WHERE account_id = $1 AND actor_id = $2 \
    ORDER BY created_at, hash";
const DELETE_OF_APP: &str = "DELETE FROM api_keys WHERE app_id = $1";

type Row = (Vec<u8>, String, String, String, Option<String>, Option<String>, bool, String);

/// Adds a key of an operator by its SHA-256.
///
/// # Errors
/// [`StoreError::Unique`] when the key exists.
pub async fn insert(
    tx: &mut Tx,
    hash: &[u8; 32],
    account: AccountId,
    kind: ActorKind,
    actor_id: &str,
    at_ms: i64,
) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(INSERT)
        .bind(&hash[..])
        .bind(account.as_str())
        .bind(kind.as_str())
        .bind(actor_id)
        .bind(at_ms)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Adds a key of any kind by its SHA-256, unless it exists.
pub async fn insert_of(tx: &mut Tx, hash: &[u8; 32], actor: &Actor, at_ms: i64) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(INSERT_OF)
        .bind(&hash[..])
        .bind(actor.account.as_str())
        .bind(actor.kind.as_str())
        .bind(&actor.id)
        .bind(actor.project.map(|id| id.to_string()))
        .bind(actor.app.map(|id| id.to_string()))
        .bind(at_ms)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Finds who owns a key that is not revoked.
pub async fn find(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<Actor>, StoreError> {
    Ok(find_many(conn, &[*hash]).await?.remove(hash))
}

/// Finds who owns keys; those that are unknown or revoked are left out.
pub async fn find_many(conn: &mut Conn, hashes: &[[u8; 32]]) -> Result<HashMap<[u8; 32], Actor>, StoreError> {
    let wanted: HashSet<&[u8; 32]> = hashes.iter().collect();
    let mut rows: Vec<Row> = Vec::new();
    match conn {
        Conn::Pg(c) if wanted.len() > 1 => {
            let wanted: Vec<&[u8]> = wanted.iter().map(|hash| &hash[..]).collect();
            rows = sqlx::query_as(PG_FIND_MANY).bind(wanted).fetch_all(&mut **c).await?;
        }
        conn => {
            for hash in wanted {
                let row = on_db!(conn, |c| sqlx::query_as(FIND).bind(&hash[..]).fetch_optional(c).await)?;
                rows.extend(row);
            }
        }
    }
    rows.into_iter().map(read).collect()
}

fn read(
    (hash, account, kind, id, project, app, enterprise, user_rights): Row,
) -> Result<([u8; 32], Actor), StoreError> {
    let hash = hash.try_into().map_err(|_| StoreError::Row("hash: another length".to_owned()))?;
    let actor = Actor {
        account: parse("account_id", &account)?,
        kind: parse("kind", &kind)?,
        id,
        project: project.map(|id| parse::<ProjectId>("project_id", &id)).transpose()?,
        app: app.map(|id| parse::<ApplicationId>("app_id", &id)).transpose()?,
        enterprise,
        user_rights: parse("user_rights", &user_rights)?,
    };
    Ok((hash, actor))
}

/// A key of an actor, without the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its SHA-256.
    pub hash: Vec<u8>,
    /// Creation time.
    pub created_at: UnixMillis,
    /// When it was revoked, if it was.
    pub revoked_at: Option<UnixMillis>,
}

/// Every key that an actor has or had, oldest first.
pub async fn list_of(
    conn: &mut Conn,
    account: AccountId,
    actor_id: &str,
) -> Result<Vec<KeyRecord>, StoreError> {
    let rows: Vec<(Vec<u8>, i64, Option<i64>)> =
        on_db!(conn, |c| sqlx::query_as(LIST_OF).bind(account.as_str()).bind(actor_id).fetch_all(c).await)?;
    Ok(rows
        .into_iter()
        .map(|(hash, created_at, revoked_at)| KeyRecord {
            hash,
            created_at: UnixMillis(created_at),
            revoked_at: revoked_at.map(UnixMillis),
        })
        .collect())
}

/// Whether a key was revoked; `None` when there never was one.
pub async fn is_revoked(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<bool>, StoreError> {
    let row: Option<(bool,)> =
        on_db!(conn, |c| sqlx::query_as(IS_REVOKED).bind(&hash[..]).fetch_optional(c).await)?;
    Ok(row.map(|(revoked,)| revoked))
}

/// Revokes one key; returns whether it was valid until now.
pub async fn revoke(tx: &mut Tx, hash: &[u8; 32], at_ms: i64) -> Result<bool, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query(REVOKE)
        .bind(&hash[..])
        .bind(at_ms)
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?
        == 1)
}

/// Revokes every key of an actor; returns how many there were.
pub async fn revoke_all(
    tx: &mut Tx,
    account: AccountId,
    actor_id: &str,
    at_ms: i64,
) -> Result<u64, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query(REVOKE_ALL)
        .bind(account.as_str())
        .bind(actor_id)
        .bind(at_ms)
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?)
}

/// Removes the keys of an application and of its users.
pub async fn delete_of_app(tx: &mut Tx, app: ApplicationId) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE_OF_APP).bind(app.as_str()).execute(c).await.map(|_| ()))?;
    Ok(())
}
