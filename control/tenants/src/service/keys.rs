//! Keys of operators: created, listed, changed, rotated and revoked by operators.

use std::net::IpAddr;

use shared::{problem::Code, time::UnixMillis};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, end_of_overlap, new_key, require},
    named::check,
    operators::refuse_superior,
    roles::lock_with_rights,
    scopes::project_in_reach,
};
use crate::{
    domain::{
        access::{Actor, ActorKind, hash_key},
        grant::{Grant, Limit},
        limits::shorten,
        listing::ListRequest,
        operator_key::{KeyChange, KeyStatus, OperatorKey},
        page::Page,
        permission::{Subject::OperatorKeys, Verb},
    },
    error::{CommonError, ServiceError, TenantsError},
    store::{Tx, listing::Selection, operator_keys as store, operators},
};

/// Most valid keys of operators in an account.
const MAX_KEYS: i64 = 1_000;

/// Most of them that a key of a project leaves in its project.
const MAX_KEYS_OF_PROJECT: i64 = 100;

/// Most valid keys of an operator without `operatorKeys:create`.
const MAX_OWN_KEYS: i64 = 50;

/// A new key, which is shown this once.
#[derive(Debug)]
pub struct NewKey {
    /// What is kept of it.
    pub key: OperatorKey,
    /// The key itself.
    pub secret: String,
}

/// Creates a key for the operator who asks. That of a caller who is confined to a project is confined to it, too.
///
/// # Errors
/// The key lacks the permission, the label is missing, or the project is not within the caller's reach.
#[instrument(skip_all)]
pub async fn create(core: &Core, caller: &Caller, change: KeyChange) -> Result<NewKey, ServiceError> {
    let grant = require(caller, Verb::Create, OperatorKeys)?;
    let label = change.label.ok_or(TenantsError::LabelMissing)?;
    let secret = new_key(&*core.random, ActorKind::Operator.key_prefix())?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    // An operator confined by its role makes keys that follow the role; a key of one project makes keys of that project.
    let project = match &change.project {
        Some(text) => Some(project_in_reach(&mut tx, caller, &grant, text).await.map_err(of_body)?),
        None => caller.project.filter(|_| caller.confined_to.is_empty()),
    };
    let now = core.clock.now();
    let key = OperatorKey {
        hash: hash_key(&secret),
        seq: 0,
        label,
        operator: caller.id.clone(),
        project,
        created_by: Some(caller.id.clone()),
        created_at: now,
        updated_at: now,
        last_used_at: None,
        expires_at: change.expires_at.flatten(),
        life_ms: change.expires_at.flatten().map(|at| at.0 - now.0),
        replaced_at: None,
        revoked_at: None,
        networks: change.networks.unwrap_or_default(),
    };
    check_bounds(caller, &key)?;
    make_room(&mut tx, caller, now).await?;
    store::insert(&mut tx, caller.account, &key).await?;
    tx.commit().await?;
    Ok(NewKey { key, secret })
}

/// A wrong project is a member of the body here, and not a parameter.
fn of_body(error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Refused { code: Code::InvalidParameter, errors } => CommonError::Faults(errors).into(),
        other => other,
    }
}

/// Lists the keys of operators, also those that do not work any more.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(
    core: &Core,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<OperatorKey>, ServiceError> {
    let grant = require(actor, Verb::List, OperatorKeys)?;
    let mut conn = core.db.read().await?;
    // A key of a project does not see those that its operator has for the whole account.
    let project = actor.project.filter(|_| actor.confined_to.is_empty()).map(|id| id.to_string());
    let within: Vec<_> = project.iter().map(|id| ("scopes.projects", id.as_str())).collect();
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    Ok(store::list(&mut conn, &selection).await?)
}

/// Reads a key of an operator.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, id: &str) -> Result<OperatorKey, ServiceError> {
    let grant = require(actor, Verb::Read, OperatorKeys)?;
    let parsed = id.parse().map_err(|_| not_found(id))?;
    let found = store::find(&mut core.db.read().await?, actor.account, parsed).await?;
    admitted(found, actor, &grant, id)
}

/// Merges the members given into a key that works.
///
/// # Errors
/// It does not exist or was revoked, or it is the last one and would not reach the account from where the caller is.
#[instrument(skip_all)]
pub async fn update(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: KeyChange,
    client: Option<IpAddr>,
) -> Result<OperatorKey, ServiceError> {
    let grant = require(caller, Verb::Update, OperatorKeys)?;
    let now = core.clock.now();
    let narrows = change.expires_at.is_some() || change.networks.is_some();
    let (_place, mut tx) = core.begin_write(caller).await?;
    let key = find_locked(&mut tx, caller, &grant, id, now).await?;
    if key.replaced_at.is_some() && change.expires_at.is_some() {
        return Err(TenantsError::EndOfReplacedKey.into());
    }
    let was_lasting = key.is_lasting(client, now);
    let key = key.apply(change, now);
    if narrows {
        check_bounds(caller, &key)?;
    }
    if was_lasting && !key.is_lasting(client, now) {
        keep_another(&mut tx, caller, &key, client, now).await?;
    }
    store::update(&mut tx, caller.account, &key).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(key)
}

