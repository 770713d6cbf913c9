//! Projects.

use shared::id::ProjectId;
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    applications::remove,
    bulk::{self, AfterCommit, Bulk},
    named::{self, admitted, checked},
    removal::STEP,
};
use crate::{
    domain::{
        access::Actor,
        common::Stamp,
        demo,
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Projects, Verb},
        project::{Project, ProjectChange},
    },
    error::ServiceError,
    store::{Tx, accounts, applications, documents, keys},
};

/// Creates a project.
///
/// # Errors
/// The key lacks the permission or the name is missing.
#[instrument(skip_all)]
pub async fn create(core: &Core, caller: &Caller, change: ProjectChange) -> Result<Project, ServiceError> {
    let _ = require(caller, Verb::Create, Projects)?;
    let now = core.clock.now();
    let id = ProjectId::new(now.0, core.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let mut details = change.details;
    details.is_demo = demo::is_project(&details.common);
    let new = Project { id, stamp: Stamp::new(now), name, details };
    let project = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(project)
}

/// Reads a project.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, id: &str) -> Result<Project, ServiceError> {
    let _ = require(actor, Verb::Read, Projects)?;
    let parsed = project_id(id)?;
    let mut conn = core.db.read().await?;
    documents::find(&mut conn, actor.account, parsed).await?.ok_or_else(|| not_found(id))
}

/// Lists projects.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(core: &Core, actor: &Actor, request: &ListRequest) -> Result<Page<Project>, ServiceError> {
    named::list(core, actor, request).await
}

/// Merges the members given into a project.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn update(
    core: &Core,
    caller: &Caller,
    id: &str,
    change: ProjectChange,
) -> Result<Project, ServiceError> {
    bulk::update_one(core, caller, id, change).await
}

// Spec gap: what becomes of the applications of a deleted project is not shown: they go with it.
/// Deletes a project with its applications, their users and keys; resources scoped to it stay.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn delete(core: &Core, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    bulk::delete_one::<_, Project>(core, caller, id).await
}

impl Bulk<Core> for Project {
    type Change = ProjectChange;

    async fn update_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        change: ProjectChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let id = project_id(reference)?;
        let found: Option<Self> = documents::find_locked(tx, actor.account, id).await?;
        let project = checked(tx, admitted(found, grant, reference)?)?.apply(change, core.clock.now());
        documents::update(tx, actor.account, &project).await?;
        Ok((project, AfterCommit::default()))
    }

    async fn delete_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let id = project_id(reference)?;
        let found: Option<Self> = documents::find_locked(tx, actor.account, id).await?;
        checked(tx, admitted(found, grant, reference)?)?;
        documents::delete::<Self>(tx, actor.account, id).await?;
        // One transaction deletes up to 100 projects.
        let (mut had_rules, mut room) = (false, STEP / 10);
        for application in applications::list_ids(tx, actor.account, id).await? {
            had_rules |= remove(core, tx, (actor.account, application), &mut room).await?;
        }
        // A key of the project that is rotated meanwhile is either seen here, or finds itself revoked.
        accounts::lock(tx, actor.account).await?;
        keys::revoke_of_project(tx, actor.account, id, core.clock.now().0).await?;
        super::operators::leave_project(tx, actor.account, id, core.clock.now()).await?;
        Ok(AfterCommit::default().wake_edges(had_rules).revoke_keys())
    }
}

/// The project that a path names; a text that is no id names none.
pub(crate) fn project_id(text: &str) -> Result<ProjectId, ServiceError> {
    text.parse().map_err(|_| not_found(text))
}

/// The error of a project that is absent, or in another account.
#[must_use]
pub(crate) fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("project", shorten(id))
}
