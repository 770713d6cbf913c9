//! Composition: the state that every control process holds, built in one place.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use ::certificates::{client::Authority, service::CertificateState, settings::AcmeSettings};
use ::domains::service::DomainState;
use ::jobs::{service::JobState, store::jobs};
use actions::service::{ActionState, Observers};
use applications::service::users::Users;
use assessment::service::{
    AssessmentState,
    assessment::{observe::ScanSources, standing},
    observer::Assessments,
};
use catalog::{
    service::{Catalog, property_group::PropertyGroups},
    store::blobs::Blobs,
};
use digital_links::service::check::LinkChecks;
use events::{
    egress::EgressClient,
    feed::{self, Feed},
    live::Broker,
    service::EventState,
};
use futures_util::future::BoxFuture;
use kernel::{
    domain::device::DeviceKey,
    error::ServiceError,
    service::{
        ChangedProduct, ChangedThng, Core, Dependents, Random, Readers, Secrets, access::KeyLookups,
        capacity::Capacity, open_quotas::OpenQuotas,
    },
    store::{Conn, Db, StoreError, Tx},
};
use link_changes::service::LinkChangeState;
use mail::{MailSettings, Outbox};
use oidc::{Provider, service::OidcState};
use printing::{
    service::{PrintLimits, PrintState},
    store::orders as print_orders,
};
use privacy::service::{PrivacyState, erasures};
use push::{certificates::CertificateKey, edge_keys::EdgeKeys, hub::Hub};
use redirects::{
    service::{DRAWINGS, Redirects, redirections::follow_thng, rules},
    store::{domains, log, tasks},
    writer::{self, WriterTask},
};
use scan_store::{Scans, domain::scan_server::ScanServer};
use shared::{
    client_address::TrustedProxies,
    contact::Contact,
    geo::{GeoIp, NoGeoIp},
    id::{AccountId, ActionId, ApplicationId, BatchId, ProductId, ThngId, UserId},
    time::{Clock, UnixMillis},
};
use signin::service::SignInState;
use statistics::service::StatisticsState;
use tenants::service::passwords::Passwords;
use tokio::sync::Semaphore;
use web::{
    fair_share::FairShare,
    limiter::{Limiter, Limits, Ticks},
};

use crate::{
    http::remove_unknown,
    metrics::Metrics,
    service::{
        base_urls::{BaseUrls, UrlSettings},
        intake::Counters,
        write_probe::WriteProbe,
    },
    state::ApiState,
    worker::ingest_scans::ScanGroups,
};

/// The readers of what is committed: the feed of events, and the change stream of edges.
struct ProcessReaders {
    feed: Feed,
    hub: Hub,
}

impl Readers for ProcessReaders {
    fn wake_events(&self) {
        self.feed.wake();
    }

    fn wake_edges(&self) {
        self.hub.wake();
    }
}

/// What redirections, rules, tasks, jobs and assessments do when something changes.
struct LaterSubjects {
    scans: Scans,
    devices: DeviceKey,
}

impl LaterSubjects {
    fn sources(&self) -> ScanSources<'_> {
        ScanSources { scans: &*self.scans.reserved, devices: &self.devices }
    }
}

impl Dependents for LaterSubjects {
    fn application_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        application: ApplicationId,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>> {
        Box::pin(rules::forget(tx, account, application, now))
    }

