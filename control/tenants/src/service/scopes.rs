//! The scopes of a new resource.

use shared::id::ProjectId;

use crate::{
    domain::{
        access::Actor,
        grant::{Grant, Limit},
        limits::shorten,
        scopes::Scopes,
    },
    error::{ServiceError, TenantsError},
    store::{Tx, projects},
};

/// The scopes of a new resource: those that the body asks for as far as the key may, and the project that
/// `?project=` names, which must exist and be within the key's reach.
///
/// # Errors
/// `Code::InvalidParameter` for another project.
pub async fn scopes_for(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    asked: Option<Scopes>,
    project: Option<&str>,
) -> Result<Option<Scopes>, ServiceError> {
    let Some(text) = project else { return Ok(grant.scopes_of_new(asked)) };
    let mut asked = asked.unwrap_or_default();
    asked.add_project(project_in_reach(tx, actor, grant, text).await?);
    Ok(grant.scopes_of_new(Some(asked)))
}

/// The project that `?project=` names.
///
/// # Errors
/// `Code::InvalidParameter` unless it exists and is within the key's reach.
pub async fn project_in_reach(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    text: &str,
) -> Result<ProjectId, ServiceError> {
    let unknown = || TenantsError::ProjectOutOfReach(shorten(text).to_owned());
    let id: ProjectId = text.parse().map_err(|_| unknown())?;
    let is_in_reach = match grant.limit() {
        Limit::Account => true,
        Limit::Projects(own) => own.contains(&id),
        Limit::Itself(_) if actor.kind.is_operator() => actor.projects().is_none_or(|own| own.contains(&id)),
        Limit::User(_) | Limit::Itself(_) => actor.project == Some(id),
    };
    if !is_in_reach || !projects::hold(tx, actor.account, id).await? {
        return Err(unknown().into());
    }
    Ok(id)
}
