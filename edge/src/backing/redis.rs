//! The view in Redis: one atomic `MGET meta key` for a read, over one multiplexed connection.
//!
//! A connection is proved by a read of the first shard's meta; the user of an edge needs `MGET` alone (in a
//! cluster `CLUSTER SLOTS` too, which tells where keys are, and behind sentinels `ROLE`, by which the client
//! library makes sure that it has the primary). One that is lost is made again at once; reads
//! wait for that a moment, and fail at once as long as Redis is known to be away.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, TlsCertificates, TlsMode,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use shared::{
    redirect::RedirectKey,
    wire::{
        redis_url::{Form, RedisUrl},
        stream::Fill,
        view::{Meta, Record, Setup, meta_key, record_key, setup_key, shard_of},
    },
};
use tokio::{
    sync::{Mutex, watch},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{BackingError, BackingStatus, SetupView};
use crate::error::EdgeError;

/// How long one read may take: a hundred times what a busy server needs.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);
/// How long connecting may take, with the proof.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a read waits while a lost connection is made again.
const PATIENCE: Duration = Duration::from_millis(100);
/// First and longest wait after a failed attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Time between two questions to the sentinels who the primary is.
const SENTINEL_INTERVAL: Duration = Duration::from_secs(5);

/// The view.
#[derive(Debug)]
pub(super) struct RedisView {
    shards: u16,
    link: watch::Receiver<Link>,
    /// The newest connection that was found broken.
    lost: watch::Sender<u64>,
    keeper: JoinHandle<()>,
    /// Whether the last read found another number of shards: logged once.
    is_misfit: AtomicBool,
}

impl Drop for RedisView {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

#[derive(Debug, Clone)]
enum Link {
    /// The first attempt, or the first after a loss, is under way.
    Dialing,
    /// Connected; connections count up.
    Up(u64, Connection, Instant),
    /// Away since then.
    Down(Instant),
}

#[derive(Clone)]
enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl RedisView {
    /// Begins to connect; needs a runtime.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub(super) fn new(url: &RedisUrl, ca: Option<Vec<u8>>, shards: u16) -> Result<Self, EdgeError> {
        let dialer = Dialer::new(url, ca).map_err(|error| EdgeError::Config {
            key: "redis_url",
            // Without the detail, which could hold credentials.
            reason: format!("the settings of Redis cannot be used: {:?}", error.kind()),
        })?;
        let (link, seen) = watch::channel(Link::Dialing);
        let (lost, losses) = watch::channel(0);
        let keeper = tokio::spawn(keep(dialer, link, losses));
        Ok(Self { shards, link: seen, lost, keeper, is_misfit: AtomicBool::new(false) })
    }

    /// Reads one key with the meta of its shard; a view that is not whole or not ours is incomplete.
    ///
    /// # Errors
    /// Redis does not answer.
    pub(super) async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let shard = shard_of(key, self.shards);
        let (meta, record) = self.read(&meta_key(shard), &record_key(shard, key)).await?;
        let Some(meta) = self.meta(meta.as_deref()) else { return Ok(nothing()) };
        let value = match record.as_deref().map(serde_json::from_slice::<Record>) {
            None => None,
            Some(Ok(Record { rev, value })) => Some((rev, value)),
            Some(Err(error)) => {
                tracing::error!(domain = %key.domain, short_id = %key.folded, %error, "a record of the view is garbled");
                return Ok(nothing());
            }
        };
        Ok(Fill { epoch: meta.epoch, complete: meta.complete, watermark: meta.watermark, value })
    }

    /// What an edge needs beside redirections; `None` when the view is not whole.
    ///
    /// # Errors
    /// Redis does not answer.
    pub(super) async fn setup(&self) -> Result<Option<SetupView>, BackingError> {
        let (meta, setup) = self.read(&meta_key(0), &setup_key()).await?;
        let Some(meta) = self.meta(meta.as_deref()).filter(|meta| meta.complete) else { return Ok(None) };
        match setup.as_deref().map(serde_json::from_slice::<Setup>) {
            None => Ok(None),
            Some(Ok(Setup { domains, rules })) => {
                Ok(Some(SetupView { epoch: meta.epoch, watermark: meta.watermark, domains, rules }))
            }
            Some(Err(error)) => {
                tracing::error!(%error, "the setup in the view is garbled");
                Ok(None)
            }
        }
    }

    /// Whether Redis answers, and since when it does or does not.
    pub(super) fn status(&self) -> BackingStatus {
        match &*self.link.borrow() {
            Link::Dialing => BackingStatus { view_up: None, view_for: Duration::ZERO },
            Link::Up(_, _, since) => BackingStatus { view_up: Some(true), view_for: since.elapsed() },
            Link::Down(since) => BackingStatus { view_up: Some(false), view_for: since.elapsed() },
        }
    }

    fn meta(&self, text: Option<&[u8]>) -> Option<Meta> {
        let meta: Meta = std::str::from_utf8(text?).ok()?.parse().ok()?;
        let is_misfit = meta.shards != self.shards;
        if self.is_misfit.swap(is_misfit, SeqCst) != is_misfit && is_misfit {
            tracing::error!(view = meta.shards, edge = self.shards, "the view has another number of shards");
        }
        (!is_misfit).then_some(meta)
    }

    async fn read(&self, meta: &str, key: &str) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), BackingError> {
        let away = || BackingError::Unreachable("Redis is away".to_owned());
        let mut link = self.link.clone();
        let settled = async { link.wait_for(|link| !matches!(link, Link::Dialing)).await.is_ok() };
        // What is not settled by then is seen below.
        let _ = timeout(PATIENCE, settled).await;
        let up = match &*self.link.borrow() {
            Link::Up(number, connection, _) => Some((*number, connection.clone())),
            Link::Dialing | Link::Down(_) => None,
        };
        let (number, mut connection) = up.ok_or_else(away)?;
        match mget(&mut connection, meta, key).await {
            Ok(found) => Ok(found),
            Err(error) => {
                if is_broken(&error) {
                    self.lost.send_if_modified(|lost| {
                        let is_news = *lost < number;
                        *lost = number.max(*lost);
                        is_news
                    });
                }
                Err(BackingError::Unreachable(format!("Redis: {error}")))
            }
        }
    }
}

