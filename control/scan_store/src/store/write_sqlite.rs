//! Rows for SQLite, many in one statement.

use kernel::store::StoreError;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::{append::Numbered, months::of_month};
use crate::domain::{columns::Kind, month::Month};

const SQLITE_INSERT: &str = "INSERT INTO scans (created_at, seq, timestamp, account, shape, agent, place, referer, \
    language, rule, key, thng, ip, short_id, entry, redirect_url) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// What each row but the first one adds.
const ROW: &str = ", (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Rows of a statement; one with as many is compiled once.
const STEP: usize = 100;

/// Writes rows into the table of a month.
pub(super) async fn write(
    conn: &mut SqliteConnection,
    month: Month,
    rows: &[Numbered<'_>],
) -> Result<(), StoreError> {
    for rows in rows.chunks(STEP) {
        let mut sql = of_month(SQLITE_INSERT, month);
        (1..rows.len()).for_each(|_| sql.push_str(ROW));
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(rows.len() == STEP);
        for row in rows {
            let (scan, columns) = (row.scan, &row.scan.columns);
            query = query.bind(row.created_at.0).bind(row.seq).bind(scan.timestamp.0).bind(row.account);
            for kind in [Kind::Shape, Kind::Agent, Kind::Place, Kind::Referer, Kind::Language, Kind::Rule] {
                query = query.bind(row.text(kind));
            }
            query = query.bind(scan.key.as_slice()).bind(scan.thng.as_deref()).bind(columns.ip.as_deref());
            for text in [&columns.short_id, &columns.entry, &columns.redirect_url] {
                query = query.bind(text.as_deref());
            }
        }
        query.execute(&mut *conn).await?;
    }
    Ok(())
}
