//! Counts of what accounts hold: the first one of a new quota, and later ones that repair what drifted.
//!
//! A count is exact without keeping anybody waiting. The row of the account is locked while a snapshot of the database is
//! taken, and released; then the snapshot is counted, and the difference added to what changed since. Transactions that
//! had begun to write before the row was there may not have seen it: the first count waits until they are over
//! ([`super::writers`]).

use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, Ctx, Db, StoreError,
    dialect::{self, unsigned},
    execute, fetch_all, fetch_one, parse, quotas,
};
use crate::domain::quota::Quota;

/// Longest count of one account: reading a hundred million rows.
const PG_LONG: &str = "SET LOCAL statement_timeout = '10min'";

const COUNT_THINGS: &str = "SELECT COUNT(*) FROM thngs WHERE account_id = $1";
const COUNT_LINKS: &str = "SELECT COUNT(*) FROM redirections WHERE account_id = $1 AND deleted_rev IS NULL";
const COUNT_BYTES: &str = "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM \
    (SELECT size_bytes FROM files WHERE account_id = $1 UNION ALL \
    SELECT size_bytes FROM report_photos WHERE account_id = $1) t";
const COUNT_USERS: &str = "SELECT COUNT(*) FROM app_users WHERE account_id = $1";
const COUNT_DOMAINS: &str = "SELECT COUNT(*) FROM domain_claims WHERE account_id = $1";

const SOME_THINGS: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM thngs WHERE account_id = $1 LIMIT $2) t";
const SOME_LINKS: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM redirections WHERE account_id = $1 \
    AND deleted_rev IS NULL LIMIT $2) t";
const SOME_USERS: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM app_users WHERE account_id = $1 LIMIT $2) t";
const SOME_DOMAINS: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM domain_claims WHERE account_id = $1 LIMIT $2) t";
const SOME_SCANS: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM actions WHERE account_id = $1 \
    AND type = 'implicitScans' AND created_at >= $3 LIMIT $2) t";
const SOME_BYTES: &str = "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT), COUNT(*) FROM \
    (SELECT size_bytes FROM files WHERE account_id = $1 UNION ALL \
    SELECT size_bytes FROM report_photos WHERE account_id = $1 LIMIT $2) t";

// Bytes of the files and of the chunks of print orders, of so many orders, and how many orders these are.
macro_rules! print_bytes {
    ($files:literal) => {
        concat!(
            "SELECT CAST(COALESCE(SUM(COALESCE((SELECT SUM(CAST(f.value ->> 'sizeBytes' AS BIGINT)) FROM ",
            $files,
            " f), 0) + COALESCE(CAST(p.doc ->> 'chunkBytes' AS BIGINT), 0)), 0) AS BIGINT), COUNT(*) \
             FROM (SELECT doc FROM print_orders WHERE account_id = $1 LIMIT $2) p"
        )
    };
}
const PG_PRINT_BYTES: &str = print_bytes!("jsonb_array_elements(p.doc -> 'files')");
const SQLITE_PRINT_BYTES: &str = print_bytes!("json_each(p.doc, '$.files')");

const REPAIR: &str = "UPDATE quota_uses SET used = used + $3, counted_at = $4, fence = fence + 1 \
    WHERE account_id = $1 AND kind = $2 AND fence = $5";
const PENDING: &str = "SELECT account_id, kind FROM quota_uses WHERE counted_at IS NULL \
    AND kind IN ('things', 'links', 'storageBytes', 'users', 'shortDomains') AND ($2 = '' OR account_id = $2) ORDER BY account_id, kind LIMIT $1";
const STALE: &str = "SELECT account_id, kind FROM quota_uses WHERE counted_at <= $1 \
    AND kind IN ('things', 'links', 'storageBytes', 'users', 'shortDomains') ORDER BY counted_at, account_id, kind LIMIT $2";

/// A count that was compared with what writers had counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// How much there is.
    pub counted: u64,
    /// How much more there is than was counted; 0 also for a first count.
    pub drift: i64,
}

/// The statement that counts what an account holds; `None` for what is not held.
const fn statement(quota: Quota) -> Option<&'static str> {
    match quota {
        Quota::Things => Some(COUNT_THINGS),
        Quota::Links => Some(COUNT_LINKS),
        Quota::StorageBytes => Some(COUNT_BYTES),
        Quota::Users => Some(COUNT_USERS),
        Quota::ShortDomains => Some(COUNT_DOMAINS),
        Quota::ScansPerDay | Quota::EventsPerDay | Quota::Streams | Quota::Uploads => None,
    }
}

