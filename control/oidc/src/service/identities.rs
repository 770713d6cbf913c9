//! The identities of the operator who is signed in, and of others for those who manage operators.

use ::tenants::{
    domain::{
        grant::Limit,
        permission::{
            Subject::{Access, Operators},
            Verb,
        },
    },
    store::operators as rows,
};
use kernel::{
    domain::limits::shorten,
    error::{CommonError, ServiceError},
};
use shared::id::OperatorId;
use tracing::instrument;

use super::{
    OidcState,
    access::{Caller, require},
    operators,
    roles::lock_with_rights,
    tenants::own_account,
};
use crate::{
    domain::identity::LinkedIdentity,
    error::SignInError,
    store::{
        identities::{self as store, Owner},
        keys,
    },
};

/// The identities that are linked to the caller, oldest first; at most 20.
#[instrument(skip_all)]
pub async fn list(state: &OidcState, caller: &Caller) -> Result<Vec<LinkedIdentity>, ServiceError> {
    let _ = require(caller, Verb::Read, Access)?;
    Ok(store::list(&mut state.core.db.read().await?, owner(caller)?).await?)
}

/// Unlinks an identity from the caller; sessions that began with it stay.
///
/// # Errors
/// The caller has no such identity.
#[instrument(skip_all)]
pub async fn unlink(state: &OidcState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Read, Access)?;
    let owner = owner(caller)?;
    let _place = state.core.capacity.write(caller)?;
    let not_found = || ServiceError::not_found("identity", shorten(id));
    let mut tx = state.core.db.begin(&caller.ctx).await?;
    let found = store::list(&mut tx, owner).await?.into_iter().find(|one| one.id() == id);
    let is_gone = store::delete(&mut tx, owner, &found.ok_or_else(not_found)?).await?;
    tx.commit().await?;
    if is_gone { Ok(()) } else { Err(not_found()) }
}

/// The identities that are linked to an operator of the account, oldest first; at most 20.
///
/// # Errors
/// The caller may not, it is another account, or there is no such access.
#[instrument(skip_all)]
pub async fn list_of(
    state: &OidcState,
    caller: &Caller,
    account: &str,
    access: &str,
) -> Result<Vec<LinkedIdentity>, ServiceError> {
    let operator = operators::read_access(&state.core, caller, account, access).await?;
    Ok(store::list(&mut state.core.db.read().await?, (operator.account, operator.id)).await?)
}

/// Unlinks an identity from an operator of the account, and ends the operator's sessions: one of them may have begun with it.
///
/// # Errors
/// The caller may not, or may do less than the operator; it is another account, or there is no such access or identity.
#[instrument(skip_all)]
pub async fn unlink_of(
    state: &OidcState,
    caller: &Caller,
    (account, access): (&str, &str),
    id: &str,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Update, Operators)?;
    // Who reaches itself alone unlinks its own in the console.
    if *grant.limit() != Limit::Account {
        return Err(CommonError::RoleLacks(Operators, Verb::Update).into());
    }
    let (account, operator) = (own_account(caller, account)?, operators::access_id(access)?);
    let (core, not_found) = (&*state.core, || ServiceError::not_found("identity", shorten(id)));
    let (_place, mut tx) = core.begin_write(caller).await?;
    lock_with_rights(&mut tx, caller).await?;
    let found = rows::find_locked(&mut tx, account, operator).await?;
    let found = found.ok_or_else(|| operators::no_access(access))?;
    operators::refuse_superior(&mut tx, caller, &found).await?;
    let owner = (account, operator);
    let linked = store::list(&mut tx, owner).await?.into_iter().find(|one| one.id() == id);
    store::delete(&mut tx, owner, &linked.ok_or_else(not_found)?).await?;
    keys::end_sessions(&mut tx, account, operator.as_str(), &[], core.clock.now().0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

fn owner(caller: &Caller) -> Result<Owner, ServiceError> {
    if !caller.kind.is_operator() {
        return Err(SignInError::NotAnOperator.into());
    }
    let id: OperatorId = caller.id.parse().map_err(|_| SignInError::NotAnOperator)?;
    Ok((caller.account, id))
}
