//! Copies of actions that wait for others: messages of webhooks and tasks of reactions.

use kernel::{
    execute, on_db,
    store::{Conn, StoreError, Tx, dialect},
};
use shared::id::AccountId;

const PG_MESSAGES: &str = "SELECT seq, body FROM webhook_messages WHERE account_id = $1 AND seq > $2 ORDER BY seq \
    LIMIT $3 FOR UPDATE";
const SQLITE_MESSAGES: &str =
    "SELECT seq, body FROM webhook_messages WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
// What a receiver answered may repeat what it was sent.
const MESSAGE: &str =
    "UPDATE webhook_messages SET body = $3, excerpt = NULL WHERE account_id = $1 AND seq = $2";
const PG_TASKS: &str = "SELECT seq, deed FROM reaction_tasks WHERE account_id = $1 AND seq > $2 ORDER BY seq \
    LIMIT $3 FOR UPDATE";
const SQLITE_TASKS: &str =
    "SELECT seq, deed FROM reaction_tasks WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
const TASK: &str = "UPDATE reaction_tasks SET deed = $3 WHERE account_id = $1 AND seq = $2";

/// Texts that one step looks at.
const STEP: i64 = 500;

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// Messages of webhooks: those that wait, and those that were sent and are kept for some days.
    Messages,
    /// What reactions are to do.
    Tasks,
}

/// The next texts of an account after a number, each with its own; on Postgres they are locked.
pub async fn list(
    tx: &mut Tx,
    copies: Copies,
    account: AccountId,
    after: i64,
) -> Result<Vec<(i64, String)>, StoreError> {
    let sql = match copies {
        Copies::Messages => dialect::pick(tx, PG_MESSAGES, SQLITE_MESSAGES),
        Copies::Tasks => dialect::pick(tx, PG_TASKS, SQLITE_TASKS),
    };
    Ok(on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .persistent(false)
        .bind(account.as_str())
        .bind(after)
        .bind(STEP)
        .fetch_all(c)
        .await)?)
}

/// Replaces a text.
pub async fn update(
    conn: &mut Conn,
    copies: Copies,
    account: AccountId,
    seq: i64,
    text: &str,
) -> Result<(), StoreError> {
    let sql = match copies {
        Copies::Messages => MESSAGE,
        Copies::Tasks => TASK,
    };
    execute!(conn, sql, account.as_str(), seq, text)?;
    Ok(())
}
