//! Claims on hosts: made, read and removed.

use ::certificates::{
    service as orders,
    store::{certificates as stored, clock},
};
use kernel::{
    domain::{
        access::Actor,
        limits::shorten,
        permission::{Subject::Accounts, Verb},
        quota::Quota,
    },
    error::ServiceError,
    service::{
        access::{Caller, require},
        named as versions,
    },
    store::{StoreError, quotas},
};
use redirects::store::{domains as published, log};
use serde_json::json;
use shared::{
    id::AccountId,
    short_url::{Host, Scheme, ShortDomain},
    time::UnixMillis,
};
use tenants::{
    service::tenants::own_account,
    store::{accounts, domain_files},
};
use tracing::instrument;

use super::{DomainState, OwnDomain, certificates, checks, own_host, settings_tag};
use crate::{
    domain::claim::{Claim, State},
    error::{DomainsError, MAX_COUNTED},
    store::{claims, domains},
};

/// Most claims of an account that were never proven: each is looked for again and again.
const MAX_UNPROVEN: u64 = 100;

/// Most claims of an account, proven or not, also where it has no quota: who controls a DNS zone can prove any number of names
/// in it, and all short domains are in the memory of every edge and are read where links are made.
const MAX_CLAIMS: u64 = 1_000;

/// Most claims on a host that were not proven, of all accounts. One more ends that which was checked on request longest ago,
/// so that nobody can keep the owner of a host from claiming it.
const MAX_OF_HOST: u32 = 100;

/// How long a claim is kept after it was made or checked on request, however many others there are: who has many accounts
/// could end the claim of the owner again and again, before its record is in DNS.
const SPARED_MS: i64 = 24 * 60 * 60 * 1_000;

/// What the audit trail calls a short domain.
pub(super) const KIND: &str = "shortDomain";

/// No such domain.
pub(super) fn absent(host: &str) -> ServiceError {
    ServiceError::not_found("short domain", shorten(host))
}

/// Claims a host for an account.
///
/// # Errors
/// It is another account; the host is one of this service (400); the account has it, another one has proven it, or it has too
/// many, or too many that are not proven (409); the quota of the account is used up (403).
#[instrument(skip_all)]
pub async fn create(
    state: &DomainState,
    caller: &Caller,
    account: &str,
    host: Host,
) -> Result<OwnDomain, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let account = own_account(caller, account)?;
    if state.own_hosts.iter().any(|own| own == host.as_str()) {
        return Err(DomainsError::OwnName(host).into());
    }
    let bits = state.random16()?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    // Of two claims of one account on one host the second one sees the first.
    accounts::lock(&mut tx, account).await?;
    let now = clock::now(&mut tx).await?;
    if claims::find(&mut tx, account, &host).await?.is_some() {
        return Err(DomainsError::Known(host).into());
    }
    match domains::find_holder(&mut tx, &host).await? {
        Some(holder) if holder == account => return Err(DomainsError::Known(host).into()),
        Some(_) if checks::open(&mut tx, account, &host).await?.is_none() => {
            return Err(DomainsError::Taken(host).into());
        }
        Some(_) | None => {}
    }
    let (all, unproven) = claims::count(&mut tx, account).await?;
    if unproven >= MAX_UNPROVEN {
        return Err(DomainsError::TooManyUnproven { most: MAX_UNPROVEN }.into());
    }
    if all >= MAX_CLAIMS {
        return Err(DomainsError::TooManyClaims { most: MAX_CLAIMS }.into());
    }
    let claim = Claim::new(account, host, bits, now);
    claims::insert(&mut tx, &claim).await?;
    let until = UnixMillis(now.0.saturating_sub(SPARED_MS));
    claims::end_surplus(&mut tx, &claim.host, MAX_OF_HOST, until, now).await?;
    quotas::charge(&mut tx, account, Quota::ShortDomains, 1, state.clock.now()).await?;
    let shown = || json!({"state": claim.state.as_str()});
    tx.note(account, (KIND, claim.host.as_str()), || (None, Some(shown())));
    tx.commit().await?;
    Ok(unheld(claim)?)
}

/// Lists the short domains of an account, its first one first and without their files, and behind them the hosts that it has
/// claimed and may not use.
///
/// # Errors
/// It is another account.
#[instrument(skip_all)]
pub async fn list(state: &DomainState, actor: &Actor, account: &str) -> Result<Vec<OwnDomain>, ServiceError> {
    let _ = require(actor, Verb::Read, Accounts)?;
    let account = own_account(actor, account)?;
    let mut conn = state.db.read().await?;
    let held = accounts::list_domains(&mut conn, account).await?;
    let mut claims = claims::list(&mut conn, account).await?;
    let mut orders = stored::list(&mut conn, account).await?;
    let now = clock::now(&mut conn).await?;
    let mut all = Vec::with_capacity(held.len() + claims.len());
    for domain in held {
        let at = claims.iter().position(|claim| claim.host == domain.host);
        let claim = at.map(|at| claims.remove(at)).filter(is_proven);
        let at = orders.iter().position(|order| order.host == domain.host);
        let order = at.map(|at| orders.swap_remove(at));
        let certificate = certificates::shown(state, now, claim.as_ref(), order);
        all.push(OwnDomain { domain, claim, is_held: true, certificate });
    }
    for claim in claims {
        all.push(unheld(claim)?);
    }
    Ok(all)
}

