//! Things by the serials that Digital Links say.

use kernel::store::{Conn, StoreError, dialect, parse};
use shared::id::{AccountId, ProductId, ThngId};

const PG_FIND: &str = "SELECT u.name, u.resource_id FROM unique_identifiers u WHERE u.account_id = $1 AND u.kind = 'thng' \
    AND u.name = ANY($2)";
const SQLITE_FIND: &str = "SELECT u.name, u.resource_id FROM unique_identifiers u WHERE u.account_id = $1 \
    AND u.kind = 'thng' AND u.name IN (SELECT value FROM json_each($2))";

/// The Things of an account with these serials, each of a product; in no order.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    serials: &[(ProductId, &str)],
) -> Result<Vec<(ProductId, String, ThngId)>, StoreError> {
    let names: Vec<String> = serials.iter().map(|(product, serial)| format!("{product}:{serial}")).collect();
    let rows =
        dialect::fetch_in_list!(conn, (String, String), PG_FIND, SQLITE_FIND, [account.as_str()], &names)?;
    rows.into_iter()
        .filter_map(|(name, thng)| {
            let (product, serial) = name.split_once(':')?;
            Some((product.to_owned(), serial.to_owned(), thng))
        })
        .map(|(product, serial, thng)| Ok((parse("name", &product)?, serial, parse("resource_id", &thng)?)))
        .collect()
}
