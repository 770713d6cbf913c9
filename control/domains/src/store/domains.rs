//! Rows of short domains, as far as claims touch them.

use kernel::store::{Conn, StoreError, Tx, execute, fetch_one, fetch_optional, parse};
use shared::{id::AccountId, short_url::Host};

// Of all accounts: a host belongs to one.
const HOLDER: &str = "SELECT account_id FROM short_domains WHERE host = $1";
const DELETE: &str = "DELETE FROM short_domains WHERE account_id = $1 AND host = $2";
// A deleted short id keeps its row: its code may be printed.
const COUNT_LINKS: &str = "SELECT COUNT(*), COUNT(deleted_rev) FROM (SELECT deleted_rev FROM redirections \
    WHERE account_id = $1 AND domain = $2 LIMIT $3) t";
const HAS_LINKS: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM redirections WHERE domain = $1 LIMIT 1) t";
// Only the holder of a domain has links on it that are not deleted. By the account it is one look into an index: without, a
// domain with a million deleted links is read as a whole.
const HAS_LIVE_LINKS: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM redirections WHERE account_id = \
    (SELECT s.account_id FROM short_domains s WHERE s.host = $1) AND domain = $1 AND deleted_rev IS NULL LIMIT 1) t";
// Scheme and case stay: they are those of short ids that were deleted.
const HAND_OVER: &str = "UPDATE short_domains SET account_id = $3, redirect_max_age = NULL, digital_links = FALSE, paths = NULL, \
    pages = NULL, position = (SELECT COALESCE(MAX(o.position) + 1, 0) FROM short_domains o WHERE o.account_id = $3) \
    WHERE account_id = $1 AND host = $2";

/// The account that a short domain belongs to.
pub async fn find_holder(conn: &mut Conn, host: &Host) -> Result<Option<AccountId>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, HOLDER, host.as_str())?;
    row.map(|(account,)| parse("account_id", &account)).transpose()
}

/// Removes a short domain that has no links and no files; whether it was there.
pub async fn delete(tx: &mut Tx, account: AccountId, host: &Host) -> Result<bool, StoreError> {
    let removed = execute!(&mut **tx, DELETE, account.as_str(), host.as_str())?;
    Ok(removed == 1)
}

/// How many links a short domain has, and how many it had that are deleted; of more than `limit` together it counts so many.
pub async fn count_links(
    conn: &mut Conn,
    account: AccountId,
    host: &Host,
    limit: u32,
) -> Result<(u64, u64), StoreError> {
    let (all, deleted): (i64, i64) =
        fetch_one!(conn, COUNT_LINKS, account.as_str(), host.as_str(), i64::from(limit))?;
    Ok((all.saturating_sub(deleted).unsigned_abs(), deleted.unsigned_abs()))
}

/// Whether a short domain has a link, or had one.
pub async fn has_links(conn: &mut Conn, host: &Host) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, HAS_LINKS, host.as_str())?;
    Ok(count > 0)
}

/// Whether a short domain has a link that is not deleted.
pub async fn has_live_links(conn: &mut Conn, host: &Host) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, HAS_LIVE_LINKS, host.as_str())?;
    Ok(count > 0)
}

/// Makes a short domain without links and files the last one of another account, without settings; whether it was there.
pub async fn hand_over(tx: &mut Tx, from: AccountId, to: AccountId, host: &Host) -> Result<bool, StoreError> {
    Ok(execute!(&mut **tx, HAND_OVER, from.as_str(), host.as_str(), to.as_str())? == 1)
}
