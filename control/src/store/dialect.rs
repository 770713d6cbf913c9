//! The statements that the two engines spell differently, side by side.
//!
//! Rows in bulk go to Postgres as one array a column (`UNNEST`) and to SQLite as one JSON array
//! (`json_each`): binding value by value is what makes mass inserts slow on both.

use serde_json::{Value, json};
use shared::{
    id::AccountId,
    redirect::RedirectKey,
    time::UnixMillis,
    wire::stream::{Event, Rev},
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, log::signed, redirections::NewRow};
use crate::domain::{property::Point, redirection::Redirection};

const PG_LOG: &str = "INSERT INTO redirect_log (rev, at, change) \
    SELECT rev, $2, change FROM UNNEST($1::bigint[], $3::jsonb[]) AS t (rev, change)";
const SQLITE_LOG: &str = "INSERT INTO redirect_log (rev, at, change) \
    SELECT value ->> '$[0]', $2, value -> '$[1]' FROM json_each($1)";

/// Appends to the change log.
pub(super) async fn insert_log(tx: &mut Tx, at_ms: i64, events: &[Event]) -> Result<(), StoreError> {
    let change = |event: &Event| {
        serde_json::to_value(&event.change).map_err(|error| StoreError::Row(format!("change: {error}")))
    };
    match &mut **tx {
        Conn::PgTx(c) => {
            let revs: Vec<i64> = events.iter().map(|event| signed(event.rev)).collect();
            let changes = events.iter().map(|e| change(e).map(Json)).collect::<Result<Vec<_>, _>>()?;
            sqlx::query(PG_LOG).bind(revs).bind(at_ms).bind(changes).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            let rows = events
                .iter()
                .map(|event| Ok(json!([event.rev, change(event)?])))
                .collect::<Result<Vec<Value>, StoreError>>()?;
            sqlx::query(SQLITE_LOG).bind(Json(rows)).bind(at_ms).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

const PG_REDIRECTIONS: &str = "INSERT INTO redirections (domain, folded, short_id, account_id, type, platform_id, \
    thng_id, product_id, target, forward_query, scopes, hits, created_at, updated_at, rev) \
    SELECT $1, folded, short_id, $2, type, platform_id, thng_id, product_id, target, forward_query, scopes, 0, $3, \
    $3, rev FROM UNNEST($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], \
    $11::boolean[], $12::jsonb[], $13::bigint[]) AS t (folded, short_id, type, platform_id, thng_id, product_id, \
    target, forward_query, scopes, rev)";
const SQLITE_REDIRECTIONS: &str = "INSERT INTO redirections (domain, folded, short_id, account_id, type, \
    platform_id, thng_id, product_id, target, forward_query, scopes, hits, created_at, updated_at, rev) \
    SELECT $1, value ->> '$[0]', value ->> '$[1]', $2, value ->> '$[2]', value ->> '$[3]', value ->> '$[4]', \
    value ->> '$[5]', value ->> '$[6]', value ->> '$[7]', value -> '$[8]', 0, $3, $3, value ->> '$[9]' \
    FROM json_each($4)";

/// Adds redirections of one domain and account.
pub(super) async fn insert_redirections(
    tx: &mut Tx,
    domain: &str,
    account: &str,
    at_ms: i64,
    rows: &[NewRow<'_>],
) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_REDIRECTIONS)
                .bind(domain)
                .bind(account)
                .bind(at_ms)
                .bind(rows.iter().map(|r| r.folded.to_owned()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.short_id.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.resource_type.as_str().to_owned()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.platform_id.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.thng_id.map(|id| id.to_string())).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.product_id.map(|id| id.to_string())).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.target.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.forward_query).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| Json(r.scopes.clone())).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| signed(r.rev)).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|r| {
                    json!([
                        r.folded,
                        r.redirect.short_id,
                        r.redirect.resource_type,
                        r.redirect.platform_id,
                        r.redirect.thng_id,
                        r.redirect.product_id,
                        r.redirect.target,
                        r.redirect.forward_query,
                        r.scopes,
                        r.rev
                    ])
                })
                .collect();
            sqlx::query(SQLITE_REDIRECTIONS)
                .bind(domain)
                .bind(account)
                .bind(at_ms)
                .bind(Json(rows))
                .execute(&mut **c)
                .await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

