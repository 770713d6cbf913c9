//! Applications of projects, and their keys.

use serde_json::json;
use shared::{
    id::{AccountId, ApplicationId, ProjectId},
    time::UnixMillis,
};
use tracing::instrument;

use super::{
    Core,
    access::{Caller, derived_key, end_of_overlap, require},
    bulk::{self, AfterCommit},
    named::checked,
    projects::{self, project_id},
    removal::{self, STEP},
    roles::{check_user_role, refuse_less_than_application},
};
use crate::{
    domain::{
        access::{Actor, Generation, hash_key},
        api_key::KeyId,
        application::{AppKey, Application, ApplicationChange, Generations},
        common::Stamp,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{Access, Applications, Keys},
            Verb,
        },
        project::Project,
        subject::Permissions,
    },
    error::ServiceError,
    store::{Tx, applications, documents, keys, listing::Selection, projects as project_rows},
};

/// Creates an application and its two keys.
///
/// # Errors
/// The key lacks the permission, the project does not exist, or the name is missing.
#[instrument(skip_all)]
pub async fn create(
    core: &Core,
    caller: &Caller,
    project: &str,
    change: ApplicationChange,
) -> Result<Application, ServiceError> {
    let _ = require(caller, Verb::Create, Applications)?;
    let now = core.clock.now();
    let id = ApplicationId::new(now.0, core.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let parsed = project_id(project)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    if !project_rows::hold(&mut tx, caller.account, parsed).await? {
        return Err(projects::not_found(project));
    }
    check_user_role(&mut tx, caller.account, change.details.user_role.as_deref()).await?;
    let new = Application {
        id,
        project: parsed,
        stamp: Stamp::new(now),
        name,
        generations: Generations::FIRST,
        details: change.details,
    };
    let made = documents::insert(&mut tx, caller.account, new).await?;
    for which in AppKey::ALL {
        add_key(core, &mut tx, caller, &made, which, now).await?;
    }
    tx.commit().await?;
    Ok(made)
}

/// Adds the present key of an application.
async fn add_key(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    application: &Application,
    which: AppKey,
    now: UnixMillis,
) -> Result<String, ServiceError> {
    let key = key(core, application, which)?;
    let owner = Actor {
        account: actor.account,
        kind: which.kind(),
        id: application.id.to_string(),
        project: Some(application.project),
        app: Some(application.id),
        enterprise: actor.enterprise,
        user_rights: actor.user_rights,
        permissions: Permissions::ALL,
        confined_to: Vec::new(),
    };
    let generation = application.generations.of(which);
    keys::insert_of(tx, &hash_key(&key), &owner, Some(generation), now.0).await?;
    let state = json!({"application": application.id, "kind": owner.kind.as_str(), "generation": generation});
    let id = KeyId::of(&hash_key(&key)).to_string();
    tx.note(actor.account, ("applicationKey", &id), || (None, Some(state)));
    Ok(key)
}

/// Reads an application of a project.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, project: &str, id: &str) -> Result<Application, ServiceError> {
    let _ = require(actor, Verb::Read, Applications)?;
    load(core, actor, project, id).await
}

/// Reads the application that the key belongs to.
///
/// # Errors
/// The key is not of an application.
#[instrument(skip_all)]
pub async fn read_own(core: &Core, actor: &Actor) -> Result<Application, ServiceError> {
    let _ = require(actor, Verb::Read, Access)?;
    let (Some(project), Some(id)) = (actor.project, actor.app) else {
        return Err(ServiceError::not_found("application", "me"));
    };
    let mut conn = core.db.read().await?;
    applications::find(&mut conn, actor.account, project, id)
        .await?
        .ok_or_else(|| ServiceError::not_found("application", id))
}

/// Lists the applications of a project.
///
/// # Errors
/// The key lacks the permission or the project does not exist.
#[instrument(skip_all)]
pub async fn list(
    core: &Core,
    actor: &Actor,
    project: &str,
    request: &ListRequest,
) -> Result<Page<Application>, ServiceError> {
    let grant = require(actor, Verb::List, Applications)?;
    let parsed = project_id(project)?;
    let mut conn = core.db.read().await?;
    if documents::find::<Project>(&mut conn, actor.account, parsed).await?.is_none() {
        return Err(projects::not_found(project));
    }
    let within = [("project", parsed.as_str())];
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &within };
    Ok(documents::list(&mut conn, &selection).await?)
}

/// Merges the members given into an application.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn update(
    core: &Core,
    caller: &Caller,
    project: &str,
    id: &str,
    change: ApplicationChange,
) -> Result<Application, ServiceError> {
    let _ = require(caller, Verb::Update, Applications)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let application = update_in(core, &mut tx, caller, project, id, change).await?;
    tx.commit().await?;
    // What users may do stands with their keys.
    core.key_lookups.revoked();
    Ok(application)
}

/// Merges the members given into each of some applications of a project: into all of them, or none.
///
/// # Errors
/// 404 that names the project or every absent application.
#[instrument(skip_all)]
pub async fn update_many(
    core: &Core,
    caller: &Caller,
    project: &str,
    ids: &[String],
    change: ApplicationChange,
) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Update, Applications)?;
    project_id(project)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let mut absent = Vec::new();
    for id in bulk::in_order(ids) {
        if let Err(error) = update_in(core, &mut tx, caller, project, id, change.clone()).await {
            absent.extend(bulk::absence(error)?);
        }
    }
    // What users may do stands with their keys.
    bulk::finish(core, tx, absent, AfterCommit::default().revoke_keys()).await
}

