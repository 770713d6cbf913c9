//! Identifiers that must be unique: a Thng's serial within its product, a product's GTIN in its account.
//!
//! The write that sets one claims it; the primary key decides between two at once. Rows from before the table existed
//! have no claim, so a claim also searches the identifiers themselves.

use shared::{gtin, id::AccountId};

use super::{Conn, StoreError, Tx, execute, fetch_optional};

/// An identifier that only one resource may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unique {
    /// The `gs1:21` of a Thng of a product.
    Serial {
        /// The product.
        product: String,
        /// The serial.
        serial: String,
    },
    /// The `gs1:01` of a product.
    Gtin(String),
}

const HELD: &str = "SELECT name FROM unique_identifiers WHERE resource_id = $1";
const CLAIM: &str = "INSERT INTO unique_identifiers (account_id, kind, name, resource_id) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (account_id, kind, name) DO NOTHING";
const RELEASE: &str = "DELETE FROM unique_identifiers WHERE resource_id = $1";
const RELEASE_NAME: &str = "DELETE FROM unique_identifiers WHERE account_id = $1 AND kind = $2 AND name = $3";
const OTHER_SERIAL: &str = "SELECT t.id FROM identifiers i JOIN thngs t ON t.id = i.resource_id \
    WHERE i.account_id = $1 AND i.kind = 'thng' AND i.key = 'gs1:21' AND i.value = $2 AND t.product_id = $3 \
    AND t.id <> $4 ORDER BY t.id LIMIT 1";
const OTHER_GTIN: &str = "SELECT resource_id FROM identifiers WHERE account_id = $1 AND kind = 'product' \
    AND key = 'gs1:01' AND value = $2 AND resource_id <> $3 ORDER BY resource_id LIMIT 1";

/// Tries of a claim: one more than a claim that another release left behind needs.
const TRIES: usize = 3;

impl Unique {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Serial { .. } => "thng",
            Self::Gtin(_) => "product",
        }
    }

    /// What is claimed.
    pub fn name(&self) -> String {
        match self {
            Self::Serial { product, serial } => format!("{product}:{serial}"),
            Self::Gtin(gtin) => gtin::canonical(gtin),
        }
    }

    fn taken_by(&self, other: &str) -> StoreError {
        StoreError::Taken(match self {
            Self::Serial { product, serial } => {
                format!(
                    "identifiers: gs1:21:{serial} of the product {product} belongs to the thng {other} already."
                )
            }
            Self::Gtin(gtin) => format!("identifiers: gs1:01:{gtin} belongs to the product {other} already."),
        })
    }
}

/// Claims a unique identifier for a resource that holds none.
///
/// # Errors
/// [`StoreError::Taken`] when another has it, or the database failed.
pub async fn claim(
    tx: &mut Tx,
    account: AccountId,
    resource: &str,
    wanted: &Unique,
) -> Result<(), StoreError> {
    let name = wanted.name();
    for _ in 0..TRIES {
        if let Some(other) = find_other(tx, account, wanted, resource).await? {
            return Err(wanted.taken_by(&other));
        }
        // Waits for another that claims the same at this moment.
        let is_claimed = execute!(&mut **tx, CLAIM, account.as_str(), wanted.kind(), &name, resource)? == 1;
        if is_claimed {
            return Ok(());
        }
        if let Some(other) = find_other(tx, account, wanted, resource).await? {
            return Err(wanted.taken_by(&other));
        }
        // Left by a release without claims, which deleted or moved the resource.
        execute!(&mut **tx, RELEASE_NAME, account.as_str(), wanted.kind(), &name)?;
    }
    Err(StoreError::Busy)
}

/// Gives up the unique identifier of a resource.
pub async fn release(tx: &mut Tx, resource: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, RELEASE, resource)?;
    Ok(())
}

/// The name by which a resource holds its unique identifier.
pub async fn find_held(conn: &mut Conn, resource: &str) -> Result<Option<String>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, HELD, resource)?;
    Ok(row.map(|(name,)| name))
}

async fn find_other(
    tx: &mut Tx,
    account: AccountId,
    wanted: &Unique,
    resource: &str,
) -> Result<Option<String>, StoreError> {
    match wanted {
        Unique::Serial { product, serial } => {
            let row: Option<(String,)> =
                fetch_optional!(&mut **tx, OTHER_SERIAL, account.as_str(), serial, product, resource)?;
            Ok(row.map(|(id,)| id))
        }
        Unique::Gtin(gtin) => {
            for spelling in gtin::spellings(gtin) {
                let row: Option<(String,)> =
                    fetch_optional!(&mut **tx, OTHER_GTIN, account.as_str(), &spelling, resource)?;
                if let Some((id,)) = row {
                    return Ok(Some(id));
                }
            }
            Ok(None)
        }
    }
}
