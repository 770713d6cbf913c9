//! The table of certificates.

use kernel::store::{Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional, parse};
use shared::{id::AccountId, short_url::Host, time::UnixMillis, wire::certificates::Challenge};

use crate::domain::certificate::{Certificate, Issued, MAX_AHEAD_MS, Order};

/// The columns that every statement reads.
macro_rules! columns {
    () => {
        "c.account_id, c.host, c.is_off, c.issuer, c.not_before, c.not_after, c.directory, c.order_url, c.order_key, \
         c.error, c.failures, c.next_try"
    };
}
/// The domains for which orders are made, of all accounts: proven ones of accounts that are not suspended.
macro_rules! eligible {
    () => {
        " FROM domain_certificates c JOIN domain_claims d ON d.account_id = c.account_id AND d.host = c.host \
         JOIN accounts a ON a.id = c.account_id WHERE NOT c.is_off AND d.state = 'verified' AND a.suspended_at IS NULL"
    };
}

const FIND: &str =
    concat!("SELECT ", columns!(), " FROM domain_certificates c WHERE c.account_id = $1 AND c.host = $2");
const LIST: &str =
    concat!("SELECT ", columns!(), " FROM domain_certificates c WHERE c.account_id = $1 ORDER BY c.host");
// Round robin over accounts, so that one with thousands of domains does not use up what the authority allows before the others. A
// certificate that is needed is also due where its next try is later than any pause: the clock was wrong when that was written.
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    eligible!(),
    " AND (c.next_try <= $1 OR c.next_try > $3 AND (c.not_after IS NULL OR \
     c.not_before + (c.not_after - c.not_before) / 3 * 2 <= $1)) ORDER BY c.not_after IS NULL, \
     ROW_NUMBER() OVER (PARTITION BY c.account_id, c.not_after IS NULL ORDER BY c.next_try, c.host), c.host LIMIT $2"
);
const ENDS: &str = concat!(
    "SELECT c.host, c.not_after",
    eligible!(),
    " AND c.not_after IS NOT NULL ORDER BY c.not_after, c.host LIMIT $1"
);
// Of all accounts.
const ADD_MISSING: &str = "INSERT INTO domain_certificates (host, account_id, next_try) SELECT d.host, d.account_id, CAST($1 AS BIGINT) \
    FROM domain_claims d JOIN short_domains s ON s.host = d.host AND s.account_id = d.account_id \
    WHERE d.state = 'verified' AND NOT EXISTS (SELECT 1 FROM domain_certificates c WHERE c.host = d.host) \
    ORDER BY d.host LIMIT $2 ON CONFLICT (host) DO NOTHING";
const SET_ORDER: &str = "UPDATE domain_certificates SET directory = $3, order_url = $4, order_key = $5, token = NULL, \
    key_authorization = NULL WHERE account_id = $1 AND host = $2 AND NOT is_off";
const SET_CHALLENGE: &str = "UPDATE domain_certificates SET token = $3, key_authorization = $4 \
    WHERE account_id = $1 AND host = $2 AND NOT is_off";
const SET_FAILURE: &str = "UPDATE domain_certificates SET error = $3, failures = $4, next_try = $5, directory = $6, \
    order_url = $7, order_key = $8, token = NULL, key_authorization = NULL \
    WHERE account_id = $1 AND host = $2 AND NOT is_off";
const SET_ISSUED: &str = "UPDATE domain_certificates SET chain = $3, sealed_key = $4, issuer = $5, not_before = $6, \
    not_after = $7, next_try = $8, directory = NULL, order_url = NULL, order_key = NULL, token = NULL, \
    key_authorization = NULL, error = NULL, failures = 0 \
    WHERE account_id = $1 AND host = $2 AND NOT is_off";
