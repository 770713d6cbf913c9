//! Counts tries to sign in, in the database, so that all replicas share the limits.

use crate::{
    domain::{
        attempts::{FORGET_MS, RetryAfter},
        session::IDLE_MS,
        throttle::Throttle,
    },
    error::ServiceError,
    store::{Ctx, Tx, operator_resets, operator_sessions, sign_in_attempts, sign_in_links},
};
use shared::time::UnixMillis;

use super::SignInState;

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 1_000;

/// Why an attempt was refused.
#[derive(Debug)]
pub enum SignInError {
    /// There were too many wrong passwords.
    Passwords(RetryAfter),
    /// There were too many wrong codes.
    Codes(RetryAfter),
    /// Too many resets were asked for the address, or by the network; or the mailbox has got too many mails.
    Mails(RetryAfter),
    /// Another reason.
    Other(ServiceError),
}

impl<E: Into<ServiceError>> From<E> for SignInError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// Counts a try before its result is known, in a transaction of its own: so many at once are no more than one by one.
pub(super) async fn count(state: &SignInState, throttle: Throttle<'_>) -> Result<(), SignInError> {
    let mut tx = state.core.db.begin(&Ctx::default()).await?;
    let counted = count_in(state, &mut tx, throttle).await;
    tx.commit().await?;
    counted
}

/// [`count`], in a transaction.
pub(super) async fn count_in(
    state: &SignInState,
    tx: &mut Tx,
    throttle: Throttle<'_>,
) -> Result<(), SignInError> {
    let (subject, now) = (throttle.subject(state.secret()), state.core.clock.now());
    match sign_in_attempts::open(tx, &subject, now).await?.with(throttle.kind(), now) {
        Ok(attempts) => Ok(sign_in_attempts::update(tx, &subject, attempts).await?),
        Err(wait) => Err(match throttle {
            Throttle::Password { .. } | Throttle::PasswordFrom { .. } | Throttle::Own(_) => {
                SignInError::Passwords(wait)
            }
            Throttle::Code { .. } => SignInError::Codes(wait),
            Throttle::Reset { .. } | Throttle::Mailbox(_) | Throttle::MailsOf(_) => SignInError::Mails(wait),
        }),
    }
}

/// Forgets tries: their owner has shown who it is.
pub(super) async fn forget(
    state: &SignInState,
    tx: &mut Tx,
    throttle: Throttle<'_>,
) -> Result<(), ServiceError> {
    Ok(sign_in_attempts::delete(tx, &throttle.subject(state.secret())).await?)
}

/// Removes tries that are forgotten, codes that have expired, and sessions that are over; returns how many.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge(state: &SignInState) -> Result<u64, ServiceError> {
    let now = state.core.clock.now();
    let before = |ms: i64| UnixMillis(now.0.saturating_sub(ms));
    let mut removed = 0;
    loop {
        let mut step = 0;
        // One transaction each: requests lock these tables in another order, and would deadlock.
        let mut tx = state.core.db.begin(&Ctx::default()).await?;
        step += sign_in_attempts::purge(&mut tx, before(FORGET_MS), PURGE_STEP).await?;
        tx.commit().await?;
        let mut tx = state.core.db.begin(&Ctx::default()).await?;
        step += operator_resets::purge(&mut tx, now, PURGE_STEP).await?;
        step += sign_in_links::purge(&mut tx, now, PURGE_STEP).await?;
        tx.commit().await?;
        let mut tx = state.core.db.begin(&Ctx::default()).await?;
        step += operator_sessions::purge(&mut tx, before(2 * IDLE_MS), PURGE_STEP).await?;
        tx.commit().await?;
        let mut tx = state.core.db.begin(&Ctx::default()).await?;
        step += operator_sessions::purge_keys(&mut tx, before(IDLE_MS), PURGE_STEP).await?;
        tx.commit().await?;
        removed += step;
        if step == 0 {
            return Ok(removed);
        }
    }
}
