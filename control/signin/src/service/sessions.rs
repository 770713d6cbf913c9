//! Sessions as their owner sees them.

use shared::id::OperatorId;
use tracing::instrument;

use super::{
    SignInState,
    access::{Caller, require},
    person,
};
use crate::{
    domain::{
        api_key::KeyId,
        limits::shorten,
        operator::Operator,
        permission::{Subject::Access, Verb},
        session::Session,
    },
    error::{ServiceError, SignInFault},
    store::{operator_authenticators, operator_sessions, recovery_codes},
};

/// Who is signed in, and how.
#[derive(Debug)]
pub struct Who {
    /// The operator.
    pub operator: Operator,
    /// What its roles allow, such as `products:create,read`.
    pub permissions: Vec<String>,
    /// The session.
    pub session: Session,
    /// Whether a second factor is on.
    pub has_second_factor: bool,
    /// Whether one must be turned on before anything else.
    pub must_enrol: bool,
    /// How many recovery codes are left.
    pub recovery_codes: i64,
}

/// Who is signed in with the session whose key has this hash.
///
/// # Errors
/// The session has ended.
#[instrument(skip_all)]
pub async fn read(state: &SignInState, caller: &Caller, hash: &[u8; 32]) -> Result<Who, ServiceError> {
    let _ = require(caller, Verb::Read, Access)?;
    let operator = person(&state.core, caller).await?;
    let owner = (caller.account, operator.id);
    let mut conn = state.core.db.read().await?;
    let sessions = operator_sessions::list_valid(&mut conn, owner, state.core.clock.now()).await?;
    let session = sessions.into_iter().find(|session| session.hash == *hash).ok_or_else(ended)?;
    let authenticator = operator_authenticators::find(&mut conn, owner.0, owner.1).await?;
    let has_second_factor = authenticator.is_some_and(|authenticator| authenticator.is_confirmed);
    Ok(Who {
        permissions: caller.permissions.texts(),
        session,
        has_second_factor,
        must_enrol: operator_sessions::must_enrol(&mut conn, owner.0, hash).await?,
        recovery_codes: recovery_codes::count(&mut conn, owner.0, owner.1).await?,
        operator,
    })
}

/// The sessions of the caller that work now, oldest first; at most 20.
#[instrument(skip_all)]
pub async fn list(state: &SignInState, caller: &Caller) -> Result<Vec<Session>, ServiceError> {
    let _ = require(caller, Verb::Read, Access)?;
    let owner = owner(caller)?;
    let mut conn = state.core.db.read().await?;
    Ok(operator_sessions::list_valid(&mut conn, owner, state.core.clock.now()).await?)
}

/// Ends a session of the caller, everywhere within a second.
///
/// # Errors
/// The caller has no such session.
#[instrument(skip_all)]
pub async fn end(state: &SignInState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Read, Access)?;
    let not_found = || ServiceError::not_found("session", shorten(id));
    let id: KeyId = id.parse().map_err(|_| not_found())?;
    let found = list(state, caller).await?.into_iter().find(|session| KeyId::of(&session.hash) == id);
    end_with(state, caller, &found.ok_or_else(not_found)?.hash).await
}

/// Ends the session whose key has this hash.
///
/// # Errors
/// The caller has no such session.
#[instrument(skip_all)]
pub async fn end_with(state: &SignInState, caller: &Caller, hash: &[u8; 32]) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Read, Access)?;
    let owner = owner(caller)?;
    let (_place, mut tx) = state.core.begin_write(caller).await?;
    let is_ended = operator_sessions::end(&mut tx, owner, hash, state.core.clock.now()).await?;
    tx.commit().await?;
    state.core.key_lookups.revoked();
    if is_ended { Ok(()) } else { Err(ended()) }
}

fn owner(caller: &Caller) -> Result<operator_sessions::Owner, ServiceError> {
    let id: OperatorId = caller.id.parse().map_err(|_| ended())?;
    Ok((caller.account, id))
}

fn ended() -> ServiceError {
    SignInFault::SessionEnded.into()
}
