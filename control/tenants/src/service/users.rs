//! Users of applications: registration, logins, and the user records.

use std::collections::BTreeSet;

use serde_json::json;
use shared::{
    id::{ApplicationId, ProjectId, UserId},
    problem::Code,
};
use subtle::ConstantTimeEq;
use tracing::instrument;

use super::{
    Core,
    access::{Caller, new_key, require},
    passwords::Passwords,
};
use crate::{
    domain::{
        access::{Actor, ActorKind, hash_key},
        api_key::KeyId,
        app_user::{AppUser, Credentials, NewUser, UserDetails, UserStatus},
        limits::shorten,
        listing::ListRequest,
        page::Page,
        password::SALT_LEN,
        permission::{
            Subject::{Access, Users},
            Verb,
        },
        subject::Permissions,
    },
    error::ServiceError,
    store::{StoreError, Tx, app_users, applications, audit::state_of, keys, listing::Selection},
};

/// What the audit trail calls them.
const KIND: &str = "user";

/// A user with a newly created key, of which only the hash is stored.
pub struct LoggedIn {
    /// The user.
    pub user: AppUser,
    /// The key.
    pub key: String,
}

/// A user who registered, with the code that activates it.
pub struct Registered {
    /// The user.
    pub user: AppUser,
    /// The code; only its hash is stored.
    pub activation_code: String,
}

// Spec gap: whether one address may register twice is not shown: once per project, ignoring letter case.
/// Registers a user by e-mail and password; it may log in once it was activated.
///
/// # Errors
/// The key is not an application's or 409 when the project has the address.
#[instrument(skip_all)]
pub async fn register(
    core: &Core,
    passwords: &Passwords,
    caller: &Caller,
    new: NewUser,
) -> Result<Registered, ServiceError> {
    let (project, application) = application(caller)?;
    let mut salt = [0; SALT_LEN];
    core.random.fill(&mut salt)?;
    let activation_code = new_key(&*core.random, "")?;
    let password = passwords.hash(core.capacity.password(caller)?, new.credentials.password, salt).await?;
    let email = new.credentials.email;
    let details = UserDetails { email: Some(email.as_str().to_owned()), ..new.details };
    let now = core.clock.now();
    let row = app_users::NewRow {
        account: caller.account,
        id: UserId::new(now.0, core.random16()?),
        project,
        app: application,
        status: UserStatus::Inactive,
        folded: Some(email.folded()),
        password: Some(password),
        activation: Some(hash_key(&activation_code)),
        details: &details,
    };
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::insert(&mut tx, row, now).await.map_err(|error| match error {
        StoreError::Unique(_) => {
            ServiceError::refused(Code::Conflict, "email: a user of this project has this address.")
        }
        other => other.into(),
    })?;
    note_new(&mut tx, caller, &user);
    tx.commit().await?;
    Ok(Registered { user, activation_code })
}

/// Creates a user without a name, and its key.
///
/// # Errors
/// The key is not an application's.
#[instrument(skip_all)]
pub async fn create_anonymous(core: &Core, caller: &Caller) -> Result<LoggedIn, ServiceError> {
    let (project, application) = application(caller)?;
    let now = core.clock.now();
    let row = app_users::NewRow {
        account: caller.account,
        id: UserId::new(now.0, core.random16()?),
        project,
        app: application,
        status: UserStatus::Anonymous,
        folded: None,
        password: None,
        activation: None,
        details: &UserDetails::default(),
    };
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::insert(&mut tx, row, now).await?;
    note_new(&mut tx, caller, &user);
    let key = add_key(core, &mut tx, caller, &user).await?;
    tx.commit().await?;
    Ok(LoggedIn { user, key })
}

/// Activates a user by the code of its registration, and logs it in.
///
/// # Errors
/// 404 for a user of another application, 400 for a wrong or used code.
#[instrument(skip_all)]
pub async fn activate(core: &Core, caller: &Caller, id: &str, code: &str) -> Result<LoggedIn, ServiceError> {
    let (_, application) = application(caller)?;
    let not_found = || not_found(id);
    let parsed: UserId = id.parse().map_err(|_| not_found())?;
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::find_locked(&mut tx, caller.account, parsed).await?;
    let user = user.filter(|user| user.app == application).ok_or_else(not_found)?;
    let expected = app_users::find_activation(&mut tx, parsed).await?;
    let is_right = expected.is_some_and(|hash| hash_key(code)[..].ct_eq(&hash).into());
    if !is_right {
        let fault = "activationCode is wrong, or was used.";
        return Err(ServiceError::refused(Code::Invalid, fault));
    }
    let now = core.clock.now();
    let user = AppUser { status: UserStatus::Active, stamp: user.stamp.touch(now), ..user };
    app_users::activate(&mut tx, parsed, user.stamp.updated_at).await?;
    tx.note(caller.account, (KIND, id), || (None, Some(json!({"status": user.status.as_str()}))));
    let key = add_key(core, &mut tx, caller, &user).await?;
    tx.commit().await?;
    Ok(LoggedIn { user, key })
}

