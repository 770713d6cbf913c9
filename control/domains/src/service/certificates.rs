//! Certificates of short domains: how they stand, and tries that are asked for.

use ::certificates::{
    domain::certificate::{self, Certificate},
    store::{certificates as stored, clock},
};
use kernel::{domain::permission::Verb, error::ServiceError, service::access::Caller};
use shared::{id::AccountId, short_url::Host, time::UnixMillis};
use tenants::store::accounts;
use tracing::instrument;

use super::{
    DomainState, OwnDomain,
    claims::{absent, load},
    own_host,
};
use crate::{
    domain::claim::{Claim, State},
    error::DomainsError,
    store::{claims, domains},
};

/// Shortest time between two tries for a host that are asked for: authorities let a host fail some five times an hour.
const PAUSE_MS: i64 = 10 * 60_000;

/// Most hosts of an account for which tries are asked for within an hour.
const MAX_ASKED: i64 = 20;
const HOUR_MS: i64 = 60 * 60_000;

/// The certificate of a domain that its account has proven, as answers show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCertificate {
    /// It.
    pub certificate: Certificate,
    /// How it stands now.
    pub state: certificate::State,
}

/// What is shown of a domain's certificate at a time of the database; `None`: this service orders none for it.
pub(super) fn shown(
    state: &DomainState,
    now: UnixMillis,
    claim: Option<&Claim>,
    found: Option<Certificate>,
) -> Option<OwnCertificate> {
    let (claim, is_on) = (claim?, state.certificates.is_on());
    let certificate = match (claim.state, found) {
        (State::Pending | State::Refused, _) => return None,
        (State::Verified | State::Unproven, Some(found)) => {
            Some(found).filter(|one| is_on || one.is_off || one.issued.is_some())?
        }
        (State::Verified, None) if is_on => Certificate::new(claim.account, claim.host.clone(), now),
        (State::Verified | State::Unproven, None) => return None,
    };
    Some(OwnCertificate { state: certificate.state(now), certificate })
}

/// Lets the certificate of a domain be ordered now, or an order under way go on; the answer is the domain as it is before that.
///
/// # Errors
/// It is another account, or has no such domain; the domain is not proven, was given by the platform, or wants no certificate, or
/// this service makes none (409); too many tries were asked for (429).
#[instrument(skip_all)]
pub async fn try_now(
    state: &DomainState,
    caller: &Caller,
    account: &str,
    host: &str,
) -> Result<OwnDomain, ServiceError> {
    let (account, host) = own_host(caller, Verb::Update, account, host)?;
    ask(state, caller, account, &host).await?;
    state.certificates.wake();
    load(state, account, &host).await
}

async fn ask(
    state: &DomainState,
    caller: &Caller,
    account: AccountId,
    host: &Host,
) -> Result<(), ServiceError> {
    let mut tx = state.db.begin(&caller.ctx).await?;
    accounts::lock(&mut tx, account).await?;
    // Behind the lock: others that asked have an earlier time.
    let now = clock::now(&mut tx).await?;
    match claims::find(&mut tx, account, host).await? {
        Some(claim) if claim.state == State::Verified => {}
        Some(_) => return Err(DomainsError::NotProven(host.clone()).into()),
        None if domains::find_holder(&mut tx, host).await? == Some(account) => {
            return Err(DomainsError::OtherCertificate(host.clone()).into());
        }
        None => return Err(absent(host.as_str())),
    }
    if !state.certificates.is_on() {
        return Err(DomainsError::NoCertificates.into());
    }
    if stored::find(&mut tx, account, host).await?.is_some_and(|one| one.is_off) {
        return Err(DomainsError::CertificateOff(host.clone()).into());
    }
    let last = stored::last_asked(&mut tx, account, host).await?;
    // One in the future is of a clock that was wrong.
    if last.is_some_and(|at| (0..PAUSE_MS).contains(&now.0.saturating_sub(at.0))) {
        return Err(DomainsError::TriedJustNow { host: host.clone(), minutes: PAUSE_MS / 60_000 }.into());
    }
    let since = UnixMillis(now.0.saturating_sub(HOUR_MS));
    if stored::count_asked(&mut tx, account, since, now).await? >= MAX_ASKED {
        return Err(DomainsError::TooManyTries { most: MAX_ASKED }.into());
    }
    stored::ask(&mut tx, account, host, now).await?;
    Ok(tx.commit().await?)
}
