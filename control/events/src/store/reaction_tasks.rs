//! The task queue of reactions, fair between accounts.
//!
//! Accounts are served in rotation, so one with much to do waits for each of the others. A worker holds the account's row until its
//! transaction ends, so tasks of an account run in order and never twice.

use std::time::Duration;

use serde_json::{Value, json};
use shared::{
    id::{AccountId, ProjectId, ReactionId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::{signed, unsigned},
    events, execute, fetch_all, fetch_one, fetch_optional,
    lease::{Timed, timed, timed_lock},
    parse,
};
use crate::domain::{
    event::Cause,
    reaction::{ResolvedEffect, Status},
};

const PG_INSERT: &str = "INSERT INTO reaction_tasks (account_id, reaction, event_id, cause, deed, created_at) \
    SELECT account_id, reaction, event_id, cause, deed, $1 FROM \
    UNNEST($2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY \
    AS t (account_id, reaction, event_id, cause, deed, place) ORDER BY place";
const SQLITE_INSERT: &str = "INSERT INTO reaction_tasks (account_id, reaction, event_id, cause, deed, created_at) \
    SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]', value ->> '$[4]', $1 \
    FROM json_each($2) ORDER BY key";
const COUNT: &str = "SELECT COUNT(*) FROM (SELECT seq FROM reaction_tasks WHERE account_id = $1 LIMIT $2) t";
const OPEN: &str = "INSERT INTO reaction_turns (account_id) VALUES ($1) ON CONFLICT (account_id) DO NOTHING";

// Tasks of a suspended account wait.
macro_rules! is_served {
    () => {
        " AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = t.account_id AND a.suspended_at IS NOT NULL)"
    };
}
macro_rules! due {
    ($now:expr) => {
        concat!(
            "SELECT COUNT(*) FROM (SELECT t.account_id FROM reaction_turns t WHERE t.resume_at <= ",
            $now,
            " AND EXISTS (SELECT 1 FROM reaction_tasks k WHERE k.account_id = t.account_id)",
            is_served!(),
            " LIMIT 1) d"
        )
    };
}
macro_rules! turn {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE reaction_turns SET served_at = ",
            $now,
            " WHERE account_id IN (SELECT t.account_id FROM reaction_turns t WHERE t.resume_at <= ",
            $now,
            " AND EXISTS (SELECT 1 FROM reaction_tasks k WHERE k.account_id = t.account_id)",
            is_served!(),
            " ORDER BY t.served_at, t.account_id LIMIT 1",
            $lock,
            ") RETURNING account_id"
        )
    };
}
macro_rules! rest {
    ($now:expr) => {
        concat!("UPDATE reaction_turns SET resume_at = $2 + ", $now, " WHERE account_id = $1")
    };
}
const DUE: Timed = timed!(due);
const TURN: Timed = timed_lock!(turn, " FOR UPDATE SKIP LOCKED");
const REST: Timed = timed!(rest);
const TRIED: &str = "UPDATE reaction_tasks SET attempts = attempts + 1 WHERE seq = $1 RETURNING attempts";
const NEXT: &str = "SELECT k.seq, k.reaction, k.event_id, k.cause, k.deed, k.created_at, k.attempts, r.id, \
    r.project_id, r.status FROM reaction_tasks k LEFT JOIN reactions r ON r.seq = k.reaction \
    WHERE k.account_id = $1 ORDER BY k.seq LIMIT $2";
const PG_DELETE: &str = "DELETE FROM reaction_tasks WHERE seq = ANY($1)";
const SQLITE_DELETE: &str = "DELETE FROM reaction_tasks WHERE seq IN (SELECT value FROM json_each($1))";

/// Something to be done.
#[derive(Debug, Clone)]
pub struct New {
    /// The account.
    pub account: AccountId,
    /// The number of the reaction.
    pub reaction: i64,
    /// The id of the event.
    pub event: String,
    /// The reactions that caused it.
    pub cause: Cause,
    /// The resolved effect.
    pub deed: ResolvedEffect,
}

