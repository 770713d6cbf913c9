//! The event log: written in the transaction of the cause, read by every replica, kept for a day.
//!
//! On Postgres numbers are assigned before they are visible: 6 may be visible before 5. A lock would serialise all
//! commits, so the reader for live subscribers watches for gaps instead: see [`Snapshot`]. A reader that must be able
//! to resume reads the settled part: see [`super::event_log`].

use serde_json::{Value, json};
use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, fetch_one, parse};
use crate::domain::event::{Cause, Event, Quiet, Recorded};

const PG_RECORD: &str = "INSERT INTO events (at, account_id, kind, origin, quiet, cause, body) \
    SELECT $1, account_id, kind, $2, $6, $7, body FROM UNNEST($3::text[], $4::text[], $5::text[]) \
    WITH ORDINALITY AS t (account_id, kind, body, n) ORDER BY n";
const SQLITE_RECORD: &str = "INSERT INTO events (at, account_id, kind, origin, quiet, cause, body) \
    SELECT $1, value ->> '$[0]', value ->> '$[1]', $2, $4, $5, value ->> '$[2]' FROM json_each($3) ORDER BY key";
const PG_AFTER: &str = "SELECT seq, at, account_id, kind, origin, quiet, cause, body FROM events \
    WHERE seq > $1 OR seq = ANY($3::bigint[]) ORDER BY seq LIMIT $2";
const SQLITE_AFTER: &str = "SELECT seq, at, account_id, kind, origin, quiet, cause, body FROM events WHERE seq > $1 ORDER BY seq LIMIT $2";
const HEAD: &str = "SELECT COALESCE(MAX(seq), 0) FROM events";
const PG_SNAPSHOT: &str = "SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint \
    FROM pg_current_snapshot() s";
const PG_CHANNEL: &str = "SELECT 'waymark_events_' || current_schema()";
// A wake-up that is lost in a crash has no receiver, so its commit need not wait for the disk.
const PG_NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true), \
    pg_notify('waymark_events_' || current_schema(), $1)";

/// Records events in the transaction that caused them, after the writes that they describe.
///
/// The order matters on Postgres: a transaction that holds a number must have begun to write, so that its transaction
/// id is older than any snapshot that sees the gap.
pub async fn record(tx: &mut Tx, at: UnixMillis, events: &[(AccountId, Event)]) -> Result<(), StoreError> {
    record_quietly(tx, at, Quiet::default(), events).await
}

/// Like [`record`], excluding some kinds of subscribers.
pub async fn record_quietly(
    tx: &mut Tx,
    at: UnixMillis,
    quiet: Quiet,
    events: &[(AccountId, Event)],
) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let (origin, cause) = (tx.ctx().origin().map(str::to_owned), tx.ctx().stored_cause());
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_RECORD)
                .bind(at.0)
                .bind(origin)
                .bind(events.iter().map(|(account, _)| account.to_string()).collect::<Vec<_>>())
                .bind(events.iter().map(|(_, event)| event.kind()).collect::<Vec<_>>())
                .bind(events.iter().map(|(_, event)| event.to_body()).collect::<Vec<_>>())
                .bind(quiet.bits())
                .bind(&cause)
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = events
                .iter()
                .map(|(account, event)| json!([account, event.kind(), event.to_body()]))
                .collect();
            sqlx::query(SQLITE_RECORD)
                .bind(at.0)
                .bind(origin)
                .bind(Json(rows))
                .bind(quiet.bits())
                .bind(&cause)
                .execute(&mut **c)
                .await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => {
            return Err(StoreError::Row("an event outside of a transaction".to_owned()));
        }
    }
    Ok(())
}

/// Which transactions of Postgres are over: all below `oldest`; none from `next` on has begun.
///
/// A number that is missing while the snapshot's `next` is N was taken by a transaction below N. Once a later
/// snapshot has `oldest >= N` and the number is still missing, it was rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The oldest transaction that still runs.
    pub oldest: i64,
    /// The number that the next transaction gets.
    pub next: i64,
}

