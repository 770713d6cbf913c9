//! What edges counted of links with a limit: a part of the availability of each.

use shared::{availability::Availability, redirect::RedirectKey};
use sqlx::types::Json;

use super::{StoreError, Tx, execute};

const UPDATE: &str =
    "UPDATE redirections SET availability = $3 WHERE domain = $1 AND folded = $2 AND deleted_rev IS NULL";

/// Replaces the availability of a link and nothing else; its revision stays, because nobody changed the link.
pub async fn update(tx: &mut Tx, key: &RedirectKey, availability: &Availability) -> Result<(), StoreError> {
    execute!(&mut **tx, UPDATE, &*key.domain, &*key.folded, Json(availability))?;
    Ok(())
}
