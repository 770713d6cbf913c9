//! The table of sessions. The key of each is in the table of keys, with a kind of its own: so lists of keys show none.

use serde_json::json;
use shared::{
    id::{AccountId, OperatorId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional};
use crate::domain::{
    api_key::KeyId,
    session::{LONGEST_MS, Proof, Session},
};

/// What the audit trail calls them.
const KIND: &str = "session";

const INSERT_KEY: &str = "INSERT INTO api_keys (hash, account_id, kind, actor_id, created_by, created_at, updated_at, \
    expires_at) VALUES ($1, $2, 'session', $3, $3, $4, $4, $5)";
const INSERT: &str = "INSERT INTO operator_sessions (hash, account_id, operator_id, created_at, last_used_at, network, \
    agent, by_provider) VALUES ($1, $2, $3, $4, $4, $5, $6, $7)";
const LIST_VALID: &str = "SELECT s.hash, s.created_at, s.last_used_at, k.expires_at, s.network, s.agent, \
    s.by_provider \
    FROM operator_sessions s JOIN api_keys k ON k.hash = s.hash WHERE s.account_id = $1 AND s.operator_id = $2 \
    AND k.revoked_at IS NULL AND k.expires_at > $3 ORDER BY s.created_at, s.hash LIMIT 1000";
const END: &str = "UPDATE api_keys SET revoked_at = $4 WHERE account_id = $1 AND actor_id = $2 AND hash = $3 \
    AND kind = 'session' AND revoked_at IS NULL AND expires_at > $4";
const MUST_ENROL: &str = "SELECT EXISTS (SELECT 1 FROM operator_sessions s JOIN accounts a ON a.id = s.account_id \
    WHERE s.account_id = $1 AND s.hash = $2 AND a.second_factor_required AND NOT s.by_provider AND NOT EXISTS \
    (SELECT 1 FROM operator_authenticators t WHERE t.operator_id = s.operator_id AND t.confirmed_at IS NOT NULL))";
const FIND_OWNER: &str = "SELECT account_id, operator_id FROM operator_sessions WHERE hash = $1";
// A session that has ended stays ended.
const EXTEND: &str = "UPDATE api_keys SET expires_at = CASE WHEN created_at + $4 < $3 THEN created_at + $4 ELSE $3 END \
    WHERE account_id = $5 AND hash = $1 AND kind = 'session' AND revoked_at IS NULL AND expires_at > $2";
const NOTE_USE: &str = "UPDATE operator_sessions SET last_used_at = $2 WHERE account_id = $3 AND hash = $1";
const PURGE: &str = "DELETE FROM operator_sessions WHERE hash IN \
    (SELECT hash FROM operator_sessions WHERE last_used_at <= $1 ORDER BY last_used_at, hash LIMIT $2)";
const PURGE_KEYS: &str = "DELETE FROM api_keys WHERE hash IN (SELECT k.hash FROM api_keys k WHERE k.kind = 'session' \
    AND k.expires_at <= $1 ORDER BY k.expires_at, k.hash LIMIT $2)";

/// The account and operator of a session.
pub type Owner = (AccountId, OperatorId);

#[derive(sqlx::FromRow)]
struct Row {
    hash: Vec<u8>,
    created_at: i64,
    last_used_at: i64,
    expires_at: i64,
    network: Option<String>,
    agent: Option<String>,
    by_provider: bool,
}

impl TryFrom<Row> for Session {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            hash: row.hash.try_into().map_err(|_| StoreError::Row("hash: another length".to_owned()))?,
            created_at: UnixMillis(row.created_at),
            last_used_at: UnixMillis(row.last_used_at),
            expires_at: UnixMillis(row.expires_at),
            network: row.network,
            agent: row.agent,
            proof: if row.by_provider { Proof::Provider } else { Proof::Password },
        })
    }
}

/// Adds a session, with its key.
pub async fn insert(tx: &mut Tx, (account, operator): Owner, session: &Session) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT_KEY,
        &session.hash[..],
        account.as_str(),
        operator.as_str(),
        session.created_at.0,
        session.expires_at.0
    )?;
    execute!(
        &mut **tx,
        INSERT,
        &session.hash[..],
        account.as_str(),
        operator.as_str(),
        session.created_at.0,
        &session.network,
        &session.agent,
        session.proof == Proof::Provider
    )?;
    let state = || json!({"operator": operator, "network": session.network, "agent": session.agent});
    tx.note(account, (KIND, &KeyId::of(&session.hash).to_string()), || (None, Some(state())));
    Ok(())
}

/// The sessions of an operator that work now, oldest first.
pub async fn list_valid(
    conn: &mut Conn,
    (account, operator): Owner,
    now: UnixMillis,
) -> Result<Vec<Session>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST_VALID, account.as_str(), operator.as_str(), now.0)?;
    rows.into_iter().map(Session::try_from).collect()
}

/// Ends a session of an operator; returns whether it worked until now.
pub async fn end(
    tx: &mut Tx,
    (account, operator): Owner,
    hash: &[u8; 32],
    now: UnixMillis,
) -> Result<bool, StoreError> {
    let done = execute!(&mut **tx, END, account.as_str(), operator.as_str(), &hash[..], now.0)?;
    if done == 1 {
        let id = KeyId::of(hash).to_string();
        tx.note(account, (KIND, &id), || (Some(json!({"operator": operator})), None));
    }
    Ok(done == 1)
}

/// Whether a session serves to turn a second factor on and for nothing else: its account requires one, its operator has none,
/// and no provider of identities let it in.
pub async fn must_enrol(conn: &mut Conn, account: AccountId, hash: &[u8; 32]) -> Result<bool, StoreError> {
    let (must,): (bool,) = fetch_one!(conn, MUST_ENROL, account.as_str(), &hash[..])?;
    Ok(must)
}

/// Whose session it is, be it over or not.
pub async fn find_owner(conn: &mut Conn, hash: &[u8; 32]) -> Result<Option<Owner>, StoreError> {
    let row: Option<(String, String)> = fetch_optional!(conn, FIND_OWNER, &hash[..])?;
    let read = |(account, operator): (String, String)| {
        Ok((super::parse("account_id", &account)?, super::parse("operator_id", &operator)?))
    };
    row.map(read).transpose()
}

/// Notes that a session that works was used, and lets it work until `until`, or until it is as old as sessions get.
pub async fn extend(
    tx: &mut Tx,
    account: AccountId,
    hash: &[u8; 32],
    now: UnixMillis,
    until: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, EXTEND, &hash[..], now.0, until.0, LONGEST_MS, account.as_str())?;
    execute!(&mut **tx, NOTE_USE, &hash[..], now.0, account.as_str())?;
    Ok(())
}

/// Removes some sessions that were last used before a time; returns how many.
pub async fn purge(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, before, limit).await
}

/// Removes some keys of sessions that expired before a time; returns how many.
pub async fn purge_keys(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE_KEYS, before, limit).await
}
