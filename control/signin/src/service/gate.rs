//! Opens the session of a request: the key behind its cookie.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use shared::time::UnixMillis;

use super::{SignInState, access::identify_key};
use crate::{
    domain::{
        access::hash_key,
        session::{IDLE_MS, TOUCH_MS},
        token::Token,
    },
    error::{ServiceError, SignInFault},
    store::{Ctx, operator_sessions},
};

/// Most sessions of which this process remembers when they were last noted.
const MOST_TOUCHED: usize = 10_000;

/// When each session was last noted as used, by the hash of its key.
#[derive(Debug, Default)]
pub(super) struct Touched(Mutex<HashMap<[u8; 32], UnixMillis>>);

impl Touched {
    /// Whether the use of a session should be written now; if so, it counts as written.
    fn is_due(&self, hash: [u8; 32], now: UnixMillis) -> bool {
        let mut touched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &UnixMillis| now.0.saturating_sub(at.0) < TOUCH_MS;
        if touched.get(&hash).is_some_and(is_recent) {
            return false;
        }
        if touched.len() >= MOST_TOUCHED {
            touched.retain(|_, at| is_recent(at));
        }
        if touched.len() < MOST_TOUCHED {
            touched.insert(hash, now);
        }
        true
    }
}

/// The key of a session, be it known or not; a use of one that works is noted now and then. `enrols`: the request may come by
/// a session whose operator must turn a second factor on before anything else.
///
/// # Errors
/// The operator must do that (403); or one case in 10^30.
pub async fn open(
    state: &SignInState,
    token: &Token,
    client: Option<IpAddr>,
    enrols: bool,
) -> Result<String, ServiceError> {
    let key = key_of(state, token)?;
    let known = match identify_key(&state.core, &key, client).await {
        Ok(known) => known,
        // Whether it works is decided where keys are.
        Err(ServiceError::Refused { .. }) => return Ok(key),
        // What is not known now may work a moment later, and must not pass unseen.
        Err(error) => return Err(error),
    };
    if !enrols {
        let mut conn = state.core.db.read().await?;
        if operator_sessions::must_enrol(&mut conn, known.actor.account, &hash_key(&key)).await? {
            return Err(SignInFault::SecondFactorRequired.into());
        }
    }
    let now = state.core.clock.now();
    let until = UnixMillis(now.0.saturating_add(IDLE_MS));
    let is_fresh = known.bounds.expires_at.is_some_and(|at| at.0 > until.0 - TOUCH_MS);
    let hash = hash_key(&key);
    if is_fresh || !state.touched.is_due(hash, now) {
        return Ok(key);
    }
    let extended = async {
        let mut tx = state.core.db.begin(&Ctx::default()).await?;
        operator_sessions::extend(&mut tx, known.actor.account, &hash, now, until).await?;
        tx.commit().await
    };
    if let Err(error) = extended.await {
        tracing::warn!(%error, "a session was not extended");
    }
    Ok(key)
}

pub(super) fn key_of(state: &SignInState, token: &Token) -> Result<String, ServiceError> {
    let key = token.key(state.secret());
    key.ok_or_else(|| ServiceError::Internal("no key can be derived".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_written_every_five_minutes() {
        let touched = Touched::default();
        let at = |minute: i64| UnixMillis(minute * 60_000);
        for (session, minute, expected) in
            [(1, 0, true), (1, 4, false), (2, 4, true), (1, 5, true), (1, 6, false)]
        {
            assert_eq!(touched.is_due([session; 32], at(minute)), expected, "{session} {minute}");
        }
    }
}