async fn update_in(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    project: &str,
    id: &str,
    change: ApplicationChange,
) -> Result<Application, ServiceError> {
    let (parsed_project, parsed) = ids(project, id)?;
    check_user_role(tx, actor.account, change.details.user_role.as_deref()).await?;
    let stored = applications::find_locked(tx, actor.account, parsed_project, parsed).await?;
    let stored = checked(tx, stored.ok_or_else(|| not_found(id))?)?;
    let application = stored.apply(change, core.clock.now());
    documents::update(tx, actor.account, &application).await?;
    Ok(application)
}

/// Removes an application with its users; none of their keys is valid from then on.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn delete(core: &Core, caller: &Caller, project: &str, id: &str) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Delete, Applications)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let mut room = STEP;
    let after = delete_in(core, &mut tx, caller, (project, id), &mut room).await?;
    tx.commit().await?;
    after.run(core).await
}

/// Removes each of some applications of a project with its users: all of them, or none.
///
/// # Errors
/// 404 that names the project or every absent application.
#[instrument(skip_all)]
pub async fn delete_many(
    core: &Core,
    caller: &Caller,
    project: &str,
    ids: &[String],
) -> Result<(), ServiceError> {
    let _ = require(caller, Verb::Delete, Applications)?;
    project_id(project)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let (mut after, mut absent, mut room) = (AfterCommit::default(), Vec::new(), STEP);
    for id in bulk::in_order(ids) {
        match delete_in(core, &mut tx, caller, (project, id), &mut room).await {
            Ok(left) => after.join(left),
            Err(error) => absent.extend(bulk::absence(error)?),
        }
    }
    bulk::finish(core, tx, absent, after).await
}

async fn delete_in(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    (project, id): (&str, &str),
    room: &mut u32,
) -> Result<AfterCommit, ServiceError> {
    let (parsed_project, parsed) = ids(project, id)?;
    let found = applications::find_locked(tx, actor.account, parsed_project, parsed).await?;
    checked(tx, found.ok_or_else(|| not_found(id))?)?;
    let wakes_edges = remove(core, tx, (actor.account, parsed), room).await?;
    Ok(AfterCommit::default().wake_edges(wakes_edges).revoke_keys())
}

/// Deletes an application of the account with everything that belongs to it, and asks for the erasure of its users; `true` when
/// edges must learn of its rules. Of its users at most `room` are removed in the transaction.
pub(crate) async fn remove(
    core: &Core,
    tx: &mut Tx,
    (account, id): (AccountId, ApplicationId),
    room: &mut u32,
) -> Result<bool, ServiceError> {
    documents::delete::<Application>(tx, account, id).await?;
    removal::begin(core, tx, (account, id), room).await?;
    core.dependents.application_removed(tx, account, id, core.clock.now()).await
}

/// A key of an application: the same one each time, until it is rotated.
///
/// # Errors
/// One case in 10^30.
pub fn key(core: &Core, application: &Application, which: AppKey) -> Result<String, ServiceError> {
    let generation = Generation::of_application(application.generations.of(which));
    derived_key(core, which.kind(), application.id.as_str(), generation)
}

/// Gives an application its next public or secret key. The one before ends at once, or works beside it for some
/// seconds.
///
/// # Errors
/// The key lacks the permission, the application does not exist, or the overlap is too long.
#[instrument(skip_all)]
pub async fn rotate_key(
    core: &Core,
    caller: &Caller,
    (project, id): (&str, &str),
    which: AppKey,
    overlap_ms: u32,
) -> Result<(Application, String), ServiceError> {
    let _ = require(caller, Verb::Update, Keys)?;
    if which == AppKey::Secret {
        refuse_less_than_application(caller)?;
    }
    let now = core.clock.now();
    let ends_at = end_of_overlap(now, overlap_ms)?;
    let (parsed_project, parsed) = ids(project, id)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let mut application = applications::find_locked(&mut tx, caller.account, parsed_project, parsed)
        .await?
        .ok_or_else(|| not_found(id))?;
    application.generations = application.generations.next(which);
    application.stamp = application.stamp.touch(now);
    documents::update(&mut tx, caller.account, &application).await?;
    keys::end_all(&mut tx, caller.account, which.kind(), parsed.as_str(), ends_at, now).await?;
    let key = add_key(core, &mut tx, caller, &application, which, now).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok((application, key))
}

/// The secret key of an application, by which it is trusted.
///
/// # Errors
/// The key lacks the permission or the application does not exist.
#[instrument(skip_all)]
pub async fn read_secret_key(
    core: &Core,
    actor: &Actor,
    project: &str,
    id: &str,
) -> Result<String, ServiceError> {
    let _ = require(actor, Verb::Read, Keys)?;
    refuse_less_than_application(actor)?;
    let found = load(core, actor, project, id).await?;
    key(core, &found, AppKey::Secret)
}

async fn load(core: &Core, actor: &Actor, project: &str, id: &str) -> Result<Application, ServiceError> {
    let (parsed_project, parsed) = ids(project, id)?;
    let mut conn = core.db.read().await?;
    applications::find(&mut conn, actor.account, parsed_project, parsed).await?.ok_or_else(|| not_found(id))
}

/// The project and application that a path names; a text that is no id names none.
pub fn ids(project: &str, id: &str) -> Result<(ProjectId, ApplicationId), ServiceError> {
    match (project.parse(), id.parse()) {
        (Ok(project), Ok(id)) => Ok((project, id)),
        (Err(_), _) => Err(projects::not_found(project)),
        (Ok(_), Err(_)) => Err(not_found(id)),
    }
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("application", shorten(id))
}
