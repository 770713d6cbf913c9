//! The next number that orders give as a serial of a product.

use kernel::{
    on_db,
    store::{Conn, StoreError, Tx},
};
use shared::id::{AccountId, ProductId};

// The row is locked until the commit: of two orders one gets the numbers behind the other's.
const TAKE_NEXT: &str = "INSERT INTO print_serials (account_id, product_id, prefix, next_number) VALUES ($1, $2, $3, 1 + $4) \
    ON CONFLICT (account_id, product_id, prefix) DO UPDATE SET next_number = print_serials.next_number + $4 \
    RETURNING next_number";
const TAKE: &str = "INSERT INTO print_serials (account_id, product_id, prefix, next_number) VALUES ($1, $2, $3, CAST($5 AS BIGINT) + $4) \
    ON CONFLICT (account_id, product_id, prefix) DO UPDATE SET next_number = CAST($5 AS BIGINT) + $4 \
    WHERE print_serials.next_number <= $5 RETURNING next_number";
const NEXT: &str =
    "SELECT next_number FROM print_serials WHERE account_id = $1 AND product_id = $2 AND prefix = $3";

/// Takes `count` numbers from `start` on, or without one from the next number on; returns the first. `Err` is the next number
/// where `start` is below it.
pub async fn take(
    tx: &mut Tx,
    account: AccountId,
    (product, prefix): (ProductId, &str),
    (start, count): (Option<u64>, u64),
) -> Result<Result<u64, u64>, StoreError> {
    let count = count.cast_signed();
    let next: Option<i64> = match start {
        None => on_db!(&mut **tx, |c| sqlx::query_scalar(TAKE_NEXT)
            .bind(account.as_str())
            .bind(product.as_str())
            .bind(prefix)
            .bind(count)
            .fetch_optional(c)
            .await)?,
        Some(start) => on_db!(&mut **tx, |c| sqlx::query_scalar(TAKE)
            .bind(account.as_str())
            .bind(product.as_str())
            .bind(prefix)
            .bind(count)
            .bind(start.cast_signed())
            .fetch_optional(c)
            .await)?,
    };
    match next {
        Some(next) => Ok(Ok(next.saturating_sub(count).unsigned_abs())),
        None => Ok(Err(find_next(tx, account, product, prefix).await?)),
    }
}

async fn find_next(
    conn: &mut Conn,
    account: AccountId,
    product: ProductId,
    prefix: &str,
) -> Result<u64, StoreError> {
    let next: Option<i64> = on_db!(conn, |c| sqlx::query_scalar(NEXT)
        .bind(account.as_str())
        .bind(product.as_str())
        .bind(prefix)
        .fetch_optional(c)
        .await)?;
    Ok(next.unwrap_or(1).unsigned_abs())
}
