//! User records of applications, and what all operations on users need.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use mail::Outbox;
use serde_json::json;
use shared::{
    id::{AccountId, ApplicationId, ProjectId, UserId},
    problem::Code,
    time::UnixMillis,
};
use tracing::instrument;
use url::Url;

use super::{
    Core,
    access::{Caller, new_key, require},
    named::check,
    passwords::Passwords,
};
use crate::{
    domain::{
        access::{Actor, ActorKind, hash_key},
        api_key::KeyId,
        app_user::{AppUser, UserDetails},
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Users as UserRecords, Verb},
        subject::Permissions,
    },
    error::{ApplicationsError, CommonError, ServiceError},
    store::{
        Ctx, StoreError, Tx, app_users, applications, audit::state_of, idle_users, keys, listing::Selection,
        password_resets, user_keys,
    },
};

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 1_000;

/// Most keys of a user that work: with another login the oldest ends.
const MAX_KEYS: i64 = 50;

/// How long a key of a user is kept after it was revoked: a day.
const REVOKED_MS: i64 = 24 * 3_600 * 1_000;

/// How long an anonymous user is kept whose key nobody uses: 365 days.
const IDLE_MS: i64 = 365 * 24 * 3_600 * 1_000;

/// Users that one transaction looks at.
const IDLE_STEP: u32 = 200;

/// How long an unconfirmed registration is kept after its code expired: 30 days, so that operators can look at it.
const UNCONFIRMED_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// What the audit trail calls them.
pub(super) const KIND: &str = "user";

/// What operations on users need.
#[derive(Clone, Debug)]
pub struct Users {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// Hashes passwords.
    pub passwords: Passwords,
    /// Takes mails.
    pub outbox: Arc<Outbox>,
}

/// A user with a newly created key, of which only the hash is stored.
pub struct LoggedIn {
    /// The user.
    pub user: AppUser,
    /// The key.
    pub key: String,
}

/// Reads a user.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, id: &str) -> Result<AppUser, ServiceError> {
    let grant = require(actor, Verb::Read, UserRecords)?;
    let parsed: UserId = id.parse().map_err(|_| not_found(id))?;
    let mut conn = core.db.read().await?;
    let user = app_users::find(&mut conn, actor.account, parsed).await?;
    user.filter(|user| grant.admits(id, Some(&user.scopes()))).ok_or_else(|| not_found(id))
}

/// Lists users; a user sees itself.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(core: &Core, actor: &Actor, request: &ListRequest) -> Result<Page<AppUser>, ServiceError> {
    let grant = require(actor, Verb::List, UserRecords)?;
    let mut conn = core.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    Ok(app_users::list(&mut conn, &selection).await?)
}

/// Merges the members given into a user.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn update(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: UserDetails,
) -> Result<AppUser, ServiceError> {
    let grant = require(caller, Verb::Update, UserRecords)?;
    let parsed: UserId = id.parse().map_err(|_| not_found(id))?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let stored = app_users::find_locked(&mut tx, caller.account, parsed)
        .await?
        .filter(|user| grant.admits(id, Some(&user.scopes())))
        .ok_or_else(|| not_found(id))?;
    check(&tx, || stored.tag())?;
    let before = tx.is_audited().then(|| stored.details.clone());
    let user = stored.apply(change, core.clock.now());
    app_users::update(&mut tx, &user).await?;
    tx.note(caller.account, (KIND, id), || {
        (None, before.map(|before| json!({"changed": changed(&before, &user.details)})))
    });
    tx.commit().await?;
    Ok(user)
}

/// Deletes a user and revokes its keys. What it created stays.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn delete(core: &Core, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, UserRecords)?;
    let parsed: UserId = id.parse().map_err(|_| not_found(id))?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let user = app_users::find_locked(&mut tx, caller.account, parsed).await?;
    let user = user.filter(|user| grant.admits(id, Some(&user.scopes()))).ok_or_else(|| not_found(id))?;
    check(&tx, || user.tag())?;
    password_resets::delete_of_user(&mut tx, caller.account, parsed).await?;
    app_users::delete(&mut tx, caller.account, parsed).await?;
    let at = (core.clock.now(), core.random16()?);
    core.dependents.users_removed(&mut tx, caller.account, vec![parsed], at).await?;
    tx.note(caller.account, (KIND, id), || (Some(json!({})), None));
    keys::revoke_all(&mut tx, caller.account, id, core.clock.now().0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// Removes expired codes, registrations that nobody confirmed, keys that were revoked and anonymous users whom nobody has
/// seen for a year; returns how many.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge(core: &Core) -> Result<u64, ServiceError> {
    let now = core.clock.now();
    let mut removed = 0;
    loop {
        // One transaction each: requests lock these tables in another order, and would deadlock.
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let codes = password_resets::purge(&mut tx, now, PURGE_STEP).await?;
        tx.commit().await?;
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let users = app_users::purge(&mut tx, UnixMillis(now.0 - UNCONFIRMED_MS), PURGE_STEP).await?;
        tx.commit().await?;
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let keys = user_keys::purge(&mut tx, UnixMillis(now.0 - REVOKED_MS), PURGE_STEP).await?;
        tx.commit().await?;
        removed += codes + users + keys;
        if codes + users + keys == 0 {
            return Ok(removed + purge_idle(core, now).await?);
        }
    }
}

