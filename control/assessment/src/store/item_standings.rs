//! Permanent assessment state of an item: the scan that set its verdict, its greatest points, and its cases.

use std::collections::HashMap;

use shared::{
    id::{AccountId, ThngId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, Raw, StoreError, Tx, dialect::fetch_in_list, execute, fetch_optional, parse};
use crate::domain::{
    assessment::{
        decided::{CaseDecision, Decided},
        peak::{ByScan, FIRST_RULES, Peak, Stood},
        standing::{JudgedScan, StoredScan},
    },
    case::{CaseDetails, CaseState},
};

// The cases come with it, so that an assessment asks once.
macro_rules! find {
    ($head:literal, $of:literal) => {
        concat!(
            "SELECT ",
            $head,
            "t.verdict, s.scanned_at, s.points, s.level, s.scan_id, s.points_at, s.standing, s.peak, \
             c.id AS copy_id, c.status AS copy_status, c.version AS copy_version, c.doc AS copy_doc, \
             g.id AS gray_id, g.status AS gray_status, g.version AS gray_version, g.doc AS gray_doc FROM thngs t \
             LEFT JOIN item_standings s ON s.thng_id = t.id \
             LEFT JOIN cases c ON c.thng_id = t.id AND c.kind = 'counterfeit' \
             LEFT JOIN cases g ON g.thng_id = t.id AND g.kind = 'grayMarket' WHERE ",
            $of
        )
    };
}
const FIND: &str = find!("", "t.account_id = $1 AND t.id = $2");
// Two assessments of one item write one after the other, and so do decisions on its cases; groups of them take their
// items in one order. The lock is a statement of its own: one that waits for it would read the joined tables as they
// were before the wait.
const PG_LOCK: &str = "SELECT t.id FROM thngs t WHERE t.id = ANY($1) ORDER BY t.id FOR NO KEY UPDATE";
const PG_LIST: &str = find!("t.account_id, t.id, ", "t.id = ANY($1)");
const SQLITE_LIST: &str = find!("t.account_id, t.id, ", "t.id IN (SELECT value FROM json_each($1))");
// The columns of the first release are written too: it may run beside this one during an upgrade.
const PUT: &str = "INSERT INTO item_standings (thng_id, account_id, scanned_at, points, level, scan_id, points_at, \
    standing, peak) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (thng_id) DO UPDATE SET scanned_at = $3, \
    points = $4, level = $5, scan_id = $6, points_at = $7, standing = $8, peak = $9";
const PG_FORGET: &str = "UPDATE item_standings SET standing = NULL WHERE account_id = $1 AND thng_id IN \
    (SELECT s.thng_id FROM item_standings s WHERE s.thng_id = ANY($2) AND s.standing IS NOT NULL ORDER BY s.thng_id \
    FOR UPDATE) RETURNING thng_id";
const SQLITE_FORGET: &str = "UPDATE item_standings SET standing = NULL WHERE account_id = $1 \
    AND thng_id IN (SELECT value FROM json_each($2)) AND standing IS NOT NULL RETURNING thng_id";
const DELETE: &str = "DELETE FROM item_standings WHERE account_id = $1 AND thng_id = $2";

/// The permanent assessment state of an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// Its standing; nothing before the first assessment.
    pub stood: Option<Stood>,
    /// The scan that wrote it, if this release or a newer one did.
    pub judged: Option<JudgedScan>,
    /// Its greatest points.
    pub peak: Option<Peak>,
    /// The case of a copy.
    pub counterfeit: Option<CaseState>,
    /// The case of a diversion.
    pub gray_market: Option<CaseState>,
}

impl Kept {
    /// The decisions that hold.
    #[must_use]
    pub fn decided(&self) -> Decided {
        let of = |case: &Option<CaseState>| case.as_ref().and_then(CaseDecision::of);
        Decided { counterfeit: of(&self.counterfeit), gray_market: of(&self.gray_market) }
    }
}

/// A [`Row`] with the account and the id of its Thng.
#[derive(sqlx::FromRow)]
struct LockedRow {
    account_id: String,
    id: String,
    #[sqlx(flatten)]
    row: Row,
}

#[derive(sqlx::FromRow)]
struct Row {
    verdict: Option<String>,
    scanned_at: Option<i64>,
    points: Option<i64>,
    level: Option<String>,
    scan_id: Option<String>,
    points_at: Option<i64>,
    standing: Option<Json<StoredScan>>,
    peak: Option<Json<Peak>>,
    copy_id: Option<String>,
    copy_status: Option<String>,
    copy_version: Option<i64>,
    copy_doc: Option<Json<CaseDetails>>,
    gray_id: Option<String>,
    gray_status: Option<String>,
    gray_version: Option<i64>,
    gray_doc: Option<Json<CaseDetails>>,
}

