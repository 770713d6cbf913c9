//! The table of API keys, by their hash.

use std::collections::{HashMap, HashSet};

use shared::{
    id::{AccountId, ApplicationId, ProjectId},
    time::UnixMillis,
};

use sqlx::types::Json;

use super::{Conn, Raw, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional, parse};
use crate::domain::{
    access::{Actor, ActorKind},
    api_key::{Bounds, KnownKey},
    role,
    subject::Permissions,
};

const INSERT: &str =
    "INSERT INTO api_keys (hash, account_id, kind, actor_id, created_at) VALUES ($1, $2, $3, $4, $5)";
const INSERT_OF: &str = "INSERT INTO api_keys \
    (hash, account_id, kind, actor_id, project_id, app_id, created_at, generation) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (hash) DO NOTHING";
// An application takes all its keys and those of its users with it, even one that is being created concurrently.
macro_rules! find {
    ($which:literal) => {
        concat!(
            "SELECT k.hash, k.account_id, k.kind, k.actor_id, k.project_id, k.app_id, a.enterprise, \
             a.user_rights, a.suspended_at, k.expires_at, k.networks, o.roles, o.projects, p.user_role FROM api_keys k \
             JOIN accounts a ON a.id = k.account_id LEFT JOIN applications p ON p.id = k.app_id \
             LEFT JOIN operators o ON o.id = k.actor_id AND o.account_id = k.account_id WHERE ",
            $which,
            " AND k.revoked_at IS NULL AND (k.app_id IS NULL OR p.id IS NOT NULL)"
        )
    };
}

const FIND: &str = find!("k.hash = $1");
const PG_FIND_MANY: &str = find!("k.hash = ANY($1)");
const SQLITE_FIND_MANY: &str = find!("k.hash IN (SELECT unhex(value) FROM json_each($1))");
const PG_ROLES: &str = "SELECT account_id, id, permissions FROM roles WHERE id = ANY($1)";
const SQLITE_ROLES: &str =
    "SELECT account_id, id, permissions FROM roles WHERE id IN (SELECT value FROM json_each($1))";
const IS_OVER: &str =
    "SELECT revoked_at IS NOT NULL OR COALESCE(expires_at <= $2, FALSE) FROM api_keys WHERE hash = $1";
const FIND_ACCOUNT: &str = "SELECT account_id FROM api_keys WHERE hash = $1";
const REVOKE: &str = "UPDATE api_keys SET revoked_at = $2 WHERE hash = $1 AND revoked_at IS NULL";
const REVOKE_ALL: &str = "UPDATE api_keys SET revoked_at = $3 WHERE account_id = $1 AND actor_id = $2 \
    AND revoked_at IS NULL";
// The keys of one kind that an owner has now, until a time at the latest, or at once.
const END: &str = "UPDATE api_keys SET revoked_at = $4 WHERE account_id = $1 AND actor_id = $2 AND kind = $3 \
    AND revoked_at IS NULL";
const END_AT: &str = "UPDATE api_keys SET expires_at = $4 WHERE account_id = $1 AND actor_id = $2 AND kind = $3 \
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $4)";
const END_SESSIONS: &str = "UPDATE api_keys SET revoked_at = $4 WHERE account_id = $1 AND actor_id = $2 \
    AND kind = 'session' AND hash <> $3 AND revoked_at IS NULL";
const REVOKE_OF_PROJECT: &str = "UPDATE api_keys SET revoked_at = $3 WHERE account_id = $1 AND project_id = $2 \
    AND kind IN ('operator', 'projectOperator') AND revoked_at IS NULL";
const GENERATION: &str = "SELECT COALESCE(MAX(generation), 0), \
    COALESCE(MAX(CASE WHEN revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) THEN generation END), 0) \
    FROM api_keys WHERE account_id = $1 AND actor_id = $2";
