//! Writes of many values of properties by one statement: rows as arrays on Postgres, as one JSON array on SQLite.

use serde_json::{Value, json};
use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect::outside_transaction};
use crate::domain::property::Point;

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
pub type Latest<'a> = (AccountId, &'a str, &'a Point);

/// Writes the latest value of each of some properties, unless it has a later one; gives resource, key and number.
pub async fn write_latest(
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
pub async fn write_points(tx: &mut Tx, points: &[(i64, &Point)], now: UnixMillis) -> Result<(), StoreError> {
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
