//! The change log: all changes that edges receive, in one order (`control/README.md`, "Change log").

use std::sync::Arc;

use serde_json::Value;
use shared::wire::stream::{Change, Event, Rev};
use sqlx::types::Json;

use super::{
    Conn, Group, NewChange, Raw, StoreError, Tx,
    dialect::{self, signed, unsigned},
    event_log, execute, fetch_all, fetch_one, fetch_optional,
};

const PG_LOCK: &str = "SELECT head FROM log_head WHERE id = 1 FOR UPDATE";
const LOCK: &str = "SELECT head FROM log_head WHERE id = 1";
const TAKE: &str = "UPDATE log_head SET head = head + $1 WHERE id = 1 RETURNING head";
const RAISE: &str = "UPDATE log_head SET head = $1 WHERE id = 1 AND head < $1";
const HEAD: &str = "SELECT epoch, bound_to, head, compacted FROM log_head WHERE id = 1";
const INIT: &str = "INSERT INTO log_head (id, epoch, bound_to, head, compacted) VALUES (1, $1, $2, 0, 0) \
    ON CONFLICT (id) DO NOTHING";
const BIND: &str = "UPDATE log_head SET epoch = $1, bound_to = $2 WHERE id = 1 AND bound_to <> $2";
const PG_END_HISTORY: &str = "UPDATE log_head SET epoch = gen_random_uuid()::text \
    WHERE id = 1 AND epoch = $1 AND head < $2";
const AFTER: &str = "SELECT rev, change FROM redirect_log WHERE rev > $1 \
    AND EXISTS (SELECT 1 FROM log_head WHERE id = 1 AND epoch = $2) ORDER BY rev LIMIT $3";
const OLD: &str = "SELECT COALESCE(MAX(rev), 0) FROM redirect_log WHERE at < $1 AND rev <= $2";
const RAISE_COMPACTED: &str = "UPDATE log_head SET compacted = $1 WHERE id = 1 AND compacted < $1";
const DELETE_UP_TO: &str = "DELETE FROM redirect_log WHERE rev > $1 AND rev <= $2";

/// The head of the change log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Random id of this history.
    pub epoch: Arc<str>,
    /// An identity outside of the tables that the epoch is bound to: a copy of the database has another one.
    pub bound_to: String,
    /// The newest revision.
    pub head: Rev,
    /// Revisions up to this one are deleted.
    pub compacted: Rev,
}

/// Locks the order of changes until the transaction ends: no other transaction takes revisions.
///
/// A transaction takes this first if its writes depend on redirections that it reads. Taking a revision alone is not
/// enough on Postgres, where what was read before waiting for the lock may be outdated.
///
/// # Errors
/// The log was never set up.
pub async fn lock(tx: &mut Tx) -> Result<(), StoreError> {
    let sql = dialect::pick(tx, PG_LOCK, LOCK);
    let (_head,): (i64,) = fetch_one!(&mut **tx, sql)?;
    Ok(())
}

/// Locks the order of changes for requests that share a transaction: their revisions are counted in memory, and their entries
/// and events written together at its end, which [`finish_group`] begins.
///
/// # Errors
/// The log was never set up.
pub async fn begin_group(tx: &mut Tx) -> Result<(), StoreError> {
    let sql = dialect::pick(tx, PG_LOCK, LOCK);
    let (head,): (i64,) = fetch_one!(&mut **tx, sql)?;
    tx.group = Some(Group::new(unsigned(head)));
    Ok(())
}

/// Writes the new head and the entries of a group; a commit without it is refused.
pub async fn finish_group(tx: &mut Tx) -> Result<(), StoreError> {
    let Some(group) = &mut tx.group else { return Ok(()) };
    let (head, changes) = group.take_changes();
    if !changes.is_empty() {
        execute!(&mut **tx, RAISE, signed(head))?;
        insert_log(tx, &changes).await?;
    }
    Ok(())
}

/// Takes `count` revisions; the first of them comes back.
///
/// The row lock is held to commit, so revisions are gapless and in commit order.
///
/// # Errors
/// The log was never set up.
pub async fn take_revs(tx: &mut Tx, count: u64) -> Result<Rev, StoreError> {
    if let Some(group) = &mut tx.group {
        return Ok(group.take_revs(count));
    }
    let (head,): (i64,) = fetch_one!(&mut **tx, TAKE, signed(count))?;
    Ok(unsigned(head) + 1 - count)
}

/// Appends changes; their revisions must have been taken in this transaction.
///
/// # Errors
/// A change cannot be written as JSON.
pub async fn append(tx: &mut Tx, at_ms: i64, events: &[Event]) -> Result<(), StoreError> {
    let change = |event: &Event| match serde_json::to_value(&event.change) {
        Ok(change) => Ok((event.rev, at_ms, change)),
        Err(error) => Err(StoreError::Row(format!("change: {error}"))),
    };
    let changes = events.iter().map(change).collect::<Result<Vec<NewChange>, _>>()?;
    match &mut tx.group {
        Some(group) => {
            group.append(changes);
            Ok(())
        }
        None => insert_log(tx, &changes).await,
    }
}

/// The newest revision, those of this transaction included.
///
/// # Errors
/// The log was never set up.
pub async fn newest_rev(tx: &mut Tx) -> Result<Rev, StoreError> {
    match &tx.group {
        Some(group) => Ok(group.head()),
        None => Ok(load_head(tx).await?.head),
    }
}

