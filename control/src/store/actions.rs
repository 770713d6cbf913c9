//! Actions: what happened to a Thng or product.

use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{StoreError, Tx, dialect, on_db};

const DELETE: &str = "DELETE FROM actions WHERE account_id = $1 AND id = $2";

/// An action to be added.
#[derive(Debug, Clone)]
pub struct NewAction {
    /// Its id, made by the caller so that a repeat makes the same one.
    pub id: ActionId,
    /// The account.
    pub account: AccountId,
    /// Its type, such as `implicitScans`.
    pub kind: String,
    /// The Thng it is about.
    pub thng: Option<ThngId>,
    /// The product it is about.
    pub product: Option<ProductId>,
    /// When it happened.
    pub timestamp: UnixMillis,
    /// The members that no query goes by: `customFields`, `tags`, `context`, `location`, `locationSource`, …
    pub doc: Value,
}

/// Adds actions, all created at one moment.
///
/// # Errors
/// [`StoreError::Unique`] when an id exists; then none is added.
pub async fn insert(tx: &mut Tx, created_at: UnixMillis, actions: &[NewAction]) -> Result<(), StoreError> {
    dialect::insert_actions(tx, created_at.0, actions).await
}

/// Removes an action; gives whether it was there.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: ActionId) -> Result<bool, StoreError> {
    let gone = on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(gone == 1)
}
