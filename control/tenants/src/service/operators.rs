//! Operators of an account: who they are, and what they may do.

use shared::{
    id::{AccountId, OperatorId, ProjectId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    first_keys::{self, NewFirstKey},
    named::check,
    roles::{check_roles, lock_with_rights, permissions_of, refuse_keys_of_others, refuse_more},
    tenants::own_account,
};
use crate::{
    domain::{
        access::Actor,
        grant::Limit,
        limits::shorten,
        operator::{AccessChange, Operator, OperatorChange, OperatorKind},
        page::{Page, PageRequest},
        permission::{Subject::Operators, Verb},
    },
    error::{CommonError, ServiceError, TenantsError},
    store::{Conn, Tx, keys, operator_keys, operators as store, projects},
};

/// Most operators of an account.
const MAX_OPERATORS: usize = 1_000;

/// Reads an operator of the account.
///
/// # Errors
/// It does not exist, or the caller sees itself alone.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, id: &str) -> Result<Operator, ServiceError> {
    let grant = require(actor, Verb::Read, Operators)?;
    let not_found = || ServiceError::not_found("operator", shorten(id));
    let parsed: OperatorId = id.parse().map_err(|_| not_found())?;
    let found = store::find(&mut core.db.read().await?, actor.account, parsed).await?;
    found.filter(|_| grant.admits(id, None)).ok_or_else(not_found)
}

/// Merges the members given into an operator: names and own members, no roles.
///
/// # Errors
/// It does not exist, or may do more than the caller.
#[instrument(skip_all)]
pub async fn update(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: OperatorChange,
) -> Result<Operator, ServiceError> {
    let grant = require(caller, Verb::Update, Operators)?;
    let not_found = || ServiceError::not_found("operator", shorten(id));
    let parsed = id.parse().map_err(|_| not_found())?;
    if !grant.admits(id, None) {
        return Err(not_found());
    }
    let mut tx = core.db.begin(&caller.ctx).await?;
    let found = store::find_locked(&mut tx, caller.account, parsed).await?.ok_or_else(not_found)?;
    check(&tx, || found.tag())?;
    refuse_superior(&mut tx, caller, &found).await?;
    let operator = found.apply(change, core.clock.now());
    store::update(&mut tx, &operator).await?;
    tx.commit().await?;
    Ok(operator)
}

/// The operators who have access to an account, also those who are invited; of machines alone if `kind` says so.
///
/// # Errors
/// It is another account.
#[instrument(skip_all)]
pub async fn list(
    core: &Core,
    actor: &Actor,
    account: &str,
    kind: Option<OperatorKind>,
    page: PageRequest,
) -> Result<Page<Operator>, ServiceError> {
    let _ = require(actor, Verb::List, Operators)?;
    let account = own_account(actor, account)?;
    let mut listed = store::list(&mut core.db.read().await?, account).await?;
    listed.retain(|operator| kind.is_none_or(|kind| operator.kind == kind));
    Ok(Page::of_list(listed, page))
}

/// Reads the access of an operator: its id is the operator's.
///
/// # Errors
/// It is another account or there is no such access.
#[instrument(skip_all)]
pub async fn read_access(
    core: &Core,
    actor: &Actor,
    account: &str,
    access: &str,
) -> Result<Operator, ServiceError> {
    let _ = require(actor, Verb::List, Operators)?;
    let (account, id) = (own_account(actor, account)?, access_id(access)?);
    let found = store::find(&mut core.db.read().await?, account, id).await?;
    found.ok_or_else(|| no_access(access))
}

/// An operator with its first key, which is shown this once.
#[derive(Debug)]
pub struct Shown {
    /// The operator.
    pub operator: Operator,
    /// A key.
    pub secret: String,
}

/// Creates a program that works in the account, with its first key.
///
/// # Errors
/// The caller may not, or would give more than it has; there is no such role or project (400).
#[instrument(skip_all)]
pub async fn create_machine(
    core: &Core,
    caller: &Caller,
    change: AccessChange,
) -> Result<Shown, ServiceError> {
    let _ = require(caller, Verb::Create, Operators)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    let operator = new(core, &mut tx, caller, OperatorKind::Machine, change).await?;
    room(&mut tx, caller.account).await?;
    store::insert(&mut tx, &operator).await?;
    let secret = first_key(core, &mut tx, &operator, &caller.id, core.clock.now()).await?;
    tx.commit().await?;
    Ok(Shown { operator, secret })
}