// Another replica writes the same hour into a row that it has locked.
const PG_NOTE_USE: &str = "UPDATE api_keys SET last_used_at = $2 WHERE hash IN (SELECT hash FROM api_keys \
    WHERE hash = ANY($1) AND (last_used_at IS NULL OR last_used_at < $2) ORDER BY hash FOR UPDATE SKIP LOCKED)";
const SQLITE_NOTE_USE: &str = "UPDATE api_keys SET last_used_at = $2 \
    WHERE hash IN (SELECT unhex(value) FROM json_each($1)) AND (last_used_at IS NULL OR last_used_at < $2)";
const DELETE_OF_APP: &str =
    "DELETE FROM api_keys WHERE hash IN (SELECT hash FROM api_keys WHERE app_id = $1 LIMIT $2)";
const LEFT_OF_APP: &str = "SELECT hash FROM api_keys WHERE app_id = $1 LIMIT 1";

#[derive(sqlx::FromRow)]
struct Row {
    hash: Vec<u8>,
    account_id: String,
    kind: String,
    actor_id: String,
    project_id: Option<String>,
    app_id: Option<String>,
    enterprise: bool,
    user_rights: String,
    suspended_at: Option<i64>,
    expires_at: Option<i64>,
    networks: Option<String>,
    /// Ids of an operator's roles.
    roles: Option<String>,
    /// The projects that these are confined to.
    projects: Option<String>,
    /// The role of an application's users.
    user_role: Option<String>,
}

/// Permissions of roles that accounts made, by account and id.
type Roles = HashMap<(String, String), Permissions>;

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
    execute!(&mut **tx, INSERT, &hash[..], account.as_str(), kind.as_str(), actor_id, at_ms)?;
    Ok(())
}

/// Adds a key of any kind by its SHA-256, unless it exists; a derived one with a prefix has a `generation`.
pub async fn insert_of(
    tx: &mut Tx,
    hash: &[u8; 32],
    actor: &Actor,
    generation: Option<u32>,
    at_ms: i64,
) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT_OF,
        &hash[..],
        actor.account.as_str(),
        actor.kind.as_str(),
        &actor.id,
        actor.project.map(|id| id.to_string()),
        actor.app.map(|id| id.to_string()),
        at_ms,
        generation.map(i64::from)
    )?;
    Ok(())
}

/// Finds a key that is not revoked.
pub async fn find(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<KnownKey>, StoreError> {
    Ok(find_many(conn, &[*hash]).await?.remove(hash))
}

/// Finds keys by their hashes; those that are unknown or revoked are left out.
pub async fn find_many(
    conn: &mut Conn,
    hashes: &[[u8; 32]],
) -> Result<HashMap<[u8; 32], KnownKey>, StoreError> {
    let wanted: HashSet<&[u8; 32]> = hashes.iter().collect();
    let rows: Vec<Row> = match (conn.raw(), wanted.len()) {
        (_, 0) => Vec::new(),
        (Raw::Pg(c), 2..) => {
            let wanted: Vec<&[u8]> = wanted.iter().map(|hash| &hash[..]).collect();
            sqlx::query_as(PG_FIND_MANY).bind(wanted).fetch_all(c).await?
        }
        (Raw::Sqlite(c), 2..) => {
            let wanted = hex(wanted.into_iter());
            sqlx::query_as(SQLITE_FIND_MANY).bind(wanted).fetch_all(c).await?
        }
        (_, 1) => {
            let hash: Vec<u8> = wanted.into_iter().flatten().copied().collect();
            fetch_all!(conn, FIND, hash)?
        }
    };
    let roles = find_roles(conn, &rows).await?;
    // A row that this release cannot parse counts as an unknown key: it must not fail the other keys of the batch.
    let read = |row| match read(row, &roles) {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "a key cannot be read");
            None
        }
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

/// The permissions of the roles that the owners of keys have, but for those of every account.
async fn find_roles(conn: &mut Conn, rows: &[Row]) -> Result<Roles, StoreError> {
    let named = rows.iter().flat_map(|row| [&row.roles, &row.user_role]).flatten();
    let mut ids: Vec<String> = named
        .flat_map(|ids| ids.split(','))
        .filter(|id| role::permissions_of(id).is_none())
        .map(str::to_owned)
        .collect();
    if ids.is_empty() {
        return Ok(Roles::new());
    }
    ids.sort_unstable();
    ids.dedup();
    let rows: Vec<(String, String, String)> = match conn.raw() {
        Raw::Pg(c) => sqlx::query_as(PG_ROLES).bind(ids).fetch_all(c).await?,
        Raw::Sqlite(c) => sqlx::query_as(SQLITE_ROLES).bind(Json(ids)).fetch_all(c).await?,
    };
    // What a newer release added is skipped: one role must not fail the look-up of other keys.
    let known = |text: &str| {
        let each = text.split_whitespace().filter_map(|one| Permissions::parse(one).ok());
        each.fold(Permissions::default(), Permissions::with)
    };
    Ok(rows.into_iter().map(|(account, id, text)| ((account, id), known(&text))).collect())
}

/// Hashes as a list that SQLite reads.
fn hex<'a>(hashes: impl Iterator<Item = &'a [u8; 32]>) -> Json<Vec<String>> {
    let hex = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Json(hashes.map(hex).collect())
}