/// Counts what an account holds, and corrects its use; `None` if it has no such quota, or somebody else has just counted.
pub async fn recount(
    db: &Db,
    account: AccountId,
    quota: Quota,
    now: UnixMillis,
) -> Result<Option<Recount>, StoreError> {
    let Some(sql) = statement(quota) else { return Ok(None) };
    // Before the row is locked: a connection may have to be waited for.
    let mut snapshot = db.snapshot().await?;
    let mut tx = db.begin(&Ctx::default()).await?;
    let Some(then) = quotas::lock(&mut tx, account, quota, now).await? else { return Ok(None) };
    if let Conn::PgTx(c) = &mut snapshot {
        sqlx::query(PG_LONG).execute(&mut **c).await?;
    }
    // The first statement that reads fixes what the snapshot shows.
    let _ = quotas::find(&mut snapshot, account, quota, now).await?;
    tx.commit().await?;
    let (counted,): (i64,) = fetch_one!(&mut snapshot, sql, account.as_str())?;
    let printed = match quota {
        Quota::StorageBytes => print_bytes(&mut snapshot, account, i64::MAX).await?.0,
        Quota::Things
        | Quota::Links
        | Quota::Users
        | Quota::ShortDomains
        | Quota::ScansPerDay
        | Quota::EventsPerDay
        | Quota::Streams
        | Quota::Uploads => 0,
    };
    let counted = counted.saturating_add(printed);
    drop(snapshot);
    let drift = counted.saturating_sub(then.stored());
    let mut tx = db.begin(&Ctx::default()).await?;
    let repaired = execute!(&mut *tx, REPAIR, account.as_str(), quota.as_str(), drift, now.0, then.fence)?;
    tx.commit().await?;
    let drift = if then.is_counted { drift } else { 0 };
    Ok((repaired == 1).then_some(Recount { counted: unsigned(counted), drift }))
}

fn read((account, kind): (String, String)) -> Option<Result<(AccountId, Quota), StoreError>> {
    // A kind of a newer release is counted by that release.
    let quota = kind.parse().ok()?;
    Some(parse("account_id", &account).map(|account| (account, quota)))
}

/// Some that were never counted, of one account or of all.
pub async fn list_pending(
    conn: &mut Conn,
    account: Option<AccountId>,
    limit: u32,
) -> Result<Vec<(AccountId, Quota)>, StoreError> {
    let rows: Vec<(String, String)> =
        fetch_all!(conn, PENDING, i64::from(limit), account.as_ref().map_or("", AccountId::as_str))?;
    rows.into_iter().filter_map(read).collect()
}

/// Some that were counted before a time, those first that were counted longest ago.
pub async fn list_stale(
    conn: &mut Conn,
    before: UnixMillis,
    limit: u32,
) -> Result<Vec<(AccountId, Quota)>, StoreError> {
    let rows: Vec<(String, String)> = fetch_all!(conn, STALE, before.0, i64::from(limit))?;
    rows.into_iter().filter_map(read).collect()
}

/// What an account has without a limit, by reading at most `most` rows, and whether there are more; `None` for what is
/// not counted without one. `today` is the time at which the day began.
pub async fn count_some(
    conn: &mut Conn,
    account: AccountId,
    quota: Quota,
    most: u32,
    today: UnixMillis,
) -> Result<Option<(u64, bool)>, StoreError> {
    let (id, limit) = (account.as_str(), i64::from(most) + 1);
    let sql = match quota {
        Quota::Things => SOME_THINGS,
        Quota::Links => SOME_LINKS,
        Quota::Users => SOME_USERS,
        Quota::ShortDomains => SOME_DOMAINS,
        Quota::ScansPerDay => {
            let (count,): (i64,) = fetch_one!(conn, SOME_SCANS, id, limit, today.0)?;
            return Ok(Some(bounded(count, most)));
        }
        Quota::StorageBytes => {
            let (bytes, count): (i64, i64) = fetch_one!(conn, SOME_BYTES, id, limit)?;
            let (printed, orders) = print_bytes(conn, account, limit).await?;
            let bytes = unsigned(bytes.saturating_add(printed));
            return Ok(Some((bytes, count.max(orders) > i64::from(most))));
        }
        Quota::EventsPerDay | Quota::Streams | Quota::Uploads => return Ok(None),
    };
    let (count,): (i64,) = fetch_one!(conn, sql, id, limit)?;
    Ok(Some(bounded(count, most)))
}

/// Bytes of the files and chunks of at most `limit` print orders of an account, and how many orders these are.
async fn print_bytes(conn: &mut Conn, account: AccountId, limit: i64) -> Result<(i64, i64), StoreError> {
    let sql = dialect::pick(conn, PG_PRINT_BYTES, SQLITE_PRINT_BYTES);
    Ok(fetch_one!(conn, sql, account.as_str(), limit)?)
}

fn bounded(count: i64, most: u32) -> (u64, bool) {
    (unsigned(count).min(u64::from(most)), count > i64::from(most))
}
