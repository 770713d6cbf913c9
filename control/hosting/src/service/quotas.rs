//! Sets quotas, for all accounts and for one.

use std::{collections::HashMap, time::Duration};

use serde_json::{Map, Value, json};
use shared::{id::AccountId, problem::Code, time::UnixMillis};
use tokio::time::timeout;
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
    error::ServiceError,
    store::{Db, quota_counts::Recount, quota_limits},
};

/// What the audit trail calls them.
const KIND: &str = "quotas";

/// What the audit trail calls those of all accounts.
const ALL: &str = "default";

/// How long a change waits for the count, so that the answer has the use.
const FIRST_COUNT: Duration = Duration::from_secs(5);

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
    let mut tx = db.begin(&by.ctx).await?;
    quota_limits::lock(&mut tx).await?;
    let before = state(&quota_limits::list_own(&mut tx, account).await?);
    for (quota, setting) in changes {
        quota_limits::set_own(&mut tx, account, *quota, *setting, by.now).await?;
    }
    let after = state(&quota_limits::list_own(&mut tx, account).await?);
    note(&mut tx, Some(account), (KIND, account.as_str()), (Some(before), Some(after)));
    tx.commit().await?;
    match timeout(FIRST_COUNT, counts::count_pending(db, Some(account), by.now, FIRST_COUNT)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, %account, "what an account holds is counted later"),
        Err(_) => tracing::info!(%account, "what an account holds takes long to count: it is counted later"),
    }
    Ok(account)
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
    let most = |(quota, setting): &(Quota, Setting)| match setting {
        Setting::Most(most) => Ok((*quota, Some(*most))),
        Setting::Unlimited => Ok((*quota, None)),
        Setting::Default => {
            Err(format!("{quota} must be an integer or {UNLIMITED}: it is the default itself."))
        }
    };
    let faults: Vec<String> = changes.iter().filter_map(|change| most(change).err()).collect();
    if !faults.is_empty() {
        return Err(ServiceError::Refused { code: Code::Invalid, errors: faults });
    }
    let mut tx = db.begin(&by.ctx).await?;
    quota_limits::lock(&mut tx).await?;
    let all = |limits: HashMap<Quota, u64>| {
        state(&limits.into_iter().map(|(quota, most)| (quota, Some(most))).collect())
    };
    let before = all(quota_limits::list_defaults(&mut tx).await?);
    for (quota, most) in changes.iter().filter_map(|change| most(change).ok()) {
        quota_limits::set_default(&mut tx, quota, most).await?;
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
