//! The GS1 Digital Link in the code of a link.

use shared::redirect::RedirectKey;

use crate::{
    domain::{
        access::Actor,
        digital_links::url_in_code,
        permission::{Subject::Redirections, Verb},
        redirection::Redirection,
        resource::{Product, Thng},
    },
    error::{RedirectsError, ServiceError},
    service::{Redirects, access::require},
    store::{Conn, StoreError, documents, redirections},
};

/// The Digital Link of the resource of a link, on the domain of the link.
///
/// # Errors
/// 422: the domain resolves no Digital Links, the product has no GTIN, or the Thng no serial that fits into a URI.
pub async fn digital_link(
    state: &Redirects,
    actor: &Actor,
    item: &Redirection,
) -> Result<String, ServiceError> {
    let _ = require(actor, Verb::Read, Redirections)?;
    let mut conn = state.db.read().await?;
    Ok(url_of(&mut conn, item).await?.map_err(RedirectsError::NoDigitalLink)?)
}

/// The same for an edge that draws the code of a link of any account: its URL, or why it has none.
pub async fn digital_link_at(
    conn: &mut Conn,
    key: &RedirectKey,
) -> Result<Result<String, &'static str>, StoreError> {
    match redirections::find_any(conn, &key.domain, &key.folded).await? {
        Some(item) => url_of(conn, &item).await,
        None => Ok(Err("there is no such link")),
    }
}

async fn url_of(conn: &mut Conn, item: &Redirection) -> Result<Result<String, &'static str>, StoreError> {
    let Redirection { domain, redirect, account, .. } = item;
    let product: Option<Product> = match redirect.product_id {
        Some(id) => documents::find(conn, *account, id).await?,
        None => None,
    };
    let thng: Option<Thng> = match redirect.thng_id {
        Some(id) => documents::find(conn, *account, id).await?,
        None => None,
    };
    let serial = redirect.thng_id.map(|_| thng.as_ref().and_then(Thng::serial));
    Ok(url_in_code(domain, &redirect.short_id, product.as_ref().and_then(Product::gtin), serial))
}
