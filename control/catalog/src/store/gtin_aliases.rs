//! Former GTINs of products: one leads to one product of an account.

use shared::id::{AccountId, ProductId};

use super::{Conn, StoreError, Tx, dialect, execute, fetch_optional, parse};

const PG_OF_OTHERS: &str = "SELECT gtin, product_id FROM gtin_aliases WHERE account_id = $1 AND product_id <> $2 \
    AND gtin = ANY($3) ORDER BY gtin LIMIT 1";
const SQLITE_OF_OTHERS: &str = "SELECT gtin, product_id FROM gtin_aliases WHERE account_id = $1 AND product_id <> $2 \
    AND gtin IN (SELECT value FROM json_each($3)) ORDER BY gtin LIMIT 1";
const PG_HELD: &str = "SELECT name, resource_id FROM unique_identifiers WHERE account_id = $1 AND kind = 'product' \
    AND resource_id <> $2 AND name = ANY($3) ORDER BY name LIMIT 1";
const SQLITE_HELD: &str = "SELECT name, resource_id FROM unique_identifiers WHERE account_id = $1 AND kind = 'product' \
    AND resource_id <> $2 AND name IN (SELECT value FROM json_each($3)) ORDER BY name LIMIT 1";
const PRODUCT: &str = "SELECT product_id FROM gtin_aliases WHERE account_id = $1 AND gtin = $2";
const DELETE: &str = "DELETE FROM gtin_aliases WHERE account_id = $1 AND product_id = $2";
const INSERT: &str = "INSERT INTO gtin_aliases (account_id, gtin, product_id) VALUES ($1, $2, $3) \
    ON CONFLICT (account_id, gtin) DO NOTHING";

/// Refuses a GTIN that another product had, and keeps the former GTINs of a product.
///
/// # Errors
/// [`StoreError::Taken`] when another product has or had one of them.
pub async fn replace(
    tx: &mut Tx,
    account: AccountId,
    product: ProductId,
    gtin: Option<&str>,
    aliases: &[String],
) -> Result<(), StoreError> {
    let all: Vec<String> = gtin.map(str::to_owned).into_iter().chain(aliases.iter().cloned()).collect();
    let of_others = find(tx, [PG_OF_OTHERS, SQLITE_OF_OTHERS], (account, product), &all).await?;
    let held = match of_others {
        None => find(tx, [PG_HELD, SQLITE_HELD], (account, product), aliases).await?,
        found => found,
    };
    if let Some((gtin, other)) = held {
        return Err(taken(&gtin, &other));
    }
    delete(tx, account, product).await?;
    for alias in aliases {
        // Of two at once the second waits, and finds the row of the first.
        if execute!(&mut **tx, INSERT, account.as_str(), alias, product.as_str())? != 1 {
            return Err(taken(alias, "of another request"));
        }
    }
    Ok(())
}

/// The product that had a GTIN.
pub async fn find_product(
    conn: &mut Conn,
    account: AccountId,
    gtin: &str,
) -> Result<Option<ProductId>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, PRODUCT, account.as_str(), gtin)?;
    row.map(|(product,)| parse("product_id", &product)).transpose()
}

/// Forgets the former GTINs of a product.
pub async fn delete(tx: &mut Tx, account: AccountId, product: ProductId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), product.as_str())?;
    Ok(())
}

fn taken(gtin: &str, other: &str) -> StoreError {
    StoreError::Taken(format!("gtinAliases: the GTIN {gtin} leads to the product {other} already."))
}

async fn find(
    conn: &mut Conn,
    [pg, sqlite]: [&'static str; 2],
    (account, product): (AccountId, ProductId),
    gtins: &[String],
) -> Result<Option<(String, String)>, StoreError> {
    if gtins.is_empty() {
        return Ok(None);
    }
    let (account, product) = (account.as_str(), product.as_str());
    let rows = dialect::fetch_in_list!(conn, (String, String), pg, sqlite, [account, product], gtins)?;
    Ok(rows.into_iter().next())
}
