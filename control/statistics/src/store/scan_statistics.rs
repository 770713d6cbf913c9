//! The roll-ups of scans.

use shared::{
    id::{AccountId, ProjectId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, Raw, StoreError, Tx};
use crate::domain::{
    parts::{Part, Parts, each},
    roll_ups::Counts,
};

/// Rows that an answer is added up from at most: some second.
pub const MAX_READ: i64 = 1_000_000;

const PURGE_HOURS: &str = "DELETE FROM scan_statistics WHERE (account_id, project_id, dimension, hour, value, second) IN \
    (SELECT account_id, project_id, dimension, hour, value, second FROM scan_statistics WHERE hour < $1 LIMIT $2)";
// `dimension = 24` are links, and the condition of the index.
const PURGE_LINKS: &str = "DELETE FROM scan_statistics_days WHERE (account_id, project_id, dimension, day, value, second) \
    IN (SELECT account_id, project_id, dimension, day, value, second FROM scan_statistics_days \
    WHERE dimension = 24 AND day < $1 LIMIT $2)";

/// Adds up rows by period and group, and gives those of the groups with most scans, with what all groups have.
///
/// `p` are days and `q` hours of periods; rows of hours may be taken away (`sign`). `$4` and `$5` say by which columns it
/// is grouped, `$6` is the number of groups, `$7` are values of the second column. `1000000` is [`MAX_READ`].
///
/// Sums are of floating point: they are exact up to 2^53 and cost half as much as those of `bigint`, which Postgres adds up
/// with any number of digits.
macro_rules! counts {
    ($lists:expr, $days:expr, $hours:expr, $cells:expr, $end:expr) => {
        concat!(
            "WITH ",
            $lists,
            "cells AS MATERIALIZED (SELECT n, a, b, ",
            $cells,
            " FROM (SELECT p.n AS n, CASE WHEN $4 THEN s.value ELSE '' END AS a, CASE WHEN $5 THEN s.second ELSE '' END AS b, \
             s.scans AS scans, s.new_devices AS new_devices, s.robots AS robots FROM ",
            $days,
            " UNION ALL SELECT q.n, CASE WHEN $4 THEN s.value ELSE '' END, CASE WHEN $5 THEN s.second ELSE '' END, \
             q.sign * s.scans, q.sign * s.new_devices, q.sign * s.robots FROM ",
            $hours,
            " LIMIT 1000000) AS t",
            $end,
            "), best AS (SELECT a, b, CAST(SUM(CAST(scans AS DOUBLE PRECISION)) AS BIGINT) AS scans, \
             CAST(SUM(CAST(robots AS DOUBLE PRECISION)) AS BIGINT) AS robots, COUNT(*) OVER () AS number, \
             CAST(SUM(SUM(CAST(scans AS DOUBLE PRECISION))) OVER () AS BIGINT) AS all_scans, \
             CAST(SUM(SUM(CAST(new_devices AS DOUBLE PRECISION))) OVER () AS BIGINT) AS all_new_devices, \
             CAST(SUM(SUM(CAST(robots AS DOUBLE PRECISION))) OVER () AS BIGINT) AS all_robots FROM cells WHERE scans <> 0 OR robots <> 0 \
             GROUP BY a, b ORDER BY 3 DESC, 4 DESC, 1, 2 LIMIT $6) \
             SELECT CAST(c.n AS BIGINT) AS period, c.a, c.b, c.scans, c.new_devices, c.robots, g.number, g.all_scans, \
             g.all_new_devices, g.all_robots, (SELECT CAST(SUM(read) AS BIGINT) FROM cells) AS read \
             FROM best AS g JOIN cells AS c ON c.a = g.a AND c.b = g.b WHERE c.scans <> 0 OR c.robots <> 0 \
             ORDER BY c.n, c.scans DESC, c.robots DESC, c.a, c.b"
        )
    };
}

/// The counts of a cell that several rows add up to.
macro_rules! sums {
    () => {
        "CAST(SUM(CAST(scans AS DOUBLE PRECISION)) AS BIGINT) AS scans, \
         CAST(SUM(CAST(new_devices AS DOUBLE PRECISION)) AS BIGINT) AS new_devices, \
         CAST(SUM(CAST(robots AS DOUBLE PRECISION)) AS BIGINT) AS robots, COUNT(*) AS read"
    };
}
/// The counts of a cell that is one row.
macro_rules! single {
    () => {
        "scans, new_devices, robots, 1 AS read"
    };
}

// `OFFSET 0` keeps the ranges of the index that the subselects are: joined, the table might be read as a whole.
macro_rules! pg_days {
    () => {
        "UNNEST($8::int[], $9::int[], $10::int[]) AS p (n, low, high) CROSS JOIN LATERAL (SELECT d.value, d.second, d.scans, \
         d.new_devices, d.robots FROM scan_statistics_days d WHERE d.account_id = $1 AND d.project_id = $2 \
         AND d.dimension = $3 AND d.day >= p.low AND d.day < p.high AND ($7::text[] IS NULL OR d.second = ANY($7)) \
         OFFSET 0) AS s"
    };
}
macro_rules! pg_hours {
    () => {
        "UNNEST($11::int[], $12::int[], $13::int[], $14::int[]) AS q (n, low, high, sign) CROSS JOIN LATERAL (SELECT h.value, \
         h.second, h.scans, h.new_devices, h.robots FROM scan_statistics h WHERE h.account_id = $1 AND h.project_id = $2 \
         AND h.dimension = $3 AND h.hour >= q.low AND h.hour < q.high AND ($7::text[] IS NULL OR h.second = ANY($7)) \
         OFFSET 0) AS s"
    };
}
const PG_COUNTS: &str = counts!("", pg_days!(), pg_hours!(), sums!(), " GROUP BY n, a, b");
const PG_COUNTS_SINGLE: &str = counts!("", pg_days!(), pg_hours!(), single!(), "");
// Each day or hour and each value is one place of the index.
const PG_COUNTS_OF: &str = counts!(
    "",
    "UNNEST($8::int[], $9::int[], $10::int[]) AS p (n, low, high) CROSS JOIN UNNEST($15::text[]) AS v (value) \
     CROSS JOIN LATERAL (SELECT d.value, d.second, d.scans, d.new_devices, d.robots FROM scan_statistics_days d \
     WHERE d.account_id = $1 AND d.project_id = $2 AND d.dimension = $3 AND d.day = p.low AND d.value = v.value \
     AND ($7::text[] IS NULL OR d.second = ANY($7)) OFFSET 0) AS s",
    "UNNEST($11::int[], $12::int[], $13::int[], $14::int[]) AS q (n, low, high, sign) CROSS JOIN UNNEST($15::text[]) \
     AS v (value) CROSS JOIN LATERAL (SELECT h.value, h.second, h.scans, h.new_devices, h.robots FROM scan_statistics h \
     WHERE h.account_id = $1 AND h.project_id = $2 AND h.dimension = $3 AND h.hour = q.low AND h.value = v.value \
     AND ($7::text[] IS NULL OR h.second = ANY($7)) OFFSET 0) AS s",
    sums!(),
    " GROUP BY n, a, b"
);
// The lists come first in the joins, so that each of their rows is one range of the key.
macro_rules! sqlite_lists {
    () => {
        "p (n, low, high) AS MATERIALIZED (SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]' FROM json_each($8)), \
         q (n, low, high, sign) AS MATERIALIZED (SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', \
         value ->> '$[3]' FROM json_each($9)), "
    };
}
macro_rules! sqlite_days {
    () => {
        "p CROSS JOIN scan_statistics_days s ON s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 \
         AND s.day >= p.low AND s.day < p.high AND ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))"
    };
}
macro_rules! sqlite_hours {
    () => {
        "q CROSS JOIN scan_statistics s ON s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 \
         AND s.hour >= q.low AND s.hour < q.high AND ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))"
    };
}
const SQLITE_COUNTS: &str =
    counts!(sqlite_lists!(), sqlite_days!(), sqlite_hours!(), sums!(), " GROUP BY n, a, b");
const SQLITE_COUNTS_SINGLE: &str = counts!(sqlite_lists!(), sqlite_days!(), sqlite_hours!(), single!(), "");
const SQLITE_COUNTS_OF: &str = counts!(
    "p (n, low, high) AS MATERIALIZED (SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]' FROM json_each($8)), \
     q (n, low, high, sign) AS MATERIALIZED (SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', \
     value ->> '$[3]' FROM json_each($9)), v (value) AS MATERIALIZED (SELECT value FROM json_each($10)), ",
    "p CROSS JOIN v CROSS JOIN scan_statistics_days s ON s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 \
     AND s.day = p.low AND s.value = v.value AND ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))",
    "q CROSS JOIN v CROSS JOIN scan_statistics s ON s.account_id = $1 AND s.project_id = $2 AND s.dimension = $3 \
     AND s.hour = q.low AND s.value = v.value AND ($7 IS NULL OR s.second IN (SELECT k.value FROM json_each($7) k))",
    sums!(),
    " GROUP BY n, a, b"
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
    /// Values of the first dimension, each once; `None` for all.
    pub first: Option<&'a [String]>,
    /// Values of the second dimension; `None` for all.
    pub second: Option<&'a [String]>,
    /// Whether it is grouped by the first and by the second dimension.
    pub by: (bool, bool),
    /// Whether these are all dimensions of the set, so that no two rows of a day or hour are of one group.
    pub is_whole: bool,
}

/// The values of a group: of the first and of the second dimension, empty where it is not grouped by it.
pub type Group = (String, String);

/// The groups with most scans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// The index of a period, a group of them, and its counts there: in the order of periods, most scans first. Periods
    /// without a scan of a group are left out.
    pub cells: Vec<(usize, Group, Counts)>,
    /// How many groups there are, beside those, too.
    pub number: u64,
    /// What all of them have together.
    pub totals: Counts,
    /// Whether there were more than [`MAX_READ`] rows, so that the counts say nothing.
    pub is_cut: bool,
}