/// Removes anonymous users whom nobody has seen for a year, with their keys; what they made stays, without their data.
async fn purge_idle(core: &Core, now: UnixMillis) -> Result<u64, ServiceError> {
    let (before, mut removed) = (UnixMillis(now.0 - IDLE_MS), 0);
    loop {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let listed = idle_users::list(&mut tx, before, IDLE_STEP).await?;
        let mut gone: BTreeMap<AccountId, Vec<UserId>> = BTreeMap::new();
        for user in &listed {
            if user.seen_at > before {
                idle_users::see(&mut tx, *user).await?;
            } else {
                app_users::delete(&mut tx, user.account, user.id).await?;
                user_keys::delete_of(&mut tx, user.account, user.id).await?;
                gone.entry(user.account).or_default().push(user.id);
                removed += 1;
            }
        }
        for (account, users) in gone {
            core.dependents.users_removed(&mut tx, account, users, (now, core.random16()?)).await?;
        }
        tx.commit().await?;
        if listed.is_empty() {
            return Ok(removed);
        }
    }
}

/// Notes in the audit trail that there is a user.
pub(super) fn note_new(tx: &mut Tx, actor: &Actor, user: &AppUser) {
    let state = || json!({"application": user.app, "status": user.status.as_str()});
    tx.note(actor.account, (KIND, user.id.as_str()), || (None, Some(state())));
}

/// Names of the members that differ. The audit trail keeps no personal data of users.
fn changed(before: &UserDetails, after: &UserDetails) -> Vec<String> {
    let (before, after) = (state_of(before), state_of(after));
    let names = before.as_object().into_iter().chain(after.as_object()).flat_map(serde_json::Map::keys);
    let differ: BTreeSet<&String> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    differ.into_iter().cloned().collect()
}

/// The project and application of a key that may create and log in users.
pub(super) fn application(actor: &Actor) -> Result<(ProjectId, ApplicationId), ServiceError> {
    let _ = require(actor, Verb::Create, UserRecords)?;
    match (actor.project, actor.app) {
        (Some(project), Some(application)) => Ok((project, application)),
        (Some(_) | None, _) => Err(ApplicationsError::NoApplication.into()),
    }
}

/// A transaction in which the application cannot be deleted: a later delete sees what this creates.
pub(super) async fn begin(
    core: &Core,
    caller: &Caller,
    application: ApplicationId,
) -> Result<Tx, ServiceError> {
    let mut tx = core.db.begin(&caller.ctx).await?;
    if !applications::hold(&mut tx, caller.account, application).await? {
        return Err(CommonError::Key(Code::KeyUnknown).into());
    }
    Ok(tx)
}

/// The page of an application that takes codes, if it has one.
pub(super) async fn page(
    tx: &mut Tx,
    account: AccountId,
    (project, application): (ProjectId, ApplicationId),
) -> Result<Option<Url>, StoreError> {
    let application = applications::find(tx, account, project, application).await?;
    Ok(application.and_then(|found| Url::parse(&found.details.user_page?).ok()))
}

/// Adds a key of a user; the oldest ends if there are too many. The user is locked, or new.
pub(super) async fn add_key(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    user: &AppUser,
) -> Result<String, ServiceError> {
    let key = new_key(&*core.random, ActorKind::User.key_prefix())?;
    let owner = Actor {
        account: actor.account,
        kind: ActorKind::User,
        id: user.id.to_string(),
        project: Some(user.project),
        // Its keys are revoked with the application that created it, whichever application of the project it logs in
        // with.
        app: Some(user.app),
        enterprise: actor.enterprise,
        user_rights: actor.user_rights,
        permissions: Permissions::ALL,
        confined_to: Vec::new(),
    };
    let now = core.clock.now();
    user_keys::keep_newest(tx, actor.account, user.id, MAX_KEYS - 1, now).await?;
    keys::insert_of(tx, &hash_key(&key), &owner, None, now.0).await?;
    let of = ("userKey", KeyId::of(&hash_key(&key)).to_string());
    tx.note(actor.account, (of.0, &of.1), || (None, Some(json!({"user": user.id}))));
    Ok(key)
}

/// The user is not there for the caller.
pub(super) fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("user", shorten(id))
}