const SET_OFF: &str = "INSERT INTO domain_certificates (host, account_id, is_off, next_try) VALUES ($2, $1, $3, $4) \
    ON CONFLICT (host) DO UPDATE SET is_off = $3, next_try = $4, chain = NULL, sealed_key = NULL, issuer = NULL, \
    not_before = NULL, not_after = NULL, directory = NULL, order_url = NULL, order_key = NULL, token = NULL, \
    key_authorization = NULL, error = NULL, failures = 0 \
    WHERE domain_certificates.account_id = $1";
const ASK: &str = "INSERT INTO domain_certificates (host, account_id, next_try, asked_at) VALUES ($2, $1, $3, $3) \
    ON CONFLICT (host) DO UPDATE SET next_try = $3, asked_at = $3 WHERE domain_certificates.account_id = $1";
const LAST_ASKED: &str = "SELECT asked_at FROM domain_certificates WHERE account_id = $1 AND host = $2";
const COUNT_ASKED: &str =
    "SELECT COUNT(*) FROM domain_certificates WHERE account_id = $1 AND asked_at BETWEEN $2 AND $3";
const HAS_CHAIN: &str = "SELECT COUNT(*) FROM domain_certificates WHERE account_id = $1 AND host = $2 \
    AND chain IS NOT NULL";
const DELETE: &str = "DELETE FROM domain_certificates WHERE account_id = $1 AND host = $2";

#[derive(sqlx::FromRow)]
struct Row {
    account_id: String,
    host: String,
    is_off: bool,
    issuer: Option<String>,
    not_before: Option<i64>,
    not_after: Option<i64>,
    directory: Option<String>,
    order_url: Option<String>,
    order_key: Option<String>,
    error: Option<String>,
    failures: i64,
    next_try: i64,
}

impl TryFrom<Row> for Certificate {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let issued = match (row.issuer, row.not_before, row.not_after) {
            (Some(issuer), Some(begin), Some(end)) => {
                Some(Issued { issuer, not_before: UnixMillis(begin), not_after: UnixMillis(end) })
            }
            _ => None,
        };
        let order = match (row.directory, row.order_url, row.order_key) {
            (Some(directory), Some(url), Some(sealed_key)) => Some(Order { directory, url, sealed_key }),
            _ => None,
        };
        Ok(Self {
            account: parse("account_id", &row.account_id)?,
            host: parse("host", &row.host)?,
            is_off: row.is_off,
            issued,
            order,
            error: row.error,
            failures: u32::try_from(row.failures).unwrap_or(u32::MAX),
            next_try: UnixMillis(row.next_try),
        })
    }
}

/// The certificate of a short domain of an account; `None`: the domain was not looked at yet.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    host: &Host,
) -> Result<Option<Certificate>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), host.as_str())?;
    row.map(Certificate::try_from).transpose()
}

/// The certificates of an account, in the order of hosts.
pub async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<Certificate>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST, account.as_str())?;
    rows.into_iter().map(Certificate::try_from).collect()
}

/// Up to `limit` certificates of all accounts that are to be ordered by now: renewals first, so that many new domains hold up none.
pub async fn list_due(conn: &mut Conn, now: UnixMillis, limit: u32) -> Result<Vec<Certificate>, StoreError> {
    let latest = now.0.saturating_add(MAX_AHEAD_MS);
    let rows: Vec<Row> = fetch_all!(conn, DUE, now.0, i64::from(limit), latest)?;
    rows.into_iter().map(Certificate::try_from).collect()
}

/// Hosts of all accounts and when their certificates end, of those that are renewed: the `limit` that end first.
pub async fn list_ends(conn: &mut Conn, limit: u32) -> Result<Vec<(String, UnixMillis)>, StoreError> {
    let rows: Vec<(String, i64)> = fetch_all!(conn, ENDS, i64::from(limit))?;
    Ok(rows.into_iter().map(|(host, end)| (host, UnixMillis(end))).collect())
}

/// Makes rows of up to `limit` domains that were proven and have none; returns how many.
pub async fn add_missing(tx: &mut Tx, now: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, ADD_MISSING, now.0, i64::from(limit))?)
}

