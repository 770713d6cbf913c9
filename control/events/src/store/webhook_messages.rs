//! Messages of webhooks: waiting, delivered and failed.

use std::time::Duration;

use serde_json::{Value, json};
use shared::{
    id::{AccountId, WebhookId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::unsigned,
    execute, fetch_all, fetch_one,
    lease::{Timed, milliseconds, pg_now, sqlite_now, timed},
    listing::{self, Column, Selection, Table},
};
use crate::domain::page::{Page, Position};

// Due from now on: retries and new messages are ordered by the time at which they are due.
const PG_INSERT: &str = concat!(
    "INSERT INTO webhook_messages (webhook, account_id, message_id, type, body, created_at, status, next_at) \
     SELECT webhook, account_id, message_id, type, body, $1, 'pending', ",
    pg_now!(),
    " FROM UNNEST($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY \
     AS t (webhook, account_id, message_id, type, body, place) ORDER BY place"
);
const SQLITE_INSERT: &str = concat!(
    "INSERT INTO webhook_messages (webhook, account_id, message_id, type, body, created_at, status, next_at) \
     SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]', value ->> '$[4]', $1, \
     'pending', ",
    sqlite_now!(),
    " FROM json_each($2) ORDER BY key"
);

macro_rules! due {
    ($now:expr) => {
        concat!(
            "SELECT seq, message_id, type, body, created_at, attempts, COALESCE(",
            $now,
            " - first_at, 0), CAST(0 AS BIGINT) FROM webhook_messages WHERE webhook = $1 AND status = 'pending' AND next_at <= ",
            $now,
            " ORDER BY next_at, seq LIMIT $2"
        )
    };
}
macro_rules! first {
    ($now:expr) => {
        concat!(
            "SELECT seq, message_id, type, body, created_at, attempts, COALESCE(",
            $now,
            " - first_at, 0), next_at - ",
            $now,
            " FROM webhook_messages WHERE webhook = $1 AND status = 'pending' ORDER BY seq LIMIT $2"
        )
    };
}
const DUE: Timed = timed!(due);
const FIRST: Timed = timed!(first);
const PG_SETTLE: &str = concat!(
    "UPDATE webhook_messages SET status = t.status, attempts = attempts + 1, next_at = t.pause + ",
    pg_now!(),
    ", first_at = COALESCE(first_at, ",
    pg_now!(),
    "), last_at = ",
    pg_now!(),
    ", http_status = t.http_status, excerpt = t.excerpt, error = t.error FROM UNNEST($1::bigint[], $2::text[], \
     $3::bigint[], $4::bigint[], $5::text[], $6::text[]) AS t (seq, status, pause, http_status, excerpt, error) \
     WHERE webhook_messages.seq = t.seq AND webhook_messages.status = 'pending'"
);
const SQLITE_SETTLE: &str = concat!(
    "UPDATE webhook_messages SET status = t.value ->> '$[1]', attempts = attempts + 1, next_at = (t.value ->> '$[2]') + ",
    sqlite_now!(),
    ", first_at = COALESCE(first_at, ",
    sqlite_now!(),
    "), last_at = ",
    sqlite_now!(),
    ", http_status = t.value ->> '$[3]', excerpt = t.value ->> '$[4]', error = t.value ->> '$[5]' \
     FROM json_each($1) t WHERE webhook_messages.seq = t.value ->> '$[0]' AND webhook_messages.status = 'pending'"
);
const WAITING: &str = "SELECT COUNT(*) FROM (SELECT seq FROM webhook_messages \
    WHERE webhook = $1 AND status = 'pending' LIMIT $2) t";
macro_rules! renew {
    ($now:expr) => {
        concat!(
            "UPDATE webhook_messages SET next_at = ",
            $now,
            ", first_at = NULL WHERE seq IN (SELECT seq FROM webhook_messages WHERE webhook = $1 \
             AND status = 'pending' AND seq > $2 ORDER BY seq LIMIT $3) RETURNING seq"
        )
    };
}
const RENEW: Timed = timed!(renew);
const AGAIN: &str = "UPDATE webhook_messages SET status = 'pending', next_at = 0, first_at = NULL \
    WHERE webhook = $1 AND message_id = $2";
const RANGE: &str = "UPDATE webhook_messages SET status = 'pending', next_at = 0, first_at = NULL WHERE seq IN \
    (SELECT seq FROM webhook_messages WHERE webhook = $1 AND created_at >= $2 AND created_at <= $3 \
    AND status <> 'pending' AND ($4 = '' OR status = $4) AND seq > $5 ORDER BY seq LIMIT $6) RETURNING seq";
// Of what waits it leaves what was due later, such as messages that were renewed, and those of suspended accounts. Newer
// ones count among the `LIMIT`, so that no more than the oldest are read.
const PURGE: &str = "DELETE FROM webhook_messages WHERE seq IN (SELECT seq FROM \
    (SELECT m.seq, m.created_at FROM webhook_messages m WHERE m.created_at >= $1 OR m.status <> 'pending' \
    OR (m.next_at < $1 AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = m.account_id \
    AND a.suspended_at IS NOT NULL)) ORDER BY m.seq LIMIT $2) t WHERE created_at < $1) RETURNING status";
const LIST: Table = Table {
    select: "SELECT t.seq, t.message_id, t.type, t.body, t.created_at, t.status, t.attempts, t.next_at, t.last_at, \
        t.http_status, t.excerpt, t.error FROM webhook_messages t",
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("status", Column::Text("t.status")),
        ("type", Column::Text("t.type")),
        ("webhook", OF_WEBHOOK),
        ("scopes.projects", OF_PROJECT),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.message_id",
};
const OF_WEBHOOK: Column = Column::Clause {
    pg: "t.webhook = (SELECT w.seq FROM webhooks w WHERE w.account_id = $1 AND w.id = {})",
    sqlite: "t.webhook = (SELECT w.seq FROM webhooks w WHERE w.account_id = $1 AND w.id = {})",
};
const OF_PROJECT: Column = Column::Clause {
    pg: "t.webhook IN (SELECT w.seq FROM webhooks w WHERE w.account_id = $1 AND w.project_id = {})",
    sqlite: "t.webhook IN (SELECT w.seq FROM webhooks w WHERE w.account_id = $1 AND w.project_id = {})",
};

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct New {
    /// The number of its webhook.
    pub webhook: i64,
    /// The account.
    pub account: AccountId,
    /// Its id for the receiver.
    pub message_id: String,
    /// The type of its event.
    pub kind: String,
    /// The body.
    pub body: String,
}

/// Adds messages, in order.
pub async fn insert(tx: &mut Tx, at: UnixMillis, new: &[New]) -> Result<(), StoreError> {
    if new.is_empty() {
        return Ok(());
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_INSERT)
                .bind(at.0)
                .bind(new.iter().map(|new| new.webhook).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.account.to_string()).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.message_id.as_str()).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.kind.as_str()).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.body.as_str()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row = |new: &New| json!([new.webhook, new.account, new.message_id, new.kind, new.body]);
            let rows: Vec<Value> = new.iter().map(row).collect();
            sqlx::query(SQLITE_INSERT).bind(at.0).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// How many messages wait in the queue of a webhook, up to `most`.