/// What is not there says nothing: neither that a key is absent, nor how far the view is.
fn nothing() -> Fill {
    Fill { epoch: "".into(), complete: false, watermark: 0, value: None }
}

async fn mget(
    connection: &mut Connection,
    meta: &str,
    key: &str,
) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), RedisError> {
    async fn ask(
        connection: &mut (impl ConnectionLike + Send),
        meta: &str,
        key: &str,
    ) -> Result<(Option<Vec<u8>>, Option<Vec<u8>>), RedisError> {
        redis::cmd("MGET").arg(meta).arg(key).query_async(connection).await
    }
    match connection {
        Connection::One(connection) => ask(connection, meta, key).await,
        Connection::Cluster(connection) => ask(connection, meta, key).await,
    }
}

fn is_broken(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_dropped()
        || error.is_unrecoverable_error()
}

/// Keeps a connection until the view is dropped.
async fn keep(dialer: Dialer, link: watch::Sender<Link>, mut losses: watch::Receiver<u64>) {
    let (mut number, mut backoff, mut away) = (0, BACKOFF.0, None);
    loop {
        let dialed = match timeout(CONNECT_TIMEOUT, dialer.dial()).await {
            Ok(Ok(dialed)) => Ok(dialed),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("connecting took too long".to_owned()),
        };
        match dialed {
            Ok((connection, primary)) => {
                number += 1;
                (backoff, away) = (BACKOFF.0, None);
                tracing::info!("the view in Redis is reachable");
                link.send_replace(Link::Up(number, connection, Instant::now()));
                tokio::select! {
                    lost = losses.wait_for(|lost| *lost >= number) => if lost.is_err() { return },
                    () = dialer.moved(primary) => tracing::info!("the sentinels name another primary"),
                }
                link.send_replace(Link::Dialing);
            }
            Err(reason) => {
                let since = *away.get_or_insert_with(Instant::now);
                tracing::warn!(%reason, "the view in Redis is away");
                link.send_replace(Link::Down(since));
                tokio::time::sleep(super::jittered(backoff)).await;
                backoff = (backoff * 2).min(BACKOFF.1);
            }
        }
    }
}

