//! Anonymous users whom nobody has seen for long.

use shared::{
    id::{AccountId, UserId},
    time::UnixMillis,
};

use super::{StoreError, Tx, execute, fetch_all, parse};

// Of whatever account: they only age. The last use of a key is known to the hour.
const LIST: &str = "SELECT u.account_id, u.id, u.updated_at, (SELECT MAX(COALESCE(k.last_used_at, k.created_at)) \
    FROM api_keys k WHERE k.account_id = u.account_id AND k.actor_id = u.id AND k.kind = 'user') FROM app_users u \
    WHERE u.status = 'anonymous' AND COALESCE(u.seen_at, u.updated_at) <= $1 \
    ORDER BY COALESCE(u.seen_at, u.updated_at), u.id LIMIT $2";
const SEE: &str = "UPDATE app_users SET seen_at = $3 WHERE account_id = $1 AND id = $2";

/// A user, and when it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Its account.
    pub account: AccountId,
    /// Its id.
    pub id: UserId,
    /// When it or its keys were last changed or used.
    pub seen_at: UnixMillis,
}

/// Some users who were last looked at, or changed, before a time; the oldest first.
pub async fn list(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<Vec<Idle>, StoreError> {
    let rows: Vec<(String, String, i64, Option<i64>)> =
        fetch_all!(&mut **tx, LIST, before.0, i64::from(limit))?;
    let read = |(account, id, updated_at, used_at): (String, String, i64, Option<i64>)| {
        Ok(Idle {
            account: parse("account_id", &account)?,
            id: parse("id", &id)?,
            seen_at: UnixMillis(used_at.map_or(updated_at, |used_at| used_at.max(updated_at))),
        })
    };
    rows.into_iter().map(read).collect()
}

/// Notes when a user was last seen, so that it is looked at again a year later.
pub async fn see(tx: &mut Tx, user: Idle) -> Result<(), StoreError> {
    execute!(&mut **tx, SEE, user.account.as_str(), user.id.as_str(), user.seen_at.0)?;
    Ok(())
}
