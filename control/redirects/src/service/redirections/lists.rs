//! Redirections that are read: one, or a list by conditions and words.

use shared::id::{AccountId, ProductId, ResourceId};

use super::{
    DomainChoice,
    load::{hide_authors, is_seen, load, mark_taken_down},
    resolve_domain, shown_pages,
};
use crate::{
    domain::{
        access::Actor,
        grant::Grant,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Redirections, Verb},
        redirection::Redirection,
        words::WordQuery,
    },
    error::ServiceError,
    service::{Redirects, access::require},
    store::{Conn, listing::Selection, redirection_lists as lists},
};

/// A redirection of the account.
///
/// # Errors
/// 404 when it is absent, deleted, or another account's.
pub async fn find(
    state: &Redirects,
    actor: &Actor,
    choice: DomainChoice,
    short_id: &str,
) -> Result<Redirection, ServiceError> {
    let grant = require(actor, Verb::Read, Redirections)?;
    let mut conn = state.db.read().await?;
    let domain = resolve_domain(&mut conn, actor.account, &choice, None).await?;
    let mut found = load(&mut conn, actor.account, &grant, &domain, short_id).await?;
    mark_taken_down(&mut conn, std::slice::from_mut(&mut found)).await?;
    hide_authors(&grant, &mut found);
    Ok(found)
}

/// The logo of the pages that are shown on the domain of a redirection.
pub async fn logo(state: &Redirects, item: &Redirection) -> Result<Option<Box<str>>, ServiceError> {
    let mut conn = state.db.read().await?;
    Ok(shown_pages(&mut conn, item.account, &item.domain).await?.logo)
}

/// Which redirections to list.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Only those of a resource.
    pub platform_id: Option<ResourceId>,
    /// Only those of a short domain of the account.
    pub domain: Option<String>,
    /// Only those of a product and its Thngs.
    pub product: Option<ProductId>,
    /// Only those with these words.
    pub words: WordQuery,
    /// Which part of the list, and what else a redirection must meet.
    pub request: ListRequest,
}

/// Redirections of the account in order of creation.
///
/// # Errors
/// 400 for a domain that is not the account's.
pub async fn list(
    state: &Redirects,
    actor: &Actor,
    listing: &Listing,
) -> Result<Page<Redirection>, ServiceError> {
    list_as(state, actor, Verb::List, listing).await
}

pub(super) async fn list_as(
    state: &Redirects,
    actor: &Actor,
    verb: Verb,
    listing: &Listing,
) -> Result<Page<Redirection>, ServiceError> {
    let grant = require(actor, verb, Redirections)?;
    let mut conn = state.db.read().await?;
    let mut page = stored(&mut conn, actor.account, &grant, listing).await?;
    mark_taken_down(&mut conn, &mut page.items).await?;
    page.items.iter_mut().for_each(|item| hide_authors(&grant, item));
    Ok(page)
}

/// The links of a list that the actor may change, as they are stored.
///
/// # Errors
/// 400 for a domain that is not the account's.
pub async fn matching(
    conn: &mut Conn,
    actor: &Actor,
    listing: &Listing,
) -> Result<Page<Redirection>, ServiceError> {
    let grant = require(actor, Verb::Update, Redirections)?;
    stored(conn, actor.account, &grant, listing).await
}

async fn stored(
    conn: &mut Conn,
    account: AccountId,
    grant: &Grant,
    listing: &Listing,
) -> Result<Page<Redirection>, ServiceError> {
    let domain = match &listing.domain {
        None => None,
        Some(named) => {
            let choice = DomainChoice { named: Some(named.clone()), host: None };
            Some(resolve_domain(conn, account, &choice, None).await?)
        }
    };
    let within: Vec<(&'static str, &str)> = [
        listing.platform_id.as_ref().map(|id| ("platformId", id.as_str())),
        listing.product.as_ref().map(|id| ("product", id.as_str())),
        domain.as_ref().map(|domain| ("shortDomain", domain.host.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect();
    let selection = Selection { account, limit: grant.limit(), request: &listing.request, within: &within };
    let mut page = lists::list(conn, listing.words.clone(), &selection).await?;
    page.items.retain(|item| is_seen(grant, item));
    Ok(page)
}
