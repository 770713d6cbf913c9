//! Copies of actions that wait for others: messages of webhooks and tasks of reactions.

use kernel::{
    on_db,
    store::{Conn, StoreError, Tx, dialect},
};
use shared::id::AccountId;

// By the primary key, in windows: the table is small, and no index has an account's messages in order.
const MESSAGES_NEXT: &str = "SELECT MIN(seq) FROM webhook_messages WHERE seq > $1";
const PG_MESSAGES: &str = "SELECT seq, body FROM webhook_messages WHERE account_id = $1 AND seq >= $2 AND seq < $3 \
    ORDER BY seq FOR UPDATE";
const SQLITE_MESSAGES: &str =
    "SELECT seq, body FROM webhook_messages WHERE account_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";
// What a receiver answered may repeat what it was sent.
const MESSAGE: &str =
    "UPDATE webhook_messages SET body = $3, excerpt = NULL WHERE account_id = $1 AND seq = $2";
const TASKS_NEXT: &str = "SELECT MIN(seq) FROM reaction_tasks WHERE seq > $1";
const PG_TASKS: &str = "SELECT seq, deed FROM reaction_tasks WHERE account_id = $1 AND seq >= $2 AND seq < $3 \
    ORDER BY seq FOR UPDATE";
const SQLITE_TASKS: &str =
    "SELECT seq, deed FROM reaction_tasks WHERE account_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";
const TASK: &str = "UPDATE reaction_tasks SET deed = $3 WHERE account_id = $1 AND seq = $2";

/// Numbers that one step looks at.
const WINDOW: i64 = 500;

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// Messages of webhooks: those that wait, and those that were sent and are kept for some days.
    Messages,
    /// What reactions are to do.
    Tasks,
}

/// Texts of an account with their numbers, and the last number that was looked at.
pub type Window = (Vec<(i64, String)>, i64);

/// The texts in the next window after a number, locked on Postgres; `None` when there is no later row.
pub async fn list(
    tx: &mut Tx,
    copies: Copies,
    account: AccountId,
    after: i64,
) -> Result<Option<Window>, StoreError> {
    let sql = match copies {
        Copies::Messages => MESSAGES_NEXT,
        Copies::Tasks => TASKS_NEXT,
    };
    let next: Option<i64> = on_db!(&mut **tx, |c| sqlx::query_scalar(sql).bind(after).fetch_one(c).await)?;
    let Some(next) = next else { return Ok(None) };
    let end = next.saturating_add(WINDOW);
    let sql = match copies {
        Copies::Messages => dialect::pick(tx, PG_MESSAGES, SQLITE_MESSAGES),
        Copies::Tasks => dialect::pick(tx, PG_TASKS, SQLITE_TASKS),
    };
    let rows: Vec<(i64, String)> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(next)
        .bind(end)
        .fetch_all(c)
        .await)?;
    Ok(Some((rows, end - 1)))
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
    on_db!(conn, |c| sqlx::query(sql)
        .bind(account.as_str())
        .bind(seq)
        .bind(text)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}