enum Dialer {
    Single(Client),
    Sentinel(Mutex<SentinelClient>),
    Cluster(ClusterClient),
}

impl Dialer {
    fn new(url: &RedisUrl, ca: Option<Vec<u8>>) -> Result<Self, RedisError> {
        let mut settings = RedisConnectionInfo::default().set_db(url.db.into()).set_skip_set_lib_name();
        if let Some(user) = &url.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &url.password {
            settings = settings.set_password(password);
        }
        let certificates = TlsCertificates { client_tls: None, root_cert: ca };
        let nodes = url.nodes.iter().map(|(host, port)| address(host, *port, url.is_tls));
        Ok(match &url.form {
            Form::Single => {
                let nodes: Vec<_> = nodes.collect();
                let node = nodes.into_iter().next().unwrap_or(ConnectionAddr::Tcp(String::new(), 0));
                let info = node.into_connection_info()?.set_redis_settings(settings);
                Self::Single(if url.is_tls {
                    Client::build_with_tls(info, certificates)?
                } else {
                    Client::open(info)?
                })
            }
            Form::Sentinel(service) => {
                let mut builder = SentinelClientBuilder::new(nodes, service, SentinelServerType::Master)?;
                if let Some(user) = &url.user {
                    builder = builder.set_client_to_redis_username(user);
                }
                if let Some(password) = &url.password {
                    builder = builder.set_client_to_redis_password(password);
                }
                if url.is_tls {
                    builder = builder
                        .set_client_to_redis_tls_mode(TlsMode::Secure)
                        .set_client_to_redis_certificates(certificates.clone())
                        .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                        .set_client_to_sentinel_certificates(certificates);
                }
                Self::Sentinel(Mutex::new(builder.build()?))
            }
            Form::Cluster => {
                let nodes: Vec<ConnectionInfo> =
                    nodes.map(IntoConnectionInfo::into_connection_info).collect::<Result<_, _>>()?;
                let mut builder = ClusterClientBuilder::new(nodes)
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(RESPONSE_TIMEOUT)
                    .retries(1);
                if let Some(user) = &url.user {
                    builder = builder.username(user);
                }
                if let Some(password) = &url.password {
                    builder = builder.password(password);
                }
                if url.is_tls {
                    builder = builder.tls(TlsMode::Secure).certs(certificates);
                }
                Self::Cluster(builder.build()?)
            }
        })
    }

    /// Connects and proves it; with the primary that sentinels named.
    async fn dial(&self) -> Result<(Connection, Option<ConnectionAddr>), RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let (mut connection, primary) = match self {
            Self::Single(client) => {
                (Connection::One(client.get_multiplexed_async_connection_with_config(&config).await?), None)
            }
            Self::Sentinel(sentinels) => {
                let client = sentinels.lock().await.async_get_client().await?;
                let primary = client.get_connection_info().addr().clone();
                let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
                (Connection::One(connection), Some(primary))
            }
            Self::Cluster(client) => (Connection::Cluster(client.get_async_connection().await?), None),
        };
        mget(&mut connection, &meta_key(0), &setup_key()).await?;
        Ok((connection, primary))
    }

    /// Waits until the sentinels name another primary than this one.
    async fn moved(&self, primary: Option<ConnectionAddr>) {
        loop {
            tokio::time::sleep(SENTINEL_INTERVAL).await;
            if let (Self::Sentinel(sentinels), Some(primary)) = (self, &primary)
                && let Ok(client) = sentinels.lock().await.async_get_client().await
                && client.get_connection_info().addr() != primary
            {
                return;
            }
        }
    }
}

fn address(host: &str, port: u16, is_tls: bool) -> ConnectionAddr {
    if is_tls {
        ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host.to_owned(), port)
    }
}