/// Changes the access of an operator; its keys can do what it may from now on, and its open streams end.
///
/// # Errors
/// There is no such access; the caller would give more than it has, or change somebody who may do more; there is no
/// such role or project (400); nobody else would be owner, or the operator would gain rights while it has a key made by
/// somebody with fewer rights (409).
#[instrument(skip_all)]
pub async fn update_access(
    core: &Core,
    caller: &Caller,
    account: &str,
    access: &str,
    change: AccessChange,
) -> Result<Operator, ServiceError> {
    let grant = require(caller, Verb::Update, Operators)?;
    // Who reaches itself alone may name itself, and not give itself roles.
    if *grant.limit() != Limit::Account {
        return Err(CommonError::RoleLacks(Operators, Verb::Update).into());
    }
    let (account, id) = (own_account(caller, account)?, access_id(access)?);
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock_with_rights(&mut tx, caller).await?;
    let found = store::find_locked(&mut tx, account, id).await?.ok_or_else(|| no_access(access))?;
    check(&tx, || found.tag())?;
    refuse_superior(&mut tx, caller, &found).await?;
    check_roles(&mut tx, caller, change.roles.as_deref()).await?;
    check_projects(&mut tx, account, &change).await?;
    let was_owner = found.is_owner();
    let is_changed = change.roles.is_some() || change.projects.is_some();
    let before = (permissions_of(&mut tx, account, &found.roles).await?, found.projects.clone());
    let mut operator = found.apply_access(change, core.clock.now());
    let after = permissions_of(&mut tx, account, &operator.roles).await?;
    if !before.0.cover(&after) || reaches_more(before.1.as_deref(), operator.projects.as_deref()) {
        refuse_keys_of_others(&mut tx, caller, &[(id, after)], core.clock.now()).await?;
    }
    // The code was given out for other rights: it expires, and `invite_again` makes a new one.
    if let Some(invitation) = operator.invitation.as_mut().filter(|_| is_changed) {
        invitation.until = core.clock.now();
    }
    store::update(&mut tx, &operator).await?;
    if is_changed {
        // Its sessions began with other rights.
        keys::end_sessions(&mut tx, account, id.as_str(), &[], core.clock.now().0).await?;
    }
    if was_owner && !operator.is_owner() {
        keep_owner(&mut tx, account, core.clock.now()).await?;
    }
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(operator)
}

/// Removes an operator with its keys; what it made stays.
///
/// # Errors
/// There is no such access, it may do more than the caller, or nobody else would be owner (409).
#[instrument(skip_all)]
pub async fn remove(core: &Core, caller: &Caller, account: &str, access: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Delete, Operators)?;
    let (account, id) = (own_account(caller, account)?, access_id(access)?);
    let now = core.clock.now();
    let mut tx = core.db.begin(&caller.ctx).await?;
    lock_with_rights(&mut tx, caller).await?;
    let found = store::find_locked(&mut tx, account, id).await?.ok_or_else(|| no_access(access))?;
    check(&tx, || found.tag())?;
    refuse_superior(&mut tx, caller, &found).await?;
    keys::revoke_all(&mut tx, account, id.as_str(), now.0).await?;
    store::delete(&mut tx, &found).await?;
    if found.is_owner() {
        keep_owner(&mut tx, account, now).await?;
    }
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// Removes a deleted project from operators who are confined to it. An operator confined to nothing else keeps the project
/// and loses its keys: without any project it would reach the whole account.
pub async fn leave_project(
    tx: &mut Tx,
    account: AccountId,
    project: ProjectId,
    now: UnixMillis,
) -> Result<(), ServiceError> {
    for listed in store::list(tx, account).await? {
        if !listed.projects.as_ref().is_some_and(|projects| projects.contains(&project)) {
            continue;
        }
        let Some(mut operator) = store::find_locked(tx, account, listed.id).await? else { continue };
        let left: Vec<ProjectId> =
            operator.projects.iter().flatten().copied().filter(|id| *id != project).collect();
        if left.is_empty() {
            keys::revoke_all(tx, account, operator.id.as_str(), now.0).await?;
        } else {
            operator.projects = Some(left);
            store::update(tx, &operator).await?;
        }
    }
    Ok(())
}