/// Adds tasks, in order.
pub async fn insert(tx: &mut Tx, at: UnixMillis, new: &[New]) -> Result<(), StoreError> {
    if new.is_empty() {
        return Ok(());
    }
    let deed = |new: &New| {
        serde_json::to_string(&new.deed).map_err(|error| StoreError::Row(format!("deed: {error}")))
    };
    let deeds: Vec<String> = new.iter().map(deed).collect::<Result<_, _>>()?;
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_INSERT)
                .bind(at.0)
                .bind(new.iter().map(|new| new.account.to_string()).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.reaction).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.event.as_str()).collect::<Vec<_>>())
                .bind(new.iter().map(|new| new.cause.stored()).collect::<Vec<_>>())
                .bind(deeds)
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row = |(new, deed): (&New, &String)| {
                json!([new.account, new.reaction, new.event, new.cause.stored(), deed])
            };
            let rows: Vec<Value> = new.iter().zip(&deeds).map(row).collect();
            sqlx::query(SQLITE_INSERT).bind(at.0).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// How much an account's reactions have still to do, up to `most`.
pub async fn count(conn: &mut Conn, account: AccountId, most: u64) -> Result<u64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT, account.as_str(), signed(most))?;
    Ok(unsigned(count))
}

/// Includes an account in the rotation.
pub async fn open(tx: &mut Tx, account: AccountId) -> Result<(), StoreError> {
    execute!(&mut **tx, OPEN, account.as_str())?;
    Ok(())
}

/// Whether there is something to be done; cheap, and takes nothing.
pub async fn is_due(conn: &mut Conn) -> Result<bool, StoreError> {
    let sql = DUE.of(conn);
    let (count,): (i64,) = fetch_one!(conn, sql)?;
    Ok(count > 0)
}

/// The next account: the one that was served longest ago. It is locked until the transaction ends.
pub async fn take_turn(tx: &mut Tx) -> Result<Option<AccountId>, StoreError> {
    let sql = TURN.of(tx);
    let row: Option<(String,)> = fetch_optional!(&mut **tx, sql)?;
    row.map(|(account,)| parse("account_id", &account)).transpose()
}

/// Records a failed attempt and pauses the account; returns the number of attempts.
pub async fn put_off(
    tx: &mut Tx,
    account: AccountId,
    task: i64,
    pause: Duration,
) -> Result<Option<i64>, StoreError> {
    let sql = REST.of(tx);
    let pause = signed(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    execute!(&mut **tx, sql, account.as_str(), pause)?;
    let row: Option<(i64,)> = fetch_optional!(&mut **tx, TRIED, task)?;
    Ok(row.map(|(attempts,)| attempts))
}

/// A task of the account that was taken.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its number.
    pub seq: i64,
    /// The number of the reaction.
    pub reaction: i64,
    /// The id of the event.
    pub event: String,
    /// The reactions that caused it.
    pub cause: Cause,
    /// The resolved effect; `None` when it is of a newer release.
    pub deed: Option<ResolvedEffect>,
    /// When its event was queued.
    pub created_at: UnixMillis,
    /// How often it could not be tried to the end.
    pub attempts: i64,
    /// The reaction and its project, unless it is gone or disabled.
    pub by: Option<(ReactionId, Option<ProjectId>)>,
}

type Row =
    (i64, i64, String, Option<String>, String, i64, i64, Option<String>, Option<String>, Option<String>);

/// The first `limit` things that an account's reactions have to do.
pub async fn list_next(conn: &mut Conn, account: AccountId, limit: u32) -> Result<Vec<Task>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, NEXT, account.as_str(), i64::from(limit))?;
    rows.into_iter()
        .map(|(seq, reaction, event, cause, deed, created_at, attempts, id, project, status)| {
            let id = id.filter(|_| status.as_deref() == Some(Status::Active.as_str()));
            let project = project.map(|project| parse("project_id", &project)).transpose()?;
            Ok(Task {
                seq,
                reaction,
                event,
                cause: events::read_cause(cause.as_deref())?,
                deed: serde_json::from_str(&deed).ok(),
                created_at: UnixMillis(created_at),
                attempts,
                by: id.map(|id| Ok::<_, StoreError>((parse("id", &id)?, project))).transpose()?,
            })
        })
        .collect()
}

/// Deletes finished tasks.
pub async fn delete(tx: &mut Tx, seqs: &[i64]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => sqlx::query(PG_DELETE).bind(seqs).execute(&mut **c).await.map(|_| ())?,
        Conn::SqliteTx(c) => {
            sqlx::query(SQLITE_DELETE).bind(Json(seqs)).execute(&mut **c).await.map(|_| ())?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}
