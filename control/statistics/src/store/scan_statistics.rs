//! The roll-ups of scans.

use std::collections::BTreeMap;

use serde_json::json;
use shared::id::{AccountId, ProjectId};
use sqlx::types::Json;

use super::{Conn, Raw, StoreError, Tx, dialect};
use crate::domain::{
    periods::Period,
    roll_ups::{Counts, Key},
};

const PG_WAIT: &str = "SELECT set_config('lock_timeout', '2s', true)";
const PG_ADD: &str = "INSERT INTO scan_statistics (account_id, project_id, dimension, hour, value, second, scans, \
    new_devices, robots) SELECT account_id, project_id, dimension, hour, value, second, scans, new_devices, robots FROM \
    UNNEST($1::text[], $2::text[], $3::smallint[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], \
    $9::bigint[]) AS t (account_id, project_id, dimension, hour, value, second, scans, new_devices, robots) \
    ON CONFLICT (account_id, project_id, dimension, hour, value, second) DO UPDATE SET \
    scans = scan_statistics.scans + EXCLUDED.scans, new_devices = scan_statistics.new_devices + EXCLUDED.new_devices, \
    robots = scan_statistics.robots + EXCLUDED.robots";
const SQLITE_ADD: &str = "INSERT INTO scan_statistics (account_id, project_id, dimension, hour, value, second, scans, \
    new_devices, robots) SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]', \
    value ->> '$[4]', value ->> '$[5]', value ->> '$[6]', value ->> '$[7]', value ->> '$[8]' FROM json_each($1) \
    WHERE TRUE ON CONFLICT (account_id, project_id, dimension, hour, value, second) DO UPDATE SET \
    scans = scans + excluded.scans, new_devices = new_devices + excluded.new_devices, robots = robots + excluded.robots";

/// Columns of a group and its counts; `$8` and `$9` say by which columns it is grouped.
macro_rules! counted {
    () => {
        "CASE WHEN $8 THEN s.value ELSE '' END AS a, CASE WHEN $9 THEN s.second ELSE '' END AS b, \
         CAST(SUM(s.scans) AS BIGINT) AS scans, CAST(SUM(s.new_devices) AS BIGINT) AS new_devices, \
         CAST(SUM(s.robots) AS BIGINT) AS robots"
    };
}

/// The groups of a range with most scans, and what all groups have together.
macro_rules! groups {
    ($where:literal) => {
        concat!(
            "SELECT ",
            counted!(),
            ", COUNT(*) OVER () AS count, CAST(SUM(SUM(s.scans)) OVER () AS BIGINT) AS all_scans, \
             CAST(SUM(SUM(s.new_devices)) OVER () AS BIGINT) AS all_new_devices, \
             CAST(SUM(SUM(s.robots)) OVER () AS BIGINT) AS all_robots FROM scan_statistics s \
             WHERE s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 AND s.hour >= $4 AND s.hour < $5 AND ",
            $where,
            " GROUP BY 1, 2 ORDER BY 3 DESC, 5 DESC, 1, 2 LIMIT $10"
        )
    };
}
const PG_GROUPS: &str =
    groups!("($6::text[] IS NULL OR s.value = ANY($6)) AND ($7::text[] IS NULL OR s.second = ANY($7))");
const SQLITE_GROUPS: &str = groups!(
    "($6 IS NULL OR s.value IN (SELECT k.value FROM json_each($6) k)) AND \
     ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))"
);
// By the index of values: `dimension >= 20` is the condition that the index has.
const PG_GROUPS_OF: &str =
    groups!("s.dimension >= 20 AND s.value = ANY($6::text[]) AND ($7::text[] IS NULL OR s.second = ANY($7))");
const SQLITE_GROUPS_OF: &str = groups!(
    "s.dimension >= 20 AND s.value IN (SELECT k.value FROM json_each($6) k) AND \
     ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))"
);

