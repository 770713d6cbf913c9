//! Where items that are tagged as display pieces are mostly seen. The region is empty where that is not known yet.

use shared::id::{AccountId, ThngId};

use super::{Conn, StoreError, Tx, execute, fetch_all, on_db, parse};

const PUT: &str = "INSERT INTO display_places (thng_id, account_id, region) VALUES ($1, $2, $3) \
    ON CONFLICT (thng_id) DO UPDATE SET region = $3";
const UNKNOWN: &str = "SELECT account_id, thng_id FROM display_places WHERE region = '' AND thng_id > $1 ORDER BY thng_id LIMIT $2";
const DELETE: &str = "DELETE FROM display_places WHERE account_id = $1 AND thng_id = $2";
const COUNT: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM display_places WHERE account_id = $1 AND region = $2 \
    AND thng_id <> $3 LIMIT $4) AS found";

/// Keeps the region of a display piece; an empty one is not known yet.
pub async fn put(tx: &mut Tx, account: AccountId, thng: ThngId, region: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT, thng.as_str(), account.as_str(), region)?;
    Ok(())
}

/// Removes what is kept of a Thng; nothing may be.
pub async fn delete(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), thng.as_str())?;
    Ok(())
}

/// How many display pieces other than a Thng are mostly seen in a region; at most `most`.
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

/// The next display pieces after a Thng whose region is not known yet, in order of their ids.
pub async fn list_unknown(
    conn: &mut Conn,
    after: &str,
    limit: u32,
) -> Result<Vec<(AccountId, ThngId)>, StoreError> {
    let rows: Vec<(String, String)> = fetch_all!(conn, UNKNOWN, after, i64::from(limit))?;
    rows.into_iter()
        .map(|(account, thng)| Ok((parse("account_id", &account)?, parse("thng_id", &thng)?)))
        .collect()
}
