//! The backing of a fleet: Redis for reads, control's internal listener for everything else.

use std::{
    num::NonZeroU32,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use region_redis::RedisUrl;
use rustls_pki_types::ServerName;
use shared::{
    redirect::RedirectKey,
    wire::{
        limits::LimitReport,
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Fill, Hello},
        unknown::UnknownReport,
    },
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use crate::{
    Backing, BackingError, BackingStatus, SetupView, StreamEnd,
    internal::{CONNECT_TIMEOUT, ControlClient},
    redis::RedisView,
    stream::{self, DialError, FrameStream},
};
use crate::{
    edge_key::EdgeKey,
    error::EdgeError,
    origins::{Origin, Origins},
    trust,
};

/// Where the rest of the fleet is.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// The internal listeners of control's replicas, as `https://host:port`; one or more.
    pub control_urls: Vec<String>,
    /// The CA of their certificates, as a PEM file; default the roots of the system.
    pub control_ca: Option<PathBuf>,
    /// The key of this edge.
    pub key: Arc<EdgeKey>,
    /// The Redis of the region.
    pub redis: RedisUrl,
    /// The CA of its certificates, as a PEM file; default the roots of the system.
    pub redis_ca: Option<PathBuf>,
    /// Into how many shards the view is cut: 1, or 16 on a cluster; as control has it.
    pub shards: u16,
    /// Look-ups at control a second, for what the view cannot answer; 500 is a tenth of the limit on misses.
    pub lookups_per_second: NonZeroU32,
}

/// Redis and control over the network.
pub struct Network {
    view: RedisView,
    control: ControlClient,
    /// Replicas for the stream: the next one at each connection, so that a fleet spreads over them.
    replicas: Origins,
    /// The replica of the newest stream.
    followed: Mutex<Option<Origin>>,
    key: Arc<EdgeKey>,
    tls: TlsConnector,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("replicas", &self.replicas).finish_non_exhaustive()
    }
}

impl Network {
    /// Reads the files and begins to connect to Redis; needs a runtime.
    ///
    /// # Errors
    /// A setting or a file cannot be used.
    pub fn new(config: &NetworkConfig) -> Result<Self, EdgeError> {
        let replicas = Origins::new("control_urls", &config.control_urls, true)?;
        let key = config.key.clone();
        let ca = config.control_ca.as_deref();
        let control = ControlClient::new(replicas.beside(), ca, key.clone(), config.lookups_per_second)?;
        let mut tls = trust::client_config(ca, replicas.need_tls())?;
        // An upgrade is a thing of HTTP/1.1.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|source| EdgeError::Storage { path: path.clone(), source })
        };
        let redis_ca = config.redis_ca.as_ref().map(read).transpose()?;
        let view = RedisView::new(&config.redis, redis_ca.as_deref(), config.shards)?;
        let tls = TlsConnector::from(Arc::new(tls));
        Ok(Self { view, control, replicas, followed: Mutex::default(), key, tls })
    }

    async fn dial(&self, origin: &Origin, hello: Hello) -> Result<FrameStream<TokioIo<Upgraded>>, DialError> {
        let failed = |error: &dyn std::fmt::Display| DialError::Failed(error.to_string());
        let connect = TcpStream::connect((origin.host(), origin.port()));
        let tcp = timeout(CONNECT_TIMEOUT, connect)
            .await
            .map_err(|_| DialError::Silent("connecting"))?
            .map_err(|error| failed(&error))?;
        tcp.set_nodelay(true).map_err(|error| failed(&error))?;
        let host = origin.authority.as_str();
        if !origin.is_tls() {
            return stream::open(tcp, host, self.key.authorization(), hello).await;
        }
        let name = ServerName::try_from(origin.host().to_owned()).map_err(|error| failed(&error))?;
        let tls = timeout(CONNECT_TIMEOUT, self.tls.connect(name, tcp))
            .await
            .map_err(|_| DialError::Silent("the TLS handshake"))?
            .map_err(|error| failed(&error))?;
        stream::open(tls, host, self.key.authorization(), hello).await
    }
}

impl Backing for Network {
    type Changes = FrameStream<TokioIo<Upgraded>>;

    async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.view.get(key).await
    }

    async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        self.control.lookup(key).await
    }

    async fn digital_link(&self, key: &RedirectKey) -> Result<Result<String, String>, BackingError> {
        self.control.digital_link(key).await
    }

    async fn changes(&self, hello: Hello) -> Result<Self::Changes, BackingError> {
        // The file is read for each connection: so a key is exchanged without a restart.
        self.key.reload();
        let mut reasons = Vec::new();
        for replica in &self.replicas.in_turn() {
            let dialed = self.dial(replica, hello.clone()).await;
            // Whether it failed or ends some day: the next attempt goes to the next.
            self.replicas.leave(replica);
            match dialed {
                Ok(stream) => {
                    *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = Some(replica.clone());
                    return Ok(stream);
                }
                Err(error) => {
                    if matches!(error, DialError::Silent(_)) {
                        self.replicas.avoid(replica);
                    }
                    reasons.push(format!("{}: {error}", replica.authority));
                }
            }
        }
        Err(BackingError::Unreachable(reasons.join("; ")))
    }

    fn has_other(&self) -> bool {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.as_ref().is_some_and(|followed| self.replicas.has_other(followed))
    }

    fn ended(&self, end: StreamEnd) {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (end, followed) {
            (StreamEnd::Silent, Some(replica)) => self.replicas.avoid(&replica),
            (StreamEnd::SentAway, Some(replica)) => self.replicas.sent_away(&replica),
            (StreamEnd::Silent | StreamEnd::SentAway, None) => {}
        }
    }

    async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        self.control.record_scans(scans).await
    }

    async fn record_unknown(&self, report: &UnknownReport) -> Result<(), BackingError> {
        self.control.record_unknown(report).await
    }

    async fn record_limits(&self, report: &LimitReport) -> Result<(), BackingError> {
        self.control.record_limits(report).await
    }

    async fn page(&self, domain: &str, after: &str) -> Result<LinksPage, BackingError> {
        self.control.page(domain, after).await
    }

    async fn setup(&self) -> Result<Option<SetupView>, BackingError> {
        self.view.setup().await
    }

    fn status(&self) -> BackingStatus {
        self.view.status()
    }
}
