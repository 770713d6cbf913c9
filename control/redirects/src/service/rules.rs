//! Redirect rules of the account and of applications: read, replace, delete.

use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Value, json};
use shared::{
    entity_tag::EntityTag,
    id::{AccountId, ApplicationId},
    rules::{AccountRules, MAX_ACCOUNT_BYTES, Owner, Rule},
    short_url::is_short_url,
    time::UnixMillis,
    wire::stream::{Change, Event, Rev},
};
use tracing::instrument;

use super::{
    Redirects,
    access::{Caller, require},
    applications::ids,
    named,
    redirections::{Written, blocked_hosts},
};
use crate::{
    domain::{
        access::Actor,
        permission::{Subject::Rules, Verb},
        rules::{StoredRules, leading_back, leading_elsewhere},
        scopes::Scopes,
    },
    error::{CommonError, RedirectsError, ServiceError},
    store::{Conn, Tx, accounts, applications, log, rules as table, tenants},
    writer::Lane,
};

/// Whose rules a path names.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// The account's own.
    Account,
    /// Those of an application, by the ids in the path.
    Application {
        /// Id of the project.
        project: &'a str,
        /// Id of the application.
        id: &'a str,
    },
}

/// The rules of the account or of an application; empty when there are none.
///
/// # Errors
/// The key lacks the permission or the application does not exist.
#[instrument(skip_all)]
pub async fn read(state: &Redirects, actor: &Actor, whose: Whose<'_>) -> Result<StoredRules, ServiceError> {
    let owner = admit(actor, Verb::Read, whose)?;
    let mut conn = state.db.read().await?;
    check(&mut conn, actor.account, owner.as_ref()).await?;
    let application = owner.as_ref().map(|owner| &owner.application);
    Ok(table::find(&mut conn, actor.account, application).await?.unwrap_or_default())
}

/// Replaces the rules of the account or of an application: all of them at one revision, which edges
/// acknowledge.
///
/// # Errors
/// The key lacks the permission, the application does not exist, a rule leads to a short URL or to a blocked host, or the account's
/// rules are too large.
#[instrument(skip_all)]
pub async fn replace(
    state: &Redirects,
    caller: &Caller,
    whose: Whose<'_>,
    rules: Vec<Rule>,
) -> Result<Written<StoredRules>, ServiceError> {
    let owner = admit(caller, Verb::Update, whose)?;
    let _place = state.capacity.change(caller)?;
    let (account, now) = (caller.account, state.clock.now());
    state
        .writer
        .submit(&caller.ctx, (account, Lane::Urgent), move |tx| put(tx, account, owner, rules, now).boxed())
        .await
}

/// Removes the rules of the account or of an application; none is no fault.
///
/// # Errors
/// The key lacks the permission or the application does not exist.
#[instrument(skip_all)]
pub async fn delete(
    state: &Redirects,
    caller: &Caller,
    whose: Whose<'_>,
) -> Result<Written<()>, ServiceError> {
    let owner = admit(caller, Verb::Delete, whose)?;
    let _place = state.capacity.change(caller)?;
    let (account, now) = (caller.account, state.clock.now());
    state
        .writer
        .submit(&caller.ctx, (account, Lane::Urgent), move |tx| remove(tx, account, owner, now).boxed())
        .await
}

/// Deletes the rules of an application that is being deleted; `true` when edges must learn of it.
///
/// Runs in the transaction of the delete, which holds the order of changes from here on: a list that is concurrently
/// written for the application is either seen here, or finds the application gone.
pub async fn forget(
    tx: &mut Tx,
    account: AccountId,
    application: ApplicationId,
    now: UnixMillis,
) -> Result<bool, ServiceError> {
    log::lock(tx).await?;
    let is_there = table::delete(tx, account, Some(&application)).await?;
    if is_there {
        let rev = log::take_revs(tx, 1).await?;
        publish(tx, account, rev, now).await?;
    }
    Ok(is_there)
}

/// Whose rules these are, if the caller may do this to them; `None` is the account.
///
/// The account's list belongs to the account as a whole: no key that is confined to a project reaches it.
fn admit(actor: &Actor, verb: Verb, whose: Whose<'_>) -> Result<Option<Owner>, ServiceError> {
    let grant = require(actor, verb, Rules)?;
    match whose {
        Whose::Account if grant.admits(actor.account.as_str(), None) => Ok(None),
        Whose::Account => Err(ServiceError::not_found("redirector", "of the account")),
        Whose::Application { project, id } => {
            let (project, application) = ids(project, id)?;
            let scopes = Scopes { users: Vec::new(), projects: vec![project.to_string()] };
            if grant.admits(application.as_str(), Some(&scopes)) {
                Ok(Some(Owner { application, project }))
            } else {
                Err(ServiceError::not_found("application", application))
            }
        }
    }
}

