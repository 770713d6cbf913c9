//! Accounts, their domains and their operators.

use crate::service::access::Caller;
use shared::{
    id::{AccountId, OperatorId},
    short_url::ShortDomain,
};
use tracing::instrument;

use super::{Core, access::require};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        page::{Page, PageRequest},
        permission::{
            Subject::{Accounts, Operators},
            Verb,
        },
        tenant::{AccessChange, Account, AccountChange, Operator, OperatorChange},
    },
    error::ServiceError,
    store::{accounts, tenants},
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

/// Merges the members given into an account.
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
    let account = tenants::find_account_locked(&mut tx, id)
        .await?
        .ok_or_else(|| ServiceError::not_found("account", id))?
        .apply(change, core.clock.now());
    tenants::update_account(&mut tx, &account).await?;
    tx.commit().await?;
    // What users may do stands with their keys.
    core.key_lookups.revoked();
    Ok(account)
}

/// The short domains of an account, its first one first.
///
/// # Errors
/// It is another account.
#[instrument(skip_all)]
pub async fn list_short_domains(
    core: &Core,
    actor: &Actor,
    id: &str,
) -> Result<Vec<ShortDomain>, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    let id = own_account(actor, id)?;
    let mut conn = core.db.read().await?;
    Ok(accounts::list_domains(&mut conn, id).await?)
}

/// Reads an operator of the account.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read_operator(core: &Core, actor: &Actor, id: &str) -> Result<Operator, ServiceError> {
    let _ = require(actor, Verb::Read, Operators)?;
    let not_found = || ServiceError::not_found("operator", id);
    let mut conn = core.db.read().await?;
    let id = id.parse().map_err(|_| not_found())?;
    tenants::find_operator(&mut conn, actor.account, id).await?.ok_or_else(not_found)
}

/// Merges the members given into an operator.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn update_operator(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: OperatorChange,
) -> Result<Operator, ServiceError> {
    let _ = require(caller, Verb::Update, Operators)?;
    let not_found = || ServiceError::not_found("operator", id);
    let id = id.parse().map_err(|_| not_found())?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    let operator = tenants::find_operator_locked(&mut tx, caller.account, id)
        .await?
        .ok_or_else(not_found)?
        .apply(change, core.clock.now());
    tenants::update_operator(&mut tx, &operator).await?;
    tx.commit().await?;
    Ok(operator)
}

/// The operators who have access to an account.
///
/// # Errors
/// It is another account.
#[instrument(skip_all)]
pub async fn list_accesses(
    core: &Core,
    actor: &Actor,
    id: &str,
    page: PageRequest,
) -> Result<Page<Operator>, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    let id = own_account(actor, id)?;
    let mut conn = core.db.read().await?;
    Ok(Page::of_list(tenants::list_operators(&mut conn, id).await?, page))
}

/// Reads the access of an operator: its id is the operator's.
///
/// # Errors
/// It is another account or there is no such access.
#[instrument(skip_all)]
pub async fn read_access(
    core: &Core,
    actor: &Actor,
    id: &str,
    access: &str,
) -> Result<Operator, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    let (id, operator) = (own_account(actor, id)?, access_id(access)?);
    let mut conn = core.db.read().await?;
    tenants::find_operator(&mut conn, id, operator).await?.ok_or_else(|| no_access(access))
}

/// Changes the access of an operator.
///
/// # Errors
/// It is another account or there is no such access.
#[instrument(skip_all)]
pub async fn update_access(
    core: &Core,
    caller: &Caller,
    id: &str,
    access: &str,
    change: AccessChange,
) -> Result<Operator, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let (id, operator) = (own_account(caller, id)?, access_id(access)?);
    let mut tx = core.db.begin(&caller.ctx).await?;
    let operator = tenants::find_operator_locked(&mut tx, id, operator)
        .await?
        .ok_or_else(|| no_access(access))?
        .apply_access(change, core.clock.now());
    tenants::update_operator(&mut tx, &operator).await?;
    tx.commit().await?;
    Ok(operator)
}

fn access_id(text: &str) -> Result<OperatorId, ServiceError> {
    text.parse().map_err(|_| no_access(text))
}

fn no_access(id: &str) -> ServiceError {
    ServiceError::not_found("access", shorten(id))
}

fn own_account(actor: &Actor, id: &str) -> Result<AccountId, ServiceError> {
    match id.parse::<AccountId>() {
        Ok(id) if id == actor.account => Ok(id),
        Ok(_) | Err(_) => Err(ServiceError::not_found("account", shorten(id))),
    }
}