/// Reads a short domain of an account, or a host that it has claimed.
///
/// # Errors
/// It is another account, or the account has none of this name.
#[instrument(skip_all)]
pub async fn read(
    state: &DomainState,
    actor: &Actor,
    account: &str,
    host: &str,
) -> Result<OwnDomain, ServiceError> {
    let (account, host) = own_host(actor, Verb::Read, account, host)?;
    load(state, account, &host).await
}

/// The same for an account that was checked.
pub(super) async fn load(
    state: &DomainState,
    account: AccountId,
    host: &Host,
) -> Result<OwnDomain, ServiceError> {
    let conn = &mut state.db.read().await?;
    let held = accounts::list_domains(conn, account).await?.into_iter().find(|domain| domain.host == *host);
    let claim = claims::find(conn, account, host).await?;
    match (held, claim) {
        (Some(domain), claim) => {
            let files = domain_files::find(conn, account, host).await?.map(Into::into);
            let domain = ShortDomain { files, ..domain };
            let claim = claim.filter(is_proven);
            let order = stored::find(conn, account, host).await?;
            let certificate = certificates::shown(state, clock::now(conn).await?, claim.as_ref(), order);
            Ok(OwnDomain { domain, claim, is_held: true, certificate })
        }
        (None, Some(claim)) => Ok(unheld(claim)?),
        (None, None) => Err(absent(host.as_str())),
    }
}

/// Removes a short domain of an account that has no short ids and never had one, or a claim that was not proven.
///
/// # Errors
/// It is another account, or it has none of this name; the domain has or had short ids, or the platform gave it (409); its
/// settings are not as `If-Match` says (412).
#[instrument(skip_all)]
pub async fn delete(
    state: &DomainState,
    caller: &Caller,
    account: &str,
    host: &str,
) -> Result<(), ServiceError> {
    let (account, host) = own_host(caller, Verb::Update, account, host)?;
    // Counted before the lock, for which every write of links waits.
    let (links, deleted) =
        domains::count_links(&mut state.db.read().await?, account, &host, MAX_COUNTED).await?;
    let has_links = |links| ServiceError::from(DomainsError::has_links(host.clone(), links, deleted));
    let now = state.clock.now();
    let mut tx = state.db.begin(&caller.ctx).await?;
    log::lock(&mut tx).await?;
    let claim = claims::find(&mut tx, account, &host).await?;
    let held = domain_files::list_of(&mut tx, account).await?.into_iter().find(|domain| domain.host == host);
    let is_own = claim.as_ref().is_some_and(is_proven);
    let is_off = stored::find(&mut tx, account, &host).await?.is_some_and(|order| order.is_off);
    let tag = settings_tag(&host, held.as_ref(), is_off);
    let domain = match (&claim, held) {
        (None, None) => return Err(absent(host.as_str())),
        (None, Some(_)) => return Err(DomainsError::GivenByPlatform(host.clone()).into()),
        // The platform gave the domain after the account had claimed it: the claim alone is removed.
        (Some(_), held) => held.filter(|_| is_own),
    };
    versions::check(&tx, || tag)?;
    let is_published = domain.is_some();
    if let Some(domain) = domain {
        if links + deleted > 0 {
            return Err(has_links(links));
        }
        if domains::has_links(&mut tx, &host).await? {
            return Err(has_links(1));
        }
        domain_files::delete(&mut tx, account, &host).await?;
        orders::forget(&mut tx, account, &host, now).await?;
        domains::delete(&mut tx, account, &host).await?;
        published::withdraw(&mut tx, domain, now).await?;
    }
    claims::delete(&mut tx, account, &host).await?;
    quotas::release(&mut tx, account, Quota::ShortDomains, 1);
    let shown = claim.map(|claim| json!({"state": claim.state.as_str()}));
    tx.note(account, (KIND, host.as_str()), || (shown, None));
    tx.commit().await?;
    if is_published {
        state.readers.wake_edges();
    }
    Ok(())
}

/// Whether a claim made the domain: others say nothing of one that the platform gave.
pub(super) fn is_proven(claim: &Claim) -> bool {
    match claim.state {
        State::Verified | State::Unproven => true,
        State::Pending | State::Refused => false,
    }
}

fn unheld(claim: Claim) -> Result<OwnDomain, StoreError> {
    let domain = ShortDomain::new(Scheme::Https, claim.host.as_str())
        .map_err(|error| StoreError::Row(format!("host: {error}")))?;
    Ok(OwnDomain { domain, claim: Some(claim), is_held: false, certificate: None })
}
