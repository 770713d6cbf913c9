//! Actions as the API returns them: whole, and with the scans by edges.
//!
//! Functions fail when the database does.

use shared::id::{AccountId, ActionId};

use super::Observers;
use crate::{
    domain::{action::Action, action_names::RESULTS, page::Page},
    store::{Conn, Db, StoreError, listing::Selection, merged_lists},
};

/// An action of an account.
pub async fn find(
    observers: &dyn Observers,
    conn: &mut Conn,
    account: AccountId,
    id: ActionId,
) -> Result<Option<Action>, StoreError> {
    let mut found: Vec<Action> =
        merged_lists::find(&*observers.scans().reserved, conn, account, id).await?.into_iter().collect();
    observers.complete(conn, account, &mut found).await?;
    Ok(found.pop())
}

/// The existing ones of some actions of an account, in order of creation.
pub async fn find_many(
    observers: &dyn Observers,
    conn: &mut Conn,
    account: AccountId,
    ids: &[ActionId],
) -> Result<Vec<Action>, StoreError> {
    let mut found = merged_lists::find_many(&*observers.scans().reserved, conn, account, ids).await?;
    observers.complete(conn, account, &mut found).await?;
    Ok(found)
}

/// A page of actions, for a caller that holds no connection.
pub async fn list(
    observers: &dyn Observers,
    db: &Db,
    selection: &Selection<'_>,
) -> Result<Page<Action>, StoreError> {
    let mut page = merged_lists::list_alone(&*observers.scans().pool, db, selection).await?;
    // Only these lack something.
    if page.items.iter().any(|action| action.kind == RESULTS) {
        observers.complete(&mut db.read().await?, selection.account, &mut page.items).await?;
    }
    Ok(page)
}
