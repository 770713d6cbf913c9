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
    SELECT at, account_id, kind, origin, quiet, cause, body FROM UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], \
    $5::bigint[], $6::text[], $7::text[]) WITH ORDINALITY AS t (at, account_id, kind, origin, quiet, cause, body, n) ORDER BY n";
const SQLITE_RECORD: &str = "INSERT INTO events (at, account_id, kind, origin, quiet, cause, body) \
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 \
    FROM json_each($1) ORDER BY key";
const PG_AFTER: &str = "SELECT seq, at, account_id, kind, origin, quiet, cause, body FROM events \
    WHERE seq > $1 OR seq = ANY($3::bigint[]) ORDER BY seq LIMIT $2";
const SQLITE_AFTER: &str = "SELECT seq, at, account_id, kind, origin, quiet, cause, body FROM events WHERE seq > $1 ORDER BY seq LIMIT $2";
const HEAD: &str = "SELECT COALESCE(MAX(seq), 0) FROM events";
/// The oldest transaction that ran when the statement's snapshot was made, without those of other databases of the server;
/// the next one where none ran.
///
/// A snapshot names the transactions of all databases. One that a session, or a prepared transaction, of another database has
/// writes nothing here, also later. One that is in no list was committed since, maybe here: what it wrote is not in the
/// snapshot, so it counts as running.
macro_rules! pg_oldest {
    () => {
        "(SELECT COALESCE(MIN(x.running::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint) \
         FROM pg_snapshot_xip(pg_current_snapshot()) AS x (running) \
         WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity a \
         WHERE a.backend_xid = x.running::xid AND a.datname <> current_database()) \
         AND NOT EXISTS (SELECT 1 FROM pg_prepared_xacts p \
         WHERE p.transaction = x.running::xid AND p.database <> current_database()))"
    };
}
pub(super) use pg_oldest;
const PG_SNAPSHOT: &str =
    concat!("SELECT ", pg_oldest!(), ", pg_snapshot_xmax(pg_current_snapshot())::text::bigint");
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
    let (origin, cause) = (tx.ctx().origin().map(str::to_owned), tx.ctx().stored_cause());
    let new = events.iter().map(|(account, event)| NewEvent {
        at: at.0,
        account: *account,
        kind: event.kind(),
        origin: origin.clone(),
        quiet: quiet.bits(),
        cause: cause.clone(),
        body: event.to_body(),
    });
    match &mut tx.group {
        // By the commit, in one statement for all requests.
        Some(group) => {
            group.events.extend(new);
            Ok(())
        }
        None => insert(tx, &new.collect::<Vec<_>>()).await,
    }
}

/// An event that is not stored yet.
#[derive(Debug)]
pub(super) struct NewEvent {
    at: i64,
    account: AccountId,
    kind: &'static str,
    origin: Option<String>,
    quiet: i64,
    cause: Option<String>,
    body: String,
}

/// Stores events in their order.
pub(super) async fn insert(tx: &mut Tx, events: &[NewEvent]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_RECORD)
                .bind(events.iter().map(|event| event.at).collect::<Vec<_>>())
                .bind(events.iter().map(|event| event.account.as_str()).collect::<Vec<_>>())
                .bind(events.iter().map(|event| event.kind).collect::<Vec<_>>())
                .bind(events.iter().map(|event| event.origin.as_deref()).collect::<Vec<_>>())
                .bind(events.iter().map(|event| event.quiet).collect::<Vec<_>>())
                .bind(events.iter().map(|event| event.cause.as_deref()).collect::<Vec<_>>())
                .bind(events.iter().map(|event| event.body.as_str()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row = |e: &NewEvent| json!([e.at, e.account, e.kind, e.origin, e.quiet, e.cause, e.body]);
            let rows: Vec<Value> = events.iter().map(row).collect();
            sqlx::query(SQLITE_RECORD).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => {
            return Err(StoreError::Row("an event outside of a transaction".to_owned()));
        }
    }
    Ok(())
}

/// Which transactions of this database of Postgres are over: all below `oldest`; none from `next` on has begun.
///
/// A number that is missing while the snapshot's `next` is N was taken by a transaction below N. Once a later
/// snapshot has `oldest >= N` and the number is still missing, it was rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The oldest transaction of this database that still runs.
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
