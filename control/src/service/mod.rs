//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod access;
pub mod action_creation;
pub mod action_types;
pub mod actions;
pub mod applications;
pub mod assessment;
pub mod base_urls;
mod batcher;
pub mod batches;
pub mod bulk;
pub mod capacity;
pub mod cases;
pub mod collections;
pub mod commissioning;
pub mod connections;
pub mod edge_keys;
pub mod events;
pub mod export;
pub mod fan_out;
pub mod files;
pub mod followers;
pub mod idempotency;
pub mod intake;
pub mod jobs;
pub mod limiter;
pub mod live;
pub mod locations;
mod named;
pub mod passwords;
pub mod places;
pub mod products;
pub mod projects;
pub mod properties;
pub mod property_group;
pub mod reactions;
pub mod redirections;
pub mod references;
pub mod remaining_capacity;
pub mod rules;
pub mod scopes;
pub mod seed;
pub mod tasks;
pub mod tenants;
pub mod thng_keys;
pub mod thngs;
mod user_rules;
pub mod users;
pub mod webhooks;
pub mod write_probe;

use std::{sync::Arc, time::Duration};

use shared::{client_address::TrustedProxies, geo::GeoIp, id::AccountId, time::Clock};

use self::{connections::Connections, intake::Counters, passwords::Passwords};
use crate::{
    error::ServiceError,
    metrics::{JobMetrics, Metrics},
    publish::{egress::EgressClient, feed::Feed, hub::Hub, writer::Writer},
    store::{Db, blobs::Blobs, log, secrets},
};

/// Where random bits come from; the system's source lives in the binaries.
pub trait Random: Send + Sync + 'static {
    /// Fills `out` with random bytes fit for keys.
    ///
    /// # Errors
    /// The system has none to give.
    fn fill(&self, out: &mut [u8]) -> Result<(), RandomUnavailable>;
}

/// The system's source of random bits failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no random bits")]
pub struct RandomUnavailable;

impl From<RandomUnavailable> for ServiceError {
    fn from(error: RandomUnavailable) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Keys that all replicas share, from the store.
#[derive(Clone)]
pub struct Secrets {
    /// Authenticates page tokens.
    pub page_token: [u8; 32],
    /// Key for the ids of scan actions, which must be unguessable and the same on a repeat.
    pub scan_id: [u8; 32],
    /// Signs the URLs of files.
    pub file_url: [u8; 32],
    /// Keys of applications and Thngs are derived from it, so that they can be read again.
    pub api_key: [u8; 32],
    /// What webhooks sign with is derived from it.
    pub webhook: [u8; 32],
}

/// Everything an operation needs; one for each process, shared.
pub struct App {
    /// The store.
    pub db: Db,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Random bits.
    pub random: Arc<dyn Random>,
    /// Shared keys.
    pub secrets: Secrets,
    /// The bytes of files.
    pub blobs: Blobs,
    /// Writes redirections.
    pub writer: Writer,
    /// The change stream.
    pub hub: Hub,
    /// The event feed for subscribers.
    pub feed: Feed,
    /// Sends requests to addresses that somebody gave.
    pub egress: EgressClient,
    /// What workers of webhooks share.
    pub webhooks: webhooks::Webhooks,
    /// What workers of reactions share.
    pub reactions: reactions::Reactions,
    /// Streams of events.
    pub streams: events::Streams,
    /// Look-ups of keys.
    pub key_lookups: access::KeyLookups,
    /// Small writes of properties.
    pub property_groups: property_group::PropertyGroups,
    /// Results of assessments, written with those that come at the same time.
    pub assessment_groups: assessment::groups::AssessmentGroups,
    /// Connections to the broker.
    pub connections: Connections,
    /// Geography of addresses.
    pub geo_ip: Arc<dyn GeoIp>,
    /// Proxies before the API that may name the client of a request.
    pub trusted_proxies: TrustedProxies,
    /// Keys of edges: they authenticate, and make what an edge says of the client count.
    pub edge_keys: Arc<edge_keys::EdgeKeys>,
    /// Places that all share.
    pub capacity: capacity::Capacity,
    /// How many requests keys and addresses may make.
    pub limiter: limiter::Limiter,
    /// Reads user agents.
    pub agents: woothee::parser::Parser,
    /// What requests of the API counted.
    pub metrics: Metrics,
    /// Whether the database takes writes.
    pub write_probe: write_probe::WriteProbe,
    /// Counters of scan intake.
    pub intake: Counters,
    /// Notified when a job may be due, so that workers of this process need not poll.
    pub job_wake: tokio::sync::Notify,
    /// What workers of jobs counted.
    pub job_metrics: JobMetrics,
    /// How long jobs are kept once they have ended; `None` is for ever.
    pub jobs_kept: Option<Duration>,
    /// Hashes passwords.
    pub passwords: Passwords,
    /// Address of the docs page without a fragment, for `moreInfo`.
    pub docs_url: String,
    /// Scheme and host of the URLs in answers.
    pub base_urls: base_urls::BaseUrls,
}

impl App {
    /// 128 random bits.
    ///
    /// # Errors
    /// The system has none to give.
    pub fn random16(&self) -> Result<[u8; 16], RandomUnavailable> {
        let mut out = [0; 16];
        self.random.fill(&mut out)?;
        Ok(out)
    }
}

/// Data that the store must hold before the service starts.
pub struct Prepared {
    /// Shared keys.
    pub secrets: Secrets,
    /// The first account, if there is one.
    pub first_account: Option<AccountId>,
}

/// Sets up the log and the shared keys; safe to run at each start and from several processes.
///
/// `history_file_id` is the id in the file beside a SQLite database; on Postgres the server's own history
/// id serves. A copy of the database thus gets a new epoch.
///
/// # Errors
/// There are no random bits.
pub async fn prepare(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    history_file_id: &str,
) -> Result<Prepared, ServiceError> {
    let now = clock.now().0;
    let mut fresh = [[0; 32]; 5];
    for key in &mut fresh {
        random.fill(key)?;
    }
    let mut epoch = [0; 16];
    random.fill(&mut epoch)?;
    let epoch = shared::id::ActionId::new(now, epoch).to_string();
    let mut tx = db.begin().await?;
    let history = crate::store::dialect::find_history_id(&mut tx).await?;
    log::bind(&mut tx, &epoch, history.as_deref().unwrap_or(history_file_id)).await?;
    let secrets = Secrets {
        page_token: secrets::find_or_insert(&mut tx, "page-token", fresh[0], now).await?,
        scan_id: secrets::find_or_insert(&mut tx, "scan-id", fresh[1], now).await?,
        file_url: secrets::find_or_insert(&mut tx, "file-url", fresh[3], now).await?,
        webhook: secrets::find_or_insert(&mut tx, "webhook", fresh[4], now).await?,
        api_key: secrets::find_or_insert(&mut tx, "api-key", fresh[2], now).await?,
    };
    let first_account = crate::store::accounts::find_first(&mut tx).await?;
    tx.commit().await?;
    Ok(Prepared { secrets, first_account })
}

/// A create request without a name.
fn name_required() -> ServiceError {
    ServiceError::refused(shared::problem::Code::Invalid, "name is required.")
}
