//! One order: made, or gone on with wherever it was.

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeStatus, ChallengeType, Identifier, NewOrder, Order as AcmeOrder,
    OrderStatus, RetryPolicy,
};
use kernel::{
    domain::event::Event,
    error::ServiceError,
    store::{Ctx, StoreError, Tx, events},
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use redirects::store::log;
use serde_json::{Value, json};
use shared::{
    time::UnixMillis,
    wire::{
        certificates::{Challenge, DomainCertificate},
        stream::{Change, Rev},
    },
};
use tokio::time::timeout;
use tracing::instrument;

use super::CertificateState;
use crate::{
    client::{Authority, Talk, text_of},
    domain::{
        certificate::{self, Certificate, Fault, FaultKind, Issued, Order, is_token},
        chain::{self, Unfit},
    },
    store::{
        authorities::{self, Held},
        certificates, clock, published,
    },
};

/// Longest try: what is not done by then goes on with the next one.
const TRY: Duration = Duration::from_secs(120);

/// How long edges have to take what the authority is about to check: longer than the lease of one that died, which is 10 s.
const EDGES: Duration = Duration::from_secs(15);

/// How often an authority is asked whether it is done.
const POLL: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(60));

/// What the audit trail calls a short domain.
const KIND: &str = "shortDomain";

/// What became of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Edges get a certificate.
    Issued,
    /// It failed, and is tried again.
    Failed(Fault),
    /// Another control holds the lease, or the domain wants no certificate any more.
    Lost,
}

/// Why a try stops.
enum Stop {
    Fault(Fault),
    Lost,
    Service(ServiceError),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}

/// Tries to get the certificate of a domain, with the account of these credentials; what became of it is stored.
#[instrument(skip_all, fields(host = %of.host))]
pub async fn carry_out(
    state: &CertificateState,
    authority: &Authority,
    (held, credentials): (&Held, &str),
    of: &Certificate,
) -> Result<Ended, ServiceError> {
    let attempt = Attempt { state, authority, held, of, talk: authority.talk() };
    let ended = timeout(TRY, attempt.run(credentials)).await;
    let stop = match ended {
        Ok(Ok(())) => {
            state.metrics.issued.inc();
            state.readers.wake_edges();
            state.readers.wake_events();
            return Ok(Ended::Issued);
        }
        Ok(Err(stop)) => stop,
        Err(_) => Stop::Fault(unavailable("The certificate is not there yet.")),
    };
    match stop {
        Stop::Lost => Ok(Ended::Lost),
        Stop::Service(error) => Err(error),
        Stop::Fault(fault) => attempt.fail(fault).await,
    }
}

fn unavailable(text: &str) -> Fault {
    Fault { kind: FaultKind::Unavailable, text: text.to_owned(), wait_ms: None }
}

fn refused(text: String) -> Fault {
    Fault { kind: FaultKind::Refused, text, wait_ms: None }
}

/// An order as the authority has it, with its private key in PEM.
struct Open {
    order: AcmeOrder,
    key: String,
}

struct Attempt<'a> {
    state: &'a CertificateState,
    authority: &'a Authority,
    held: &'a Held,
    of: &'a Certificate,
    talk: Talk,
}

