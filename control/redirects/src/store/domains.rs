//! Publishes short domains to edges.

use shared::{
    id::AccountId,
    short_url::{Host, ShortDomain},
    time::UnixMillis,
    wire::stream::{Change, Event},
};

use super::{Conn, StoreError, Tx, domain_files, log, pages};

/// Publishes every short domain of an account as it is now. The transaction holds the lock of the log.
pub async fn publish(tx: &mut Tx, account: AccountId, now: UnixMillis) -> Result<(), StoreError> {
    let domains = list(tx, account).await?;
    append(tx, domains, now).await
}

/// Publishes one short domain of an account as it is now. The transaction holds the lock of the log.
pub async fn publish_one(
    tx: &mut Tx,
    account: AccountId,
    host: &Host,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let mut domains = list(tx, account).await?;
    domains.retain(|domain| domain.host == *host);
    append(tx, domains, now).await
}

/// Publishes that a short domain is gone. The transaction holds the lock of the log.
pub async fn withdraw(tx: &mut Tx, domain: ShortDomain, now: UnixMillis) -> Result<(), StoreError> {
    append(tx, vec![ShortDomain { removed: true, files: None, pages: None, ..domain }], now).await
}

/// Every short domain of every account, as edges get it.
pub async fn list_all(conn: &mut Conn) -> Result<Vec<ShortDomain>, StoreError> {
    let mut domains = domain_files::list_all(conn).await?;
    pages::add_to(conn, None, &mut domains).await?;
    Ok(domains)
}

async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<ShortDomain>, StoreError> {
    let mut domains = domain_files::list_of(conn, account).await?;
    pages::add_to(conn, Some(account), &mut domains).await?;
    Ok(domains)
}

/// Same form as in `Welcome`.
async fn append(tx: &mut Tx, domains: Vec<ShortDomain>, now: UnixMillis) -> Result<(), StoreError> {
    if domains.is_empty() {
        return Ok(());
    }
    let first = log::take_revs(tx, domains.len() as u64).await?;
    let events: Vec<Event> =
        (first..).zip(domains).map(|(rev, domain)| Event { rev, change: Change::Domain(domain) }).collect();
    log::append(tx, now.0, &events).await
}
