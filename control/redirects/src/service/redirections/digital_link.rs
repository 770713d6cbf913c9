//! What a code of a link says where it is to be a GS1 Digital Link.

use digital_link::{DigitalLink, Qualifier};

use crate::{
    domain::{
        access::Actor,
        permission::{Subject::Redirections, Verb},
        redirection::Redirection,
        resource::{Product, Thng},
    },
    error::{RedirectsError, ServiceError},
    service::{Redirects, access::require},
    store::documents,
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
    if item.redirect.short_id.is_digital_link() {
        return Ok(item.short_url());
    }
    let none = |why: &'static str| RedirectsError::NoDigitalLink(why);
    let mut conn = state.db.read().await?;
    if !item.domain.digital_links {
        return Err(none("its short domain does not have digitalLinks").into());
    }
    let product: Option<Product> = match item.redirect.product_id {
        Some(id) => documents::find(&mut conn, actor.account, id).await?,
        None => None,
    };
    let gtin =
        product.as_ref().and_then(Product::gtin).ok_or_else(|| none("it has no product with a GTIN"))?;
    let mut link =
        DigitalLink::new(shared::gtin::canonical(gtin)).map_err(|_| none("its GTIN is of nobody"))?;
    if let Some(id) = item.redirect.thng_id {
        let thng: Option<Thng> = documents::find(&mut conn, actor.account, id).await?;
        let serial = thng.as_ref().and_then(Thng::serial).map(str::to_owned);
        let serial = serial.ok_or_else(|| none("its Thng has no gs1:21"))?;
        link =
            link.with(Qualifier::Serial, serial).map_err(|_| none("the gs1:21 of its Thng fits in none"))?;
    }
    Ok(format!("{}://{}{}", item.domain.scheme.as_str(), item.domain.host, link.path()))
}