/// The transactions of now; `None` on SQLite, where numbers are seen in their order.
pub async fn find_snapshot(conn: &mut Conn) -> Result<Option<Snapshot>, StoreError> {
    let (oldest, next): (i64, i64) = match conn {
        Conn::Pg(c) => sqlx::query_as(PG_SNAPSHOT).fetch_one(&mut **c).await?,
        Conn::PgTx(c) => sqlx::query_as(PG_SNAPSHOT).fetch_one(&mut **c).await?,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => return Ok(None),
    };
    Ok(Some(Snapshot { oldest, next }))
}

type Row = (i64, i64, String, String, Option<String>, i64, Option<String>, String);

/// Up to `limit` events after a number, and those of `missing` that exist by now, in order.
///
/// # Errors
/// A row cannot be read.
pub async fn list_after(
    conn: &mut Conn,
    after: i64,
    missing: &[i64],
    limit: u32,
) -> Result<Vec<(i64, Option<Recorded>)>, StoreError> {
    let limit = i64::from(limit);
    let rows: Vec<Row> = match conn.raw() {
        super::Raw::Pg(c) => {
            sqlx::query_as(PG_AFTER).bind(after).bind(limit).bind(missing).fetch_all(c).await?
        }
        super::Raw::Sqlite(c) => sqlx::query_as(SQLITE_AFTER).bind(after).bind(limit).fetch_all(c).await?,
    };
    rows.into_iter()
        .map(|(seq, at, account, kind, origin, quiet, cause, body)| {
            let account = parse("account_id", &account)?;
            // A kind of a newer release is skipped: only that release has subscribers for it.
            let event = Event::read(&kind, &body);
            let (at, quiet) = (UnixMillis(at), Quiet::stored(quiet));
            let cause = read_cause(cause.as_deref())?;
            let recorded = event.map(|event| Recorded { seq, at, account, origin, quiet, cause, event });
            Ok((seq, recorded))
        })
        .collect()
}

/// Reads the stored cause of an event.
///
/// # Errors
/// The column does not fit.
pub fn read_cause(text: Option<&str>) -> Result<Cause, StoreError> {
    Cause::read(text).map_err(|error| StoreError::Row(format!("cause: {error}")))
}

/// The greatest number that can be seen.
pub async fn find_head(conn: &mut Conn) -> Result<i64, StoreError> {
    let (head,): (i64,) = fetch_one!(conn, HEAD)?;
    Ok(head)
}

/// The channel by which replicas wake each other; `None` on SQLite.
pub async fn find_channel(conn: &mut Conn) -> Result<Option<String>, StoreError> {
    match conn {
        Conn::Pg(c) => Ok(sqlx::query_scalar(PG_CHANNEL).fetch_one(&mut **c).await?),
        Conn::PgTx(c) => Ok(sqlx::query_scalar(PG_CHANNEL).fetch_one(&mut **c).await?),
        Conn::Sqlite(_) | Conn::SqliteTx(_) => Ok(None),
    }
}

/// Wakes the readers of all replicas in the name of one; nothing on SQLite.
pub async fn notify(conn: &mut Conn, name: &str) -> Result<(), StoreError> {
    match conn {
        Conn::Pg(c) => sqlx::query(PG_NOTIFY).bind(name).execute(&mut **c).await?,
        Conn::PgTx(c) => sqlx::query(PG_NOTIFY).bind(name).execute(&mut **c).await?,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => return Ok(()),
    };
    Ok(())
}

/// Listens for the wake-ups of all replicas.
pub struct Wakes(sqlx::postgres::PgListener);

shared::opaque!(Wakes);

impl Wakes {
    /// Listens on a connection of its own; `None` on SQLite, where there is one process.
    pub async fn open(db: &super::Db) -> Result<Option<Self>, StoreError> {
        let super::Db::Pg(pool) = db else { return Ok(None) };
        let channel = find_channel(&mut db.read().await?).await?;
        let Some(channel) = channel else { return Ok(None) };
        let mut listener = sqlx::postgres::PgListener::connect_with(pool).await?;
        listener.listen(&channel).await?;
        Ok(Some(Self(listener)))
    }

    /// Waits for the next wake-up and returns its name; `None` after a reconnect, when one may have been lost.
    pub async fn next(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.0.try_recv().await?.map(|heard| heard.payload().to_owned()))
    }
}
