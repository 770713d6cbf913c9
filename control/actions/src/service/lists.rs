//! Actions as the API returns them: whole.
//!
//! Functions fail when the database does.

use shared::id::{AccountId, ActionId};

use super::Observers;
use crate::{
    domain::{action::Action, page::Page},
    store::{Conn, StoreError, action_lists, listing::Selection},
};

/// An action of an account.
pub async fn find(
    observers: &dyn Observers,
    conn: &mut Conn,
    account: AccountId,
    id: ActionId,
) -> Result<Option<Action>, StoreError> {
    let mut found: Vec<Action> = action_lists::find(conn, account, id).await?.into_iter().collect();
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
    let mut found = action_lists::find_many(conn, account, ids).await?;
    observers.complete(conn, account, &mut found).await?;
    Ok(found)
}

/// A page of actions.
pub async fn list(
    observers: &dyn Observers,
    conn: &mut Conn,
    selection: &Selection<'_>,
) -> Result<Page<Action>, StoreError> {
    let mut page = action_lists::list(conn, selection).await?;
    observers.complete(conn, selection.account, &mut page.items).await?;
    Ok(page)
}
