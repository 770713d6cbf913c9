//! Composition: the state that every control process holds, built in one place.

use std::{sync::Arc, time::Duration};

use shared::{
    client_address::TrustedProxies,
    geo::{GeoIp, NoGeoIp},
    time::Clock,
};

use crate::{
    metrics::{JobMetrics, Metrics},
    publish::{
        egress::EgressClient,
        feed::{self, Feed},
        hub::Hub,
        writer::{self, WriterTask},
    },
    service::{
        App, Random, Secrets,
        access::KeyLookups,
        assessment::groups::AssessmentGroups,
        base_urls::{BaseUrls, UrlSettings},
        capacity::{Capacity, CapacityLimits},
        connections::Connections,
        edge_keys::EdgeKeys,
        events::Streams,
        intake::Counters,
        limiter::{Limiter, Limits, Ticks},
        passwords::Passwords,
        property_group::PropertyGroups,
        reactions::Reactions,
        webhooks::Webhooks,
        write_probe::WriteProbe,
    },
    store::{Db, StoreError, blobs::Blobs},
};

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
    pub capacity: CapacityLimits,
    /// Sends requests to addresses that somebody gave.
    pub egress: EgressClient,
    /// How long jobs are kept once they have ended; `None` is for ever.
    pub jobs_kept: Option<Duration>,
    /// Keys of edges.
    pub edge_keys: EdgeKeys,
    /// Address of the docs page without a fragment.
    pub docs_url: String,
    /// Settings for the URLs in responses.
    pub urls: UrlSettings,
}

/// Builds the service and its writer task.
///
/// # Errors
/// The change log cannot be read.
pub async fn compose(parts: Parts) -> Result<(Arc<App>, WriterTask), StoreError> {
    let hub = Hub::open(parts.db.clone()).await?;
    let (writer, writer_task) = writer::writer();
    // A pool of its own: a session that always does the same thing has its statements in its caches.
    let feed = Feed::new(parts.db.aside(feed::CONNECTIONS), parts.clock.clone());
    let property_groups = PropertyGroups::new(parts.db.aside(1), parts.clock.clone(), feed.clone());
    let assessment_groups =
        AssessmentGroups::new(parts.db.clone(), parts.clock.clone(), feed.clone(), hub.clone());
    let app = App {
        egress: parts.egress,
        webhooks: Webhooks::default(),
        reactions: Reactions::default(),
        streams: Streams::default(),
        key_lookups: KeyLookups::new(parts.db.clone()),
        property_groups,
        assessment_groups,
        feed,
        connections: Connections::default(),
        db: parts.db,
        clock: parts.clock,
        random: parts.random,
        secrets: parts.secrets,
        blobs: parts.blobs,
        writer,
        hub,
        geo_ip: parts.geo_ip.unwrap_or_else(|| Arc::new(NoGeoIp)),
        trusted_proxies: parts.trusted_proxies,
        edge_keys: Arc::new(parts.edge_keys),
        capacity: Capacity::new(parts.capacity),
        limiter: Limiter::new(&parts.limits, &parts.ticks),
        agents: woothee::parser::Parser::new(),
        metrics: Metrics::default(),
        write_probe: WriteProbe::default(),
        intake: Counters::default(),
        job_wake: tokio::sync::Notify::new(),
        job_metrics: JobMetrics::default(),
        jobs_kept: parts.jobs_kept,
        passwords: Passwords::default(),
        docs_url: parts.docs_url,
        base_urls: BaseUrls::new(parts.urls),
    };
    Ok((Arc::new(app), writer_task))
}
