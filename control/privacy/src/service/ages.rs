//! `personalDataDays`: what is left of people in what is old enough is cut, once a day.

use kernel::{domain::common::Stamp, error::ServiceError, store::Ctx};
use shared::{
    id::{AccountId, ErasureId},
    time::UnixMillis,
};
use tenants::store::tenants;

use super::PrivacyState;
use crate::{
    domain::erasure::{Details, Erasure, Status, Target},
    store::erasures,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Lets the worker cut what became old enough since the last time, in each account that wants it. `day` is the begin of what
/// counts as today: it follows the clock by a day at a time, so that a wrong clock cuts little before somebody sees it.
/// Returns in how many accounts.
///
/// # Errors
/// The database failed; the rest is done the next time.
pub async fn schedule(state: &PrivacyState, day: UnixMillis) -> Result<usize, ServiceError> {
    let accounts = tenants::list_personal_data_days(&mut state.db.read().await?).await?;
    let mut begun = 0;
    for (account, days) in accounts {
        let to = UnixMillis(day.0.saturating_sub(i64::from(days) * DAY_MS));
        begun += usize::from(schedule_one(state, account, to).await?);
    }
    if begun > 0 {
        state.wake.notify_one();
    }
    Ok(begun)
}

async fn schedule_one(
    state: &PrivacyState,
    account: AccountId,
    to: UnixMillis,
) -> Result<bool, ServiceError> {
    let now = state.clock.now();
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let begun = match erasures::find_age(&mut tx, account).await? {
        None => {
            let id = ErasureId::new(now.0, state.random16()?);
            let details = Details::new(Target::Age { from: UnixMillis(i64::MIN), to }, None);
            let (stamp, status) = (Stamp::new(now), Status::Enqueued);
            match erasures::insert(&mut tx, &Erasure { id, account, stamp, status, details }).await {
                // Another replica was first.
                Err(kernel::store::StoreError::Unique(_)) => return Ok(false),
                inserted => inserted?,
            }
            true
        }
        Some(ended) => match (ended.status, &ended.details.target) {
            (Status::Completed, Target::Age { to: done, .. }) if *done != to => {
                // It goes back after a clock that was ahead, and for a greater number of days: what is recorded from then on
                // counts, too. What was cut stays as it is.
                let details = Details::new(Target::Age { from: to.min(*done), to }, None);
                erasures::begin_again(&mut tx, &ended, &details, now).await?
            }
            // It is under way, or everything that is old enough was cut.
            (Status::Enqueued | Status::Executing | Status::Completed, _) => false,
        },
    };
    tx.commit().await?;
    Ok(begun)
}
