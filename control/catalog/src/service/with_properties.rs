//! Thngs and products with the latest values of their properties.

use std::slice;

use super::{
    Core,
    access::require,
    named::{self, is_seen},
    properties,
};
use crate::{
    domain::{
        access::Actor,
        listing::ListRequest,
        named::Named,
        page::Page,
        permission::{Subject, Verb},
    },
    error::ServiceError,
    store::{
        Conn,
        documents::{self, Document},
        listing::Selection,
    },
};

/// [`named::read`], with the latest values of the properties.
pub(super) async fn read<D: Document>(
    core: &Core,
    actor: &Actor,
    reference: &str,
) -> Result<D, ServiceError> {
    let grant = require(actor, Verb::Read, D::SUBJECT)?;
    let mut conn = core.db.read().await?;
    let mut found: D = named::find(&mut conn, actor, &grant, reference).await?;
    show(&mut conn, actor, slice::from_mut(&mut found)).await?;
    Ok(found)
}

/// [`named::list`], with the latest values of the properties.
pub(super) async fn list<D: Document>(
    core: &Core,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<D>, ServiceError> {
    let grant = require(actor, Verb::List, D::SUBJECT)?;
    let mut conn = core.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    let mut page = documents::list(&mut conn, &selection).await?;
    show(&mut conn, actor, &mut page.items).await?;
    Ok(page)
}

/// Puts the latest values of their properties into resources that have such.
pub(super) async fn show<D: Named>(
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
