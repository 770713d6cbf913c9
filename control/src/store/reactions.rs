//! The table of reactions.

use shared::id::{AccountId, ReactionId};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::fetch_in_list,
    documents::{Base, Cell, Document, Statements, statements},
    listing::{Column, Table},
    log::unsigned,
    on_db, parse,
};
use crate::domain::{
    event::Position,
    event_filter::{Condition, Types},
    reaction::{Effect, Failure, Outcome, Reaction, ReactionDetails, Status},
    resource::Stamp,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.project_id, t.name, t.doc, t.status, t.done, t.failed, t.dropped, t.last_at, \
         t.failure, t.failure_event, t.failure_at, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "reactions",
    columns!(),
    ", project_id, status",
    ", $6, $7",
    ", project_id = $6, status = $7",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM reactions t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("name", Column::Text("t.name")),
        ("status", Column::Text("t.status")),
        ("scopes.projects", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

const ANY: &str = "SELECT COUNT(*) FROM (SELECT seq FROM reactions WHERE status <> 'disabled' LIMIT 1) t";
const BEGIN_AT: &str = "UPDATE reactions SET since_xid = $2, since_seq = $3 WHERE seq = $1";
const COUNT: &str = "SELECT COUNT(*) FROM reactions WHERE account_id = $1";
const PG_REACTING: &str = "SELECT seq, id, account_id, project_id, name, doc, since_xid, since_seq FROM reactions \
    WHERE status <> $1 AND account_id = ANY($2) ORDER BY seq";
const SQLITE_REACTING: &str = "SELECT seq, id, account_id, project_id, name, doc, since_xid, since_seq FROM \
    reactions WHERE status <> $1 AND account_id IN (SELECT value FROM json_each($2)) ORDER BY seq";
const DROPPED: &str = "UPDATE reactions SET dropped = dropped + $2 WHERE seq = $1";
const CAME_OF: &str = "UPDATE reactions SET done = done + $2, failed = failed + $3, last_at = $4, \
    failure = COALESCE($5, failure), failure_event = COALESCE($6, failure_event), \
    failure_at = CASE WHEN $5 IS NULL THEN failure_at ELSE $4 END WHERE seq = $1";

/// The columns that only reactions have.
#[derive(sqlx::FromRow)]
pub struct Own {
    project_id: Option<String>,
    status: String,
    done: i64,
    failed: i64,
    dropped: i64,
    last_at: Option<i64>,
    failure: Option<String>,
    failure_event: Option<String>,
    failure_at: Option<i64>,
}

impl Document for Reaction {
    type Own = Own;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: ReactionId, stamp: Stamp, row: Base<Self>, own: Own) -> Result<Self, StoreError> {
        use shared::time::UnixMillis;
        let project = own.project_id.as_deref().map(|id| parse("project_id", id)).transpose()?;
        let status = Status::parse(&own.status).ok_or_else(|| StoreError::Row(own.status.clone()))?;
        let failure = own.failure_at.zip(own.failure).map(|(at, reason)| Failure {
            at: UnixMillis(at),
            event: own.failure_event.unwrap_or_default(),
            reason,
        });
        let outcome = Outcome {
            done: own.done,
            failed: own.failed,
            dropped: own.dropped,
            last_at: own.last_at.map(UnixMillis),
            failure,
        };
        Ok(Self { id, stamp, name: row.name, project, status, outcome, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.project.map(|id| id.to_string())),
            Cell::Text(Some(self.status.as_str().to_owned())),
        ]
    }
}

/// How many reactions an account has.
///
/// # Errors
/// The database failed.
pub async fn count(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let (count,): (i64,) = on_db!(conn, |c| sqlx::query_as(COUNT).bind(account.as_str()).fetch_one(c).await)?;
    Ok(unsigned(count))
}

/// Whether there is a reaction at all that may do something.
///
/// # Errors
/// The database failed.
pub async fn has_any(conn: &mut Conn) -> Result<bool, StoreError> {
    let (count,): (i64,) = on_db!(conn, |c| sqlx::query_as(ANY).fetch_one(c).await)?;
    Ok(count > 0)
}

/// Says from which place in the log on a reaction reacts.
///
/// # Errors
/// The database failed.
pub async fn begin_at(tx: &mut Tx, seq: i64, place: Position) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(BEGIN_AT)
        .bind(seq)
        .bind(place.xid)
        .bind(place.seq)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// A reaction as the log is shared out to it.
#[derive(Debug, Clone)]
pub struct Reacting {
    /// Its number.
    pub seq: i64,
    /// Its id.
    pub id: ReactionId,
    /// The account.
    pub account: AccountId,
    /// The project to whose events it reacts.
    pub project: Option<String>,
    /// Its name.
    pub name: String,
    /// The types to which it reacts.
    pub types: Types,
    /// What an event must meet.
    pub condition: Option<Condition>,
    /// What it does.
    pub effect: Effect,
    /// The place behind which it reacts.
    pub since: Position,
}

type ReactingRow = (i64, String, String, Option<String>, String, Json<ReactionDetails>, i64, i64);

/// The reactions of some accounts that do something.
///
/// # Errors
/// The database failed.
pub async fn list_reacting(conn: &mut Conn, accounts: &[String]) -> Result<Vec<Reacting>, StoreError> {
    let rows: Vec<ReactingRow> = fetch_in_list!(
        conn,
        ReactingRow,
        PG_REACTING,
        SQLITE_REACTING,
        [Status::Disabled.as_str()],
        accounts
    )?;
    rows.into_iter()
        .map(|(seq, id, account, project, name, Json(details), xid, since)| {
            let unread = |fault: String| StoreError::Row(format!("reaction {seq}: {fault}"));
            Ok(Reacting {
                seq,
                id: parse("id", &id)?,
                account: parse("account_id", &account)?,
                project,
                name,
                types: Types::new(details.types).map_err(unread)?,
                condition: details.condition.as_deref().map(Condition::parse).transpose().map_err(unread)?,
                effect: details.effect,
                since: Position::behind(xid, since),
            })
        })
        .collect()
}

/// Counts events that found no room in the queue of a reaction.
///
/// # Errors
/// The database failed.
pub async fn count_dropped(tx: &mut Tx, seq: i64, count: u64) -> Result<(), StoreError> {
    let count = super::log::signed(count);
    on_db!(&mut **tx, |c| sqlx::query(DROPPED).bind(seq).bind(count).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// What came of one reaction in a turn.
#[derive(Debug, Clone, Default)]
pub struct CameOf {
    /// How often it was carried out.
    pub done: i64,
    /// How often it could not be.
    pub failed: i64,
    /// The event and the reason of the last time that it could not be.
    pub failure: Option<(String, String)>,
}

/// Notes what came of a reaction.
///
/// # Errors
/// The database failed.
pub async fn note(tx: &mut Tx, seq: i64, at_ms: i64, came: &CameOf) -> Result<(), StoreError> {
    let (event, reason) = came.failure.as_ref().map(|(event, reason)| (event, reason)).unzip();
    on_db!(&mut **tx, |c| sqlx::query(CAME_OF)
        .bind(seq)
        .bind(came.done)
        .bind(came.failed)
        .bind(at_ms)
        .bind(reason)
        .bind(event)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}
