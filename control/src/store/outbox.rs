//! What is to be told of new actions: written in the transaction that makes them, read by whoever delivers.
//!
//! A row holds the actions of one account that were made together, in the order of their ids; readers of a
//! kind go by `seq`. Nothing delivers yet, so rows are kept for a while and then go.

use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{StoreError, Tx, on_db};

/// How long a row is kept that nobody took.
const KEPT_MS: i64 = 24 * 60 * 60 * 1_000;

/// Most rows that are kept; those of jobs hold thousands of actions each.
const KEPT_ROWS: i64 = 100_000;

/// What is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// To whoever follows the account.
    Notification,
    /// To the rules that react to actions.
    Reaction,
}

impl Kind {
    /// Every kind: what an action leaves that nothing is kept from.
    pub const ALL: [Self; 2] = [Self::Notification, Self::Reaction];

    /// The kind as stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Notification => "notification",
            Self::Reaction => "reaction",
        }
    }
}

const INSERT: &str = "INSERT INTO outbox (account_id, kind, actions, created_at) VALUES ($1, $2, $3, $4)";
// The subqueries keep one step short: it ends at the row that fills it.
const PURGE_OLD: &str = "DELETE FROM outbox WHERE created_at <= (SELECT MAX(created_at) FROM \
    (SELECT created_at FROM outbox WHERE created_at <= $1 ORDER BY created_at LIMIT $2) t)";
const PURGE_MANY: &str = "DELETE FROM outbox WHERE seq <= (SELECT MAX(seq) FROM (SELECT seq FROM outbox \
    WHERE seq <= (SELECT MAX(seq) FROM outbox) - $1 ORDER BY seq LIMIT $2) t)";

/// Notes actions that were made together, once for each kind.
///
/// # Errors
/// The database failed.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    kinds: &[Kind],
    actions: &[ActionId],
    now: UnixMillis,
) -> Result<(), StoreError> {
    if actions.is_empty() {
        return Ok(());
    }
    for kind in kinds {
        on_db!(&mut **tx, |c| sqlx::query(INSERT)
            .bind(account.as_str())
            .bind(kind.as_str())
            .bind(Json(actions))
            .bind(now.0)
            .execute(c)
            .await
            .map(|_| ()))?;
    }
    Ok(())
}

/// Removes about `limit` of the rows that are too old or too many; gives how many, 0 when none is left.
///
/// # Errors
/// The database failed.
pub async fn purge(tx: &mut Tx, now: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    let mut removed = 0;
    for (sql, bound) in [(PURGE_OLD, now.0 - KEPT_MS), (PURGE_MANY, KEPT_ROWS)] {
        removed += on_db!(&mut **tx, |c| sqlx::query(sql)
            .bind(bound)
            .bind(i64::from(limit))
            .execute(c)
            .await
            .map(|done| done.rows_affected()))?;
    }
    Ok(removed)
}
