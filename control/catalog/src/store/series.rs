//! Aggregated series of numbers from the history of a property.

use shared::{id::AccountId, time::UnixMillis};

use super::{Conn, STATEMENT_TIMEOUT, StoreError, dialect, fetch_all, fetch_optional, watch::Watch};
use crate::domain::{
    property::PropertyKey,
    series::{Bucket, Span},
};

// A value is JSON: only numbers begin with a digit or a sign.
macro_rules! pg_number {
    () => {
        "LEFT(p.value, 1) IN ('-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9')"
    };
}
macro_rules! sqlite_number {
    () => {
        "SUBSTR(p.value, 1, 1) IN ('-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9')"
    };
}
// The ends come from the index of times, one point at a time, until one is a number.
macro_rules! end {
    ($number:expr, $order:literal) => {
        concat!(
            "SELECT p.timestamp FROM properties s CROSS JOIN property_points p WHERE s.account_id = $1 \
             AND s.resource_id = $2 AND s.key = $3 AND p.property = s.seq AND ",
            $number,
            " ORDER BY p.timestamp ",
            $order,
            " LIMIT 1"
        )
    };
}
const PG_FIRST: &str = end!(pg_number!(), "ASC");
const SQLITE_FIRST: &str = end!(sqlite_number!(), "ASC");
const PG_LAST: &str = end!(pg_number!(), "DESC");
const SQLITE_LAST: &str = end!(sqlite_number!(), "DESC");
// The condition comes first: without it a text would be cast.
const PG_BUCKETS: &str = concat!(
    "SELECT b, MIN(v), MAX(v), AVG(v), COUNT(v) FROM (SELECT (p.timestamp - $4) / $6 AS b, CASE WHEN ",
    pg_number!(),
    " THEN p.value::double precision END AS v FROM properties s CROSS JOIN property_points p \
     WHERE s.account_id = $1 AND s.resource_id = $2 AND s.key = $3 AND p.property = s.seq \
     AND p.timestamp BETWEEN $4 AND $5) n WHERE v IS NOT NULL GROUP BY b ORDER BY b"
);
const SQLITE_BUCKETS: &str = concat!(
    "SELECT b, MIN(v), MAX(v), AVG(v), COUNT(v) FROM (SELECT (p.timestamp - $4) / $6 AS b, CASE WHEN ",
    sqlite_number!(),
    " THEN CAST(p.value AS REAL) END AS v FROM properties s CROSS JOIN property_points p \
     WHERE s.account_id = $1 AND s.resource_id = $2 AND s.key = $3 AND p.property = s.seq \
     AND p.timestamp BETWEEN $4 AND $5) n WHERE v IS NOT NULL GROUP BY b ORDER BY b"
);

/// When the first and the last number of a property were; `None` when it has none.
pub async fn find_ends(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
    key: &PropertyKey,
) -> Result<Option<(UnixMillis, UnixMillis)>, StoreError> {
    let _watch = Watch::begin(conn, STATEMENT_TIMEOUT).await?;
    let mut ends = Vec::with_capacity(2);
    for (pg, sqlite) in [(PG_FIRST, SQLITE_FIRST), (PG_LAST, SQLITE_LAST)] {
        let sql = dialect::pick(conn, pg, sqlite);
        let found: Option<(i64,)> = fetch_optional!(conn, sql, account.as_str(), resource, key.as_str())?;
        ends.extend(found.map(|(at,)| UnixMillis(at)));
    }
    Ok(match ends.as_slice() {
        [first, last] => Some((*first, *last)),
        _ => None,
    })
}

/// The buckets of a span that hold numbers, by time.
///
/// # Errors
/// [`StoreError::Timeout`] when there are too many points.
pub async fn list_buckets(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
    key: &PropertyKey,
    span: Span,
) -> Result<Vec<Bucket>, StoreError> {
    let _watch = Watch::begin(conn, STATEMENT_TIMEOUT).await?;
    let sql = dialect::pick(conn, PG_BUCKETS, SQLITE_BUCKETS);
    let rows: Vec<(i64, f64, f64, f64, i64)> = fetch_all!(
        conn,
        sql,
        account.as_str(),
        resource,
        key.as_str(),
        span.from.0,
        span.to.0,
        span.width_ms
    )?;
    let bucket = |(bucket, min, max, mean, count): (i64, f64, f64, f64, i64)| Bucket {
        timestamp: span.begin(bucket),
        min,
        max,
        mean,
        count: count.unsigned_abs(),
    };
    Ok(rows.into_iter().map(bucket).collect())
}