pub async fn count_waiting(conn: &mut Conn, webhook: i64, most: u64) -> Result<u64, StoreError> {
    let most = super::dialect::signed(most);
    let (count,): (i64,) = fetch_one!(conn, WAITING, webhook, most)?;
    Ok(unsigned(count))
}

/// A message whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Its number.
    pub seq: i64,
    /// Its id for the receiver.
    pub message_id: String,
    /// The type of its event.
    pub kind: String,
    /// The body.
    pub body: String,
    /// When its event was queued.
    pub created_at: UnixMillis,
    /// How often it was tried.
    pub attempts: i64,
    /// How long ago that began.
    pub age_ms: i64,
}

/// Messages whose time has come, and how long it is to the first that has to wait, where the others wait for it.
pub type Ready = (Vec<Due>, Option<Duration>);

type DueRow = (i64, String, String, String, i64, i64, i64, i64);

/// Up to `limit` messages of a webhook whose time has come; in order, those before the first that has to wait.
pub async fn list_due(conn: &mut Conn, webhook: i64, ordered: bool, limit: u32) -> Result<Ready, StoreError> {
    let sql = if ordered { FIRST.of(conn) } else { DUE.of(conn) };
    let rows: Vec<DueRow> = fetch_all!(conn, sql, webhook, i64::from(limit))?;
    let waits = rows.iter().map(|(.., wait_ms)| *wait_ms).find(|wait_ms| *wait_ms > 0);
    let due = rows.into_iter().take_while(|(.., wait_ms)| *wait_ms <= 0);
    let due = due.map(|(seq, message_id, kind, body, created_at, attempts, age_ms, _)| Due {
        seq,
        message_id,
        kind,
        body,
        created_at: UnixMillis(created_at),
        attempts,
        age_ms,
    });
    Ok((due.collect(), waits.map(|wait_ms| Duration::from_millis(unsigned(wait_ms)))))
}

/// What became of a try.
#[derive(Debug, Clone)]
pub struct Tried {
    /// The message.
    pub seq: i64,
    /// `delivered`, `pending` or `dead`.
    pub status: &'static str,
    /// When it is tried again.
    pub pause: Duration,
    /// The receiver's status.
    pub http_status: Option<u16>,
    /// The beginning of its body.
    pub excerpt: Option<String>,
    /// Why there was no answer.
    pub error: Option<String>,
}

