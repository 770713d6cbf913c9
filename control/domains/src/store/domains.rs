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
