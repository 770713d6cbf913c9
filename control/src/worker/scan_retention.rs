//! Removes scans by edges whose time is over: whole months where every account's is, single ones elsewhere.
//!
//! It goes by whole days, and by one day a run at most, whatever the clock says: a clock that leaps ahead for an hour removes
//! what is four days early, and not everything. One replica does a day.

use std::collections::BTreeMap;

use ::actions::store::{scan_charges, scans as legacy_scans};
use assessment::store::reports;
use kernel::store::{Ctx, StoreError};
use privacy::service::ages;
use shared::{id::AccountId, time::UnixMillis};
use tenants::store::tenants;

use crate::state::ApiState;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long before it begins the tables of a month are made.
const AHEAD_MS: i64 = 3 * DAY_MS;

/// How much older a boot of an edge is than its last one when its charges are forgotten.
const BOOT_MS: i64 = 90 * DAY_MS;

/// Scans among actions that one transaction removes: some ten milliseconds.
const STEP: u32 = 1_000;

/// What one run removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Single scans.
    pub scans: u64,
    /// Months.
    pub months: usize,
}

/// Removes what is over, and notes how much there is.
///
/// # Errors
/// A store failed; what was removed stays removed, and the rest is removed on the next day.
pub async fn run(app: &ApiState) -> Result<Removed, StoreError> {
    let (now, scans) = (app.core.clock.now(), &app.actions.scans.pool);
    scans.make_month(UnixMillis(now.0 + AHEAD_MS)).await?;
    let (day, is_new) = scans.begin_day(now).await?;
    match ages::schedule(&app.privacy, day).await {
        Ok(0) => {}
        Ok(accounts) => tracing::info!(accounts, "cuts what is left of people in what is old enough"),
        Err(error) => tracing::warn!(%error, "cutting what is left of people is left for later"),
    }
    let days = tenants::list_scan_retention(&mut app.core.db.read().await?).await?;
    let before = |days: u16| UnixMillis(day.0 - i64::from(days) * DAY_MS);
    let longest = days.iter().map(|(_, days)| *days).max();
    let mut removed = Removed::default();
    if is_new {
        let kept: BTreeMap<AccountId, UnixMillis> =
            days.into_iter().map(|(account, days)| (account, before(days))).collect();
        removed.scans = scans.delete_before(&kept, day).await?;
        for (account, before) in &kept {
            removed.scans += delete_legacy(app, *account, *before).await?;
        }
        delete_reports(app, day, kept).await?;
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        scan_charges::delete_old(&mut tx, BOOT_MS).await?;
        tx.commit().await?;
    }
    if let Some(longest) = longest {
        removed.months = usize::from(scans.drop_before(before(longest)).await?.is_some());
    }
    let found = scans.describe().await?;
    let next = found.months.first().zip(longest);
    let next = next.map(|(month, days)| UnixMillis(month.end().0 + i64::from(days) * DAY_MS));
    app.metrics.scans_are(found.bytes, found.oldest, next);
    Ok(removed)
}

/// Removes what finders wrote when scans of its time are removed, or earlier, when personal data of its time is cut.
async fn delete_reports(
    app: &ApiState,
    day: UnixMillis,
    mut kept: BTreeMap<AccountId, UnixMillis>,
) -> Result<(), StoreError> {
    for (account, days) in tenants::list_personal_data_days(&mut app.core.db.read().await?).await? {
        let before = UnixMillis(day.0 - i64::from(days) * DAY_MS);
        kept.entry(account).and_modify(|kept| *kept = before.max(*kept)).or_insert(before);
    }
    for (account, before) in kept {
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        reports::delete_before(&mut tx, account, before).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Removes scans that stand among actions: those that are still to be moved, and those that do not fit elsewhere.
async fn delete_legacy(app: &ApiState, account: AccountId, before: UnixMillis) -> Result<u64, StoreError> {
    let mut gone = 0;
    loop {
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        let step = legacy_scans::delete_before(&mut tx, account, before, STEP).await?;
        tx.commit().await?;
        gone += step;
        if step < STEP.into() {
            return Ok(gone);
        }
    }
}