const PG_REDIRECTED: &str = "UPDATE redirections r SET target = t.target, forward_query = t.forward_query, \
    scopes = t.scopes, thng_id = t.thng_id, product_id = t.product_id, updated_at = t.updated_at, rev = t.rev \
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::boolean[], $5::jsonb[], $6::text[], $7::text[], \
    $8::bigint[], $9::bigint[]) AS t (domain, folded, target, forward_query, scopes, thng_id, product_id, \
    updated_at, rev) WHERE r.domain = t.domain AND r.folded = t.folded AND r.deleted_rev IS NULL";
// Why `LIMIT -1`: see SQLITE_HITS.
const SQLITE_REDIRECTED: &str = "UPDATE redirections SET target = t.v ->> '$[2]', forward_query = t.v ->> '$[3]', \
    scopes = t.v -> '$[4]', thng_id = t.v ->> '$[5]', product_id = t.v ->> '$[6]', updated_at = t.v ->> '$[7]', \
    rev = t.v ->> '$[8]' FROM (SELECT value ->> '$[0]' AS domain, value ->> '$[1]' AS folded, value AS v \
    FROM json_each($1) LIMIT -1) AS t \
    WHERE redirections.domain = t.domain AND redirections.folded = t.folded AND deleted_rev IS NULL";

/// Writes what redirections lead to; gives how many there are.
pub(super) async fn update_redirections(
    tx: &mut Tx,
    changed: &[(RedirectKey, Redirection)],
) -> Result<u64, StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let each =
                |of: fn(&(RedirectKey, Redirection)) -> String| changed.iter().map(of).collect::<Vec<_>>();
            let done = sqlx::query(PG_REDIRECTED)
                .persistent(false)
                .bind(each(|(key, _)| key.domain.to_string()))
                .bind(each(|(key, _)| key.folded.to_string()))
                .bind(each(|(_, item)| item.redirect.target.to_string()))
                .bind(changed.iter().map(|(_, item)| item.redirect.forward_query).collect::<Vec<_>>())
                .bind(changed.iter().map(|(_, item)| Json(item.scopes.clone())).collect::<Vec<_>>())
                .bind(
                    changed
                        .iter()
                        .map(|(_, i)| i.redirect.thng_id.map(|id| id.to_string()))
                        .collect::<Vec<_>>(),
                )
                .bind(
                    changed
                        .iter()
                        .map(|(_, i)| i.redirect.product_id.map(|id| id.to_string()))
                        .collect::<Vec<_>>(),
                )
                .bind(changed.iter().map(|(_, item)| item.redirect.updated_at.0).collect::<Vec<_>>())
                .bind(changed.iter().map(|(_, item)| signed(item.rev)).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
            Ok(done.rows_affected())
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = changed
                .iter()
                .map(|(key, Redirection { redirect: r, scopes, rev, .. })| {
                    json!([
                        &*key.domain,
                        &*key.folded,
                        r.target,
                        r.forward_query,
                        scopes,
                        r.thng_id,
                        r.product_id,
                        r.updated_at,
                        rev
                    ])
                })
                .collect();
            Ok(sqlx::query(SQLITE_REDIRECTED).bind(Json(rows)).execute(&mut **c).await?.rows_affected())
        }
        Conn::Pg(_) | Conn::Sqlite(_) => Err(outside_transaction()),
    }
}

const PG_BURIED: &str = "UPDATE redirections r SET deleted_rev = t.rev, rev = t.rev, updated_at = $2 \
    FROM UNNEST($3::text[], $4::bigint[]) AS t (folded, rev) \
    WHERE r.domain = $1 AND r.folded = t.folded AND r.deleted_rev IS NULL";
const SQLITE_BURIED: &str = "UPDATE redirections SET deleted_rev = t.rev, rev = t.rev, updated_at = $2 \
    FROM (SELECT value ->> '$[0]' AS folded, value ->> '$[1]' AS rev FROM json_each($3) LIMIT -1) AS t \
    WHERE redirections.domain = $1 AND redirections.folded = t.folded AND deleted_rev IS NULL";

