//! Operations that all named resources share, addressed by id or `<key>:<value>`.

use std::slice;

use super::{App, access::require, properties, references::resolve};
use crate::{
    domain::{
        access::Actor,
        grant::Grant,
        limits::shorten,
        listing::ListRequest,
        named::Named,
        page::Page,
        permission::{Subject, Verb},
    },
    error::ServiceError,
    store::{
        Conn, Tx,
        documents::{self, Document},
        listing::Selection,
    },
};

/// Reads a resource, with its properties if it has such.
pub(super) async fn read<D: Document>(app: &App, actor: &Actor, reference: &str) -> Result<D, ServiceError> {
    let grant = require(actor, Verb::Read, D::SUBJECT)?;
    let mut conn = app.db.read().await?;
    let mut found: D = find(&mut conn, actor, &grant, reference).await?;
    show_properties(&mut conn, actor, slice::from_mut(&mut found)).await?;
    Ok(found)
}

/// Lists resources, with their properties if they have such.
pub(super) async fn list<D: Document>(
    app: &App,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<D>, ServiceError> {
    let grant = require(actor, Verb::List, D::SUBJECT)?;
    let mut conn = app.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    let mut page = documents::list(&mut conn, &selection).await?;
    show_properties(&mut conn, actor, &mut page.items).await?;
    Ok(page)
}

/// The resource that a path names, as far as it exists for the caller.
pub(super) async fn find<D: Document>(
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    reference: &str,
) -> Result<D, ServiceError> {
    let id = resolve(conn, actor.account, D::KIND, reference).await?;
    admitted(documents::find(conn, actor.account, id).await?, grant, reference)
}

/// [`find`], with a lock until the transaction ends.
pub(super) async fn find_locked<D: Document>(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    reference: &str,
) -> Result<D, ServiceError> {
    let id = resolve(tx, actor.account, D::KIND, reference).await?;
    admitted(documents::find_locked(tx, actor.account, id).await?, grant, reference)
}

/// The resource, if it is visible to the caller.
pub(super) fn admitted<D: Named>(
    found: Option<D>,
    grant: &Grant,
    reference: &str,
) -> Result<D, ServiceError> {
    found
        .filter(|found| is_seen(found, grant))
        .ok_or_else(|| ServiceError::not_found(D::KIND, shorten(reference)))
}

/// Whether a resource exists for the caller.
pub(super) fn is_seen<D: Named>(found: &D, grant: &Grant) -> bool {
    grant.admits(&found.id().to_string(), found.scopes().as_deref())
}

/// Puts the latest values of their properties into resources that have such.
pub(super) async fn show_properties<D: Named>(
    conn: &mut Conn,
    actor: &Actor,
    resources: &mut [D],
) -> Result<(), ServiceError> {
    if resources.first_mut().is_none_or(|first| first.properties().is_none()) {
        return Ok(());
    }
    // A caller may see a resource without being allowed to read its properties.
    let Ok(grant) = require(actor, Verb::Read, Subject::Properties) else { return Ok(()) };
    let readable = resources.iter().filter(|resource| is_seen(*resource, &grant));
    let ids: Vec<String> = readable.map(|resource| resource.id().to_string()).collect();
    let mut shown = properties::shown_of(conn, actor, &ids).await?;
    for resource in resources {
        let id = resource.id().to_string();
        if let Some(properties) = resource.properties() {
            *properties = shown.remove(&id).unwrap_or_default();
        }
    }
    Ok(())
}