    fn batch_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        batch: BatchId,
    ) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(async move { Ok(tasks::delete_of_batch(tx, account, batch).await?) })
    }

    fn lock_changes<'a>(&'a self, tx: &'a mut Tx) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(async move { Ok(log::lock(tx).await?) })
    }

    fn domains_changed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(async move { Ok(domains::publish(tx, account, now).await?) })
    }

    fn count_scans(
        &self,
        account: AccountId,
        since: UnixMillis,
        most: u64,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.scans.pool.count_since(account, since, most)
    }

    fn reads_blob<'a>(
        &'a self,
        conn: &'a mut Conn,
        blob: &'a str,
    ) -> BoxFuture<'a, Result<bool, ServiceError>> {
        Box::pin(
            async move { Ok(jobs::is_input(conn, blob).await? || print_orders::is_input(conn, blob).await?) },
        )
    }

    fn product_changed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        product: ChangedProduct,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>> {
        Box::pin(digital_links::service::follow_product(tx, account, product, now))
    }

    fn thng_changed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        thng: ChangedThng,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>> {
        Box::pin(async move {
            let has_new_verdict =
                thng.is_marked && standing::marked(self.sources(), tx, account, thng.id, now).await?;
            let is_visible = thng.is_renamed || has_new_verdict;
            let is_followed = (is_visible || thng.is_moved)
                && follow_thng(tx, account, thng.id, thng.product, is_visible, now).await?;
            let is_relinked = thng.is_relinked || thng.is_renamed || thng.is_moved;
            let (item, links) = ((thng.id, thng.product), thng.has_new_links);
            Ok((is_relinked && digital_links::service::follow_thng(tx, account, item, links, now).await?)
                || is_followed)
        })
    }

    fn follow_left<'a>(
        &'a self,
        tx: &'a mut Tx,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>> {
        Box::pin(digital_links::service::follow_left(tx, now))
    }

    fn thng_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        thng: ThngId,
        product: Option<ProductId>,
        now: UnixMillis,
    ) -> BoxFuture<'a, Result<bool, ServiceError>> {
        Box::pin(async move {
            standing::forget(tx, account, thng).await?;
            // Its name is gone with it; what rules see of its redirections must not depend on when an edge read them.
            let is_followed = follow_thng(tx, account, thng, product, true, now).await?;
            let item = (thng, None);
            Ok(digital_links::service::follow_thng(tx, account, item, false, now).await? || is_followed)
        })
    }

    fn users_removed<'a>(
        &'a self,
        tx: &'a mut Tx,
        account: AccountId,
        users: Vec<UserId>,
        at: (UnixMillis, [u8; 16]),
    ) -> BoxFuture<'a, Result<(), ServiceError>> {
        Box::pin(async move { Ok(erasures::users_removed(tx, account, users, at).await?) })
    }
}

/// The parts that a process chooses; the rest is derived.
pub struct Parts {
    /// The store, prepared.
    pub db: Db,
    /// Keys that all replicas share.
    pub secrets: Secrets,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The time since some start, which never goes back.
    pub ticks: Ticks,
    /// Random bits.
    pub random: Arc<dyn Random>,
    /// The bytes of files.
    pub blobs: Blobs,
    /// Geography of addresses.
    pub geo_ip: Option<Arc<dyn GeoIp>>,
    /// Proxies before the API that may name the client.
    pub trusted_proxies: TrustedProxies,
    /// How many requests keys and addresses may make.
    pub limits: Limits,
    /// How many connections and uploads there may be.
    pub capacity: Capacity,
    /// Sends requests to addresses that somebody gave.
    pub egress: EgressClient,
    /// Who is asked for the TXT records of domains; `None`: the servers of the system.
    pub dns_server: Option<SocketAddr>,
    /// The authority that is asked for certificates of domains; `None`: none is.
    pub acme: Option<AcmeSettings>,
    /// How long jobs are kept once they have ended; `None` is for ever.
    pub jobs_kept: Option<Duration>,
    /// How large print orders may be, and how long their files are kept.
    pub printing: PrintLimits,
    /// Keys of edges.
    pub edge_keys: EdgeKeys,
    /// How mail is sent; without it there is none.
    pub mail: Option<MailSettings>,
    /// The provider by which operators sign in, if there is one.
    pub oidc: Option<Arc<Provider>>,
    /// The server of scans; without one they are kept with the database.
    pub scans: Option<ScanServer>,
    /// Where the owner of a suspended account asks why.
    pub contact: Option<Contact>,
    /// Address of the docs page without a fragment.
    pub docs_url: String,
    /// Settings for the URLs in responses.
    pub urls: UrlSettings,
}