/// A key as it is known; `None` where its owner is gone, or it is for a project that its role does not have.
fn read(row: Row, roles: &Roles) -> Result<Option<([u8; 32], KnownKey)>, StoreError> {
    let hash = row.hash.try_into().map_err(|_| StoreError::Row("hash: another length".to_owned()))?;
    // The key of a session is its operator's; a kind of its own keeps it out of lists of keys.
    let is_session = row.kind == "session";
    let kind = if is_session { ActorKind::Operator } else { parse("kind", &row.kind)? };
    let project = row.project_id.map(|id| parse::<ProjectId>("project_id", &id)).transpose()?;
    // A role that is gone allows nothing.
    let allowed = |ids: &str| {
        ids.split(',').fold(Permissions::default(), |all, id| {
            let own = || roles.get(&(row.account_id.clone(), id.to_owned())).copied().unwrap_or_default();
            all.with(role::permissions_of(id).unwrap_or_else(own))
        })
    };
    let permissions = match (kind.is_operator(), &row.roles, &row.user_role) {
        (true, None, _) => return Ok(None),
        (true, Some(ids), _) => allowed(ids),
        (false, _, Some(id)) if kind == ActorKind::User => allowed(id),
        (false, ..) => Permissions::ALL,
    };
    let confined: Option<Vec<ProjectId>> = match row.projects {
        Some(ids) => Some(ids.split(',').map(|id| parse("projects", id)).collect::<Result<_, _>>()?),
        None => None,
    };
    let (kind, project, confined_to) = match (confined, project) {
        (None, project) => (kind, project, Vec::new()),
        (Some(projects), Some(of_key)) if projects.contains(&of_key) => (kind, Some(of_key), Vec::new()),
        (Some(_), Some(_)) => return Ok(None),
        (Some(projects), None) => match projects[..] {
            [only] => (ActorKind::ProjectOperator, Some(only), projects),
            _ => (ActorKind::ProjectOperator, None, projects),
        },
    };
    let actor = Actor {
        account: parse("account_id", &row.account_id)?,
        kind,
        id: row.actor_id,
        project,
        app: row.app_id.map(|id| parse::<ApplicationId>("app_id", &id)).transpose()?,
        enterprise: row.enterprise,
        user_rights: parse("user_rights", &row.user_rights)?,
        permissions,
        confined_to,
    };
    let networks = parse("networks", row.networks.as_deref().unwrap_or_default())?;
    Ok(Some((
        hash,
        KnownKey {
            actor,
            bounds: Bounds { expires_at: row.expires_at.map(UnixMillis), networks },
            is_suspended: row.suspended_at.is_some(),
            is_session,
        },
    )))
}