/// Whether a change of the confinement adds projects; `None` is the whole account.
fn reaches_more(before: Option<&[ProjectId]>, after: Option<&[ProjectId]>) -> bool {
    match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(before), Some(after)) => after.iter().any(|project| !before.contains(project)),
    }
}

/// A new operator with what a body says; nothing is stored yet.
pub(super) async fn new(
    core: &Core,
    tx: &mut Tx,
    caller: &Caller,
    kind: OperatorKind,
    change: AccessChange,
) -> Result<Operator, ServiceError> {
    lock_with_rights(tx, caller).await?;
    check_roles(tx, caller, change.roles.as_deref()).await?;
    check_projects(tx, caller.account, &change).await?;
    let now = core.clock.now();
    let blank = Operator {
        id: OperatorId::new(now.0, core.random16()?),
        account: caller.account,
        kind,
        email: String::new(),
        first_name: String::new(),
        last_name: String::new(),
        roles: Vec::new(),
        projects: None,
        invitation: None,
        details: crate::domain::operator::OperatorDetails::default(),
        created_at: now,
        updated_at: now,
    };
    Ok(Operator { updated_at: now, ..blank.apply_access(change, now) })
}

/// The first key of an operator; it has no project of its own and follows the operator's roles.
pub(super) async fn first_key(
    core: &Core,
    tx: &mut Tx,
    operator: &Operator,
    created_by: &str,
    now: UnixMillis,
) -> Result<String, ServiceError> {
    let (label, created_by) = ("first key".to_owned(), Some(created_by.to_owned()));
    let new = NewFirstKey { label, created_by, ..NewFirstKey::default() };
    let key = first_keys::add(tx, &*core.random, (operator.account, operator.id), None, new, now).await?;
    Ok(key.unwrap_or_default())
}

/// The operators of a locked account; 409 when it has the most that are allowed.
pub(super) async fn room(tx: &mut Tx, account: AccountId) -> Result<Vec<Operator>, ServiceError> {
    let others = store::list(tx, account).await?;
    if others.len() < MAX_OPERATORS {
        return Ok(others);
    }
    Err(TenantsError::TooManyOperators { most: MAX_OPERATORS }.into())
}

async fn check_projects(tx: &mut Tx, account: AccountId, change: &AccessChange) -> Result<(), ServiceError> {
    for project in change.projects.iter().flatten().flatten() {
        if !projects::hold(tx, account, *project).await? {
            return Err(TenantsError::NoSuchProject(*project).into());
        }
    }
    Ok(())
}

/// Refuses to touch an operator who may do more than the caller.
///
/// # Errors
/// `Code::Forbidden`.
pub async fn refuse_superior(
    conn: &mut Conn,
    caller: &Actor,
    operator: &Operator,
) -> Result<(), ServiceError> {
    if operator.id.as_str() == caller.id {
        return Ok(());
    }
    let theirs = permissions_of(conn, operator.account, &operator.roles).await?;
    refuse_more(caller, theirs, "This operator may do what you may not")
}

/// Refuses to leave an account without an owner who has a key that lasts.
///
/// # Errors
/// There is none (409).
pub async fn keep_owner(tx: &mut Tx, account: AccountId, now: UnixMillis) -> Result<(), ServiceError> {
    let owners: Vec<String> = store::list(tx, account)
        .await?
        .iter()
        .filter(|one| one.is_owner())
        .map(|one| one.id.to_string())
        .collect();
    let keys = operator_keys::list_valid(tx, account, now).await?;
    if keys.iter().any(|key| owners.contains(&key.operator) && key.lasts(now)) {
        return Ok(());
    }
    Err(TenantsError::LastOwner.into())
}

/// The operator that a path names by its access.
///
/// # Errors
/// The text is no id.
pub fn access_id(text: &str) -> Result<OperatorId, ServiceError> {
    text.parse().map_err(|_| no_access(text))
}

/// 404: there is no such access.
#[must_use]
pub fn no_access(id: &str) -> ServiceError {
    ServiceError::not_found("access", shorten(id))
}