/// Replaces a key by a new one. The old one ends at once, or works beside it for a while.
///
/// # Errors
/// It does not exist or does not work any more, or the overlap is too long.
#[instrument(skip_all)]
pub async fn rotate(core: &Core, caller: &Caller, id: &str, overlap_ms: u32) -> Result<NewKey, ServiceError> {
    let grant = require(caller, Verb::Update, OperatorKeys)?;
    let now = core.clock.now();
    let ends_at = end_of_overlap(now, overlap_ms)?;
    let secret = new_key(&*core.random, ActorKind::Operator.key_prefix())?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let old = find_locked(&mut tx, caller, &grant, id, now).await?;
    if old.status(now) == KeyStatus::Expired {
        return Err(TenantsError::KeyExpired.into());
    }
    if old.replaced_at.is_some() {
        return Err(TenantsError::KeyReplaced.into());
    }
    let mut key = old.successor(hash_key(&secret), caller.id.clone(), now);
    if caller.kind == ActorKind::ProjectOperator || !caller.permissions.allow(Verb::Update, OperatorKeys) {
        // It makes none that lives longer than itself.
        key.expires_at = [key.expires_at, caller.bounds.expires_at].into_iter().flatten().min();
    }
    check_bounds(caller, &key)?;
    make_room(&mut tx, caller, now).await?;
    store::insert(&mut tx, caller.account, &key).await?;
    store::update(&mut tx, caller.account, &old.replaced(ends_at, now)).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(NewKey { key, secret })
}

/// Revokes a key.
///
/// # Errors
/// It does not exist, was revoked before, or is the last one by which the account is reached.
#[instrument(skip_all)]
pub async fn revoke(
    core: &Core,
    caller: &Caller,
    id: &str,
    client: Option<IpAddr>,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, OperatorKeys)?;
    let now = core.clock.now();
    let (_place, mut tx) = core.begin_write(caller).await?;
    let key = find_locked(&mut tx, caller, &grant, id, now).await?;
    if key.is_lasting(client, now) {
        keep_another(&mut tx, caller, &key, client, now).await?;
    }
    store::update(&mut tx, caller.account, &key.replaced(now, now)).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// A key that is not revoked; what is decided about the others of the account stands until the transaction ends.
async fn find_locked(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    id: &str,
    now: UnixMillis,
) -> Result<OperatorKey, ServiceError> {
    let parsed = id.parse().map_err(|_| not_found(id))?;
    lock_with_rights(tx, actor).await?;
    let key = admitted(store::find_locked(tx, actor.account, parsed).await?, actor, grant, id)?;
    check(tx, || key.tag())?;
    if key.operator != actor.id
        && let Ok(owner) = key.operator.parse()
        && let Some(owner) = operators::find(tx, actor.account, owner).await?
    {
        refuse_superior(tx, actor, &owner).await?;
    }
    if key.status(now) == KeyStatus::Revoked {
        return Err(TenantsError::KeyRevoked.into());
    }
    Ok(key)
}

/// Refuses to end the last key by which an owner reaches the whole account from where the caller is. Keys that do not
/// reach it may always end.
async fn keep_another(
    tx: &mut Tx,
    actor: &Actor,
    key: &OperatorKey,
    client: Option<IpAddr>,
    now: UnixMillis,
) -> Result<(), ServiceError> {
    let all = operators::list(tx, actor.account).await?;
    let is_owner = |id: &str| all.iter().any(|operator| operator.id.as_str() == id && operator.is_owner());
    let valid = store::list_valid(tx, actor.account, now).await?;
    let is_other = |other: &OperatorKey| {
        other.hash != key.hash && other.is_lasting(client, now) && is_owner(&other.operator)
    };
    if !is_owner(&key.operator) || valid.iter().any(is_other) {
        return Ok(());
    }
    Err(TenantsError::LastOwnerKey.into())
}

/// Refuses a key that works longer or from more networks than the one by which the caller asks. Whoever manages the
/// keys of the whole account may make any: nobody could undo a bound of the last one.
fn check_bounds(caller: &Caller, key: &OperatorKey) -> Result<(), TenantsError> {
    let is_free = caller.kind == ActorKind::Operator && caller.permissions.allow(Verb::Update, OperatorKeys);
    if is_free || key.bounds().are_within(&caller.bounds) {
        return Ok(());
    }
    Err(TenantsError::WiderThanOwnKey)
}

/// Refuses another key where there are as many as there may be.
async fn make_room(tx: &mut Tx, actor: &Actor, now: UnixMillis) -> Result<(), ServiceError> {
    lock_with_rights(tx, actor).await?;
    let whose = (actor.project, actor.id.as_str());
    let (in_account, in_project, own) = store::count_valid(tx, actor.account, whose, now).await?;
    let manages = actor.permissions.allow(Verb::Create, OperatorKeys);
    if in_account < MAX_KEYS
        && (actor.project.is_none() || in_project < MAX_KEYS_OF_PROJECT)
        && (manages || own < MAX_OWN_KEYS)
    {
        return Ok(());
    }
    let (in_account, in_project, own) = (MAX_KEYS, MAX_KEYS_OF_PROJECT, MAX_OWN_KEYS);
    Err(TenantsError::TooManyKeys { in_account, in_project, own }.into())
}

fn admitted(
    found: Option<OperatorKey>,
    actor: &Actor,
    grant: &Grant,
    id: &str,
) -> Result<OperatorKey, ServiceError> {
    // A key without a project is for the projects of its operator's role, if that has such.
    let is_within = |key: &OperatorKey| match (actor.projects(), key.project) {
        (None, _) => true,
        (Some(own), Some(project)) => own.contains(&project),
        (Some(_), None) => !actor.confined_to.is_empty() && key.operator == actor.id,
    };
    let is_seen = |key: &OperatorKey| match grant.limit() {
        Limit::Account => true,
        Limit::Projects(_) => is_within(key),
        Limit::Itself(own) => key.operator == *own && is_within(key),
        Limit::User(_) => false,
    };
    found.filter(is_seen).ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("key", shorten(id))
}
