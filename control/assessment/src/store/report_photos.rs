//! The table of the photos of reports. Whoever removes a report removes its photo before, in the same transaction.

use shared::{
    id::{AccountId, CaseId, ReportId, ThngId},
    time::UnixMillis,
};

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional, files, quotas};
use crate::domain::{
    photo::{PhotoType, StoredPhoto},
    quota::Quota,
};

const FIND: &str = "SELECT p.blob, p.media_type, p.size_bytes FROM report_photos p \
    JOIN finder_reports f ON f.id = p.report_id AND f.account_id = p.account_id \
    WHERE p.account_id = $1 AND f.case_id = $2 AND p.report_id = $3";
const SUM_SINCE: &str = "SELECT CAST(COALESCE(SUM(p.size_bytes), 0) AS BIGINT) FROM finder_reports f \
    JOIN report_photos p ON p.report_id = f.id WHERE f.account_id = $1 AND f.created_at > $2";
const INSERT: &str = "INSERT INTO report_photos (report_id, account_id, blob, media_type, size_bytes) \
    VALUES ($1, $2, $3, $4, $5)";
const DELETE_OF_THNG: &str = "DELETE FROM report_photos WHERE account_id = $1 AND report_id IN \
    (SELECT id FROM finder_reports WHERE account_id = $1 AND thng_id = $2) RETURNING blob, size_bytes";
const DELETE_BEFORE: &str = "DELETE FROM report_photos WHERE account_id = $1 AND report_id IN \
    (SELECT id FROM finder_reports WHERE account_id = $1 AND created_at < $2) RETURNING blob, size_bytes";

/// When the bytes of a removed photo are removed, too: the next time that somebody looks.
const AT_ONCE: UnixMillis = UnixMillis(0);

/// The photo of a report of a case.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    (case, report): (CaseId, ReportId),
) -> Result<Option<StoredPhoto>, StoreError> {
    let row: Option<(String, String, i64)> =
        fetch_optional!(conn, FIND, account.as_str(), case.as_str(), report.as_str())?;
    row.map(|(blob, media_type, size_bytes)| {
        let kind = PhotoType::ALL.into_iter().find(|kind| kind.media_type() == media_type);
        let kind = kind.ok_or_else(|| StoreError::Row(format!("media_type: {media_type}")))?;
        Ok(StoredPhoto { blob, kind, size_bytes: u64::try_from(size_bytes).unwrap_or_default() })
    })
    .transpose()
}

/// The bytes of the photos to an account that came since a time.
pub async fn sum_since(conn: &mut Conn, account: AccountId, since: UnixMillis) -> Result<u64, StoreError> {
    let (sum,): (i64,) = fetch_one!(conn, SUM_SINCE, account.as_str(), since.0)?;
    Ok(u64::try_from(sum).unwrap_or_default())
}

/// Adds the photo of a new report, whose blob is no garbage from now on. The caller counts it for the quota.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    report: ReportId,
    photo: &StoredPhoto,
) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT,
        report.as_str(),
        account.as_str(),
        photo.blob.as_str(),
        photo.kind.media_type(),
        i64::try_from(photo.size_bytes).unwrap_or(i64::MAX)
    )?;
    files::forget_garbage(tx, &photo.blob).await
}

/// Removes the photos of the reports about a Thng.
pub(super) async fn delete_of_thng(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    let gone: Vec<(String, i64)> = fetch_all!(&mut **tx, DELETE_OF_THNG, account.as_str(), thng.as_str())?;
    discard(tx, account, gone).await
}

/// Removes the photos of reports of an account that came before a time.
pub(super) async fn delete_before(
    tx: &mut Tx,
    account: AccountId,
    before: UnixMillis,
) -> Result<(), StoreError> {
    let gone: Vec<(String, i64)> = fetch_all!(&mut **tx, DELETE_BEFORE, account.as_str(), before.0)?;
    discard(tx, account, gone).await
}

/// Notes blobs as garbage, and gives back what they took of the storage.
async fn discard(tx: &mut Tx, account: AccountId, gone: Vec<(String, i64)>) -> Result<(), StoreError> {
    if gone.is_empty() {
        return Ok(());
    }
    let size_bytes: u64 =
        gone.iter().map(|(_, size_bytes)| u64::try_from(*size_bytes).unwrap_or_default()).sum();
    let blobs: Vec<String> = gone.into_iter().map(|(blob, _)| blob).collect();
    files::note_all_garbage(tx, &blobs, AT_ONCE).await?;
    quotas::release(tx, account, Quota::StorageBytes, size_bytes);
    Ok(())
}
