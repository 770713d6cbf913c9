//! Removes scans by edges whose time is over: whole months where every account's is, single ones elsewhere.

use std::collections::BTreeMap;

use kernel::store::StoreError;
use shared::{id::AccountId, time::UnixMillis};
use tenants::store::tenants;

use crate::state::ApiState;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Scans that one transaction removes: some ten milliseconds.
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
/// A store failed; what was removed stays removed.
pub async fn run(app: &ApiState) -> Result<Removed, StoreError> {
    let (now, scans) = (app.core.clock.now(), &app.actions.scans.alone);
    let kept = tenants::list_scan_retention(&mut app.core.db.read().await?).await?;
    let kept: BTreeMap<AccountId, u16> = kept.into_iter().collect();
    let before = |days: u16| UnixMillis(now.0 - i64::from(days) * DAY_MS);
    let mut removed = Removed::default();
    for (account, days) in &kept {
        loop {
            match scans.delete_before(*account, before(*days), STEP).await? {
                0 => break,
                gone => removed.scans += gone,
            }
        }
    }
    let longest = kept.values().max().copied();
    if let Some(longest) = longest {
        removed.months = scans.drop_before(before(longest)).await?.len();
    }
    let found = scans.describe().await?;
    let next = found.months.first().zip(longest);
    let next = next.map(|(month, days)| UnixMillis(month.end().0 + i64::from(days) * DAY_MS));
    app.metrics.scans_are(found.bytes, found.oldest, next);
    Ok(removed)
}
