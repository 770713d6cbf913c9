//! Sets quotas, for all accounts and for one.

use std::{collections::HashMap, time::Duration};

use serde_json::{Map, Value, json};
use shared::{id::AccountId, time::UnixMillis};
use tokio::time::{sleep, timeout};
use tracing::instrument;

use super::{
    By, accounts, note,
    quotas_of_accounts::{self as counts},
};
use crate::{
    domain::{
        quota::{Quota, Setting},
        quota_change::UNLIMITED,
    },
    error::{CommonError, ServiceError},
    store::{Db, StoreError, quota_counts::Recount, quota_limits},
};

/// What the audit trail calls them.
const KIND: &str = "quotas";

/// What the audit trail calls those of all accounts.
const ALL: &str = "default";

/// How long a change waits for the count, so that the answer has the use.
const FIRST_COUNT: Duration = Duration::from_secs(5);

/// How often a change is tried again while writes of the accounts hold what it needs, and the pause before.
const MAX_TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a change that did not get its locks in time is to be tried again; waits before it says so.
async fn is_again(result: &Result<(), ServiceError>, tries: &mut u32) -> bool {
    *tries += 1;
    let is = *tries <= MAX_TRIES && matches!(result, Err(ServiceError::Store(StoreError::Unavailable(_))));
    if is {
        sleep(PAUSE).await;
    }
    is
}

/// The account that a path or a command names.
///
/// # Errors
/// 404 when there is none.
pub async fn find_account(db: &Db, id: &str) -> Result<AccountId, ServiceError> {
    Ok(accounts::read(db, id).await?.id)
}

/// Sets quotas of an account; those that are not named stay. What it holds is counted before it returns, unless that
/// takes long: then it is counted a little later, and nothing is refused until then.
///
/// # Errors
/// 404 when there is no such account.
#[instrument(skip_all)]
pub async fn set(
    db: &Db,
    by: &By,
    id: &str,
    changes: &[(Quota, Setting)],
) -> Result<AccountId, ServiceError> {
    let account = find_account(db, id).await?;
    let (mut result, mut tries) = (try_set(db, by, account, changes).await, 0);
    while is_again(&result, &mut tries).await {
        result = try_set(db, by, account, changes).await;
    }
    result?;
    match timeout(FIRST_COUNT, counts::count_pending(db, Some(account), by.now, FIRST_COUNT)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, %account, "what an account holds is counted later"),
        Err(_) => tracing::info!(%account, "what an account holds takes long to count: it is counted later"),
    }
    Ok(account)
}

async fn try_set(
    db: &Db,
    by: &By,
    account: AccountId,
    changes: &[(Quota, Setting)],
) -> Result<(), ServiceError> {
    let mut tx = db.begin(&by.ctx).await?;
    quota_limits::lock(&mut tx).await?;
    let before = state(&quota_limits::list_own(&mut tx, account).await?);
    for (quota, setting) in changes {
        quota_limits::set_own(&mut tx, account, *quota, *setting, by.now).await?;
    }
    let after = state(&quota_limits::list_own(&mut tx, account).await?);
    note(&mut tx, Some(account), (KIND, account.as_str()), (Some(before), Some(after)));
    Ok(tx.commit().await?)
}

/// The quotas of all accounts.
pub async fn list_defaults(db: &Db) -> Result<HashMap<Quota, u64>, ServiceError> {
    Ok(quota_limits::list_defaults(&mut db.read().await?).await?)
}

/// Sets quotas of all accounts for which nothing else was set; those that are not named stay. What the accounts hold is
/// counted in the background, and nothing is refused until then.
///
/// # Errors
/// 400 for a quota that is set to its default.
#[instrument(skip_all)]
pub async fn set_defaults(db: &Db, by: &By, changes: &[(Quota, Setting)]) -> Result<(), ServiceError> {
    let mut limits = Vec::with_capacity(changes.len());
    let mut faults = Vec::new();
    for (quota, setting) in changes {
        match setting {
            Setting::Most(most) => limits.push((*quota, Some(*most))),
            Setting::Unlimited => limits.push((*quota, None)),
            Setting::Default => {
                faults.push(format!("{quota} must be an integer or {UNLIMITED}: it is the default itself."));
            }
        }
    }
    if !faults.is_empty() {
        return Err(CommonError::Faults(faults).into());
    }
    let (mut result, mut tries) = (try_set_defaults(db, by, &limits).await, 0);
    while is_again(&result, &mut tries).await {
        result = try_set_defaults(db, by, &limits).await;
    }
    result
}

async fn try_set_defaults(db: &Db, by: &By, limits: &[(Quota, Option<u64>)]) -> Result<(), ServiceError> {
    let mut tx = db.begin(&by.ctx).await?;
    quota_limits::lock(&mut tx).await?;
    let all = |limits: HashMap<Quota, u64>| {
        state(&limits.into_iter().map(|(quota, most)| (quota, Some(most))).collect())
    };
    let before = all(quota_limits::list_defaults(&mut tx).await?);
    for (quota, most) in limits {
        quota_limits::set_default(&mut tx, *quota, *most).await?;
    }
    quota_limits::apply_defaults(&mut tx, by.now).await?;
    let after = all(quota_limits::list_defaults(&mut tx).await?);
    note(&mut tx, None, (KIND, ALL), (Some(before), Some(after)));
    Ok(tx.commit().await?)
}

/// Counts again what an account holds, for each quota that it has, and corrects what was wrong.
///
/// # Errors
/// 404 when there is no such account.
pub async fn recount(db: &Db, id: &str, now: UnixMillis) -> Result<Vec<(Quota, Recount)>, ServiceError> {
    let account = find_account(db, id).await?;
    let mut counted = Vec::new();
    for quota in Quota::ALL {
        if let Some(found) = counts::recount(db, account, quota, now).await? {
            counted.push((quota, found));
        }
    }
    Ok(counted)
}

fn state(limits: &HashMap<Quota, Option<u64>>) -> Value {
    let member = |quota: Quota| {
        let most = limits.get(&quota)?;
        Some((quota.to_string(), most.map_or_else(|| json!(UNLIMITED), |most| json!(most))))
    };
    Value::Object(Quota::ALL.into_iter().filter_map(member).collect::<Map<_, _>>())
}
