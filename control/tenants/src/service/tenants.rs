//! Accounts.

use crate::service::access::Caller;
use shared::id::AccountId;
use tracing::instrument;

use super::{Core, access::require, named::check, quotas};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        permission::{Subject::Accounts, Verb},
        quota::Usage,
        tenant::{Account, AccountChange},
        user_registration::UserRegistration,
    },
    error::ServiceError,
    store::tenants,
};

/// The accounts that a key belongs to: one.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list_accounts(core: &Core, actor: &Actor) -> Result<Vec<Account>, ServiceError> {
    Ok(vec![read_account(core, actor, actor.account.as_str()).await?])
}

/// Reads an account.
///
/// # Errors
/// It is another one.
#[instrument(skip_all)]
pub async fn read_account(core: &Core, actor: &Actor, id: &str) -> Result<Account, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    let id = own_account(actor, id)?;
    let mut conn = core.db.read().await?;
    tenants::find_account(&mut conn, id).await?.ok_or_else(|| ServiceError::not_found("account", id))
}

/// Merges the members given into an account. Sessions end that could not begin any more, and so do codes of users that were
/// given to callers, where codes go to the mailbox from now on.
///
/// # Errors
/// It is another one.
#[instrument(skip_all)]
pub async fn update_account(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: AccountChange,
) -> Result<Account, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let id = own_account(caller, id)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    let now = core.clock.now();
    if change.personal_data.is_some() {
        // Before the row of the account, in the order in which changes of redirections lock both.
        core.dependents.lock_changes(&mut tx).await?;
    }
    let before = tenants::find_account_locked(&mut tx, id)
        .await?
        .ok_or_else(|| ServiceError::not_found("account", id))?;
    check(&tx, || before.tag())?;
    let account = before.clone().apply(change, now);
    tenants::update_account(&mut tx, &account).await?;
    if before.user_registration == UserRegistration::Caller
        && account.user_registration == UserRegistration::Mail
    {
        // Whoever holds such a code need not read the mail of the address.
        tenants::end_activations(&mut tx, id, now).await?;
    }
    if before.provider_sign_in && !account.provider_sign_in {
        tenants::end_provider_sessions(&mut tx, id, now).await?;
    }
    if !before.second_factor_required && account.second_factor_required {
        tenants::end_single_factor_sessions(&mut tx, id, now).await?;
    }
    let is_published = before.personal_data != account.personal_data;
    if is_published {
        core.dependents.domains_changed(&mut tx, id, now).await?;
    }
    tx.commit().await?;
    if is_published {
        core.readers.wake_edges();
    }
    // What users may do stands with their keys, and sessions may have ended.
    core.key_lookups.revoked();
    Ok(account)
}

/// Limits and use of the quotas of an account.
///
/// # Errors
/// It is another account.
#[instrument(skip_all)]
pub async fn list_quotas(core: &Core, actor: &Actor, id: &str) -> Result<Vec<Usage>, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    quotas::list(core, own_account(actor, id)?).await
}

/// The account that a path names, which must be the caller's.
///
/// # Errors
/// It is another one, or none.
pub fn own_account(actor: &Actor, id: &str) -> Result<AccountId, ServiceError> {
    match id.parse::<AccountId>() {
        Ok(id) if id == actor.account => Ok(id),
        Ok(_) | Err(_) => Err(ServiceError::not_found("account", shorten(id))),
    }
}
