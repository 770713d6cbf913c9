//! The settled part of the event log: nothing is inserted before its end any more, so a reader can stop anywhere and
//! resume, also in another process or after a crash.
//!
//! On Postgres a row is settled once no older transaction than its own is running in this database. The order is by
//! transaction, then by number. A long write transaction delays the end of the settled part; the timeouts of the store bound
//! that. What runs in other databases of the server, whose transactions are numbered together with ours, delays nothing.

use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, StoreError, Tx,
    dialect::pick,
    events::{self, pg_oldest},
    execute, fetch_all, fetch_optional, parse,
};
use crate::domain::event::{Event, Position, Quiet, Recorded};

// The inner statement walks the index and is as short as its limit; bodies of other accounts stay where they are.
macro_rules! after {
    ($settled:expr) => {
        concat!(
            "SELECT t.xid, t.seq, t.at, t.account_id, t.kind, t.origin, t.quiet, t.cause, ",
            "CASE WHEN $4 = '' OR t.account_id = $4 THEN t.body END FROM ",
            "(SELECT * FROM events WHERE (xid, seq) >= ($1, $2) AND ",
            $settled,
            " ORDER BY xid, seq LIMIT $3) t ORDER BY t.xid, t.seq"
        )
    };
}

macro_rules! head {
    ($settled:expr) => {
        concat!("SELECT xid, seq FROM events WHERE ", $settled, " ORDER BY xid DESC, seq DESC LIMIT 1")
    };
}

macro_rules! pg_settled {
    () => {
        concat!("xid < ", pg_oldest!())
    };
}

const PG_AFTER: &str = after!(pg_settled!());
const SQLITE_AFTER: &str = after!("true");
const PG_HEAD: &str = head!(pg_settled!());
const SQLITE_HEAD: &str = head!("true");
// Rows that a reader has not delivered or has put off are kept for longer. One step checks this many rows beside those that were
// put off: an account may have very many of these at the beginning of the log, and the rows of others are behind them.
const OLD: &str = "SELECT t.xid, t.seq FROM (SELECT xid, seq, at FROM events e WHERE at < $4 OR NOT EXISTS \
    (SELECT 1 FROM deferred_events d WHERE d.seq = e.seq) ORDER BY seq LIMIT $1) t \
    WHERE t.at < $4 OR ((t.at < $2 OR t.seq <= (SELECT COALESCE(MAX(seq), 0) - $3 FROM events)) AND NOT EXISTS \
    (SELECT 1 FROM event_places p WHERE p.name <> 'trimmed' AND (t.xid, t.seq, 9223372036854775807) > (p.xid, p.seq, p.item))) \
    ORDER BY t.seq";
const PG_DELETE: &str = "DELETE FROM events WHERE seq = ANY($1)";
const SQLITE_DELETE: &str = "DELETE FROM events WHERE seq IN (SELECT value FROM json_each($1))";
const PLACE: &str = "SELECT xid, seq, item FROM event_places WHERE name = $1";
const PG_HOLD: &str = "SELECT xid, seq, item FROM event_places WHERE name = $1 FOR UPDATE SKIP LOCKED";
const BEGIN: &str =
    "INSERT INTO event_places (name, xid, seq) VALUES ($1, 0, 0) ON CONFLICT (name) DO NOTHING";
const MOVE: &str = "INSERT INTO event_places (name, xid, seq, item) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (name) DO UPDATE SET xid = EXCLUDED.xid, seq = EXCLUDED.seq, item = EXCLUDED.item \
    WHERE (event_places.xid, event_places.seq, event_places.item) < (EXCLUDED.xid, EXCLUDED.seq, EXCLUDED.item)";
const RENEW_ROWS: &str = "UPDATE events SET xid = 0 WHERE xid <> 0";
const RENEW_PLACES: &str = "UPDATE event_places SET xid = 0, item = 9223372036854775807, seq = COALESCE( \
    (SELECT MIN(e.seq) - 1 FROM events e WHERE (e.xid, e.seq, 9223372036854775807) > \
    (event_places.xid, event_places.seq, event_places.item)), (SELECT MAX(seq) FROM events), 0) WHERE xid <> 0";
const RENEW_DEFERRED: &str = "UPDATE deferred_events SET xid = 0 WHERE xid <> 0";
// Places, too: those behind which a webhook or reaction gets what happens.
const RENEW_WEBHOOKS: &str = "UPDATE webhooks SET since_xid = 0, since_seq = COALESCE( \
    (SELECT MIN(e.seq) - 1 FROM events e WHERE (e.xid, e.seq) > (webhooks.since_xid, webhooks.since_seq)), \
    (SELECT MAX(seq) FROM events), 0) WHERE since_xid <> 0";
const RENEW_REACTIONS: &str = "UPDATE reactions SET since_xid = 0, since_seq = COALESCE( \
    (SELECT MIN(e.seq) - 1 FROM events e WHERE (e.xid, e.seq) > (reactions.since_xid, reactions.since_seq)), \
    (SELECT MAX(seq) FROM events), 0) WHERE since_xid <> 0";

/// The name of the place up to which rows were removed.
pub const TRIMMED: &str = "trimmed";

/// A row of the settled log; of another account, or of a newer release, only its place.
pub type Row = (Position, Option<Recorded>);

