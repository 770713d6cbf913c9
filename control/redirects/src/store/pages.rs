//! Pages that people see where a code leads nowhere: of an account, and of its domains.

use std::{collections::HashMap, sync::Arc};

use shared::{
    id::AccountId,
    pages::Pages,
    short_url::{Host, ShortDomain},
};

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional};

const OF_ACCOUNT: &str = "SELECT pages FROM accounts WHERE id = $1";
const OF_DOMAIN: &str = "SELECT pages FROM short_domains WHERE account_id = $1 AND host = $2";
const PUT_OF_ACCOUNT: &str = "UPDATE accounts SET pages = $2 WHERE id = $1";
const PUT_OF_DOMAIN: &str = "UPDATE short_domains SET pages = $3 WHERE account_id = $1 AND host = $2";

// Those of a domain take the place of those of its account as a whole.
const SHOWN: &str = "SELECT d.host, COALESCE(d.pages, a.pages) FROM short_domains d JOIN accounts a \
    ON a.id = d.account_id WHERE COALESCE(d.pages, a.pages) IS NOT NULL ORDER BY d.host";
const SHOWN_OF: &str = "SELECT d.host, COALESCE(d.pages, a.pages) FROM short_domains d JOIN accounts a \
    ON a.id = d.account_id WHERE d.account_id = $1 AND COALESCE(d.pages, a.pages) IS NOT NULL ORDER BY d.host";
// The length of a column, unlike that of an expression, is known without reading its text.
const TOTAL: &str = "SELECT COALESCE(SUM(COALESCE(OCTET_LENGTH(d.pages), OCTET_LENGTH(a.pages))), 0) FROM short_domains d \
    JOIN accounts a ON a.id = d.account_id";

/// The pages of an account, or of one of its domains; `None` when it has no such domain.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    host: Option<&Host>,
) -> Result<Option<Pages>, StoreError> {
    let row: Option<(Option<String>,)> = match host {
        None => fetch_optional!(conn, OF_ACCOUNT, account.as_str())?,
        Some(host) => fetch_optional!(conn, OF_DOMAIN, account.as_str(), host.as_str())?,
    };
    row.map(|(text,)| text.map_or_else(|| Ok(Pages::default()), |text| read(&text))).transpose()
}

/// Replaces the pages of an account, or of one of its domains; empty ones are removed.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    host: Option<&Host>,
    pages: &Pages,
) -> Result<(), StoreError> {
    let text = if pages.is_empty() { None } else { Some(write(pages)?) };
    match host {
        None => execute!(&mut **tx, PUT_OF_ACCOUNT, account.as_str(), text)?,
        Some(host) => execute!(&mut **tx, PUT_OF_DOMAIN, account.as_str(), host.as_str(), text)?,
    };
    Ok(())
}

/// Adds to domains, of one account or of all, the pages that are shown on them. Those that this release cannot read, as after a
/// downgrade, count as none: edges must get the domain all the same.
pub async fn add_to(
    conn: &mut Conn,
    account: Option<AccountId>,
    domains: &mut [ShortDomain],
) -> Result<(), StoreError> {
    let rows: Vec<(String, String)> = match account {
        None => fetch_all!(conn, SHOWN)?,
        Some(account) => fetch_all!(conn, SHOWN_OF, account.as_str())?,
    };
    let mut shown: HashMap<String, String> = rows.into_iter().collect();
    for domain in domains {
        let pages = shown.remove(domain.host.as_str()).map(|text| read(&text)).transpose();
        domain.pages = match pages {
            Ok(pages) => pages.map(Arc::new),
            Err(error) => {
                tracing::error!(%error, host = domain.host.as_str(), "edges show their own pages on a domain");
                None
            }
        };
    }
    Ok(())
}

/// Bytes that all domains of all accounts show together, as edges get them.
pub async fn total_bytes(conn: &mut Conn) -> Result<i64, StoreError> {
    let (bytes,): (i64,) = fetch_one!(conn, TOTAL)?;
    Ok(bytes)
}

fn read(text: &str) -> Result<Pages, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Row(format!("pages: {error}")))
}

fn write(pages: &Pages) -> Result<String, StoreError> {
    serde_json::to_string(pages).map_err(|error| StoreError::Row(format!("pages: {error}")))
}