/// Turns redirections into tombstones; gives how many there were.
pub(super) async fn delete_redirections(
    tx: &mut Tx,
    domain: &str,
    keys: &[(&str, Rev)],
    at_ms: i64,
) -> Result<u64, StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let (folded, revs): (Vec<String>, Vec<i64>) =
                keys.iter().map(|(folded, rev)| ((*folded).to_owned(), signed(*rev))).unzip();
            let query =
                sqlx::query(PG_BURIED).persistent(false).bind(domain).bind(at_ms).bind(folded).bind(revs);
            Ok(query.execute(&mut **c).await?.rows_affected())
        }
        Conn::SqliteTx(c) => {
            let query = sqlx::query(SQLITE_BURIED).bind(domain).bind(at_ms).bind(Json(keys));
            Ok(query.execute(&mut **c).await?.rows_affected())
        }
        Conn::Pg(_) | Conn::Sqlite(_) => Err(outside_transaction()),
    }
}

// The timeout is below the second after which Postgres looks for deadlocks: the scans end one before a change is its
// victim. By a hash of the list, the update reads a table of some 100,000 links as a whole, for a thousand of them.
const PG_HITS_SET: &str = "SELECT set_config('lock_timeout', '250ms', true), set_config('enable_hashjoin', 'off', true), \
    set_config('enable_mergejoin', 'off', true)";
// One order for all batches: the update itself takes rows as its plan finds them. One look for each row, as in
// `redirections::find_many`.
const PG_LOCK_HITS: &str = "SELECT r.seq FROM (SELECT folded FROM UNNEST($2::text[]) AS l (folded) ORDER BY folded) k \
    CROSS JOIN LATERAL (SELECT seq FROM redirections WHERE domain = $1 AND folded = k.folded FOR NO KEY UPDATE) r";
const PG_HITS: &str = "UPDATE redirections SET hits = hits + t.n \
    FROM UNNEST($2::text[], $3::bigint[]) AS t (folded, n) \
    WHERE redirections.domain = $1 AND redirections.folded = t.folded";
// `LIMIT -1` keeps the list a table of its own: without it SQLite walks every redirection of the domain,
// and reads the list once for each (6.8 s for 600 hits among 20,000 links, against 17 ms).
const SQLITE_HITS: &str = "UPDATE redirections SET hits = hits + t.n \
    FROM (SELECT value ->> '$[0]' AS folded, value ->> '$[1]' AS n FROM json_each($2) LIMIT -1) AS t \
    WHERE redirections.domain = $1 AND redirections.folded = t.folded";