/// Builds the service and its writer task.
///
/// # Errors
/// The change log cannot be read, or the client of the certificate authority cannot be set up.
pub async fn compose(parts: Parts) -> Result<(Arc<ApiState>, WriterTask), StoreError> {
    let hub = Hub::open(parts.db.clone()).await?;
    hub.reveal_certificates(CertificateKey::new(parts.secrets.certificate));
    let authority = parts.acme.map(Authority::new).transpose();
    let authority = authority.map_err(StoreError::Row)?;
    let (writer, writer_task) = writer::writer();
    let scans = scan_store::store::open_in(&parts.db, parts.scans).await?;
    let devices = parts.secrets.device_key();
    let observers: Arc<dyn Observers> =
        Arc::new(Assessments { scans: scans.clone(), devices: Some(devices.clone()) });
    // A pool of its own: a session that always does the same thing has its statements in its caches.
    let feed = Feed::new(parts.db.with_own_pool(feed::CONNECTIONS), parts.clock.clone(), observers.clone());
    let readers = Arc::new(ProcessReaders { feed: feed.clone(), hub: hub.clone() });
    let property_groups =
        PropertyGroups::new(parts.db.with_own_pool(1), parts.clock.clone(), readers.clone());
    let outbox = Arc::new(Outbox::new(parts.mail, &parts.secrets, parts.random.clone()));
    let mut key_lookups = KeyLookups::new(parts.db.clone());
    key_lookups.contact = parts.contact.map(Arc::new);
    let mut bits = [0; 16];
    parts.random.fill(&mut bits).map_err(|error| StoreError::Row(error.to_string()))?;
    let holder = ActionId::new(parts.clock.now().0, bits).to_string();
    let core = Arc::new(Core {
        key_lookups,
        db: parts.db,
        clock: parts.clock,
        random: parts.random,
        secrets: parts.secrets,
        capacity: parts.capacity,
        open_quotas: OpenQuotas::new(holder),
        readers,
        dependents: Arc::new(LaterSubjects { scans: scans.clone(), devices }),
    });
    let catalog = Catalog { core: core.clone(), blobs: parts.blobs, property_groups };
    let drawings = Arc::new(Semaphore::new(DRAWINGS));
    let redirects = Redirects { core: core.clone(), writer, edges: Arc::new(hub.clone()), drawings };
    let actions = ActionState {
        core: core.clone(),
        geo_ip: parts.geo_ip.unwrap_or_else(|| Arc::new(NoGeoIp)),
        agents: Arc::new(woothee::parser::Parser::new()),
        scans,
        observers,
    };
    let own_urls = parts.urls.public_url.as_deref().into_iter().chain([parts.docs_url.as_str()]);
    let certificates = CertificateState::new(redirects.clone(), authority);
    let domains = DomainState::new(
        redirects.clone(),
        parts.egress.clone(),
        (outbox.clone(), certificates),
        parts.dns_server,
        own_urls,
    );
    let link_checks = LinkChecks::new(core.clone(), parts.egress.clone());
    let events = EventState::new(catalog.clone(), actions.clone(), feed, parts.egress);
    let limiter = Arc::new(Limiter::new(&parts.limits, &parts.ticks));
    let broker = Arc::new(Broker {
        events: events.clone(),
        limiter: limiter.clone(),
        trusted_proxies: parts.trusted_proxies.clone(),
        docs_url: parts.docs_url.clone(),
        remove_unknown,
    });
    let passwords = Passwords::default();
    let sign_in = SignInState::new(core.clone(), passwords.clone(), outbox.clone());
    let assessment = AssessmentState::new(actions.clone(), catalog.blobs.clone());
    let app = ApiState {
        privacy: PrivacyState::new(assessment.clone()),
        printing: PrintState::new(redirects.clone(), &catalog.blobs, parts.printing),
        domains,
        link_checks,
        link_changes: LinkChangeState::new(redirects.clone(), parts.jobs_kept),
        assessment,
        statistics: StatisticsState::new(core.clone(), events.clone()),
        events,
        broker,
        jobs: JobState::new(actions.clone(), catalog.blobs.clone(), parts.jobs_kept),
        actions,
        oidc: OidcState::new(core.clone(), parts.oidc, sign_in.clone()),
        sign_in,
        users: Users { core: core.clone(), passwords, outbox },
        core,
        catalog,
        redirects,
        hub,
        trusted_proxies: parts.trusted_proxies,
        edge_keys: Arc::new(parts.edge_keys),
        limiter,
        fair_share: FairShare::of_machine(),
        metrics: Metrics::default(),
        write_probe: WriteProbe::default(),
        intake: Counters::default(),
        scan_groups: ScanGroups::default(),
        docs_url: parts.docs_url,
        base_urls: BaseUrls::new(parts.urls),
    };
    Ok((Arc::new(app), writer_task))
}