/// Writes when keys were last used, unless so late a use was written before.
pub async fn note_use(tx: &mut Tx, hashes: &[[u8; 32]], at: UnixMillis) -> Result<(), StoreError> {
    match tx.raw() {
        Raw::Pg(c) => {
            let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
            sqlx::query(PG_NOTE_USE).bind(hashes).bind(at.0).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(SQLITE_NOTE_USE).bind(hex(hashes.iter())).bind(at.0).execute(c).await?;
        }
    }
    Ok(())
}

/// The newest generations with a prefix of an owner's keys: of all, and of those that are valid now. 0 is none.
pub async fn find_generations(
    conn: &mut Conn,
    account: AccountId,
    actor_id: &str,
    now: UnixMillis,
) -> Result<(u32, u32), StoreError> {
    let (newest, valid): (i64, i64) = fetch_one!(conn, GENERATION, account.as_str(), actor_id, now.0)?;
    let number = |number: i64| u32::try_from(number).map_err(|_| StoreError::Row("generation".to_owned()));
    Ok((number(newest)?, number(valid)?))
}

/// Ends the valid keys of one kind of an owner: at a later time, or now.
pub async fn end_all(
    tx: &mut Tx,
    account: AccountId,
    kind: ActorKind,
    actor_id: &str,
    ends_at: UnixMillis,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let sql = if ends_at > now { END_AT } else { END };
    execute!(&mut **tx, sql, account.as_str(), actor_id, kind.as_str(), ends_at.0)?;
    Ok(())
}

/// Revokes the operators' keys that are confined to a project.
pub async fn revoke_of_project(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
    at_ms: i64,
) -> Result<(), StoreError> {
    execute!(&mut **tx, REVOKE_OF_PROJECT, account.as_str(), project.as_str(), at_ms)?;
    Ok(())
}

/// Whether a key was revoked or has expired; `None` when there never was one.
pub async fn is_over(conn: &mut Conn, hash: &[u8; 32], now: UnixMillis) -> Result<Option<bool>, StoreError> {
    let row: Option<(bool,)> = fetch_optional!(conn, IS_OVER, &hash[..], now.0)?;
    Ok(row.map(|(is_over,)| is_over))
}

/// The account of a key, whether it works or not.
pub async fn find_account(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<AccountId>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, FIND_ACCOUNT, &hash[..])?;
    row.map(|(id,)| parse("account_id", &id)).transpose()
}

/// Revokes one key; returns whether it was valid until now.
pub async fn revoke(tx: &mut Tx, hash: &[u8; 32], at_ms: i64) -> Result<bool, StoreError> {
    Ok(execute!(&mut **tx, REVOKE, &hash[..], at_ms)? == 1)
}

/// Revokes every key of an actor; returns how many there were.
pub async fn revoke_all(
    tx: &mut Tx,
    account: AccountId,
    actor_id: &str,
    at_ms: i64,
) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, REVOKE_ALL, account.as_str(), actor_id, at_ms)?)
}

/// Ends the sessions of an operator, but for the one whose key has the hash `except`.
pub async fn end_sessions(
    tx: &mut Tx,
    account: AccountId,
    operator: &str,
    except: &[u8],
    at_ms: i64,
) -> Result<(), StoreError> {
    execute!(&mut **tx, END_SESSIONS, account.as_str(), operator, except, at_ms)?;
    Ok(())
}

/// Removes keys of an application and of its users, at most `limit`; returns how many.
pub async fn delete_of_app(tx: &mut Tx, app: ApplicationId, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, DELETE_OF_APP, app.as_str(), i64::from(limit))?)
}

/// Whether an application, or a user of it, has keys.
pub async fn are_left_of_app(conn: &mut Conn, app: ApplicationId) -> Result<bool, StoreError> {
    let row: Option<(Vec<u8>,)> = fetch_optional!(conn, LEFT_OF_APP, app.as_str())?;
    Ok(row.is_some())
}
