//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod certificates;
pub mod checks;
pub mod claims;
mod notices;
pub mod prove;
pub mod release;
pub mod settings;

use std::{net::SocketAddr, sync::Arc};

use ::certificates::service::CertificateState;
use events::egress::EgressClient;
use kernel::{
    domain::{
        access::Actor,
        permission::{Subject::Accounts, Verb},
    },
    error::ServiceError,
    service::access::require,
};
use mail::Outbox;
use redirects::service::Redirects;
use shared::{
    entity_tag::EntityTag,
    id::AccountId,
    short_url::{Host, ShortDomain},
};
use tenants::service::tenants::own_account;
use url::Url;

use self::certificates::OwnCertificate;
use crate::{domain::claim::Claim, resolver::TxtResolver};

/// What operations and workers of short domains need; one for each process.
pub struct DomainState {
    /// What the operations on links need.
    pub redirects: Redirects,
    /// Asks for files of proofs.
    pub egress: EgressClient,
    /// Asks for records of proofs.
    pub resolver: TxtResolver,
    /// Orders certificates.
    pub certificates: Arc<CertificateState>,
    /// Where mails are put.
    pub outbox: Arc<Outbox>,
    /// Hosts of this service, which nobody may claim.
    pub own_hosts: Vec<String>,
}

impl DomainState {
    /// The state of a process. `dns_server` is asked for records; without one those of the system. `own_urls` are URLs of this
    /// service, whose hosts nobody may claim.
    #[must_use]
    pub fn new<'a>(
        redirects: Redirects,
        egress: EgressClient,
        (outbox, certificates): (Arc<Outbox>, Arc<CertificateState>),
        dns_server: Option<SocketAddr>,
        own_urls: impl IntoIterator<Item = &'a str>,
    ) -> Arc<Self> {
        let host = |url: &str| Url::parse(url).ok()?.host_str().map(str::to_ascii_lowercase);
        let own_hosts = own_urls.into_iter().filter_map(host).collect();
        let resolver = TxtResolver::new(dns_server);
        Arc::new(Self { redirects, egress, resolver, certificates, outbox, own_hosts })
    }
}

kernel::has_core!(DomainState, redirects.core);

/// A short domain of an account, or a host that it has claimed and may not use yet.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnDomain {
    /// The domain; of one that may not be used the settings are those of a new one.
    pub domain: ShortDomain,
    /// The claim; `None`: the platform gave it.
    pub claim: Option<Claim>,
    /// Whether there is a row of the domain, so that links may be on it.
    pub is_held: bool,
    /// Its certificate; `None`: this service orders none for it.
    pub certificate: Option<OwnCertificate>,
}

impl OwnDomain {
    /// The `ETag` of its settings. What a check of its proof finds does not change it.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        let is_off = self.certificate.as_ref().is_some_and(|own| own.certificate.is_off);
        settings_tag(&self.domain.host, Some(&self.domain), is_off)
    }
}

/// The `ETag` of the settings of a short domain; without one, of a host that is only claimed. `is_off`: it wants no certificate.
fn settings_tag(host: &Host, domain: Option<&ShortDomain>, is_off: bool) -> EntityTag {
    let files = domain.and_then(|domain| domain.files.as_deref());
    // Without a path it is that of a host that is only claimed.
    let paths = domain.map(|domain| &domain.paths).filter(|paths| !paths.is_default());
    let digital_links = domain.is_some_and(|domain| domain.digital_links);
    let max_age = domain.and_then(|domain| domain.redirect_max_age);
    EntityTag::of(&(host.as_str(), max_age, files, paths, is_off, digital_links))
}

/// The account and the host that a path names.
///
/// # Errors
/// The caller may not do this to accounts, it is another account, or no short domain is called so.
fn own_host(actor: &Actor, verb: Verb, account: &str, host: &str) -> Result<(AccountId, Host), ServiceError> {
    let _ = require(actor, verb, Accounts)?;
    let account = own_account(actor, account)?;
    Ok((account, host.parse().map_err(|_| claims::absent(host))?))
}
