//! Updates redirections when their Thng changes: `{productId}` expands to its product, and rules test its name.

use shared::{
    id::{AccountId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{key_of, write_changed};
use crate::{
    domain::page::Position,
    error::ServiceError,
    store::{Tx, log, redirections as table},
};

/// Redirections read at a time.
const STEP: u32 = 100;

/// Writes a Thng's product and name into its redirections, and into the words by which they are found; returns whether one changed.
///
/// Runs in the transaction that changes the Thng, after the change, so edges see both together. A name is read with
/// the redirection, so here it is only recorded that it changed.
pub async fn follow_thng(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    product: Option<ProductId>,
    was_renamed: bool,
    at: UnixMillis,
) -> Result<bool, ServiceError> {
    // Locked before reading: whole rows are written back, and a target could change until then. Also where there is none yet: one
    // may be made meanwhile of what the Thing was before.
    log::lock(tx).await?;
    let platform_id = thng.to_string();
    let (mut after, mut changed) = (None, Vec::new());
    loop {
        let found = table::list_of_resource(tx, account, &platform_id, after, STEP).await?;
        let is_last = found.len() < STEP as usize;
        after = found.last().map(|row| Position { at: row.redirect.created_at, seq: row.seq });
        for mut item in found {
            if was_renamed || item.redirect.product_id != product {
                item.redirect.product_id = product;
                changed.push((key_of(&item.domain, &item.redirect.short_id), item));
            }
        }
        if is_last {
            break;
        }
    }
    if changed.is_empty() {
        return Ok(false);
    }
    write_changed(tx, &mut changed, at).await?;
    Ok(true)
}
