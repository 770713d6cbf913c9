//! Locks on the Thngs and products whose properties are written.

use shared::id::AccountId;
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect, fetch_optional};
use crate::domain::{property::Owner, scopes::Scopes};

const PG_SHARE_THNG: &str = "SELECT id FROM thngs WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const PG_LOCK_THNG: &str = "SELECT id FROM thngs WHERE account_id = $1 AND id = $2 FOR UPDATE";
const FIND_THNG: &str = "SELECT id FROM thngs WHERE account_id = $1 AND id = $2";
const PG_SHARE_PRODUCT: &str = "SELECT id FROM products WHERE account_id = $1 AND id = $2 FOR KEY SHARE";
const PG_LOCK_PRODUCT: &str = "SELECT id FROM products WHERE account_id = $1 AND id = $2 FOR UPDATE";
const FIND_PRODUCT: &str = "SELECT id FROM products WHERE account_id = $1 AND id = $2";

const THNG_SCOPES: &str = "SELECT doc -> 'scopes' FROM thngs WHERE account_id = $1 AND id = $2";
const PRODUCT_SCOPES: &str = "SELECT doc -> 'scopes' FROM products WHERE account_id = $1 AND id = $2";

/// How long a Thng or product is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It may not go before the transaction ends; others write its properties too.
    Shared,
    /// Exclusively: no other transaction writes its properties until this one ends.
    Alone,
}

/// Locks a Thng or product of an account; returns whether it exists.
pub async fn hold(
    tx: &mut Tx,
    account: AccountId,
    owner: Owner,
    id: &str,
    hold: Hold,
) -> Result<bool, StoreError> {
    let (pg, sqlite) = match (owner, hold) {
        (Owner::Thng, Hold::Shared) => (PG_SHARE_THNG, FIND_THNG),
        (Owner::Thng, Hold::Alone) => (PG_LOCK_THNG, FIND_THNG),
        (Owner::Product, Hold::Shared) => (PG_SHARE_PRODUCT, FIND_PRODUCT),
        (Owner::Product, Hold::Alone) => (PG_LOCK_PRODUCT, FIND_PRODUCT),
    };
    let sql = dialect::pick(tx, pg, sqlite);
    let row: Option<(String,)> = fetch_optional!(&mut **tx, sql, account.as_str(), id)?;
    Ok(row.is_some())
}

/// The scopes of a Thng or product; `None` when it does not exist.
pub async fn find_scopes(
    conn: &mut Conn,
    account: AccountId,
    owner: Owner,
    id: &str,
) -> Result<Option<Option<Scopes>>, StoreError> {
    let sql = match owner {
        Owner::Thng => THNG_SCOPES,
        Owner::Product => PRODUCT_SCOPES,
    };
    let row: Option<(Option<Json<Scopes>>,)> = fetch_optional!(conn, sql, account.as_str(), id)?;
    Ok(row.map(|(scopes,)| scopes.map(|scopes| scopes.0)))
}