// Spec gap: the answer to a failed login is not shown. An unknown address, a wrong password and a user who
// was never activated get one answer, after the same work.
/// Logs a user in by e-mail and password; each login has a key of its own.
///
/// # Errors
/// [`Code::LoginFailed`], or the key is not an application's.
#[instrument(skip_all)]
pub async fn login(
    core: &Core,
    passwords: &Passwords,
    caller: &Caller,
    credentials: Credentials,
) -> Result<LoggedIn, ServiceError> {
    let (project, application) = application(caller)?;
    let failed = || ServiceError::refused(Code::LoginFailed, "The e-mail address or the password is wrong.");
    let folded = credentials.email.folded();
    let found = {
        let mut conn = core.db.read().await?;
        app_users::find_login(&mut conn, project, &folded).await?
    };
    let (id, status, stored) = match found {
        Some(found) => (Some(found.id), Some(found.status), found.password),
        None => (None, None, None),
    };
    let is_right = passwords.verify(core.capacity.password(caller)?, credentials.password, stored).await?;
    let id = id.filter(|_| is_right && status == Some(UserStatus::Active)).ok_or_else(failed)?;
    let _place = core.capacity.write(caller)?;
    let mut tx = begin(core, caller, application).await?;
    let user = app_users::find_locked(&mut tx, caller.account, id).await?.ok_or_else(failed)?;
    let key = add_key(core, &mut tx, caller, &user).await?;
    tx.commit().await?;
    Ok(LoggedIn { user, key })
}

/// Ends the key of a user by which the request came; the others of the user stay.
///
/// # Errors
/// The key is not a user's.
#[instrument(skip_all)]
pub async fn logout(core: &Core, caller: &Caller, key: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Update, Access)?;
    let _place = core.capacity.write(caller)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    keys::revoke(&mut tx, &hash_key(key), core.clock.now().0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// Reads a user.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, id: &str) -> Result<AppUser, ServiceError> {
    let grant = require(actor, Verb::Read, Users)?;
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
    let grant = require(actor, Verb::Read, Users)?;
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
    let grant = require(caller, Verb::Update, Users)?;
    let parsed: UserId = id.parse().map_err(|_| not_found(id))?;
    let _place = core.capacity.write(caller)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    let stored = app_users::find_locked(&mut tx, caller.account, parsed)
        .await?
        .filter(|user| grant.admits(id, Some(&user.scopes())))
        .ok_or_else(|| not_found(id))?;
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
    let grant = require(caller, Verb::Delete, Users)?;
    let parsed: UserId = id.parse().map_err(|_| not_found(id))?;
    let _place = core.capacity.write(caller)?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    let user = app_users::find_locked(&mut tx, caller.account, parsed).await?;
    user.filter(|user| grant.admits(id, Some(&user.scopes()))).ok_or_else(|| not_found(id))?;
    app_users::delete(&mut tx, caller.account, parsed).await?;
    tx.note(caller.account, (KIND, id), || (Some(json!({})), None));
    keys::revoke_all(&mut tx, caller.account, id, core.clock.now().0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

fn note_new(tx: &mut Tx, actor: &Actor, user: &AppUser) {
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
fn application(actor: &Actor) -> Result<(ProjectId, ApplicationId), ServiceError> {
    let _ = require(actor, Verb::Create, Users)?;
    match (actor.project, actor.app) {
        (Some(project), Some(application)) => Ok((project, application)),
        (Some(_) | None, _) => {
            Err(ServiceError::refused(Code::Forbidden, "Users are made with the key of an application."))
        }
    }
}

/// A transaction in which the application cannot be deleted: a later delete sees what this creates.
async fn begin(core: &Core, caller: &Caller, application: ApplicationId) -> Result<Tx, ServiceError> {
    let mut tx = core.db.begin(&caller.ctx).await?;
    if !applications::hold(&mut tx, caller.account, application).await? {
        return Err(ServiceError::refused(Code::KeyUnknown, "The API key is not known."));
    }
    Ok(tx)
}

async fn add_key(core: &Core, tx: &mut Tx, actor: &Actor, user: &AppUser) -> Result<String, ServiceError> {
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
    keys::insert_of(tx, &hash_key(&key), &owner, None, core.clock.now().0).await?;
    let of = ("userKey", KeyId::of(&hash_key(&key)).to_string());
    tx.note(actor.account, (of.0, &of.1), || (None, Some(json!({"user": user.id}))));
    Ok(key)
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("user", shorten(id))
}
