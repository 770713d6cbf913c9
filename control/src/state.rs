//! The state of a process: that of each subject, and what all requests share.

use std::sync::Arc;

use actions::service::ActionState;
use applications::service::users::Users;
use assessment::service::AssessmentState;
use catalog::service::Catalog;
use digital_links::service::check::LinkChecks;
use domains::service::DomainState;
use events::{live::Broker, service::EventState};
use jobs::service::JobState;
use kernel::service::Core;
use link_changes::service::LinkChangeState;
use oidc::service::OidcState;
use printing::service::PrintState;
use privacy::service::PrivacyState;
use push::{edge_keys::EdgeKeys, hub::Hub};
use redirects::service::Redirects;
use shared::client_address::TrustedProxies;
use signin::service::SignInState;
use statistics::service::StatisticsState;
use web::{fair_share::FairShare, limiter::Limiter};

use crate::{
    metrics::Metrics,
    service::{base_urls::BaseUrls, intake::Counters, write_probe::WriteProbe},
    worker::ingest_scans::ScanGroups,
};

/// What a process holds; one for each, shared.
///
/// The router, the layers around it and the start of workers see it; a handler sees the state of its subject.
pub struct ApiState {
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
    /// What erasures of personal data need.
    pub privacy: Arc<PrivacyState>,
    /// What operations and workers of print orders need.
    pub printing: Arc<PrintState>,
    /// What operations and workers of short domains need.
    pub domains: Arc<DomainState>,
    /// What checks of the links of products need.
    pub link_checks: Arc<LinkChecks>,
    /// What operations and workers of changes of many links need.
    pub link_changes: Arc<LinkChangeState>,
    /// What operations and workers of events need.
    pub events: Arc<EventState>,
    /// What statistics of scans need.
    pub statistics: StatisticsState,
    /// What connections need.
    pub broker: Arc<Broker>,
    /// What the operations on actions need.
    pub actions: ActionState,
    /// Proxies before the API that may name the client of a request.
    pub trusted_proxies: TrustedProxies,
    /// Keys of edges: they authenticate, and make what an edge says of the client count.
    pub edge_keys: Arc<EdgeKeys>,
    /// How many requests keys and addresses may make.
    pub limiter: Arc<Limiter>,
    /// How many requests of accounts are under way beside each other.
    pub fair_share: Arc<FairShare>,
    /// What requests of the API counted.
    pub metrics: Metrics,
    /// Whether the database takes writes.
    pub write_probe: WriteProbe,
    /// Counters of scan intake.
    pub intake: Counters,
    /// Batches of scans that wait to be written together.
    pub scan_groups: ScanGroups,
    /// What operations and workers of jobs need.
    pub jobs: Arc<JobState>,
    /// What operations on users need, and the outbox of mails.
    pub users: Users,
    /// What sign-in of operators needs.
    pub sign_in: SignInState,
    /// What sign-in by a provider of identities needs.
    pub oidc: OidcState,
    /// Address of the docs page without a fragment, for `moreInfo`.
    pub docs_url: String,
    /// Scheme and host of the URLs in answers.
    pub base_urls: BaseUrls,
}
