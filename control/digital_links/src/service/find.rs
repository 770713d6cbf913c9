//! The Thng whose Digital Link a path is.

use catalog::store::gtin_aliases;
use digital_link::{DigitalLink, Qualifier};
use kernel::{
    error::ServiceError,
    store::{
        Conn,
        identifiers::{self, Match},
        parse,
    },
};
use shared::{
    id::{AccountId, ProductId, ThngId},
    identifier::Identifier,
};

use crate::store::serials;

/// The Thng of an account by GTIN and serial of a raw path, with its first slash; `None` where it is no Digital Link of a Thng.
/// Other qualifiers may stand between, and the GTIN may be a former one of its product.
pub async fn find_thng(
    conn: &mut Conn,
    account: AccountId,
    path: &str,
) -> Result<Option<ThngId>, ServiceError> {
    let Ok(link) = DigitalLink::parse(path, None) else { return Ok(None) };
    let Some(serial) = link.get(Qualifier::Serial) else { return Ok(None) };
    let named = Identifier { key: "gs1:01".to_owned(), value: link.gtin().to_owned() };
    let product: Option<ProductId> = match identifiers::find(conn, account, "product", &named).await? {
        Match::One(id) => Some(parse("resource_id", &id)?),
        // An ambiguous identifier identifies no product.
        Match::Many(_) => None,
        Match::None => gtin_aliases::find_product(conn, account, link.gtin()).await?,
    };
    let Some(product) = product else { return Ok(None) };
    let found = serials::list(conn, account, &[(product, serial)]).await?;
    Ok(found.first().map(|(_, _, thng)| *thng))
}