/// Stores an order; `false`: the domain is gone, or wants no certificate any more.
pub async fn set_order(tx: &mut Tx, of: &Certificate, order: &Order) -> Result<bool, StoreError> {
    let Order { directory, url, sealed_key } = order;
    let changed = execute!(
        &mut **tx,
        SET_ORDER,
        of.account.as_str(),
        of.host.as_str(),
        directory.as_str(),
        url.as_str(),
        sealed_key.as_str()
    )?;
    Ok(changed == 1)
}

/// Stores what the authority is about to check; `false`: the domain is gone, or wants no certificate any more.
pub async fn set_challenge(tx: &mut Tx, of: &Certificate, challenge: &Challenge) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        SET_CHALLENGE,
        of.account.as_str(),
        of.host.as_str(),
        &*challenge.token,
        &*challenge.key_authorization
    )?;
    Ok(changed == 1)
}

/// Stores a certificate after a try that failed; `false`: the domain is gone, or wants none any more.
pub async fn set_failure(tx: &mut Tx, after: &Certificate) -> Result<bool, StoreError> {
    let order = after.order.as_ref();
    let changed = execute!(
        &mut **tx,
        SET_FAILURE,
        after.account.as_str(),
        after.host.as_str(),
        after.error.as_deref(),
        i64::from(after.failures),
        after.next_try.0,
        order.map(|order| order.directory.as_str()),
        order.map(|order| order.url.as_str()),
        order.map(|order| order.sealed_key.as_str())
    )?;
    Ok(changed == 1)
}

/// Stores a certificate that an authority gave, with its chain in PEM and its key, which is encrypted; `false`: the domain is
/// gone, or wants none any more.
pub async fn set_issued(
    tx: &mut Tx,
    of: &Certificate,
    issued: &Issued,
    (chain, sealed_key): (&str, &str),
    next_try: UnixMillis,
) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        SET_ISSUED,
        of.account.as_str(),
        of.host.as_str(),
        chain,
        sealed_key,
        issued.issuer.as_str(),
        issued.not_before.0,
        issued.not_after.0,
        next_try.0
    )?;
    Ok(changed == 1)
}

/// Switches orders for a domain of an account off or on; what was stored of its certificate is removed.
pub async fn set_off(
    tx: &mut Tx,
    account: AccountId,
    host: &Host,
    is_off: bool,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, SET_OFF, account.as_str(), host.as_str(), is_off, now.0)?;
    Ok(())
}

/// Lets an order of a domain of an account be made now, and notes that somebody asked for it.
pub async fn ask(tx: &mut Tx, account: AccountId, host: &Host, now: UnixMillis) -> Result<(), StoreError> {
    execute!(&mut **tx, ASK, account.as_str(), host.as_str(), now.0)?;
    Ok(())
}

/// When an account last asked for an order; `None`: never.
pub async fn last_asked(
    conn: &mut Conn,
    account: AccountId,
    host: &Host,
) -> Result<Option<UnixMillis>, StoreError> {
    let row: Option<(i64,)> = fetch_optional!(conn, LAST_ASKED, account.as_str(), host.as_str())?;
    Ok(row.map(|(at,)| UnixMillis(at)))
}

/// For how many hosts an account has asked for an order between two times.
pub async fn count_asked(
    conn: &mut Conn,
    account: AccountId,
    since: UnixMillis,
    until: UnixMillis,
) -> Result<i64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT_ASKED, account.as_str(), since.0, until.0)?;
    Ok(count)
}

/// Whether edges have a certificate of a domain of an account.
pub async fn has_chain(conn: &mut Conn, account: AccountId, host: &Host) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, HAS_CHAIN, account.as_str(), host.as_str())?;
    Ok(count > 0)
}

/// Removes what is stored of a domain of an account.
pub async fn delete(tx: &mut Tx, account: AccountId, host: &Host) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), host.as_str())?;
    Ok(())
}