/// Adds to the hits of redirections of one domain; each key at most once in `counts`.
pub(super) async fn add_hits(tx: &mut Tx, domain: &str, counts: &[(&str, i64)]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let keys: Vec<String> = counts.iter().map(|(key, _)| (*key).to_owned()).collect();
            let amounts: Vec<i64> = counts.iter().map(|(_, n)| *n).collect();
            sqlx::query(PG_HITS_SET).execute(&mut **c).await?;
            sqlx::query(PG_LOCK_HITS).persistent(false).bind(domain).bind(&keys).execute(&mut **c).await?;
            sqlx::query(PG_HITS)
                .persistent(false)
                .bind(domain)
                .bind(keys)
                .bind(amounts)
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            sqlx::query(SQLITE_HITS).bind(domain).bind(Json(counts)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

const PG_LATEST: &str = "INSERT INTO properties AS s (account_id, resource_id, key, value, timestamp, written_at, \
    created_at) SELECT account, resource, key, value, ts, $1, $1 \
    FROM UNNEST($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) \
    AS t (account, resource, key, value, ts) ON CONFLICT (resource_id, key) DO UPDATE SET \
    value = CASE WHEN EXCLUDED.timestamp >= s.timestamp THEN EXCLUDED.value ELSE s.value END, \
    written_at = CASE WHEN EXCLUDED.timestamp >= s.timestamp THEN EXCLUDED.written_at ELSE s.written_at END, \
    timestamp = GREATEST(EXCLUDED.timestamp, s.timestamp) RETURNING resource_id, key, seq";
// Without the condition, SQLite takes ON for a part of the join.
const SQLITE_LATEST: &str = "INSERT INTO properties AS s (account_id, resource_id, key, value, timestamp, written_at, \
    created_at) SELECT t.value ->> '$[0]', t.value ->> '$[1]', t.value ->> '$[2]', t.value ->> '$[3]', \
    t.value ->> '$[4]', $1, $1 FROM json_each($2) t WHERE true ON CONFLICT (resource_id, key) DO UPDATE SET \
    value = CASE WHEN EXCLUDED.timestamp >= s.timestamp THEN EXCLUDED.value ELSE s.value END, \
    written_at = CASE WHEN EXCLUDED.timestamp >= s.timestamp THEN EXCLUDED.written_at ELSE s.written_at END, \
    timestamp = MAX(EXCLUDED.timestamp, s.timestamp) RETURNING resource_id, key, seq";

/// A value that may be the latest of its property, and whose it is.
pub(super) type Latest<'a> = (AccountId, &'a str, &'a Point);

/// Writes the latest value of each of some properties, unless it has a later one; gives resource, key and number.
pub(super) async fn write_latest(
    tx: &mut Tx,
    points: &[Latest<'_>],
    now: UnixMillis,
) -> Result<Vec<(String, String, i64)>, StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => Ok(sqlx::query_as(PG_LATEST)
            .bind(now.0)
            .bind(points.iter().map(|(account, _, _)| account.as_str()).collect::<Vec<_>>())
            .bind(points.iter().map(|(_, resource, _)| *resource).collect::<Vec<_>>())
            .bind(points.iter().map(|(_, _, p)| p.key.as_str()).collect::<Vec<_>>())
            .bind(points.iter().map(|(_, _, p)| p.value.to_string()).collect::<Vec<_>>())
            .bind(points.iter().map(|(_, _, p)| p.timestamp.0).collect::<Vec<_>>())
            .fetch_all(&mut **c)
            .await?),
        Conn::SqliteTx(c) => {
            let row = |(account, resource, p): &Latest<'_>| {
                json!([account, resource, p.key.as_str(), p.value.to_string(), p.timestamp])
            };
            let rows: Vec<Value> = points.iter().map(row).collect();
            Ok(sqlx::query_as(SQLITE_LATEST).bind(now.0).bind(Json(rows)).fetch_all(&mut **c).await?)
        }
        Conn::Pg(_) | Conn::Sqlite(_) => Err(outside_transaction()),
    }
}

const PG_POINTS: &str = "INSERT INTO property_points (property, timestamp, created_at, value) \
    SELECT property, ts, $1, value FROM UNNEST($2::bigint[], $3::bigint[], $4::text[]) AS t (property, ts, value) \
    ON CONFLICT (property, timestamp) DO UPDATE SET created_at = EXCLUDED.created_at, value = EXCLUDED.value";
const PG_NEW_POINTS: &str = "INSERT INTO property_points (property, timestamp, created_at, value) \
    SELECT property, ts, $1, value FROM UNNEST($2::bigint[], $3::bigint[], $4::text[]) AS t (property, ts, value)";
const PG_OVERLAP: &str = "SELECT EXISTS (SELECT 1 FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[]) \
    AS s (property, first, last) CROSS JOIN LATERAL (SELECT 1 FROM property_points p \
    WHERE p.property = s.property AND p.timestamp BETWEEN s.first AND s.last LIMIT 1) f)";
/// So many points are worth asking whether any is there already: to be ready for it costs as much as the rest.
const PG_MANY_POINTS: usize = 128;
const SQLITE_POINTS: &str = "INSERT INTO property_points (property, timestamp, created_at, value) \
    SELECT t.value ->> '$[0]', t.value ->> '$[1]', $1, t.value ->> '$[2]' FROM json_each($2) t WHERE true \
    ON CONFLICT (property, timestamp) DO UPDATE SET created_at = EXCLUDED.created_at, value = EXCLUDED.value";

