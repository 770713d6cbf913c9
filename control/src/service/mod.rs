//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod base_urls;
pub mod intake;
pub mod seed;
pub mod write_probe;

use ::secrets::SecretsError;
use ::secrets::keys::SecretKeys;
use std::{ops::Deref, sync::Arc};

use shared::{client_address::TrustedProxies, id::AccountId, time::Clock};

pub use ::actions::service::{ActionState, Observers, action_creation, action_types, actions, lists};
pub use ::assessment::service::{AssessmentState, assessment, cases, observer};
pub use ::catalog::service::{
    Catalog, batches, collections, files, locations, places, products, properties, property_group, thng_keys,
    thngs,
};
pub use ::commissioning::service::commissioning;
pub use ::events::service::{
    EventState, connections, events, export, fan_out, followers, live, reactions, webhooks,
};
pub use ::jobs::service::{JobState, jobs};
pub use ::kernel::service::{
    access, batcher, bulk, capacity, idempotency, key_uses, limiter, named, references, remaining_capacity,
    state::{ChangedThng, Core, Dependents, Random, RandomUnavailable, Readers, Secrets},
};
pub use ::push::edge_keys;
pub use ::redirects::service::{Redirects, redirections, rules, tasks};
pub use ::tenants::service::{applications, first_keys, keys, passwords, projects, scopes, tenants, users};

use self::intake::Counters;
use crate::{
    live::Broker,
    metrics::Metrics,
    publish::hub::Hub,
    store::{Ctx, Db, log},
};

/// What handlers need: the state of each subject; one for each process, shared.
pub struct App {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// What the operations of the catalog need.
    pub catalog: Catalog,
    /// What the operations on redirections and rules need.
    pub redirects: Redirects,
    /// The change stream.
    pub hub: Hub,
    /// What the operations of assessment need.
    pub assessment: AssessmentState,
    /// What operations and workers of events need.
    pub events: Arc<EventState>,
    /// What connections need.
    pub broker: Arc<Broker>,
    /// What the operations on actions need.
    pub actions: ActionState,
    /// Proxies before the API that may name the client of a request.
    pub trusted_proxies: TrustedProxies,
    /// Keys of edges: they authenticate, and make what an edge says of the client count.
    pub edge_keys: Arc<edge_keys::EdgeKeys>,
    /// How many requests keys and addresses may make.
    pub limiter: Arc<limiter::Limiter>,
    /// What requests of the API counted.
    pub metrics: Metrics,
    /// Whether the database takes writes.
    pub write_probe: write_probe::WriteProbe,
    /// Counters of scan intake.
    pub intake: Counters,
    /// What operations and workers of jobs need.
    pub jobs: Arc<JobState>,
    /// Hashes passwords.
    pub passwords: passwords::Passwords,
    /// Address of the docs page without a fragment, for `moreInfo`.
    pub docs_url: String,
    /// Scheme and host of the URLs in answers.
    pub base_urls: base_urls::BaseUrls,
}

impl Deref for App {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl AsRef<Core> for App {
    fn as_ref(&self) -> &Core {
        &self.core
    }
}

impl AsRef<Catalog> for App {
    fn as_ref(&self) -> &Catalog {
        &self.catalog
    }
}

impl AsRef<EventState> for App {
    fn as_ref(&self) -> &EventState {
        &self.events
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
/// The shared keys do not decrypt, or there are no random bits; nothing was written.
pub async fn prepare(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    history_file_id: &str,
    keys: &SecretKeys,
) -> Result<Prepared, SecretsError> {
    let now = clock.now().0;
    let mut epoch = [0; 16];
    random.fill(&mut epoch)?;
    let epoch = shared::id::ActionId::new(now, epoch).to_string();
    let mut tx = db.begin(&Ctx::default()).await?;
    let history = crate::store::dialect::find_history_id(&mut tx).await?;
    log::bind(&mut tx, &epoch, history.as_deref().unwrap_or(history_file_id)).await?;
    let (loaded, were_plain) = ::secrets::load(&mut tx, keys, random, now).await?;
    let first_account = crate::store::accounts::find_first(&mut tx).await?;
    tx.commit().await?;
    if were_plain {
        tracing::info!(key = %keys.current(), "the secrets in the database are encrypted from now on");
        ::secrets::store::checkpoint(db).await?;
    }
    Ok(Prepared { secrets: loaded, first_account })
}
