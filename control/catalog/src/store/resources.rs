//! Looks up the resources that a redirection may belong to, by id.

use shared::{
    id::{AccountId, CollectionId, PlaceId, ProductId, ResourceId, ThngId},
    redirect::ResourceType,
    standing::Standing,
};

use super::{Conn, StoreError, dialect, parse, standing::standing};

const PG_THNGS: &str = "SELECT id, product_id, name, commission_state, verdict FROM thngs WHERE account_id = $1 \
    AND id = ANY($2)";
const SQLITE_THNGS: &str = "SELECT id, product_id, name, commission_state, verdict FROM thngs WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";
const PG_PRODUCTS: &str = "SELECT id FROM products WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_PRODUCTS: &str =
    "SELECT id FROM products WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2))";
const PG_COLLECTIONS: &str = "SELECT id FROM collections WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_COLLECTIONS: &str =
    "SELECT id FROM collections WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2))";
const PG_PLACES: &str = "SELECT id FROM places WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_PLACES: &str =
    "SELECT id FROM places WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2))";

/// A resource that exists in the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its id.
    pub id: ResourceId,
    /// Its kind.
    pub kind: ResourceType,
    /// The Thng, if it is one.
    pub thng: Option<ThngId>,
    /// The Thng's name.
    pub thng_name: Option<Box<str>>,
    /// How the Thng stands.
    pub standing: Standing,
    /// The product, or the Thng's product.
    pub product: Option<ProductId>,
}

type ThngRow = (String, Option<String>, String, Option<String>, Option<String>);

/// Those of some ids that are Thngs, products, collections or places of the account.
pub async fn list(conn: &mut Conn, account: AccountId, ids: &[String]) -> Result<Vec<Resource>, StoreError> {
    let account = account.as_str();
    let thngs = dialect::fetch_by_keys!(conn, ThngRow, PG_THNGS, SQLITE_THNGS, [account], ids)?;
    let mut found = Vec::with_capacity(ids.len());
    for (id, product, name, commission, verdict) in thngs {
        let thng: ThngId = parse("id", &id)?;
        let product = product.as_deref().map(|id| parse("product_id", id)).transpose()?;
        found.push(Resource {
            id: thng.into(),
            kind: ResourceType::Thng,
            thng: Some(thng),
            thng_name: Some(name.into()),
            standing: standing(commission.as_deref(), verdict.as_deref())?,
            product,
        });
    }
    if found.len() < ids.len() {
        let products =
            dialect::fetch_by_keys!(conn, (String,), PG_PRODUCTS, SQLITE_PRODUCTS, [account], ids)?;
        for (id,) in products {
            let product: ProductId = parse("id", &id)?;
            found.push(Resource {
                id: product.into(),
                kind: ResourceType::Product,
                thng: None,
                thng_name: None,
                standing: Standing::default(),
                product: Some(product),
            });
        }
    }
    if found.len() < ids.len() {
        let rows =
            dialect::fetch_by_keys!(conn, (String,), PG_COLLECTIONS, SQLITE_COLLECTIONS, [account], ids)?;
        for (id,) in rows {
            let id: CollectionId = parse("id", &id)?;
            let kind = ResourceType::Collection;
            let standing = Standing::default();
            found.push(Resource {
                id: id.into(),
                kind,
                thng: None,
                product: None,
                thng_name: None,
                standing,
            });
        }
    }
    if found.len() < ids.len() {
        let rows = dialect::fetch_by_keys!(conn, (String,), PG_PLACES, SQLITE_PLACES, [account], ids)?;
        for (id,) in rows {
            let id: PlaceId = parse("id", &id)?;
            found.push(Resource {
                id: id.into(),
                kind: ResourceType::Place,
                thng: None,
                product: None,
                thng_name: None,
                standing: Standing::default(),
            });
        }
    }
    Ok(found)
}
