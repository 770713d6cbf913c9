//! What a code of a link says where it is to be a GS1 Digital Link.

use digital_link::{DigitalLink, Qualifier};
use shared::redirect::RedirectKey;

use crate::{
    domain::{
        access::Actor,
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
/// 422: the domain resolves no Digital Links, the product has no GTIN, or the Thng no serial that one can say.
pub async fn digital_link(
    state: &Redirects,
    actor: &Actor,
    item: &Redirection,
) -> Result<String, ServiceError> {
    let _ = require(actor, Verb::Read, Redirections)?;
    let mut conn = state.db.read().await?;
    Ok(said(&mut conn, item).await?.map_err(RedirectsError::NoDigitalLink)?)
}

/// The same for an edge that draws the code of a link of any account: its URL, or why it has none.
pub async fn digital_link_at(
    conn: &mut Conn,
    key: &RedirectKey,
) -> Result<Result<String, &'static str>, StoreError> {
    match redirections::find_any(conn, &key.domain, &key.folded).await? {
        Some(item) => said(conn, &item).await,
        None => Ok(Err("there is no such link")),
    }
}

async fn said(conn: &mut Conn, item: &Redirection) -> Result<Result<String, &'static str>, StoreError> {
    if item.redirect.short_id.is_digital_link() {
        return Ok(Ok(item.short_url()));
    }
    if !item.domain.digital_links {
        return Ok(Err("its short domain does not have digitalLinks"));
    }
    let product: Option<Product> = match item.redirect.product_id {
        Some(id) => documents::find(conn, item.account, id).await?,
        None => None,
    };
    let thng: Option<Thng> = match item.redirect.thng_id {
        Some(id) => documents::find(conn, item.account, id).await?,
        None => None,
    };
    Ok(path(product.as_ref(), item.redirect.thng_id.map(|_| thng.as_ref()))
        .map(|path| format!("{}://{}{path}", item.domain.scheme.as_str(), item.domain.host)))
}

/// The path; `thng` is `Some` for the link of a Thng.
fn path(product: Option<&Product>, thng: Option<Option<&Thng>>) -> Result<String, &'static str> {
    let gtin = product.and_then(Product::gtin).ok_or("it has no product with a GTIN")?;
    let mut link = DigitalLink::new(shared::gtin::canonical(gtin)).map_err(|_| "its GTIN is of nobody")?;
    if let Some(thng) = thng {
        let serial = thng.and_then(Thng::serial).ok_or("its Thng has no gs1:21")?;
        link = link.with(Qualifier::Serial, serial).map_err(|_| "the gs1:21 of its Thng fits in none")?;
    }
    Ok(link.path())
}
