//! Redirections follow their Thng: its product is what `{productId}` expands to, its name is what rules ask for.

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

/// Writes a Thng's product and name into its redirections; gives whether one changed.
///
/// Runs in the transaction that changes the Thng, behind the change: edges hear of it once both stand. A name
/// is read with the redirection, so here it is told that it was changed.
pub(crate) async fn follow_thng(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    product: Option<ProductId>,
    was_renamed: bool,
    at: UnixMillis,
) -> Result<bool, ServiceError> {
    // Before the look: whole rows are written back, and a target may change until then.
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
