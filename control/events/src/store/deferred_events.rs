//! Events of accounts that had more of them than their share, put off by the fan-out: account by account in the order of
//! the log.

use std::collections::BTreeSet;

use serde_json::json;
use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::{fetch_in_list, outside_transaction},
    events, execute, fetch_all, fetch_one, parse,
};
use crate::domain::event::{Event, Position, Quiet, Recorded};

const ANY: &str = "SELECT COUNT(*) FROM (SELECT seq FROM deferred_events LIMIT 1) t";
const PG_BEHIND: &str = "SELECT t.a FROM UNNEST($1::text[]) AS t (a) \
    WHERE EXISTS (SELECT 1 FROM deferred_events d WHERE d.account_id = t.a)";
const SQLITE_BEHIND: &str = "SELECT t.value FROM json_each($1) t \
    WHERE EXISTS (SELECT 1 FROM deferred_events d WHERE d.account_id = t.value)";
// Goes from account to account by the index, however many rows each has.
const ACCOUNTS: &str = "WITH RECURSIVE found (id, n) AS ( \
    SELECT (SELECT MIN(account_id) FROM deferred_events WHERE account_id > $1), 1 UNION ALL \
    SELECT (SELECT MIN(account_id) FROM deferred_events WHERE account_id > f.id), f.n + 1 FROM found f \
    WHERE f.id IS NOT NULL AND f.n < CAST($2 AS BIGINT)) SELECT id FROM found WHERE id IS NOT NULL";
const LIST: &str = "SELECT d.xid, d.seq, d.item, e.at, e.kind, e.origin, e.quiet, e.cause, e.body FROM \
    (SELECT xid, seq, item FROM deferred_events WHERE account_id = $1 ORDER BY xid, seq LIMIT $2) d \
    LEFT JOIN events e ON e.seq = d.seq ORDER BY d.xid, d.seq";
// A log that was copied from another database may bring a row twice.
const PG_INSERT: &str = "INSERT INTO deferred_events (account_id, xid, seq, item) \
    SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) ON CONFLICT DO NOTHING";
const SQLITE_INSERT: &str = "INSERT INTO deferred_events (account_id, xid, seq, item) \
    SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]' FROM json_each($1) \
    WHERE true ON CONFLICT DO NOTHING";
const MOVE: &str = "UPDATE deferred_events SET item = $2 WHERE seq = $1";
const PG_DELETE: &str = "DELETE FROM deferred_events WHERE seq = ANY($1)";
const SQLITE_DELETE: &str = "DELETE FROM deferred_events WHERE seq IN (SELECT value FROM json_each($1))";

/// A row of the log that waits.
#[derive(Debug, Clone)]
pub struct Deferred {
    /// Behind the row.
    pub at: Position,
    /// Its first item that waits; those before it are queued.
    pub from: i64,
    /// The row; `None` when it is of a newer release, or gone.
    pub recorded: Option<Recorded>,
    /// Whether the log has removed it, because it waited for too long.
    pub is_gone: bool,
}

/// Whether anything waits.
pub async fn has_any(conn: &mut Conn) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, ANY)?;
    Ok(count > 0)
}

/// Those of some accounts for which something waits.
pub async fn list_behind(conn: &mut Conn, accounts: &[String]) -> Result<BTreeSet<AccountId>, StoreError> {
    let rows = fetch_in_list!(conn, (String,), PG_BEHIND, SQLITE_BEHIND, [], accounts)?;
    rows.into_iter().map(|(account,)| parse("account_id", &account)).collect()
}

/// Up to `limit` accounts for which something waits, in order, behind the id of one.
pub async fn list_accounts(conn: &mut Conn, after: &str, limit: u32) -> Result<Vec<AccountId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, ACCOUNTS, after, i64::from(limit))?;
    rows.into_iter().map(|(account,)| parse("account_id", &account)).collect()
}

type Row =
    (i64, i64, i64, Option<i64>, Option<String>, Option<String>, Option<i64>, Option<String>, Option<String>);

/// The first rows of an account that wait.
///
/// # Errors
/// A row cannot be read.
pub async fn list(conn: &mut Conn, account: AccountId, limit: u32) -> Result<Vec<Deferred>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST, account.as_str(), i64::from(limit))?;
    rows.into_iter()
        .map(|(xid, seq, from, at, kind, origin, quiet, cause, body)| {
            let event = kind.as_deref().zip(body.as_deref()).and_then(|(kind, body)| Event::read(kind, body));
            let cause = events::read_cause(cause.as_deref())?;
            let (quiet, is_gone) = (Quiet::stored(quiet.unwrap_or_default()), at.is_none());
            let at = UnixMillis(at.unwrap_or_default());
            let recorded = event.map(|event| Recorded { seq, at, account, origin, quiet, cause, event });
            Ok(Deferred { at: Position::behind(xid, seq), from, recorded, is_gone })
        })
        .collect()
}

/// Puts rows of the log off: account, place, and the first item that waits.
pub async fn insert(tx: &mut Tx, rows: &[(AccountId, Position, i64)]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_INSERT)
                .bind(rows.iter().map(|(account, ..)| account.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|(_, at, _)| at.xid).collect::<Vec<_>>())
                .bind(rows.iter().map(|(_, at, _)| at.seq).collect::<Vec<_>>())
                .bind(rows.iter().map(|(.., from)| *from).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row =
                |(account, at, from): &(AccountId, Position, i64)| json!([account, at.xid, at.seq, from]);
            let rows: Vec<serde_json::Value> = rows.iter().map(row).collect();
            sqlx::query(SQLITE_INSERT).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

/// Moves a row on to an item.
pub async fn move_on(tx: &mut Tx, seq: i64, from: i64) -> Result<(), StoreError> {
    execute!(&mut **tx, MOVE, seq, from)?;
    Ok(())
}

/// Removes rows that no longer wait.
pub async fn delete(tx: &mut Tx, seqs: &[i64]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => sqlx::query(PG_DELETE).bind(seqs).execute(&mut **c).await.map(|_| ())?,
        Conn::SqliteTx(c) => {
            sqlx::query(SQLITE_DELETE).bind(Json(seqs)).execute(&mut **c).await.map(|_| ())?
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}
