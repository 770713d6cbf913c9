//! The table of what finders wrote. A writer must hold the lock of the Thng, so that the limit of its item holds.

use shared::{
    id::{AccountId, CaseId, ReportId, ThngId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional, parse, report_photos};
use crate::domain::{
    case::CaseKind,
    report::{FinderReport, MAX_SHOWN},
};

const FIND_CASE: &str = "SELECT id FROM cases WHERE account_id = $1 AND thng_id = $2 AND kind = $3";
const COUNT_OF_ITEM: &str = "SELECT COUNT(*) FROM finder_reports WHERE account_id = $1 AND thng_id = $2 \
    AND created_at > $3 AND id <> $4";
const COUNT_OF_ACCOUNT: &str =
    "SELECT COUNT(*) FROM finder_reports WHERE account_id = $1 AND created_at > $2 AND id <> $3";
const INSERT: &str = "INSERT INTO finder_reports (id, account_id, case_id, thng_id, short_url, body, mail, created_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING";
const CONTAINS: &str = "SELECT COUNT(*) FROM finder_reports WHERE account_id = $1 AND id = $2";
const LIST: &str = "SELECT f.id, f.short_url, f.body, f.mail, f.created_at, \
    (SELECT COUNT(*) FROM report_photos p WHERE p.report_id = f.id) FROM finder_reports f \
    WHERE f.account_id = $1 AND f.case_id = $2 ORDER BY f.created_at DESC, f.id DESC LIMIT $3";
const DELETE_OF_THNG: &str = "DELETE FROM finder_reports WHERE account_id = $1 AND thng_id = $2";
const DELETE_BEFORE: &str = "DELETE FROM finder_reports WHERE account_id = $1 AND created_at < $2";

/// The case of a Thng that may be a copy.
pub async fn find_case(
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
) -> Result<Option<CaseId>, StoreError> {
    let kind = CaseKind::Counterfeit.as_str();
    let row: Option<(String,)> = fetch_optional!(conn, FIND_CASE, account.as_str(), thng.as_str(), kind)?;
    row.map(|(id,)| parse("id", &id)).transpose()
}

/// How many other reports than `id` came since a time: about a Thng, and to its account.
pub async fn count_others(
    conn: &mut Conn,
    account: AccountId,
    (thng, id): (ThngId, ReportId),
    since: UnixMillis,
) -> Result<(i64, i64), StoreError> {
    let (account, id, since) = (account.as_str(), id.as_str(), since.0);
    let (of_item,): (i64,) = fetch_one!(conn, COUNT_OF_ITEM, account, thng.as_str(), since, id)?;
    let (of_account,): (i64,) = fetch_one!(conn, COUNT_OF_ACCOUNT, account, since, id)?;
    Ok((of_item, of_account))
}

/// Whether a report is there.
pub async fn contains(conn: &mut Conn, account: AccountId, id: ReportId) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, CONTAINS, account.as_str(), id.as_str())?;
    Ok(count > 0)
}

/// Adds a report; returns whether it is new: one with the id of another is a repeat and changes nothing.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    (case, thng): (CaseId, ThngId),
    report: &FinderReport,
) -> Result<bool, StoreError> {
    let added = execute!(
        &mut **tx,
        INSERT,
        report.id.as_str(),
        account.as_str(),
        case.as_str(),
        thng.as_str(),
        report.short_url.as_str(),
        report.text.as_str(),
        report.mail.as_deref(),
        report.created_at.0
    )?;
    Ok(added == 1)
}

/// The newest reports of a case.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    case: CaseId,
) -> Result<Vec<FinderReport>, StoreError> {
    let rows: Vec<(String, String, String, Option<String>, i64, i64)> =
        fetch_all!(conn, LIST, account.as_str(), case.as_str(), MAX_SHOWN)?;
    rows.into_iter()
        .map(|(id, short_url, text, mail, created_at, photos)| {
            let id: ReportId = parse("id", &id)?;
            let (created_at, has_photo) = (UnixMillis(created_at), photos > 0);
            Ok(FinderReport { id, short_url, text, mail, has_photo, created_at })
        })
        .collect()
}

/// Removes the reports about a Thng, with their photos; returns how many.
pub async fn delete_of_thng(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<u64, StoreError> {
    report_photos::delete_of_thng(tx, account, thng).await?;
    Ok(execute!(&mut **tx, DELETE_OF_THNG, account.as_str(), thng.as_str())?)
}

/// Removes reports of an account that came before a time, with their photos.
pub async fn delete_before(tx: &mut Tx, account: AccountId, before: UnixMillis) -> Result<u64, StoreError> {
    report_photos::delete_before(tx, account, before).await?;
    Ok(execute!(&mut **tx, DELETE_BEFORE, account.as_str(), before.0)?)
}
