//! The short domain that a request means.

use std::sync::Arc;

use shared::{id::AccountId, short_url::ShortDomain};

use super::DomainChoice;
use crate::{
    error::{RedirectsError, ServiceError},
    store::{Conn, StoreError, Tx, accounts},
};

/// The short domain that a request means: the named one, else the host's, else the account's first.
///
/// # Errors
/// 400 for a named one that is not the account's, 404 for a host of another account, 409 where there is none.
pub async fn resolve_domain(
    conn: &mut Conn,
    account: AccountId,
    choice: &DomainChoice,
    in_body: Option<&str>,
) -> Result<ShortDomain, ServiceError> {
    let own = accounts::list_domains(conn, account).await?;
    let own: Vec<&ShortDomain> = own.iter().collect();
    let is_elsewhere = match foreign_host(&own, choice, in_body) {
        Some(host) => accounts::list_all_domains(conn).await?.iter().any(|domain| is_called(domain, host)),
        None => false,
    };
    resolve(&own, choice, in_body, is_elsewhere)
}

/// The same in a transaction of the writer.
pub(super) async fn resolve_in(
    tx: &mut Tx,
    account: AccountId,
    choice: &DomainChoice,
    in_body: Option<&str>,
) -> Result<ShortDomain, ServiceError> {
    let all = all_domains(tx).await?;
    let own: Vec<&ShortDomain> = all.iter().filter(|domain| domain.account == Some(account)).collect();
    let host = foreign_host(&own, choice, in_body);
    let is_elsewhere = host.is_some_and(|host| all.iter().any(|domain| is_called(domain, host)));
    resolve(&own, choice, in_body, is_elsewhere)
}

/// The short domains of all accounts, those of one in its order. Requests that share a transaction read them once: whoever
/// changes them needs the lock that it holds.
pub(super) async fn all_domains(tx: &mut Tx) -> Result<Arc<[ShortDomain]>, StoreError> {
    if let Some(domains) = tx.group.as_ref().and_then(|group| group.domains.clone()) {
        return Ok(domains);
    }
    let domains: Arc<[ShortDomain]> = accounts::list_domains_in_order(tx).await?.into();
    if let Some(group) = &mut tx.group {
        group.domains = Some(domains.clone());
    }
    Ok(domains)
}

fn is_called(domain: &ShortDomain, name: &str) -> bool {
    ShortDomain::new(domain.scheme, name).is_ok_and(|wanted| wanted.host == domain.host)
}

/// The host of a request that names no domain, if it is not the account's.
fn foreign_host<'a>(
    own: &[&ShortDomain],
    choice: &'a DomainChoice,
    in_body: Option<&str>,
) -> Option<&'a str> {
    let is_named = in_body.is_some() || choice.named.is_some();
    let host = choice.host.as_deref().filter(|_| !is_named)?;
    (!own.iter().any(|domain| is_called(domain, host))).then_some(host)
}

fn resolve(
    own: &[&ShortDomain],
    choice: &DomainChoice,
    in_body: Option<&str>,
    is_elsewhere: bool,
) -> Result<ShortDomain, ServiceError> {
    let by_name =
        |name: &str| own.iter().find(|domain| is_called(domain, name)).map(|found| (*found).clone());
    if let Some(name) = in_body.or(choice.named.as_deref()) {
        return by_name(name).ok_or_else(|| RedirectsError::ForeignDomain(name.to_owned()).into());
    }
    // On another account's short domain nothing of this one is meant, least of all by a DELETE.
    if is_elsewhere {
        return Err(ServiceError::not_found("short domain", choice.host.as_deref().unwrap_or_default()));
    }
    let by_host = choice.host.as_deref().and_then(by_name);
    let first = || own.first().map(|first| (*first).clone());
    by_host.or_else(first).ok_or_else(|| RedirectsError::NoShortDomain.into())
}
