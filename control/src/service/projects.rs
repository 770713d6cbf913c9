//! Projects (decisions 3).

use shared::id::ProjectId;
use tracing::instrument;

use super::{App, access::require, applications::remove, named};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Projects, Verb},
        project::{Project, ProjectChange},
        resource::Stamp,
    },
    error::ServiceError,
    store::{applications, documents},
};

/// Makes a project.
///
/// # Errors
/// The key may not, the name is missing, or the database failed.
#[instrument(skip_all)]
pub async fn create(app: &App, actor: &Actor, change: ProjectChange) -> Result<Project, ServiceError> {
    let _ = require(actor, Verb::Create, Projects)?;
    let now = app.clock.now();
    let id = ProjectId::new(now.0, app.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let mut tx = app.db.begin().await?;
    let new = Project { id, stamp: Stamp::new(now), name, details: change.details };
    let project = documents::insert(&mut tx, actor.account, new).await?;
    tx.commit().await?;
    Ok(project)
}

/// Reads a project.
///
/// # Errors
/// It is not there, or the database failed.
#[instrument(skip_all)]
pub async fn read(app: &App, actor: &Actor, id: &str) -> Result<Project, ServiceError> {
    let _ = require(actor, Verb::Read, Projects)?;
    let parsed = project_id(id)?;
    let mut conn = app.db.read().await?;
    documents::find(&mut conn, actor.account, parsed).await?.ok_or_else(|| not_found(id))
}

/// Lists projects.
///
/// # Errors
/// The key may not, or the database failed.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Project>, ServiceError> {
    named::list(app, actor, request).await
}

/// Merges the members given into a project.
///
/// # Errors
/// It is not there, or the database failed.
#[instrument(skip_all)]
pub async fn update(
    app: &App,
    actor: &Actor,
    id: &str,
    change: ProjectChange,
) -> Result<Project, ServiceError> {
    let _ = require(actor, Verb::Update, Projects)?;
    let parsed = project_id(id)?;
    let mut tx = app.db.begin().await?;
    let stored: Option<Project> = documents::find_locked(&mut tx, actor.account, parsed).await?;
    let project = stored.ok_or_else(|| not_found(id))?.apply(change, app.clock.now());
    documents::update(&mut tx, actor.account, &project).await?;
    tx.commit().await?;
    Ok(project)
}

// Spec gap: what becomes of the applications of a deleted project is not shown: they go with it.
/// Removes a project with its applications, their users and keys; what was scoped to it stays.
///
/// # Errors
/// It is not there, or the database failed.
#[instrument(skip_all)]
pub async fn delete(app: &App, actor: &Actor, id: &str) -> Result<(), ServiceError> {
    let _ = require(actor, Verb::Delete, Projects)?;
    let parsed = project_id(id)?;
    let mut tx = app.db.begin().await?;
    if !documents::delete::<Project>(&mut tx, actor.account, parsed).await? {
        return Err(not_found(id));
    }
    let mut had_rules = false;
    for application in applications::list_ids(&mut tx, actor.account, parsed).await? {
        had_rules |= remove(&mut tx, actor.account, application, app.clock.now()).await?;
    }
    tx.commit().await?;
    app.key_lookups.revoked();
    if had_rules {
        app.hub.wake();
    }
    Ok(())
}

/// The project that a path names; a text that is no id names none.
pub(super) fn project_id(text: &str) -> Result<ProjectId, ServiceError> {
    text.parse().map_err(|_| not_found(text))
}

pub(super) fn not_found(id: &str) -> ServiceError {
    ServiceError::not_found("project", shorten(id))
}
