//! Looks up the resources that a redirection may belong to, by id.

use shared::{
    id::{AccountId, CollectionId, PlaceId, ProductId, ResourceId, ThngId},
    redirect::ResourceType,
    standing::Standing,
};

use super::{Conn, StoreError, dialect, parse, standing::standing};

macro_rules! among {
    ($ids:literal) => {
        concat!(
            "SELECT 'thng', id, product_id, name, commission_state, verdict FROM thngs WHERE account_id = $1 AND id ",
            $ids,
            " UNION ALL SELECT 'product', id, NULL, NULL, NULL, NULL FROM products WHERE account_id = $1 AND id ",
            $ids,
            " UNION ALL SELECT 'collection', id, NULL, NULL, NULL, NULL FROM collections WHERE account_id = $1 AND id ",
            $ids,
            " UNION ALL SELECT 'place', id, NULL, NULL, NULL, NULL FROM places WHERE account_id = $1 AND id ",
            $ids
        )
    };
}

const PG_AMONG: &str = among!("= ANY($2)");
const SQLITE_AMONG: &str = among!("IN (SELECT value FROM json_each($2))");

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

/// Kind and id, and of a Thng its product, name, state and verdict.
type Row = (String, String, Option<String>, Option<String>, Option<String>, Option<String>);

/// Those of some ids that are Thngs, products, collections or places of the account.
pub async fn list(conn: &mut Conn, account: AccountId, ids: &[String]) -> Result<Vec<Resource>, StoreError> {
    let account = account.as_str();
    let rows = dialect::fetch_by_keys!(conn, Row, PG_AMONG, SQLITE_AMONG, [account], ids)?;
    rows.into_iter().map(resource).collect()
}

fn resource((kind, id, product, name, commission, verdict): Row) -> Result<Resource, StoreError> {
    let kind: ResourceType = parse("kind", &kind)?;
    let plain = |id: ResourceId| Resource {
        id,
        kind,
        thng: None,
        thng_name: None,
        standing: Standing::default(),
        product: None,
    };
    Ok(match kind {
        ResourceType::Thng => {
            let thng: ThngId = parse("id", &id)?;
            Resource {
                thng: Some(thng),
                thng_name: name.map(Into::into),
                standing: standing(commission.as_deref(), verdict.as_deref())?,
                product: product.as_deref().map(|id| parse("product_id", id)).transpose()?,
                ..plain(thng.into())
            }
        }
        ResourceType::Product => {
            let product: ProductId = parse("id", &id)?;
            Resource { product: Some(product), ..plain(product.into()) }
        }
        ResourceType::Collection => plain(parse::<CollectionId>("id", &id)?.into()),
        ResourceType::Place => plain(parse::<PlaceId>("id", &id)?.into()),
    })
}
