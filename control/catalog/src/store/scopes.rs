//! Reads the scopes of resources that a redirection may belong to, by id.

use std::collections::HashMap;

use shared::id::AccountId;
use sqlx::types::Json;

use super::{Conn, StoreError, dialect};
use crate::domain::scopes::Scopes;

const PG_THNGS: &str = "SELECT id, doc -> 'scopes' FROM thngs WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_THNGS: &str = "SELECT id, doc -> '$.scopes' FROM thngs WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";
const PG_PRODUCTS: &str = "SELECT id, doc -> 'scopes' FROM products WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_PRODUCTS: &str = "SELECT id, doc -> '$.scopes' FROM products WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";

const PG_COLLECTIONS: &str =
    "SELECT id, doc -> 'scopes' FROM collections WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_COLLECTIONS: &str = "SELECT id, doc -> '$.scopes' FROM collections WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";
const PG_PLACES: &str = "SELECT id, doc -> 'scopes' FROM places WHERE account_id = $1 AND id = ANY($2)";
const SQLITE_PLACES: &str = "SELECT id, doc -> '$.scopes' FROM places WHERE account_id = $1 \
    AND id IN (SELECT value FROM json_each($2))";

type Row = (String, Option<Json<Scopes>>);

/// The scopes of those of some ids that are Thngs, products, collections or places of the account; none counts
/// as empty.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<HashMap<String, Scopes>, StoreError> {
    let account = account.as_str();
    let thngs = dialect::fetch_in_list!(conn, Row, PG_THNGS, SQLITE_THNGS, [account], ids)?;
    let products = dialect::fetch_in_list!(conn, Row, PG_PRODUCTS, SQLITE_PRODUCTS, [account], ids)?;
    let mut all = thngs;
    all.extend(products);
    if all.len() < ids.len() {
        all.extend(dialect::fetch_in_list!(conn, Row, PG_COLLECTIONS, SQLITE_COLLECTIONS, [account], ids)?);
        all.extend(dialect::fetch_in_list!(conn, Row, PG_PLACES, SQLITE_PLACES, [account], ids)?);
    }
    Ok(all.into_iter().map(|(id, scopes)| (id, scopes.map(|scopes| scopes.0).unwrap_or_default())).collect())
}