/// The counts of groups in each of some periods.
macro_rules! pg_periods {
    ($where:literal) => {
        concat!(
            "SELECT p.n - 1, c.a, c.b, c.scans, c.new_devices, c.robots FROM UNNEST($4::int[], $5::int[]) \
             WITH ORDINALITY AS p (low, high, n) CROSS JOIN LATERAL (SELECT ",
            counted!(),
            " FROM scan_statistics s WHERE s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 \
             AND s.hour >= p.low AND s.hour < p.high AND ",
            $where,
            " GROUP BY 1, 2) c WHERE (c.a, c.b) IN (SELECT a, b FROM UNNEST($10::text[], $11::text[]) AS g (a, b)) \
             ORDER BY p.n, c.scans DESC, c.robots DESC, c.a, c.b"
        )
    };
}
const PG_PERIODS: &str =
    pg_periods!("($6::text[] IS NULL OR s.value = ANY($6)) AND ($7::text[] IS NULL OR s.second = ANY($7))");
const PG_PERIODS_OF: &str = pg_periods!(
    "s.dimension >= 20 AND s.value = ANY($6::text[]) AND ($7::text[] IS NULL OR s.second = ANY($7))"
);

// The periods come first in the join, so that each is one range of the index.
macro_rules! sqlite_periods {
    ($where:literal) => {
        concat!(
            "WITH p (n, low, high) AS MATERIALIZED (SELECT key, value ->> '$[0]', value ->> '$[1]' FROM json_each($4)), \
             g (a, b) AS MATERIALIZED (SELECT value ->> '$[0]', value ->> '$[1]' FROM json_each($5)) SELECT p.n, ",
            counted!(),
            " FROM p CROSS JOIN scan_statistics s ON s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 \
             AND s.hour >= p.low AND s.hour < p.high AND ",
            $where,
            " WHERE (CASE WHEN $8 THEN s.value ELSE '' END, CASE WHEN $9 THEN s.second ELSE '' END) \
             IN (SELECT a, b FROM g) GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 6 DESC, 2, 3"
        )
    };
}
const SQLITE_PERIODS: &str = sqlite_periods!(
    "($6 IS NULL OR s.value IN (SELECT k.value FROM json_each($6) k)) AND \
     ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))"
);
const SQLITE_PERIODS_OF: &str = sqlite_periods!(
    "s.dimension >= 20 AND s.value IN (SELECT k.value FROM json_each($6) k) AND \
     ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))"
);

/// Which rows are read.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The account.
    pub account: AccountId,
    /// The project; `None` for the account as a whole.
    pub project: Option<ProjectId>,
    /// The number of the set of dimensions.
    pub series: i16,
    /// Whether rows are found by the index of first values, which `first` must name then.
    pub is_indexed: bool,
    /// Values of the first dimension; `None` for all.
    pub first: Option<&'a [String]>,
    /// Values of the second dimension; `None` for all.
    pub second: Option<&'a [String]>,
    /// Whether it is grouped by the first and by the second dimension.
    pub by: (bool, bool),
}

/// The values of a group: of the first and of the second dimension, empty where it is not grouped by it.
pub type Group = (String, String);

/// The groups with most scans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// They and their counts, most scans first.
    pub top: Vec<(Group, Counts)>,
    /// How many groups there are.
    pub count: u64,
    /// What all of them have together.
    pub totals: Counts,
}

/// Lets the transaction wait for others that add to the same rows: each takes milliseconds, but many may be in line.
pub async fn wait_in_line(tx: &mut Tx) -> Result<(), StoreError> {
    if let Conn::PgTx(c) = &mut **tx {
        sqlx::query(PG_WAIT).execute(&mut **c).await?;
    }
    Ok(())
}