/// Whether the caller reads the list of the account or of an application.
pub(in crate::service) fn may_read(actor: &Actor, owner: Option<&Owner>) -> bool {
    let Ok(grant) = require(actor, Verb::Read, Rules) else { return false };
    match owner {
        None => grant.admits(actor.account.as_str(), None),
        Some(owner) => {
            let scopes = Scopes { users: Vec::new(), projects: vec![owner.project.to_string()] };
            grant.admits(owner.application.as_str(), Some(&scopes))
        }
    }
}

/// What the audit trail shows of rules.
fn state(stored: &StoredRules) -> Value {
    json!({"rules": stored.rules})
}

/// Names the state of a list, be it there or not.
fn tag(stored: Option<&StoredRules>) -> EntityTag {
    stored.map_or_else(|| StoredRules::default().tag(), StoredRules::tag)
}

/// Whose rules they are, as the audit trail says it: an application's or the account's.
fn owner_id(account: AccountId, owner: Option<&Owner>) -> String {
    owner.map_or_else(|| account.to_string(), |owner| owner.application.to_string())
}

/// The application must be there, in its project.
async fn check(conn: &mut Conn, account: AccountId, owner: Option<&Owner>) -> Result<(), ServiceError> {
    let Some(owner) = owner else { return Ok(()) };
    match applications::find(conn, account, owner.project, owner.application).await? {
        Some(_) => Ok(()),
        None => Err(ServiceError::not_found("application", owner.application)),
    }
}

async fn put(
    tx: &mut Tx,
    account: AccountId,
    owner: Option<Owner>,
    rules: Vec<Rule>,
    now: UnixMillis,
) -> Result<Written<StoredRules>, ServiceError> {
    check(tx, account, owner.as_ref()).await?;
    let domains = accounts::list_all_domains(tx).await?;
    let mut faults = leading_back(&rules, |url| is_short_url(&domains, url));
    faults.extend(leading_elsewhere(&rules, &tenants::find_target_hosts(tx, account).await?));
    let targets = rules.iter().filter_map(|rule| rule.redirect_url.as_deref());
    faults.extend(blocked_hosts(tx, targets).await?.rule_faults(&rules));
    if !faults.is_empty() {
        return Err(CommonError::Faults(faults).into());
    }
    let before = table::find(tx, account, owner.as_ref().map(|owner| &owner.application)).await?;
    named::check(tx, || tag(before.as_ref()))?;
    let (created_at, updated_at) = match &before {
        None => (now, now),
        Some(before) => (before.created_at, now.max(UnixMillis(before.updated_at.0 + 1))),
    };
    let value = StoredRules { rules, created_at, updated_at };
    let rev = log::take_revs(tx, 1).await?;
    table::put(tx, account, owner.as_ref(), &value, rev).await?;
    publish(tx, account, rev, now).await?;
    tx.note(account, ("rules", &owner_id(account, owner.as_ref())), || {
        (before.as_ref().map(state), Some(state(&value)))
    });
    Ok(Written { value, rev })
}

async fn remove(
    tx: &mut Tx,
    account: AccountId,
    owner: Option<Owner>,
    now: UnixMillis,
) -> Result<Written<()>, ServiceError> {
    check(tx, account, owner.as_ref()).await?;
    let application = owner.as_ref().map(|owner| &owner.application);
    let before = table::find(tx, account, application).await?;
    named::check(tx, || tag(before.as_ref()))?;
    if !table::delete(tx, account, application).await? {
        return Ok(Written { value: (), rev: log::newest_rev(tx).await? });
    }
    let rev = log::take_revs(tx, 1).await?;
    publish(tx, account, rev, now).await?;
    tx.note(account, ("rules", &owner_id(account, owner.as_ref())), || (before.as_ref().map(state), None));
    Ok(Written { value: (), rev })
}

/// Appends the present rules of the account: one event holds all of them.
async fn publish(tx: &mut Tx, account: AccountId, rev: Rev, now: UnixMillis) -> Result<(), ServiceError> {
    let sets: AccountRules = table::load(tx, account).await?;
    let bytes = sets.bytes();
    if bytes > MAX_ACCOUNT_BYTES {
        return Err(RedirectsError::RulesTooLarge { most: MAX_ACCOUNT_BYTES, found: bytes }.into());
    }
    Ok(log::append(tx, now.0, &[Event { rev, change: Change::Rules(Arc::new(sets)) }]).await?)
}
