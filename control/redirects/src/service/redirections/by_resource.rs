//! The redirections of one Thng or product: which one owns them, and the newest, which the first generation of paths names.

use shared::{id::ResourceId, redirect::ResourceType};

use super::{DomainChoice, Listing, list_as};
use crate::{
    domain::{
        access::Actor,
        grant::Limit,
        listing::ListRequest,
        page::PageRequest,
        permission::{Subject, Verb},
        redirection::Redirection,
    },
    error::{RedirectsError, ServiceError},
    service::{
        Redirects,
        access::require,
        references::{resolve_product, resolve_thng},
    },
    store::{resources, scopes},
};

/// The Thng or product that a path names, by id or `<key>:<value>`; it must exist for the caller.
///
/// `verb` is the operation on its redirections; `Verb::List` for all of them.
///
/// # Errors
/// 404, or 409 when an identifier is ambiguous.
pub async fn owner(
    state: &Redirects,
    actor: &Actor,
    verb: Verb,
    kind: ResourceType,
    reference: &str,
) -> Result<ResourceId, ServiceError> {
    let _ = require(actor, verb, Subject::Redirections)?;
    let grant = require(actor, Verb::Read, Subject::Redirections)?;
    let mut conn = state.db.read().await?;
    let id: ResourceId = match kind {
        ResourceType::Thng => resolve_thng(&mut conn, actor.account, reference).await?.into(),
        ResourceType::Product => resolve_product(&mut conn, actor.account, reference).await?.into(),
        ResourceType::Collection | ResourceType::Place => {
            return Err(RedirectsError::NoThngOrProduct.into());
        }
    };
    let ids = [id.to_string()];
    let found = resources::list(&mut conn, actor.account, &ids).await?;
    let is_seen = match grant.limit() {
        Limit::Account => true,
        Limit::Projects(_) | Limit::User(_) | Limit::Itself(_) => {
            let scopes = scopes::list(&mut conn, actor.account, &ids).await?;
            grant.admits(id.as_str(), scopes.get(id.as_str()))
        }
    };
    match found.first() {
        Some(resource) if resource.kind == kind && is_seen => Ok(id),
        Some(_) | None => Err(ServiceError::not_found(kind.as_str(), id)),
    }
}

/// The newest redirection of a resource; `choice` may narrow it to a domain.
///
/// # Errors
/// 404 when the resource has none.
pub async fn newest(
    state: &Redirects,
    actor: &Actor,
    id: ResourceId,
    choice: &DomainChoice,
) -> Result<Redirection, ServiceError> {
    let page = PageRequest { per_page: 1, ..PageRequest::default() };
    let request = ListRequest { page, ..ListRequest::default() };
    let listing =
        Listing { platform_id: Some(id), domain: choice.named.clone(), request, ..Listing::default() };
    let found = list_as(state, actor, Verb::Read, &listing).await?;
    found.items.into_iter().next().ok_or_else(|| RedirectsError::NoRedirection(id).into())
}