/// Adds to the rows of some keys, in one statement and in their order.
pub async fn add(tx: &mut Tx, rows: &BTreeMap<Key<'_>, Counts>) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_ADD)
                .bind(rows.keys().map(|key| key.account.to_string()).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.project).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.series).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.hour).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.value).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.second).collect::<Vec<_>>())
                .bind(rows.values().map(|counts| counts.scans).collect::<Vec<_>>())
                .bind(rows.values().map(|counts| counts.new_devices).collect::<Vec<_>>())
                .bind(rows.values().map(|counts| counts.robots).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row = |(key, counts): (&Key<'_>, &Counts)| {
                let Key { account, project, series, hour, value, second } = key;
                let Counts { scans, new_devices, robots } = counts;
                json!([account, project, series, hour, value, second, scans, new_devices, robots])
            };
            sqlx::query(SQLITE_ADD)
                .bind(Json(rows.iter().map(row).collect::<Vec<_>>()))
                .execute(&mut **c)
                .await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

#[derive(sqlx::FromRow)]
struct GroupRow {
    a: String,
    b: String,
    scans: i64,
    new_devices: i64,
    robots: i64,
    count: i64,
    all_scans: i64,
    all_new_devices: i64,
    all_robots: i64,
}

/// The groups of a range with most scans, at most `limit`.
pub async fn list_groups(
    conn: &mut Conn,
    choice: &Choice<'_>,
    range: Period,
    limit: u32,
) -> Result<Groups, StoreError> {
    let project = choice.project.map(|id| id.to_string()).unwrap_or_default();
    let account = choice.account.to_string();
    let rows: Vec<GroupRow> = match conn.raw() {
        Raw::Pg(c) => {
            let sql = if choice.is_indexed { PG_GROUPS_OF } else { PG_GROUPS };
            // Planned each time: how many rows it reads depends on the values.
            sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(project)
                .bind(choice.series)
                .bind(range.from)
                .bind(range.to)
                .bind(choice.first)
                .bind(choice.second)
                .bind(choice.by.0)
                .bind(choice.by.1)
                .bind(i64::from(limit))
                .fetch_all(c)
                .await?
        }
        Raw::Sqlite(c) => {
            let sql = if choice.is_indexed { SQLITE_GROUPS_OF } else { SQLITE_GROUPS };
            sqlx::query_as(sql)
                .bind(account)
                .bind(project)
                .bind(choice.series)
                .bind(range.from)
                .bind(range.to)
                .bind(choice.first.map(Json))
                .bind(choice.second.map(Json))
                .bind(choice.by.0)
                .bind(choice.by.1)
                .bind(i64::from(limit))
                .fetch_all(c)
                .await?
        }
    };
    let mut groups = Groups::default();
    for row in rows {
        let counts = Counts { scans: row.scans, new_devices: row.new_devices, robots: row.robots };
        groups.count = row.count.max(0).unsigned_abs();
        groups.totals =
            Counts { scans: row.all_scans, new_devices: row.all_new_devices, robots: row.all_robots };
        groups.top.push(((row.a, row.b), counts));
    }
    Ok(groups)
}

/// The counts of a group in a period, which is named by its place.
pub type Cell = (usize, Group, Counts);

/// What some groups have in each of some periods, in the order of periods; without groups and periods that have none.
pub async fn list_periods(
    conn: &mut Conn,
    choice: &Choice<'_>,
    periods: &[Period],
    groups: &[(Group, Counts)],
) -> Result<Vec<Cell>, StoreError> {
    let project = choice.project.map(|id| id.to_string()).unwrap_or_default();
    let account = choice.account.to_string();
    let rows: Vec<(i64, String, String, i64, i64, i64)> = match conn.raw() {
        Raw::Pg(c) => {
            let sql = if choice.is_indexed { PG_PERIODS_OF } else { PG_PERIODS };
            sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(project)
                .bind(choice.series)
                .bind(periods.iter().map(|period| period.from).collect::<Vec<_>>())
                .bind(periods.iter().map(|period| period.to).collect::<Vec<_>>())
                .bind(choice.first)
                .bind(choice.second)
                .bind(choice.by.0)
                .bind(choice.by.1)
                .bind(groups.iter().map(|((a, _), _)| a.as_str()).collect::<Vec<_>>())
                .bind(groups.iter().map(|((_, b), _)| b.as_str()).collect::<Vec<_>>())
                .fetch_all(c)
                .await?
        }
        Raw::Sqlite(c) => {
            let sql = if choice.is_indexed { SQLITE_PERIODS_OF } else { SQLITE_PERIODS };
            let periods: Vec<(i32, i32)> = periods.iter().map(|period| (period.from, period.to)).collect();
            let groups: Vec<&Group> = groups.iter().map(|(group, _)| group).collect();
            sqlx::query_as(sql)
                .bind(account)
                .bind(project)
                .bind(choice.series)
                .bind(Json(periods))
                .bind(Json(groups))
                .bind(choice.first.map(Json))
                .bind(choice.second.map(Json))
                .bind(choice.by.0)
                .bind(choice.by.1)
                .fetch_all(c)
                .await?
        }
    };
    rows.into_iter()
        .map(|(place, a, b, scans, new_devices, robots)| {
            let place = usize::try_from(place).map_err(|_| StoreError::Row(format!("a period {place}")))?;
            Ok((place, (a, b), Counts { scans, new_devices, robots }))
        })
        .collect()
}
