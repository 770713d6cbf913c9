//! The identities of whoever is signed in.

use kernel::{domain::limits::shorten, error::ServiceError};
use shared::{id::OperatorId, problem::Code};
use tenants::domain::permission::{Subject::Access, Verb};
use tracing::instrument;

use super::{
    OidcState,
    access::{Caller, require},
};
use crate::{
    domain::identity::LinkedIdentity,
    store::identities::{self as store, Owner},
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

fn owner(caller: &Caller) -> Result<Owner, ServiceError> {
    let nobody = || ServiceError::refused(Code::Forbidden, "Only an operator has identities.");
    if !caller.kind.is_operator() {
        return Err(nobody());
    }
    let id: OperatorId = caller.id.parse().map_err(|_| nobody())?;
    Ok((caller.account, id))
}
