//! Limits and use of quotas, and the counts behind them.

use std::time::Duration;

use shared::{id::AccountId, time::UnixMillis};

use super::Core;
use crate::{
    domain::quota::{Nature, Quota, Usage, begin_of_day},
    error::ServiceError,
    store::{
        Ctx, Db, StoreError,
        quota_counts::{self, Recount},
        quota_holders, quota_limits, quotas, writers,
    },
};

/// Rows that are read to show the use of what has no limit: some 20 ms.
const MOST_READ: u32 = 100_000;

/// Longest wait for earlier transactions before a first count.
const WRITERS: Duration = Duration::from_secs(60);

/// How old a count may be before it is made again.
const COUNT_AGE_MS: i64 = 24 * 60 * 60 * 1_000;

/// First counts of one run, and later ones, which may read many rows and are less urgent.
const PENDING_STEP: u32 = 1_000;
const STALE_STEP: u32 = 10;

/// Limit and use of each quota of an account.
pub async fn list(core: &Core, account: AccountId) -> Result<Vec<Usage>, ServiceError> {
    let count_open = |quota| core.open_quotas.count_all(&core.db, account, quota);
    let count_scans = |since, most| core.dependents.count_scans(account, since, most);
    list_with(&core.db, account, core.clock.now(), count_open, count_scans).await
}

/// The same for a command beside the processes that serve. `count_scans` counts scans by edges since a time, by looking at
/// no more than so many.
pub async fn list_of_database<S: Future<Output = Result<u64, StoreError>>>(
    db: &Db,
    account: AccountId,
    now: UnixMillis,
    count_scans: impl Fn(UnixMillis, u64) -> S,
) -> Result<Vec<Usage>, ServiceError> {
    let count_open =
        |quota| async move { quota_holders::count_others(&mut db.read().await?, account, quota, "").await };
    list_with(db, account, now, count_open, count_scans).await
}

async fn list_with<F, S>(
    db: &Db,
    account: AccountId,
    now: UnixMillis,
    count_open: impl Fn(Quota) -> F,
    count_scans: impl Fn(UnixMillis, u64) -> S,
) -> Result<Vec<Usage>, ServiceError>
where
    F: Future<Output = Result<u64, StoreError>>,
    S: Future<Output = Result<u64, StoreError>>,
{
    let today = begin_of_day(now);
    let own = quota_limits::list_own(&mut db.read().await?, account).await?;
    let mut usages = Vec::with_capacity(Quota::ALL.len());
    for quota in Quota::ALL {
        let found = quotas::find(&mut db.read().await?, account, quota, now).await?;
        let (used, is_at_least) = match found {
            _ if quota.nature() == Nature::Open => (Some(count_open(quota).await?), false),
            Some(found) => (found.is_counted.then_some(found.used), false),
            None => {
                let most = u64::from(MOST_READ);
                let mut conn = db.read().await?;
                let some = quota_counts::count_some(&mut conn, account, quota, MOST_READ, today).await?;
                drop(conn);
                match some {
                    // Those of edges have a store of their own.
                    Some((used, is_more)) if quota == Quota::ScansPerDay => {
                        let all = used + count_scans(today, most + 1).await?;
                        (Some(all.min(most)), is_more || all > most)
                    }
                    Some((used, is_more)) => (Some(used), is_more),
                    None => (None, false),
                }
            }
        };
        usages.push(Usage {
            quota,
            limit: found.map(|found| found.limit),
            is_own: own.contains_key(&quota),
            used,
            is_at_least,
            over: found.map_or(0, |found| found.over),
        });
    }
    Ok(usages)
}

/// Counts what is to be counted for the first time, for one account or for all, once earlier transactions are over, but
/// waits no longer than that; returns how many counts that were.
///
/// # Errors
/// The database failed; the rest is counted later.
pub async fn count_pending(
    db: &Db,
    account: Option<AccountId>,
    now: UnixMillis,
    wait: Duration,
) -> Result<usize, ServiceError> {
    let pending = quota_counts::list_pending(&mut db.read().await?, account, PENDING_STEP).await?;
    if pending.is_empty() {
        return Ok(0);
    }
    if !writers::wait_for_all(db, wait).await? {
        tracing::info!(?wait, "writes that began earlier still run: what new quotas limit is counted later");
        return Ok(0);
    }
    let mut done = 0;
    for (account, quota) in &pending {
        // One that fails, such as a count that takes too long, does not keep the others from theirs.
        match quota_counts::recount(db, *account, *quota, now).await {
            Ok(_) => done += 1,
            Err(error) => tracing::warn!(%error, %account, %quota, "what an account holds is counted later"),
        }
    }
    Ok(done)
}

/// Counts again what an account holds, and says in the log what was wrong.
pub async fn recount(
    db: &Db,
    account: AccountId,
    quota: Quota,
    now: UnixMillis,
) -> Result<Option<Recount>, ServiceError> {
    let found = quota_counts::recount(db, account, quota, now).await?;
    if let Some(Recount { counted, drift }) = found.filter(|found| found.drift != 0) {
        tracing::warn!(%account, %quota, counted, drift, "the use of a quota had drifted and was corrected");
    }
    Ok(found)
}

/// Gives limits to accounts that have none though one is set for all, and takes those that are set no more. Both happen
/// when an account is made while a limit for all changes, or by an older release.
pub async fn apply_defaults(db: &Db, now: UnixMillis) -> Result<(), ServiceError> {
    if quota_limits::differ(&mut db.read().await?).await? {
        let mut tx = db.begin(&Ctx::default()).await?;
        quota_limits::lock(&mut tx).await?;
        quota_limits::apply_defaults(&mut tx, now).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Counts what has not been counted yet, and the oldest counts again.
///
/// # Errors
/// The database failed; the rest is counted later.
pub async fn count(db: &Db, now: UnixMillis) -> Result<(), ServiceError> {
    while count_pending(db, None, now, WRITERS).await? > 0 {}
    let before = UnixMillis(now.0.saturating_sub(COUNT_AGE_MS));
    for (account, quota) in quota_counts::list_stale(&mut db.read().await?, before, STALE_STEP).await? {
        recount(db, account, quota, now).await?;
    }
    Ok(())
}