type Stored = (i64, i64, i64, String, String, Option<String>, i64, Option<String>, Option<String>);

/// Up to `limit` settled rows behind a place, in order; of `account` alone where one is given, but every row
/// returns its place, so that the reader moves on.
///
/// The row whose items were not all passed comes again.
///
/// # Errors
/// A row cannot be read.
pub async fn list_after(
    conn: &mut Conn,
    after: Position,
    account: Option<AccountId>,
    limit: u32,
) -> Result<Vec<Row>, StoreError> {
    let sql = pick(conn, PG_AFTER, SQLITE_AFTER);
    let (xid, seq) = after.from();
    let rows: Vec<Stored> = fetch_all!(
        conn,
        sql,
        xid,
        seq,
        i64::from(limit),
        account.map(|account| account.to_string()).unwrap_or_default()
    )?;
    rows.into_iter()
        .map(|(xid, seq, at, account, kind, origin, quiet, cause, body)| {
            let event = body.and_then(|body| Event::read(&kind, &body));
            let (account, at) = (parse("account_id", &account)?, UnixMillis(at));
            let quiet = Quiet::stored(quiet);
            let cause = events::read_cause(cause.as_deref())?;
            let recorded = event.map(|event| Recorded { seq, at, account, origin, quiet, cause, event });
            Ok((Position::behind(xid, seq), recorded))
        })
        .collect()
}

/// The end of the settled log; the place of the last removed row where it is empty.
pub async fn find_head(conn: &mut Conn) -> Result<Position, StoreError> {
    let sql = pick(conn, PG_HEAD, SQLITE_HEAD);
    let row: Option<(i64, i64)> = fetch_optional!(conn, sql)?;
    match row {
        Some((xid, seq)) => Ok(Position::behind(xid, seq)),
        None => Ok(find_place(conn, TRIMMED).await?.unwrap_or(Position::START)),
    }
}

/// The position for a new subscriber: everything that begins from now on lies behind it, and nothing earlier.
///
/// The end of the settled log is too early while an older transaction still runs.
pub async fn find_now(conn: &mut Conn) -> Result<Position, StoreError> {
    match events::find_snapshot(conn).await? {
        Some(snapshot) => Ok(Position::behind(snapshot.next - 1, i64::MAX)),
        None => find_head(conn).await,
    }
}

/// A place that was noted.
pub async fn find_place(conn: &mut Conn, name: &str) -> Result<Option<Position>, StoreError> {
    let row: Option<(i64, i64, i64)> = fetch_optional!(conn, PLACE, name)?;
    Ok(row.map(|(xid, seq, item)| Position { xid, seq, item }))
}

/// Locks a cursor until the transaction ends; `None` if another transaction holds it.
pub async fn hold_place(tx: &mut Tx, name: &str) -> Result<Option<Position>, StoreError> {
    execute!(&mut **tx, BEGIN, name)?;
    let sql = pick(tx, PG_HOLD, PLACE);
    let row: Option<(i64, i64, i64)> = fetch_optional!(&mut **tx, sql, name)?;
    Ok(row.map(|(xid, seq, item)| Position { xid, seq, item }))
}

/// Saves a cursor; an earlier position than the saved one changes nothing.
pub async fn move_place(tx: &mut Tx, name: &str, to: Position) -> Result<(), StoreError> {
    execute!(&mut **tx, MOVE, name, to.xid, to.seq, to.item)?;
    Ok(())
}

/// The retention of the log.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// Older rows go, once every reader has passed them.
    pub since: UnixMillis,
    /// Most rows, once every reader has passed them.
    pub rows: i64,
    /// Older rows are deleted even if a reader has not passed them.
    pub at_most_since: UnixMillis,
}

/// Removes what need not be kept, oldest first; returns how many rows, fewer than `step` at the end.
pub async fn trim(tx: &mut Tx, keep: Keep, step: u32) -> Result<u64, StoreError> {
    let old: Vec<(i64, i64)> =
        fetch_all!(&mut **tx, OLD, i64::from(step), keep.since.0, keep.rows, keep.at_most_since.0)?;
    let Some((xid, seq)) = old.iter().copied().max() else { return Ok(0) };
    let seqs: Vec<i64> = old.iter().map(|(_, seq)| *seq).collect();
    match &mut **tx {
        Conn::PgTx(c) => sqlx::query(PG_DELETE).bind(&seqs).execute(&mut **c).await.map(|_| ())?,
        Conn::SqliteTx(c) => {
            sqlx::query(SQLITE_DELETE).bind(sqlx::types::Json(&seqs)).execute(&mut **c).await.map(|_| ())?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(super::dialect::outside_transaction()),
    }
    move_place(tx, TRIMMED, Position::behind(xid, seq)).await?;
    Ok(old.len() as u64)
}

/// Puts the log into the history of this database, where it was copied from another whose transactions had
/// other numbers; what readers had not passed stays before them, and may come to them twice.
pub async fn adopt(tx: &mut Tx) -> Result<(), StoreError> {
    for sql in [RENEW_PLACES, RENEW_DEFERRED, RENEW_WEBHOOKS, RENEW_REACTIONS, RENEW_ROWS] {
        execute!(&mut **tx, sql)?;
    }
    Ok(())
}