impl Attempt<'_> {
    fn host(&self) -> &str {
        self.of.host.as_str()
    }

    async fn run(&self, credentials: &str) -> Result<(), Stop> {
        let account = self.authority.account(credentials, &self.talk).await?;
        match self.go_on(&account).await {
            Err(Stop::Fault(fault)) if self.talk.is_unauthorized() => {
                let is_lost = self.authority.is_lost(&account).await;
                let kind = if is_lost { FaultKind::NoAccount } else { fault.kind };
                Err(Fault { kind, ..fault }.into())
            }
            ended => ended,
        }
    }

    async fn go_on(&self, account: &Account) -> Result<(), Stop> {
        self.compare_clocks().await?;
        let mut open = self.open(account).await?;
        if open.order.state().status == OrderStatus::Pending {
            self.prove(&mut open.order).await?;
        }
        if open.order.state().status == OrderStatus::Ready {
            let csr = self.request(&open.key)?;
            self.asked(open.order.finalize_csr(&csr).await)?;
        }
        if open.order.state().status == OrderStatus::Invalid {
            return Err(refused(self.reason(&mut open.order).await).into());
        }
        let chain = self.asked(open.order.poll_certificate(&POLL).await)?;
        self.store(&chain, &open.key).await
    }

    /// Goes on where the clock of the database is right, by the answer of the authority before.
    async fn compare_clocks(&self) -> Result<(), Stop> {
        let Some(theirs) = self.talk.time() else { return Ok(()) };
        let own = self.now().await?;
        certificate::clock_fault(own, theirs).map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// The order under way, or a new one, which is stored before anything else is asked for.
    async fn open(&self, account: &Account) -> Result<Open, Stop> {
        let own = self.of.order.as_ref().filter(|order| order.directory == self.authority.directory());
        let key = own.and_then(|order| Some((order, self.state.open(self.host(), &order.sealed_key)?)));
        if let Some((order, key)) = key {
            let order = self.asked(account.order(order.url.clone()).await)?;
            return Ok(Open { order, key });
        }
        let names = [Identifier::Dns(self.host().to_owned())];
        let order = self.asked(account.new_order(&NewOrder::new(&names)).await)?;
        if !order.url().starts_with("https://") {
            return Err(refused("The certificate authority: its order has no URL".to_owned()).into());
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(internal)?.serialize_pem();
        let stored = Order {
            directory: self.authority.directory().to_owned(),
            url: order.url().to_owned(),
            sealed_key: self.state.seal(self.host(), &key)?,
        };
        let mut tx = self.begin().await?;
        self.kept(certificates::set_order(&mut tx, self.of, &stored).await?)?;
        tx.commit().await?;
        Ok(Open { order, key })
    }

    /// Lets the authority check the host, once edges have what it asks for.
    async fn prove(&self, order: &mut AcmeOrder) -> Result<(), Stop> {
        let mut authorizations = order.authorizations();
        while let Some(next) = authorizations.next().await {
            let mut authorization = self.asked(next)?;
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                AuthorizationStatus::Invalid
                | AuthorizationStatus::Revoked
                | AuthorizationStatus::Expired
                | AuthorizationStatus::Deactivated => {
                    return Err(refused("The certificate authority: the order has expired".to_owned()).into());
                }
            }
            let has = |kind: &ChallengeType| authorization.challenges.iter().any(|one| one.r#type == *kind);
            let Some(kind) = self.kinds().into_iter().find(has) else {
                let text = "The certificate authority: it checks hosts in no way that edges can answer";
                return Err(refused(text.to_owned()).into());
            };
            let Some(mut challenge) = authorization.challenge(kind) else { continue };
            if !is_token(&challenge.token) {
                return Err(refused("The certificate authority: its token is none".to_owned()).into());
            }
            let rev = self.publish(&challenge.token, challenge.key_authorization().as_str()).await?;
            let report = self.state.redirects.edges.wait(rev, EDGES).await;
            if !report.is_done() {
                return Err(
                    unavailable("Some edges do not have yet what the authority is about to check.").into()
                );
            }
            // It is checked already when an earlier try died behind this.
            if challenge.status == ChallengeStatus::Pending {
                self.asked(challenge.set_ready().await)?;
            }
        }
        let ready = order.poll_ready(&POLL).await;
        if order.state().status == OrderStatus::Invalid {
            return Err(refused(self.reason(order).await).into());
        }
        self.asked(ready).map(drop)
    }

    /// In which way the host is checked: over TLS first, as an edge that serves certificates has such a port and its port 80 may be
    /// closed; over HTTP in every other try, for edges behind something that ends TLS.
    fn kinds(&self) -> [ChallengeType; 2] {
        let (tls, http) = (ChallengeType::TlsAlpn01, ChallengeType::Http01);
        if self.of.failures.is_multiple_of(2) { [tls, http] } else { [http, tls] }
    }

    /// Sends edges what the authority is about to check; gives the revision.
    async fn publish(&self, token: &str, key_authorization: &str) -> Result<Rev, Stop> {
        let challenge = Challenge {
            host: self.host().into(),
            token: token.into(),
            key_authorization: key_authorization.into(),
        };
        let mut tx = self.begin().await?;
        let now = clock::now(&mut tx).await?;
        log::lock(&mut tx).await?;
        self.kept(certificates::set_challenge(&mut tx, self.of, &challenge).await?)?;
        let rev = published::publish(&mut tx, Change::Challenge(challenge.into()), now).await?;
        tx.commit().await?;
        self.state.readers.wake_edges();
        Ok(rev)
    }

    /// The request for a certificate, signed with the key of the order, in DER.
    fn request(&self, key: &str) -> Result<Vec<u8>, Stop> {
        let key = KeyPair::from_pem(key).map_err(internal)?;
        let mut params = CertificateParams::new(vec![self.host().to_owned()]).map_err(internal)?;
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(&key).map_err(internal)?.der().to_vec())
    }

    /// Why the authority could not check the host.
    async fn reason(&self, order: &mut AcmeOrder) -> String {
        let own = order.state().error.as_ref().map(text_of);
        let mut authorizations = order.authorizations();
        let mut found = None;
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            if let Ok(state) = authorization.refresh().await {
                found = state.challenges.iter().find_map(|one| one.error.as_ref()).map(text_of).or(found);
            }
        }
        let text = found.or(own).unwrap_or_else(|| "the order failed, without a reason".to_owned());
        format!("The certificate authority: {text}")
    }

    /// Checks what the authority gave, and sends it to edges.
    async fn store(&self, chain: &str, key: &str) -> Result<(), Stop> {
        let (state, of) = (self.state, self.of);
        let now = self.now().await?;
        let issued = chain::check(chain, key, &of.host, now).map_err(|unfit| {
            let kind = match unfit {
                Unfit::NotYet(..) => FaultKind::Unusable,
                Unfit::NoCertificate
                | Unfit::TooLong
                | Unfit::OtherKey
                | Unfit::OtherNames(_)
                | Unfit::Ended(..) => FaultKind::Refused,
            };
            Fault { kind, text: format!("It was refused: {unfit}."), wait_ms: None }
        })?;
        let [jitter, ..] = state.random16().map_err(ServiceError::from)?;
        let sealed = state.seal(self.host(), key)?;
        let certificate = DomainCertificate {
            host: self.host().into(),
            chain: chain.into(),
            key: sealed.as_str().into(),
            not_after: issued.not_after.0,
        };
        let mut tx = self.begin().await?;
        log::lock(&mut tx).await?;
        let next_try = issued.renew_at(now, jitter);
        self.kept(certificates::set_issued(&mut tx, of, &issued, (chain, &sealed), next_try).await?)?;
        let change = Change::Certificate(self.host().into(), Some(certificate.into()));
        published::publish(&mut tx, change, now).await?;
        self.record_event(&mut tx, None, now).await?;
        let before = of.issued.as_ref().map_or_else(|| json!({}), shown);
        tx.note(of.account, (KIND, self.host()), || (Some(before), Some(shown(&issued))));
        Ok(tx.commit().await?)
    }

    /// Stores that a try failed. The account gets one event, until there is a certificate.
    async fn fail(&self, fault: Fault) -> Result<Ended, ServiceError> {
        let (state, of) = (self.state, self.of);
        let [jitter, ..] = state.random16()?;
        state.metrics.failed.inc();
        tracing::warn!(host = %of.host, kind = ?fault.kind, reason = %fault.text, "there is no new certificate");
        // The order may be younger than what the try began with.
        let mut tx = match self.begin().await {
            Ok(tx) => tx,
            Err(Stop::Service(error)) => return Err(error),
            Err(Stop::Lost | Stop::Fault(_)) => return Ok(Ended::Lost),
        };
        let Some(present) = certificates::find(&mut tx, of.account, &of.host).await? else {
            return Ok(Ended::Lost);
        };
        let now = clock::now(&mut tx).await?;
        let is_first = present.failures == 0;
        let after = present.after(fault.clone(), now, jitter);
        if !certificates::set_failure(&mut tx, &after).await? {
            return Ok(Ended::Lost);
        }
        let is_reported = is_first && after.failures > 0;
        if is_reported {
            self.record_event(&mut tx, Some(fault.text.clone()), now).await?;
        }
        tx.commit().await?;
        if is_reported {
            state.readers.wake_events();
        }
        Ok(Ended::Failed(fault))
    }

    async fn record_event(
        &self,
        tx: &mut Tx,
        error: Option<String>,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let event = Event::Certificate(self.host().to_owned(), error);
        events::record(tx, now, &[(self.of.account, event)]).await
    }

    /// The time of the database.
    async fn now(&self) -> Result<UnixMillis, StoreError> {
        clock::now(&mut self.state.db.read().await?).await
    }

    /// A transaction under the lease.
    async fn begin(&self) -> Result<Tx, Stop> {
        let ctx = Ctx::of_platform("certificate of a short domain", self.state.clock.now());
        let mut tx = self.state.db.begin(&ctx).await?;
        self.kept(authorities::hold(&mut tx, self.held).await?)?;
        Ok(tx)
    }

    fn kept(&self, is_kept: bool) -> Result<(), Stop> {
        if is_kept { Ok(()) } else { Err(Stop::Lost) }
    }

    fn asked<T>(&self, answer: Result<T, instant_acme::Error>) -> Result<T, Stop> {
        answer.map_err(|error| self.talk.fault(error).into())
    }
}

fn internal(error: rcgen::Error) -> Stop {
    Stop::Service(ServiceError::Internal(format!("a key or a request for a certificate: {error}")))
}

/// What the audit trail shows of a certificate.
fn shown(issued: &Issued) -> Value {
    json!({"certificate": {"issuer": issued.issuer, "notAfter": issued.not_after}})
}
