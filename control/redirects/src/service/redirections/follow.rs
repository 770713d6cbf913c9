//! Updates redirections when their Thng changes: `{productId}` expands to its product, and rules test its name.

use shared::{
    id::{AccountId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{key_of, write_changed};
use crate::{
    domain::{
        grant::Limit,
        page::{Page, PageRequest, Position},
    },
    error::ServiceError,
    store::{Tx, log, redirections as table},
};

/// Redirections read at a time.
const STEP: u32 = 100;

/// Writes a Thng's product and name into its redirections; returns whether one changed.
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
    // Locked before reading: whole rows are written back, and a target could change until then.
    log::lock(tx).await?;
    let platform_id = thng.to_string();
    let mut page = PageRequest { per_page: STEP, ..PageRequest::default() };
    let mut changed = Vec::new();
    loop {
        let selection = table::Selection {
            account,
            platform_id: Some(&platform_id),
            domain: None,
            limit: &Limit::Account,
            page,
        };
        let rows = table::list(tx, selection).await?;
        let found = Page::cut(rows, page, |row| Position { at: row.redirect.created_at, seq: row.seq });
        for mut item in found.items {
            if was_renamed || item.redirect.product_id != product {
                item.redirect.product_id = product;
                changed.push((key_of(&item.domain, &item.redirect.short_id), item));
            }
        }
        page.after = found.next;
        if page.after.is_none() {
            break;
        }
    }
    if changed.is_empty() {
        return Ok(false);
    }
    write_changed(tx, &mut changed, at).await?;
    Ok(true)
}
