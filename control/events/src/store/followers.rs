//! Subscribers of the event log, webhooks and reactions: each has a start position in the log and a queue.
//!
//! A table defines its statements in a [`Follower`]; the operations are here, once.

use shared::id::AccountId;
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::fetch_in_list,
    dialect::{signed, unsigned},
    documents::Document,
    execute, fetch_one, parse,
};
use crate::domain::{
    event::Position,
    event_filter::{Condition, Types},
    subscription_filter::SubscriptionFilter,
};

/// A resource that follows the log.
pub trait Follower: Document {
    /// The statements of its table and of its queue.
    const FOLLOWS: &'static Follows;

    /// Its subscription filter.
    fn subscription(details: &Self::Details) -> &SubscriptionFilter;

    /// Validates the types that it may subscribe to.
    ///
    /// # Errors
    /// The fault, as a sentence.
    fn types(names: Vec<String>) -> Result<Types, String>;

    /// Whether nothing is kept for it.
    fn is_disabled(&self) -> bool;
}

/// The statements of a table of followers.
#[derive(Debug)]
pub struct Follows {
    /// Counts the enabled ones, up to one.
    pub any: &'static str,
    /// Counts those of an account.
    pub count: &'static str,
    /// Where one begins to read the event log.
    pub begin_at: &'static str,
    /// Counts events that one lost.
    pub dropped: &'static str,
    /// Lists some of them, on Postgres.
    pub pg_list: &'static str,
    /// Lists some of them, on SQLite.
    pub sqlite_list: &'static str,
    /// Empties the queue of one.
    pub clear: &'static str,
}

/// The statements of a table, of its queue, and the column by which that names whose it is.
#[macro_export]
macro_rules! follows {
    ($table:expr, $queue:expr, $column:expr) => {
        $crate::store::followers::Follows {
            any: concat!(
                "SELECT COUNT(*) FROM (SELECT seq FROM ",
                $table,
                " WHERE status <> 'disabled' LIMIT 1) t"
            ),
            count: concat!("SELECT COUNT(*) FROM ", $table, " WHERE account_id = $1"),
            begin_at: concat!("UPDATE ", $table, " SET since_xid = $2, since_seq = $3 WHERE seq = $1"),
            dropped: concat!("UPDATE ", $table, " SET dropped = dropped + $2 WHERE seq = $1"),
            pg_list: concat!(
                "SELECT seq, id, account_id, project_id, name, doc, since_xid, since_seq FROM ",
                $table,
                " WHERE status <> 'disabled' AND account_id = ANY($1) ORDER BY seq"
            ),
            sqlite_list: concat!(
                "SELECT seq, id, account_id, project_id, name, doc, since_xid, since_seq FROM ",
                $table,
                " WHERE status <> 'disabled' AND account_id IN (SELECT value FROM json_each($1)) ORDER BY seq"
            ),
            clear: concat!(
                "DELETE FROM ",
                $queue,
                " WHERE seq IN (SELECT seq FROM ",
                $queue,
                " WHERE ",
                $column,
                " = $1 ORDER BY seq LIMIT $2)"
            ),
        }
    };
}
pub use follows;

/// Whether there is one at all that something may be kept for.
pub async fn has_any<F: Follower>(conn: &mut Conn) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, F::FOLLOWS.any)?;
    Ok(count > 0)
}

/// How many an account has.
pub async fn count<F: Follower>(conn: &mut Conn, account: AccountId) -> Result<u64, StoreError> {
    let sql = F::FOLLOWS.count;
    let (count,): (i64,) = fetch_one!(conn, sql, account.as_str())?;
    Ok(unsigned(count))
}

/// Sets the position in the log after which a subscriber receives events.
pub async fn begin_at<F: Follower>(tx: &mut Tx, seq: i64, place: Position) -> Result<(), StoreError> {
    let sql = F::FOLLOWS.begin_at;
    execute!(&mut **tx, sql, seq, place.xid, place.seq)?;
    Ok(())
}

/// Counts events that were dropped because the queue was full.
pub async fn count_dropped<F: Follower>(tx: &mut Tx, seq: i64, count: u64) -> Result<(), StoreError> {
    let (sql, count) = (F::FOLLOWS.dropped, signed(count));
    execute!(&mut **tx, sql, seq, count)?;
    Ok(())
}

/// Removes up to `limit` things from the queue of one; returns how many.
pub async fn clear(tx: &mut Tx, queue: &Follows, seq: i64, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, queue.clear, seq, i64::from(limit))?)
}

/// A follower as the log is queued to it.
#[derive(Debug, Clone)]
pub struct Following<F: Follower> {
    /// Its number.
    pub seq: i64,
    /// Its id.
    pub id: F::Id,
    /// The account.
    pub account: AccountId,
    /// The project whose events it receives.
    pub project: Option<String>,
    /// Its name.
    pub name: String,
    /// The types that it receives.
    pub types: Types,
    /// What an event must meet.
    pub condition: Option<Condition>,
    /// The position after which it receives events.
    pub since: Position,
    /// Everything else.
    pub details: F::Details,
}

type Row<F> = (
    i64,
    String,
    String,
    Option<String>,
    String,
    Json<<F as crate::domain::named::Named>::Details>,
    i64,
    i64,
);

/// Those of some accounts that something is kept for.
pub async fn list<F: Follower>(
    conn: &mut Conn,
    accounts: &[String],
) -> Result<Vec<Following<F>>, StoreError> {
    let (pg, sqlite) = (F::FOLLOWS.pg_list, F::FOLLOWS.sqlite_list);
    let rows = fetch_in_list!(conn, Row<F>, pg, sqlite, [], accounts)?;
    rows.into_iter().map(read).collect()
}

fn read<F: Follower>(row: Row<F>) -> Result<Following<F>, StoreError> {
    let (seq, id, account, project, name, Json(details), xid, since) = row;
    let unread = |fault: String| StoreError::Row(format!("{} {seq}: {fault}", F::KIND));
    let SubscriptionFilter { types, condition } = F::subscription(&details).clone();
    Ok(Following {
        seq,
        id: parse("id", &id)?,
        account: parse("account_id", &account)?,
        project,
        name,
        types: F::types(types).map_err(unread)?,
        condition: condition.as_deref().map(Condition::parse).transpose().map_err(unread)?,
        since: Position::behind(xid, since),
        details,
    })
}
