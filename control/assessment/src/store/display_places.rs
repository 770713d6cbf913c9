//! Where items that are tagged as display pieces are mostly seen.

use shared::id::{AccountId, ThngId};

use super::{Conn, StoreError, Tx, on_db};

const PUT: &str = "INSERT INTO display_places (thng_id, account_id, region) VALUES ($1, $2, $3) \
    ON CONFLICT (thng_id) DO UPDATE SET region = $3";
const DELETE: &str = "DELETE FROM display_places WHERE account_id = $1 AND thng_id = $2";
const COUNT: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM display_places WHERE account_id = $1 AND region = $2 \
    AND thng_id <> $3 LIMIT $4) AS found";

/// Keeps the region of a display piece.
///
/// # Errors
/// The database failed.
pub async fn put(tx: &mut Tx, account: AccountId, thng: ThngId, region: &str) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(PUT)
        .bind(thng.as_str())
        .bind(account.as_str())
        .bind(region)
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Removes what is kept of a Thng; nothing may be.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(thng.as_str())
        .execute(c)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// How many display pieces other than a Thng are mostly seen in a region; at most `most`.
///
/// # Errors
/// The database failed.
pub async fn count(
    conn: &mut Conn,
    account: AccountId,
    region: &str,
    except: ThngId,
    most: u32,
) -> Result<u64, StoreError> {
    let count: i64 = on_db!(conn, |c| sqlx::query_scalar(COUNT)
        .bind(account.as_str())
        .bind(region)
        .bind(except.as_str())
        .bind(i64::from(most))
        .fetch_one(c)
        .await)?;
    Ok(u64::try_from(count).unwrap_or_default())
}
