//! Digital Links that are still to be made or removed.

use std::str::FromStr;

use kernel::{
    domain::page::Position,
    store::{Conn, StoreError, Tx, execute, fetch_all, fetch_optional, parse},
};
use shared::{
    id::{AccountId, ProductId, ThngId},
    time::UnixMillis,
};

// One that is under way begins again: it may have passed what changed. Before the first place the number has no meaning, and
// shows when it was asked for.
const PUT: &str = "INSERT INTO digital_link_tasks (account_id, product_id, after_at, after_seq, created_at) \
    VALUES ($1, $2, -1, $3, $3) ON CONFLICT (account_id, product_id) DO UPDATE SET after_at = -1, after_seq = $3";
// The same of the Things of a product that did not change: each write of one has the lock, so none of before is waited for. What
// was asked for because the product changed stays new.
const PUT_UNCHANGED: &str = "INSERT INTO digital_link_tasks (account_id, product_id, after_at, after_seq, created_at) \
    VALUES ($1, $2, 0, 0, $3) ON CONFLICT (account_id, product_id) DO UPDATE SET \
    after_at = CASE WHEN digital_link_tasks.after_at < 0 THEN -1 ELSE 0 END, \
    after_seq = CASE WHEN digital_link_tasks.after_at < 0 THEN $3 ELSE 0 END";
// Of whatever account: a worker asks. Those that waited longest come first, and those that failed last.
const NEXT: &str = "SELECT account_id, product_id, after_at, after_seq FROM digital_link_tasks \
    ORDER BY created_at, account_id, product_id LIMIT 1";
const SET: &str =
    "UPDATE digital_link_tasks SET after_at = $3, after_seq = $4 WHERE account_id = $1 AND product_id = $2";
const POSTPONE: &str =
    "UPDATE digital_link_tasks SET created_at = $3 WHERE account_id = $1 AND product_id = $2";
const DELETE: &str = "DELETE FROM digital_link_tasks WHERE account_id = $1 AND product_id = $2";
const PRODUCTS: &str = "SELECT id, created_at, seq FROM products WHERE account_id = $1 AND (created_at, seq) > ($2, $3) \
    ORDER BY created_at, seq LIMIT $4";
const THNGS: &str = "SELECT id, created_at, seq FROM thngs WHERE account_id = $1 AND product_id = $2 \
    AND (created_at, seq) > ($3, $4) ORDER BY created_at, seq LIMIT $5";
const OTHERS: &str = "SELECT 1 FROM digital_link_tasks WHERE account_id = $1 AND product_id <> $2 LIMIT 1";
const HAS_ITEMS: &str = "SELECT 1 FROM products WHERE account_id = $1 AND id = $2 \
    AND doc ->> 'serialMode' IN ('overrides', 'known')";

/// What is left to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Of this account.
    pub account: AccountId,
    /// The Things of this product; `None`: all products.
    pub product: Option<ProductId>,
    /// What comes behind this place, in the order of creation.
    pub after: Position,
}

impl Task {
    /// Whether nothing of it was done since it was asked for, because its product changed.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.after.at.0 < 0
    }
}

/// Asks for all products of an account, or for the Things of one.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    product: Option<ProductId>,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT, account.as_str(), name_of(product), now.0)?;
    Ok(())
}

/// Asks for the Things of a product that has items and did not change.
pub async fn put_unchanged(
    tx: &mut Tx,
    account: AccountId,
    product: ProductId,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT_UNCHANGED, account.as_str(), product.as_str(), now.0)?;
    Ok(())
}

/// The task that is next.
pub async fn find_next(conn: &mut Conn) -> Result<Option<Task>, StoreError> {
    let row: Option<(String, String, i64, i64)> = fetch_optional!(conn, NEXT)?;
    let Some((account, product, at, seq)) = row else { return Ok(None) };
    let product = if product.is_empty() { None } else { Some(parse("product_id", &product)?) };
    let after = Position { at: UnixMillis(at), seq };
    Ok(Some(Task { account: parse("account_id", &account)?, product, after }))
}

/// Notes how far a task is.
pub async fn set_after(tx: &mut Tx, task: &Task, after: Position) -> Result<(), StoreError> {
    execute!(&mut **tx, SET, task.account.as_str(), name_of(task.product), after.at.0, after.seq)?;
    Ok(())
}

/// Puts a task behind all others.
pub async fn postpone(tx: &mut Tx, task: &Task, now: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, POSTPONE, task.account.as_str(), name_of(task.product), now.0)?;
    Ok(())
}

/// Whether its account has other tasks.
pub async fn has_others(conn: &mut Conn, task: &Task) -> Result<bool, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(conn, OTHERS, task.account.as_str(), name_of(task.product))?;
    Ok(row.is_some())
}

/// Forgets a task that is done.
pub async fn delete(tx: &mut Tx, task: &Task) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, task.account.as_str(), name_of(task.product))?;
    Ok(())
}

/// The next products of an account.
pub async fn list_products(
    conn: &mut Conn,
    account: AccountId,
    after: Position,
    limit: u32,
) -> Result<Vec<(ProductId, Position)>, StoreError> {
    let rows: Vec<(String, i64, i64)> =
        fetch_all!(conn, PRODUCTS, account.as_str(), after.at.0, after.seq, i64::from(limit))?;
    rows.into_iter().map(read).collect()
}

/// The next Things of a product.
pub async fn list_thngs(
    conn: &mut Conn,
    account: AccountId,
    product: ProductId,
    after: Position,
    limit: u32,
) -> Result<Vec<(ThngId, Position)>, StoreError> {
    let (at, limit) = (after.at.0, i64::from(limit));
    let rows: Vec<(String, i64, i64)> =
        fetch_all!(conn, THNGS, account.as_str(), product.as_str(), at, after.seq, limit)?;
    rows.into_iter().map(read).collect()
}

/// Whether Things of a product may have Digital Links of their own.
pub async fn has_items(conn: &mut Conn, account: AccountId, product: ProductId) -> Result<bool, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(conn, HAS_ITEMS, account.as_str(), product.as_str())?;
    Ok(row.is_some())
}

fn read<Id: FromStr>((id, at, seq): (String, i64, i64)) -> Result<(Id, Position), StoreError> {
    Ok((parse("id", &id)?, Position { at: UnixMillis(at), seq }))
}

/// All products have no name.
fn name_of(product: Option<ProductId>) -> String {
    product.map(|id| id.to_string()).unwrap_or_default()
}