impl TryFrom<Row> for Kept {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let peak = peak(&row)?;
        let verdict = row.verdict.map(|text| parse("verdict", &text)).transpose()?;
        let at = row.scanned_at.map(UnixMillis);
        // Where an older release wrote last, the scan is another one.
        let judged = row.standing.filter(|Json(stored)| Some(stored.at()) == at);
        Ok(Self {
            stood: verdict.map(|verdict| Stood { verdict, at }),
            judged: judged.map(|Json(stored)| stored.into()),
            peak,
            counterfeit: case(row.copy_id, row.copy_status, row.copy_version, row.copy_doc)?,
            gray_market: case(row.gray_id, row.gray_status, row.gray_version, row.gray_doc)?,
        })
    }
}

fn peak(row: &Row) -> Result<Option<Peak>, StoreError> {
    let (Some(points), Some(level), Some(scan), Some(at)) =
        (row.points, &row.level, &row.scan_id, row.points_at)
    else {
        return Ok(None);
    };
    let by = ByScan { scan: parse("scan_id", scan)?, at: UnixMillis(at) };
    let points = u32::try_from(points).unwrap_or_default();
    let of_columns =
        Peak { rules_version: FIRST_RULES, ..Peak::of_scan(points, parse("level", level)?, by, None) };
    let whole = row.peak.as_ref().map(|Json(peak)| *peak);
    // Where the first release raised it, the whole form is older than the columns.
    let is_newest = |peak: &Peak| {
        (peak.points, peak.level, peak.points_by) == (points, of_columns.level, of_columns.points_by)
    };
    Ok(Some(whole.filter(is_newest).unwrap_or(of_columns)))
}

fn case(
    id: Option<String>,
    status: Option<String>,
    version: Option<i64>,
    details: Option<Json<CaseDetails>>,
) -> Result<Option<CaseState>, StoreError> {
    let (Some(id), Some(status), Some(version), Some(Json(details))) = (id, status, version, details) else {
        return Ok(None);
    };
    Ok(Some(CaseState { id: parse("id", &id)?, status: parse("status", &status)?, version, details }))
}

/// The state of an item.
pub async fn load(conn: &mut Conn, account: AccountId, thng: ThngId) -> Result<Kept, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), thng.as_str())?;
    row.map_or_else(|| Ok(Kept::default()), Kept::try_from)
}

/// The state of some Thngs of any accounts, locked until the transaction ends; deleted Thngs are left out.
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
    let rows = fetch_in_list!(tx, LockedRow, PG_LIST, SQLITE_LIST, [], ids)?;
    let each = rows.into_iter().map(|LockedRow { account_id, id, row }| {
        Ok(((parse("account_id", &account_id)?, parse("id", &id)?), row.try_into()?))
    });
    each.collect()
}

/// The state of one Thng, locked until the transaction ends; empty when the Thng is gone.
pub async fn lock_one(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<Kept, StoreError> {
    Ok(lock(tx, &[(account, thng)]).await?.remove(&(account, thng)).unwrap_or_default())
}

/// Keeps the greatest points of an item, and the scan that wrote its verdict with its time.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    scanned_at: Option<UnixMillis>,
    judged: Option<&JudgedScan>,
    peak: &Peak,
) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        PUT,
        thng.as_str(),
        account.as_str(),
        scanned_at.map(|at| at.0),
        i64::from(peak.points),
        peak.level.as_str(),
        peak.points_by.scan.as_str(),
        peak.points_by.at.0,
        judged.map(|scan| Json(StoredScan::from(scan))),
        Json(peak)
    )?;
    Ok(())
}

/// Removes what is kept of the scans that wrote verdicts: where, when and by what they were. The verdicts and the points stay,
/// as where an older release wrote them. Returns how many there were.
pub async fn forget_scans(tx: &mut Tx, account: AccountId, thngs: &[ThngId]) -> Result<u64, StoreError> {
    if thngs.is_empty() {
        return Ok(0);
    }
    let ids: Vec<String> = thngs.iter().map(ToString::to_string).collect();
    let gone = fetch_in_list!(&mut **tx, (String,), PG_FORGET, SQLITE_FORGET, [account.as_str()], &ids)?;
    Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
}

/// Deletes the state of a deleted Thng.
pub async fn delete(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), thng.as_str())?;
    Ok(())
}