/// Writes what became of tries.
pub async fn settle(tx: &mut Tx, tried: &[Tried]) -> Result<(), StoreError> {
    let pause = |tried: &Tried| milliseconds(tried.pause);
    match &mut **tx {
        Conn::PgTx(c) => {
            // Planned each time, because a plan for a small table reads all of a large one.
            sqlx::query(PG_SETTLE)
                .persistent(false)
                .bind(tried.iter().map(|one| one.seq).collect::<Vec<_>>())
                .bind(tried.iter().map(|one| one.status).collect::<Vec<_>>())
                .bind(tried.iter().map(pause).collect::<Vec<_>>())
                .bind(tried.iter().map(|one| one.http_status.map(i64::from)).collect::<Vec<_>>())
                .bind(tried.iter().map(|one| one.excerpt.as_deref()).collect::<Vec<_>>())
                .bind(tried.iter().map(|one| one.error.as_deref()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row = |one: &Tried| {
                json!([one.seq, one.status, pause(one), one.http_status, one.excerpt, one.error])
            };
            let rows: Vec<Value> = tried.iter().map(row).collect();
            sqlx::query(SQLITE_SETTLE).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// Makes up to `limit` waiting messages after a number due now, with a full day of retries; returns the number of the
/// last, or `None` when there were fewer.
pub async fn renew(tx: &mut Tx, webhook: i64, after: i64, limit: u32) -> Result<Option<i64>, StoreError> {
    let sql = RENEW.of(tx);
    let seqs: Vec<(i64,)> = fetch_all!(&mut **tx, sql, webhook, after, i64::from(limit))?;
    let is_full = seqs.len() as u64 >= u64::from(limit);
    Ok(seqs.iter().map(|(seq,)| *seq).max().filter(|_| is_full))
}

/// Sends a message again; returns whether there is one.
pub async fn send_again(tx: &mut Tx, webhook: i64, message_id: &str) -> Result<bool, StoreError> {
    let again = execute!(&mut **tx, AGAIN, webhook, message_id)?;
    Ok(again > 0)
}

/// Which messages to send again.
#[derive(Debug, Clone)]
pub struct Range {
    /// Not earlier than this.
    pub from: i64,
    /// Not later.
    pub to: i64,
    /// `dead` or `delivered`; empty for both.
    pub status: String,
}

/// Sends up to `limit` messages behind a number again; returns how many, and the number of the last.
pub async fn send_range_again(
    tx: &mut Tx,
    webhook: i64,
    range: &Range,
    after: i64,
    limit: u32,
) -> Result<(u64, i64), StoreError> {
    let seqs: Vec<(i64,)> =
        fetch_all!(&mut **tx, RANGE, webhook, range.from, range.to, &range.status, after, i64::from(limit))?;
    Ok((seqs.len() as u64, seqs.iter().map(|(seq,)| *seq).max().unwrap_or(after)))
}

/// Removes the oldest of up to `limit` messages, as far as they are from before a time; returns how many, and how
/// many of them were still to be sent. What waits for a suspended account stays.
pub async fn purge(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<(u64, u64), StoreError> {
    let gone: Vec<(String,)> = fetch_all!(&mut **tx, PURGE, before.0, i64::from(limit))?;
    let pending = gone.iter().filter(|(status,)| status == "pending").count();
    Ok((gone.len() as u64, pending as u64))
}

/// A message as lists show it.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Delivery {
    seq: i64,
    created_at: i64,
    /// Its id for the receiver.
    pub message_id: String,
    /// The type of its event.
    pub r#type: String,
    /// The body.
    pub body: String,
    /// `pending`, `delivered` or `dead`.
    pub status: String,
    /// How often it was tried.
    pub attempts: i64,
    /// When it is tried again, in the database's milliseconds.
    pub next_at: i64,
    /// When it was tried last.
    pub last_at: Option<i64>,
    /// The receiver's status.
    pub http_status: Option<i64>,
    /// The beginning of its body.
    pub excerpt: Option<String>,
    /// Why there was no answer.
    pub error: Option<String>,
}

impl Delivery {
    /// When its event was queued.
    #[must_use]
    pub const fn created_at(&self) -> i64 {
        self.created_at
    }

    const fn position(&self) -> Position {
        Position { at: UnixMillis(self.created_at), seq: self.seq }
    }
}

/// A page of the waiting and sent messages of a webhook, which the selection names.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Delivery>, StoreError> {
    listing::page_of(conn, &LIST, selection, Ok, Delivery::position).await
}

/// The name by which a list selects a webhook.
#[must_use]
pub fn within(id: &WebhookId) -> [(&'static str, &str); 1] {
    [("webhook", id.as_str())]
}

/// Converts a count of the database.
#[must_use]
pub fn tries(attempts: i64) -> u64 {
    unsigned(attempts)
}
