//! Reads the view in Redis: one atomic `MGET meta key` per read, over one multiplexed connection.
//!
//! A connection is tested by reading the first shard's meta. The Redis user of an edge needs only `MGET`; in a cluster
//! also `CLUSTER SLOTS`, and behind sentinels `ROLE`, by which the client library checks that it talks to the primary.
//! That is repeated every second, but for a cluster, so that a dead server is known before somebody scans what the edge does not hold. A
//! lost connection is opened again at once. Reads wait for that briefly, and fail at once while Redis is known to be
//! down.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, RedisError,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
};
use region_redis::{Patience, RedisClient, RedisUrl};
use shared::{
    redirect::RedirectKey,
    wire::{
        stream::Fill,
        view::{Meta, Record, Setup, meta_key, record_key, setup_key, shard_of},
    },
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::error::EdgeError;
use crate::{BackingError, BackingStatus, SetupView};

/// How long one read may take: a hundred times what a busy server needs.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);
/// How long connecting may take, with the proof.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a read waits for a lost connection to be reopened.
const PATIENCE: Duration = Duration::from_millis(100);
/// First and longest wait after a failed attempt.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Time between two tests of a connection.
const TEST_INTERVAL: Duration = Duration::from_secs(1);
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

shared::opaque!(Connection);

impl RedisView {
    /// Begins to connect; needs a runtime.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub(super) fn new(url: &RedisUrl, ca: Option<&[u8]>, shards: u16) -> Result<Self, EdgeError> {
        let patience = Patience { connect: CONNECT_TIMEOUT, response: RESPONSE_TIMEOUT, retries: 1 };
        let client = RedisClient::new(url, ca, patience).map_err(|error| EdgeError::Config {
            key: "redis_url",
            // Without the detail, which could hold credentials.
            reason: format!("the settings of Redis cannot be used: {:?}", error.kind()),
        })?;
        let (link, seen) = watch::channel(Link::Dialing);
        let (lost, losses) = watch::channel(0);
        let keeper = tokio::spawn(keep(client, link, losses));
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
                tracing::error!(domain = %key.domain, short_id = %key.folded, %error, "a record in Redis is invalid");
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
            Some(Ok(Setup { domains, rules, withheld })) => {
                let (epoch, watermark) = (meta.epoch, meta.watermark);
                Ok(Some(SetupView { epoch, watermark, domains, rules, withheld }))
            }
            Some(Err(error)) => {
                tracing::error!(%error, "the setup in the view is invalid");
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
        // If it is not settled by then, the check below fails.
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

/// A missing meta proves nothing: neither that a key is absent, nor how far the view is.
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
async fn keep(mut client: RedisClient, link: watch::Sender<Link>, mut losses: watch::Receiver<u64>) {
    let (mut number, mut backoff, mut away) = (0, BACKOFF.0, None);
    loop {
        let dialed = match timeout(CONNECT_TIMEOUT, dial(&mut client)).await {
            Ok(Ok(dialed)) => Ok(dialed),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("connecting took too long".to_owned()),
        };
        match dialed {
            Ok((connection, primary)) => {
                number += 1;
                (backoff, away) = (BACKOFF.0, None);
                tracing::info!("the view in Redis is reachable");
                link.send_replace(Link::Up(number, connection.clone(), Instant::now()));
                tokio::select! {
                    lost = losses.wait_for(|lost| *lost >= number) => if lost.is_err() { return },
                    () = moved(&mut client, primary) => tracing::info!("the sentinels name another primary"),
                    error = failed(connection) => tracing::warn!(%error, "the view in Redis does not answer"),
                }
                link.send_replace(Link::Dialing);
            }
            Err(reason) => {
                let since = *away.get_or_insert_with(Instant::now);
                tracing::warn!(%reason, "the view in Redis is unreachable");
                link.send_replace(Link::Down(since));
                tokio::time::sleep(crate::jittered(backoff)).await;
                backoff = (backoff * 2).min(BACKOFF.1);
            }
        }
    }
}

/// Connects and proves it; with the primary that sentinels named.
async fn dial(client: &mut RedisClient) -> Result<(Connection, Option<ConnectionAddr>), RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT));
    let (mut connection, primary) = match client {
        RedisClient::Single(client) => {
            (Connection::One(client.get_multiplexed_async_connection_with_config(&config).await?), None)
        }
        RedisClient::Sentinel(sentinels) => {
            let client = sentinels.async_get_client().await?;
            let primary = client.get_connection_info().addr().clone();
            let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            (Connection::One(connection), Some(primary))
        }
        RedisClient::Cluster(client) => (Connection::Cluster(client.get_async_connection().await?), None),
    };
    test(&mut connection).await?;
    Ok((connection, primary))
}

/// Reads the first shard's meta.
async fn test(connection: &mut Connection) -> Result<(), RedisError> {
    mget(connection, &meta_key(0), &meta_key(0)).await.map(drop)
}

/// Waits until a connection to one server fails: it is closed, or two tests in a row get no answer in time. A cluster
/// has others that answer, and its client keeps a connection to each.
async fn failed(mut connection: Connection) -> RedisError {
    if matches!(connection, Connection::Cluster(_)) {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(TEST_INTERVAL).await;
        let mut tested = test(&mut connection).await;
        if tested.as_ref().is_err_and(RedisError::is_timeout) {
            tested = test(&mut connection).await;
        }
        if let Err(error) = tested
            && is_broken(&error)
        {
            return error;
        }
    }
}

/// Waits until the sentinels name another primary than this one.
async fn moved(client: &mut RedisClient, primary: Option<ConnectionAddr>) {
    loop {
        tokio::time::sleep(SENTINEL_INTERVAL).await;
        if let (RedisClient::Sentinel(sentinels), Some(primary)) = (&mut *client, &primary)
            && let Ok(Ok(named)) = timeout(CONNECT_TIMEOUT, sentinels.async_get_client()).await
            && named.get_connection_info().addr() != primary
        {
            return;
        }
    }
}