/// Writes points into the history, over those of the same property and time.
///
/// They come in the order of properties and times, and the transaction holds the rows of their properties: nobody
/// else adds points to these meanwhile.
pub(super) async fn write_points(
    tx: &mut Tx,
    points: &[(i64, &Point)],
    now: UnixMillis,
) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let are_new = points.len() >= PG_MANY_POINTS && {
                let runs = points.chunk_by(|(one, _), (other, _)| one == other);
                let ends = runs.filter_map(|run| {
                    let ((seq, first), (_, last)) = (run.first()?, run.last()?);
                    Some((*seq, (first.timestamp.0, last.timestamp.0)))
                });
                let (seqs, (firsts, lasts)): (Vec<i64>, (Vec<i64>, Vec<i64>)) = ends.unzip();
                let overlap = sqlx::query_scalar::<_, bool>(PG_OVERLAP).bind(seqs).bind(firsts).bind(lasts);
                !overlap.fetch_one(&mut **c).await?
            };
            sqlx::query(if are_new { PG_NEW_POINTS } else { PG_POINTS })
                .bind(now.0)
                .bind(points.iter().map(|(seq, _)| *seq).collect::<Vec<_>>())
                .bind(points.iter().map(|(_, p)| p.timestamp.0).collect::<Vec<_>>())
                .bind(points.iter().map(|(_, p)| p.value.to_string()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> =
                points.iter().map(|(seq, p)| json!([seq, p.timestamp, p.value.to_string()])).collect();
            sqlx::query(SQLITE_POINTS).bind(now.0).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

/// Fills the column `facets` of rows, given by their place.
pub(super) async fn fill_facets(
    tx: &mut Tx,
    pg: &'static str,
    sqlite: &'static str,
    rows: &[(i64, Vec<String>)],
) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let (seqs, facets): (Vec<i64>, Vec<_>) = rows.iter().map(|(seq, all)| (*seq, Json(all))).unzip();
            sqlx::query(pg).bind(seqs).bind(facets).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            sqlx::query(sqlite).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}

/// What a copy of the database differs in: Postgres's system identifier and timeline for one of its files,
/// and the number of a table for one that was restored from a dump, into the same server or not.
///
/// `None` on SQLite, where a file beside the database serves.
///
/// # Errors
/// The database failed.
pub async fn find_history_id(conn: &mut Conn) -> Result<Option<String>, StoreError> {
    const PG_HISTORY: &str = "SELECT s.system_identifier::text || '/' || c.timeline_id::text || '/' || \
        'log_head'::regclass::oid::text FROM pg_control_system() s, pg_control_checkpoint() c";
    match conn {
        Conn::Pg(c) => Ok(sqlx::query_scalar(PG_HISTORY).fetch_one(&mut **c).await?),
        Conn::PgTx(c) => Ok(sqlx::query_scalar(PG_HISTORY).fetch_one(&mut **c).await?),
        Conn::Sqlite(_) | Conn::SqliteTx(_) => Ok(None),
    }
}

/// Locks the cursor row of a boot until the transaction ends; SQLite has one writer anyway.
pub(super) const fn lock_row(conn: &Conn, pg: &'static str, sqlite: &'static str) -> &'static str {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => pg,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => sqlite,
    }
}

/// The text of a statement that the two engines spell differently, for the engine of a connection.
pub(super) const fn pick(conn: &Conn, pg: &'static str, sqlite: &'static str) -> &'static str {
    match conn {
        Conn::Pg(_) | Conn::PgTx(_) => pg,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => sqlite,
    }
}

/// Fetches the rows of a statement whose last parameter is a list of texts.
///
/// The statement compares with `= ANY($n)` on Postgres and `IN (SELECT value FROM json_each($n))` on SQLite.
/// Postgres plans it anew each time: a plan that is kept was made for the table as it was, and a list has
/// from one to a thousand texts.
macro_rules! fetch_in_list {
    ($conn:expr, $row:ty, $pg:expr, $sqlite:expr, [$($bind:expr),*], $list:expr) => {
        match $conn.raw() {
            $crate::store::Raw::Pg(c) => {
                sqlx::query_as::<_, $row>($pg).persistent(false)$(.bind($bind))*.bind($list).fetch_all(c).await
            }
            $crate::store::Raw::Sqlite(c) => {
                sqlx::query_as::<_, $row>($sqlite)$(.bind($bind))*.bind(sqlx::types::Json($list)).fetch_all(c).await
            }
        }
    };
}
pub(super) use fetch_in_list;

pub(super) fn outside_transaction() -> StoreError {
    StoreError::Row("a bulk write outside of a transaction".to_owned())
}