/// Removes up to `limit` rows of hours before one; returns how many.
pub async fn purge_hours(tx: &mut Tx, before: i32, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE_HOURS, UnixMillis(i64::from(before)), limit).await
}

/// Removes up to `limit` rows of links of days before one; returns how many.
pub async fn purge_links(tx: &mut Tx, before_day: i32, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE_LINKS, UnixMillis(i64::from(before_day)), limit).await
}

#[derive(sqlx::FromRow)]
struct CellRow {
    period: i64,
    a: String,
    b: String,
    scans: i64,
    new_devices: i64,
    robots: i64,
    number: i64,
    all_scans: i64,
    all_new_devices: i64,
    all_robots: i64,
    read: i64,
}

/// The counts of the groups with most scans, at most `limit`, in each period: in one statement, so that they are of one
/// moment.
pub async fn list_groups(
    conn: &mut Conn,
    choice: &Choice<'_>,
    parts: &Parts,
    limit: u32,
) -> Result<Groups, StoreError> {
    let project = choice.project.map(|id| id.to_string()).unwrap_or_default();
    let account = choice.account.to_string();
    let (days, hours) = if choice.first.is_some() {
        (one_by_one(&parts.days), one_by_one(&parts.hours))
    } else {
        (parts.days.clone(), parts.hours.clone())
    };
    let is_single = choice.is_whole && parts.are_single();
    let rows: Vec<CellRow> = match conn.raw() {
        Raw::Pg(c) => {
            let sql = match choice.first {
                Some(_) => PG_COUNTS_OF,
                None if is_single => PG_COUNTS_SINGLE,
                None => PG_COUNTS,
            };
            // Planned each time: how many rows it reads depends on the values.
            let query = sqlx::query_as(sql)
                .persistent(false)
                .bind(account)
                .bind(project)
                .bind(choice.series)
                .bind(choice.by.0)
                .bind(choice.by.1)
                .bind(i64::from(limit))
                .bind(choice.second)
                .bind(days.iter().map(|part| part.period).collect::<Vec<_>>())
                .bind(days.iter().map(|part| part.from).collect::<Vec<_>>())
                .bind(days.iter().map(|part| part.to).collect::<Vec<_>>())
                .bind(hours.iter().map(|part| part.period).collect::<Vec<_>>())
                .bind(hours.iter().map(|part| part.from).collect::<Vec<_>>())
                .bind(hours.iter().map(|part| part.to).collect::<Vec<_>>())
                .bind(hours.iter().map(|part| part.sign).collect::<Vec<_>>());
            match choice.first {
                Some(first) => query.bind(first).fetch_all(c).await?,
                None => query.fetch_all(c).await?,
            }
        }
        Raw::Sqlite(c) => {
            let sql = match choice.first {
                Some(_) => SQLITE_COUNTS_OF,
                None if is_single => SQLITE_COUNTS_SINGLE,
                None => SQLITE_COUNTS,
            };
            let list = |parts: &[Part]| {
                Json(
                    parts.iter().map(|part| (part.period, part.from, part.to, part.sign)).collect::<Vec<_>>(),
                )
            };
            let query = sqlx::query_as(sql)
                .bind(account)
                .bind(project)
                .bind(choice.series)
                .bind(choice.by.0)
                .bind(choice.by.1)
                .bind(i64::from(limit))
                .bind(choice.second.map(Json))
                .bind(list(&days))
                .bind(list(&hours));
            match choice.first {
                Some(first) => query.bind(Json(first)).fetch_all(c).await?,
                None => query.fetch_all(c).await?,
            }
        }
    };
    let mut groups = Groups::default();
    for row in rows {
        let period =
            usize::try_from(row.period).map_err(|_| StoreError::Row(format!("a period {}", row.period)))?;
        let counts = Counts { scans: row.scans, new_devices: row.new_devices, robots: row.robots };
        groups.cells.push((period, (row.a, row.b), counts));
        groups.number = row.number.max(0).unsigned_abs();
        groups.totals =
            Counts { scans: row.all_scans, new_devices: row.all_new_devices, robots: row.all_robots };
        groups.is_cut = row.read >= MAX_READ;
    }
    Ok(groups)
}

/// Each day or hour as a part of its own.
fn one_by_one(parts: &[Part]) -> Vec<Part> {
    each(parts).map(|(period, from, sign)| Part { period, from, to: from + 1, sign }).collect()
}
