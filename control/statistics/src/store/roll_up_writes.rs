//! Additions to the roll-ups of scans.

use std::collections::BTreeSet;

use serde_json::json;
use shared::id::AccountId;
use sqlx::{Postgres, postgres::PgArguments, query::Query, types::Json};

use super::{Conn, StoreError, Tx, dialect};
use crate::domain::roll_ups::{Counts, Key, Rows};

/// Rows that one statement writes: some 100 ms, of the 5 s that it may take.
const ADD_STEP: usize = 5_000;

const PG_WAIT: &str = "SELECT set_config('lock_timeout', '2s', true)";
// In the order of the list.
const PG_TURN: &str = "SELECT pg_advisory_xact_lock(hashtext('waymark_roll_ups_' || current_schema()), stripe) \
    FROM UNNEST($1::int[]) AS t (stripe)";

/// Accounts share so many locks, so that a transaction never holds more of them.
const STRIPES: u32 = 64;

macro_rules! pg_add {
    ($table:literal, $bucket:literal, $lists:literal, $condition:literal) => {
        concat!(
            "INSERT INTO ",
            $table,
            " AS s (account_id, project_id, dimension, ",
            $bucket,
            ", value, second, scans, new_devices, robots) SELECT account_id, project_id, dimension, bucket, value, second, \
             scans, new_devices, robots FROM UNNEST(",
            $lists,
            ") AS t (account_id, project_id, dimension, bucket, value, second, scans, new_devices, robots)",
            $condition,
            " ON CONFLICT (account_id, project_id, dimension, ",
            $bucket,
            ", value, second) DO UPDATE SET scans = s.scans + EXCLUDED.scans, \
             new_devices = s.new_devices + EXCLUDED.new_devices, robots = s.robots + EXCLUDED.robots"
        )
    };
}
macro_rules! sqlite_add {
    ($table:literal, $bucket:literal) => {
        concat!(
            "INSERT INTO ",
            $table,
            " (account_id, project_id, dimension, ",
            $bucket,
            ", value, second, scans, new_devices, robots) SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', \
             value ->> '$[3]', value ->> '$[4]', value ->> '$[5]', value ->> '$[6]', value ->> '$[7]', value ->> '$[8]' \
             FROM json_each($1) WHERE TRUE ON CONFLICT (account_id, project_id, dimension, ",
            $bucket,
            ", value, second) DO UPDATE SET scans = scans + excluded.scans, \
             new_devices = new_devices + excluded.new_devices, robots = robots + excluded.robots"
        )
    };
}
const PG_ADD_HOURS: &str = pg_add!(
    "scan_statistics",
    "hour",
    "$1::text[], $2::text[], $3::smallint[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[]",
    ""
);
const PG_ADD_DAYS: &str = pg_add!(
    "scan_statistics_days",
    "day",
    "$1::text[], $2::text[], $3::smallint[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[]",
    ""
);
// Days come after hours, as where two statements add them: their count is known when all hours are written.
const PG_ADD: &str = concat!(
    "WITH by_hour AS (",
    pg_add!(
        "scan_statistics",
        "hour",
        "$1::text[], $2::text[], $3::smallint[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], \
         $9::bigint[]",
        ""
    ),
    " RETURNING 1) ",
    pg_add!(
        "scan_statistics_days",
        "day",
        "$10::text[], $11::text[], $12::smallint[], $13::int[], $14::text[], $15::text[], $16::bigint[], $17::bigint[], \
         $18::bigint[]",
        " WHERE (SELECT COUNT(*) FROM by_hour) >= 0"
    )
);
const SQLITE_ADD_HOURS: &str = sqlite_add!("scan_statistics", "hour");
const SQLITE_ADD_DAYS: &str = sqlite_add!("scan_statistics_days", "day");

/// A row and what is added to it.
type Row<'a> = (&'a Key<'a>, &'a Counts);

/// Waits until no other transaction is between here and its commit that changes rows of the same accounts: for 2 s at most, as
/// for each row lock behind it. There is one writer on SQLite.
pub async fn take_turn(tx: &mut Tx, accounts: &BTreeSet<AccountId>) -> Result<(), StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_WAIT).execute(&mut **c).await?;
        let stripes: BTreeSet<i32> = accounts.iter().map(stripe).collect();
        let stripes: Vec<i32> = stripes.into_iter().collect();
        sqlx::query(PG_TURN).bind(stripes).execute(&mut **c).await?;
    }
    Ok(())
}

/// The number of the lock of an account, the same in every process.
fn stripe(account: &AccountId) -> i32 {
    let add = |sum: u32, byte: u8| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
    let sum = account.as_str().bytes().fold(0, add);
    i32::try_from(sum % STRIPES).unwrap_or_default()
}

/// Adds to rows, in the order of their keys: hours first, then days. Postgres does both in one statement, unless they are
/// more than `ADD_STEP`.
pub async fn add(tx: &mut Tx, rows: &Rows<'_>) -> Result<(), StoreError> {
    let (hours, days): (Vec<Row<'_>>, Vec<Row<'_>>) =
        (rows.hours.rows().collect(), rows.days.rows().collect());
    match &mut **tx {
        Conn::PgTx(c) if hours.len().max(days.len()) <= ADD_STEP => {
            bind(bind(sqlx::query(PG_ADD), &hours), &days).execute(&mut **c).await?;
        }
        Conn::PgTx(c) => {
            for (sql, rows) in [(PG_ADD_HOURS, hours), (PG_ADD_DAYS, days)] {
                for rows in rows.chunks(ADD_STEP) {
                    bind(sqlx::query(sql), rows).execute(&mut **c).await?;
                }
            }
        }
        Conn::SqliteTx(c) => {
            for (sql, rows) in [(SQLITE_ADD_HOURS, hours), (SQLITE_ADD_DAYS, days)] {
                for rows in rows.chunks(ADD_STEP) {
                    let rows: Vec<_> = rows.iter().map(row).collect();
                    sqlx::query(sql).bind(Json(rows)).execute(&mut **c).await?;
                }
            }
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// Binds nine lists, a column each.
fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    rows: &'q [Row<'q>],
) -> Query<'q, Postgres, PgArguments> {
    query
        .bind(rows.iter().map(|(key, _)| key.account.to_string()).collect::<Vec<_>>())
        .bind(rows.iter().map(|(key, _)| key.project).collect::<Vec<_>>())
        .bind(rows.iter().map(|(key, _)| key.series).collect::<Vec<_>>())
        .bind(rows.iter().map(|(key, _)| key.bucket).collect::<Vec<_>>())
        .bind(rows.iter().map(|(key, _)| key.value).collect::<Vec<_>>())
        .bind(rows.iter().map(|(key, _)| key.second).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, counts)| counts.scans).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, counts)| counts.new_devices).collect::<Vec<_>>())
        .bind(rows.iter().map(|(_, counts)| counts.robots).collect::<Vec<_>>())
}

/// A row for SQLite: a list of its columns.
fn row((key, counts): &Row<'_>) -> serde_json::Value {
    let Key { account, project, series, bucket, value, second } = key;
    let Counts { scans, new_devices, robots } = counts;
    json!([account, project, series, bucket, value, second, scans, new_devices, robots])
}