/// The head, if the log was set up.
pub async fn find_head(conn: &mut Conn) -> Result<Option<Head>, StoreError> {
    let row: Option<(String, String, i64, i64)> = fetch_optional!(conn, HEAD)?;
    Ok(row.map(|(epoch, bound_to, head, compacted)| Head {
        epoch: epoch.into(),
        bound_to,
        head: unsigned(head),
        compacted: unsigned(compacted),
    }))
}

/// Sets the log up, unless it is; a binding that differs from the stored one mints the new epoch.
pub async fn bind(tx: &mut Tx, fresh_epoch: &str, bound_to: &str) -> Result<Head, StoreError> {
    execute!(&mut **tx, INIT, fresh_epoch, bound_to)?;
    let head = load_head(tx).await?;
    if head.bound_to == bound_to {
        return Ok(head);
    }
    // Replicas that start together all come here: the second one waits for the row and finds it bound. Another epoch
    // of its own would stop the first.
    let minted = execute!(&mut **tx, BIND, fresh_epoch, bound_to)?;
    if minted == 1 {
        end_leases(tx).await?;
        event_log::adopt(tx).await?;
    }
    load_head(tx).await
}

/// Gives the log a new epoch if its head is still below a revision that an edge has seen; returns whether it did.
///
/// Then the database was reset without another sign of it, for example by a snapshot of its disk. Only in a fleet: on
/// SQLite the single edge starts over by itself.
///
/// # Errors
/// The database is not Postgres.
pub async fn end_history(tx: &mut Tx, epoch: &str, seen: Rev) -> Result<bool, StoreError> {
    let ended = match tx.raw() {
        Raw::Pg(c) => sqlx::query(PG_END_HISTORY).bind(epoch).bind(signed(seen)).execute(c).await?,
        Raw::Sqlite(_) => return Err(StoreError::Row("a SQLite database serves one process".to_owned())),
    };
    let ended = ended.rows_affected() == 1;
    if ended {
        end_leases(tx).await?;
    }
    Ok(ended)
}

/// The head of a log that was set up.
///
/// # Errors
/// The log was never set up.
pub async fn load_head(conn: &mut Conn) -> Result<Head, StoreError> {
    find_head(conn).await?.ok_or_else(|| StoreError::Row("log_head is empty".to_owned()))
}

/// Up to `limit` changes after `cursor` in the epoch, in order; nothing once there is another epoch.
///
/// The same statement checks the epoch, so that a revision that a restored database assigns again is never taken for
/// the next one of the epoch that is followed.
///
/// # Errors
/// A stored change cannot be read.
pub async fn list_after(
    conn: &mut Conn,
    epoch: &str,
    cursor: Rev,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<(i64, Json<Value>)> = fetch_all!(conn, AFTER, signed(cursor), epoch, i64::from(limit))?;
    rows.into_iter()
        .map(|(rev, Json(change))| {
            let change: Change = serde_json::from_value(change)
                .map_err(|error| StoreError::Row(format!("change {rev}: {error}")))?;
            Ok(Event { rev: unsigned(rev), change })
        })
        .collect()
}

/// Deletes changes that are older than `before_ms` and not among the last `keep`; at most `limit` of them.
///
/// Returns how many revisions were deleted.
pub async fn compact(tx: &mut Tx, before_ms: i64, keep: u64, limit: u64) -> Result<u64, StoreError> {
    let head = load_head(tx).await?;
    let highest = head.head.saturating_sub(keep).min(head.compacted + limit);
    let (up_to,): (i64,) = fetch_one!(&mut **tx, OLD, before_ms, signed(highest))?;
    let up_to = unsigned(up_to);
    if up_to <= head.compacted {
        return Ok(0);
    }
    // The mark is raised in the same transaction: a reader never misses rows that it was promised.
    execute!(&mut **tx, RAISE_COMPACTED, signed(up_to))?;
    execute!(&mut **tx, DELETE_UP_TO, signed(head.compacted), signed(up_to))?;
    Ok(up_to - head.compacted)
}

const PG_LOG: &str = "INSERT INTO redirect_log (rev, at, change) \
    SELECT rev, at, change FROM UNNEST($1::bigint[], $2::bigint[], $3::jsonb[]) AS t (rev, at, change)";

const SQLITE_LOG: &str = "INSERT INTO redirect_log (rev, at, change) \
    SELECT value ->> '$[0]', value ->> '$[1]', value -> '$[2]' FROM json_each($1)";

async fn insert_log(tx: &mut Tx, changes: &[NewChange]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_LOG)
                .bind(changes.iter().map(|(rev, _, _)| signed(*rev)).collect::<Vec<_>>())
                .bind(changes.iter().map(|(_, at, _)| *at).collect::<Vec<_>>())
                .bind(changes.iter().map(|(_, _, change)| Json(change)).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            sqlx::query(SQLITE_LOG).bind(Json(changes)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

const END_REPLICAS: &str = "DELETE FROM control_replicas";
const END_EDGE_LEASES: &str = "UPDATE edge_leases SET lease_until = 0, applied = 0";

/// Ends the leases of edges and replicas: what they said belongs to a history that is over.
async fn end_leases(tx: &mut Tx) -> Result<(), StoreError> {
    execute!(&mut **tx, END_EDGE_LEASES)?;
    execute!(&mut **tx, END_REPLICAS)?;
    Ok(())
}
