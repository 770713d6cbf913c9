//! What does not fade of an item's assessments: the scan that wrote its verdict, and its greatest points.

use std::collections::HashMap;

use shared::{
    id::{AccountId, ThngId},
    time::UnixMillis,
};

use super::{Conn, Raw, StoreError, Tx, dialect::fetch_in_list, on_db, parse};
use crate::domain::assessment::peak::{Peak, Stood};

macro_rules! find {
    ($head:literal, $of:literal) => {
        concat!(
            $head,
            "t.verdict, s.scanned_at, s.points, s.level, s.scan_id, s.points_at FROM thngs t \
             LEFT JOIN item_standings s ON s.thng_id = t.id WHERE ",
            $of
        )
    };
}
const FIND: &str = find!("SELECT ", "t.account_id = $1 AND t.id = $2");
// Two assessments of one item write one after the other, and groups of them take their items in one order. What stands
// beside is read after that, by a statement of its own: one that waits for a row reads the others as of before.
const PG_LOCK: &str = "SELECT id FROM thngs WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
const PG_LOCKED: &str = find!("SELECT t.account_id, t.id, ", "t.id = ANY($1)");
const SQLITE_LOCKED: &str = find!("SELECT t.account_id, t.id, ", "t.id IN (SELECT value FROM json_each($1))");
const PUT: &str = "INSERT INTO item_standings (thng_id, account_id, scanned_at, points, level, scan_id, points_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (thng_id) DO UPDATE SET scanned_at = $3, points = $4, \
    level = $5, scan_id = $6, points_at = $7";
const DELETE: &str = "DELETE FROM item_standings WHERE account_id = $1 AND thng_id = $2";

/// What is kept of an item's assessments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its standing; nothing before the first assessment.
    pub stood: Option<Stood>,
    /// Its greatest points.
    pub peak: Option<Peak>,
}

type Row = (Option<String>, Option<i64>, Option<i64>, Option<String>, Option<String>, Option<i64>);

/// A [`Row`] after the account and the id of its Thng.
type LockedRow =
    (String, String, Option<String>, Option<i64>, Option<i64>, Option<String>, Option<String>, Option<i64>);

fn kept((verdict, at, points, level, scan, points_at): Row) -> Result<Kept, StoreError> {
    let verdict = verdict.map(|text| parse("verdict", &text)).transpose()?;
    let peak = match (points, level, scan, points_at) {
        (Some(points), Some(level), Some(scan), Some(at)) => Some(Peak {
            points: u32::try_from(points).unwrap_or_default(),
            level: parse("level", &level)?,
            scan: parse("scan_id", &scan)?,
            at: UnixMillis(at),
        }),
        _ => None,
    };
    Ok(Kept { stood: verdict.map(|verdict| Stood { verdict, at: at.map(UnixMillis) }), peak })
}

/// What is kept of an item.
///
/// # Errors
/// The database failed.
pub async fn load(conn: &mut Conn, account: AccountId, thng: ThngId) -> Result<Kept, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(thng.as_str())
        .fetch_optional(c)
        .await)?;
    row.map_or_else(|| Ok(Kept::default()), kept)
}

/// What is kept of some Thngs of whatever accounts, which nobody else writes until the transaction ends; those that are
/// gone are left out.
///
/// # Errors
/// The database failed.
pub async fn lock(
    tx: &mut Tx,
    thngs: &[(AccountId, ThngId)],
) -> Result<HashMap<(AccountId, ThngId), Kept>, StoreError> {
    let ids: Vec<&str> = thngs.iter().map(|(_, thng)| thng.as_str()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    // A transaction of SQLite that writes is the only one.
    if let Raw::Pg(c) = tx.raw() {
        sqlx::query(PG_LOCK).persistent(false).bind(&ids).execute(c).await?;
    }
    let rows = fetch_in_list!(tx, LockedRow, PG_LOCKED, SQLITE_LOCKED, [], ids)?;
    let mut found = HashMap::with_capacity(rows.len());
    for (account, thng, verdict, at, points, level, scan, points_at) in rows {
        let key = (parse("account_id", &account)?, parse("id", &thng)?);
        found.insert(key, kept((verdict, at, points, level, scan, points_at))?);
    }
    Ok(found)
}

/// Keeps the greatest points of an item, and when the scan happened that wrote its verdict.
///
/// # Errors
/// The database failed.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    scanned_at: Option<UnixMillis>,
    peak: Peak,
) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(PUT)
        .bind(thng.as_str())
        .bind(account.as_str())
        .bind(scanned_at.map(|at| at.0))
        .bind(i64::from(peak.points))
        .bind(peak.level.as_str())
        .bind(peak.scan.as_str())
        .bind(peak.at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Removes what is kept of a Thng that is removed.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(thng.as_str())
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}
