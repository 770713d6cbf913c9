//! The counts of a project, and how they are taken out of those of its account.

use shared::id::{AccountId, ProjectId};

use super::{Conn, StoreError, Tx, execute, fetch_one, fetch_optional};
use crate::domain::{dimension::SERIES, roll_ups::DAY_HOURS};

// `dimension = 1` counts all scans: each day that has any row has one of these.
const FIRST_DAY: &str = "SELECT day FROM scan_statistics_days WHERE account_id = $1 AND project_id = $2 AND dimension = 1 \
    ORDER BY day LIMIT 1";
const TOTAL: &str = "SELECT CAST(COALESCE(SUM(scans), 0) AS BIGINT) FROM scan_statistics_days WHERE account_id = $1 \
    AND project_id = $2 AND dimension = 1";

// Rows are locked in the order of their keys, as the intake writes them.
macro_rules! pg_lock {
    ($table:literal, $bucket:literal) => {
        concat!(
            "SELECT scans FROM ",
            $table,
            " WHERE account_id = $1 AND project_id = '' AND dimension = $2 AND ",
            $bucket,
            " >= $3 AND ",
            $bucket,
            " < $4 ORDER BY account_id, project_id, dimension, ",
            $bucket,
            ", value, second FOR UPDATE"
        )
    };
}
const PG_LOCK_HOURS: &str = pg_lock!("scan_statistics", "hour");
const PG_LOCK_DAYS: &str = pg_lock!("scan_statistics_days", "day");

// Both ranges are bounded, so that either side may be read first.
macro_rules! subtract {
    ($table:literal, $bucket:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " AS a SET scans = a.scans - p.scans, new_devices = a.new_devices - p.new_devices, robots = a.robots - p.robots \
             FROM ",
            $table,
            " AS p WHERE p.account_id = $1 AND p.project_id = $2 AND p.dimension = $3 AND p.",
            $bucket,
            " >= $4 AND p.",
            $bucket,
            " < $5 AND a.account_id = $1 AND a.project_id = '' AND a.dimension = $3 AND a.",
            $bucket,
            " >= $4 AND a.",
            $bucket,
            " < $5 AND a.",
            $bucket,
            " = p.",
            $bucket,
            " AND a.value = p.value AND a.second = p.second"
        )
    };
}
const SUBTRACT_HOURS: &str = subtract!("scan_statistics", "hour");
const SUBTRACT_DAYS: &str = subtract!("scan_statistics_days", "day");

macro_rules! remove_empty {
    ($table:literal, $bucket:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE account_id = $1 AND project_id = '' AND dimension = $2 AND ",
            $bucket,
            " >= $3 AND ",
            $bucket,
            " < $4 AND scans = 0 AND new_devices = 0 AND robots = 0"
        )
    };
}
const REMOVE_EMPTY_HOURS: &str = remove_empty!("scan_statistics", "hour");
const REMOVE_EMPTY_DAYS: &str = remove_empty!("scan_statistics_days", "day");

// `dimension = 9` counts by project, for the account only.
macro_rules! remove_by_project {
    ($table:literal, $bucket:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE account_id = $1 AND project_id = '' AND dimension = 9 AND ",
            $bucket,
            " >= $3 AND ",
            $bucket,
            " < $4 AND value = $2"
        )
    };
}
const REMOVE_BY_PROJECT_HOURS: &str = remove_by_project!("scan_statistics", "hour");
const REMOVE_BY_PROJECT_DAYS: &str = remove_by_project!("scan_statistics_days", "day");

macro_rules! remove_own {
    ($table:literal, $bucket:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE account_id = $1 AND project_id = $2 AND dimension = $3 AND ",
            $bucket,
            " >= $4 AND ",
            $bucket,
            " < $5"
        )
    };
}
const REMOVE_OWN_HOURS: &str = remove_own!("scan_statistics", "hour");
const REMOVE_OWN_DAYS: &str = remove_own!("scan_statistics_days", "day");

/// The statements on a table.
struct Statements {
    pg_lock: &'static str,
    subtract: &'static str,
    remove_empty: &'static str,
    remove_by_project: &'static str,
    remove_own: &'static str,
    /// Buckets of a day.
    per_day: i32,
}

const HOURS: Statements = Statements {
    pg_lock: PG_LOCK_HOURS,
    subtract: SUBTRACT_HOURS,
    remove_empty: REMOVE_EMPTY_HOURS,
    remove_by_project: REMOVE_BY_PROJECT_HOURS,
    remove_own: REMOVE_OWN_HOURS,
    per_day: DAY_HOURS,
};
const DAYS: Statements = Statements {
    pg_lock: PG_LOCK_DAYS,
    subtract: SUBTRACT_DAYS,
    remove_empty: REMOVE_EMPTY_DAYS,
    remove_by_project: REMOVE_BY_PROJECT_DAYS,
    remove_own: REMOVE_OWN_DAYS,
    per_day: 1,
};

/// The first day of UTC, counted from 1970, that has counts of a project.
pub async fn find_first_day(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
) -> Result<Option<i32>, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(&mut **tx, FIRST_DAY, account.as_str(), project.as_str())?;
    Ok(row.map(|(day,)| day))
}

/// How many scans of people are counted for a project.
pub async fn total(tx: &mut Tx, account: AccountId, project: ProjectId) -> Result<i64, StoreError> {
    let (scans,): (i64,) = fetch_one!(&mut **tx, TOTAL, account.as_str(), project.as_str())?;
    Ok(scans)
}

/// Takes the counts of a project on a day out of those of the account, and removes them: hours first, then days, and of both
/// those of the account before those of the project.
pub async fn remove_day(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
    day: i32,
) -> Result<(), StoreError> {
    let (account, project) = (account.as_str(), project.as_str());
    for table in [&HOURS, &DAYS] {
        let from = day.saturating_mul(table.per_day);
        let to = from.saturating_add(table.per_day);
        for series in SERIES {
            if let Conn::PgTx(c) = &mut **tx {
                sqlx::query(table.pg_lock)
                    .bind(account)
                    .bind(series.number)
                    .bind(from)
                    .bind(to)
                    .execute(&mut **c)
                    .await?;
            }
            execute!(&mut **tx, table.subtract, account, project, series.number, from, to)?;
            execute!(&mut **tx, table.remove_empty, account, series.number, from, to)?;
        }
        execute!(&mut **tx, table.remove_by_project, account, project, from, to)?;
        for series in SERIES {
            execute!(&mut **tx, table.remove_own, account, project, series.number, from, to)?;
        }
    }
    Ok(())
}
