//! Starts the servers of the process: the API and the edge.

use std::{
    net::{SocketAddr, TcpListener},
    num::NonZero,
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use control::{failure::Failure, http::ApiListeners, state::ApiState, system::SystemClock};
use edge::{Edge, EdgeConfig, EdgeError, EdgeHandle, GeoDatabase, Listeners, TlsCerts};
use events::live::BrokerListeners;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    backing::InProcess,
    config::{Config, ConfigError, Tls},
    data_dir::DataDir,
    up::reachable,
};

/// Longest wait for the edge to follow the change stream; in one process it takes milliseconds.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// Most threads that serve short URLs: each holds some six file descriptors of the edge's share, 512 where the limit is the usual 1,024,
/// before a connection comes.
const MAX_EDGE_THREADS: usize = 64;

/// Serves the API on its plain listener, and on the TLS one if there is one.
///
/// # Errors
/// A certificate cannot be used.
pub(crate) fn api(
    app: &Arc<ApiState>,
    plain: TcpListener,
    tls: Option<(TcpListener, &TlsCerts)>,
    shutdown: CancellationToken,
) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
    let tls = match tls {
        None => None,
        // The same table as the edge's: an exchanged certificate serves both.
        Some((listener, certificates)) => {
            let config = certificates.server_config().map_err(|error| Failure::Failed(error.to_string()))?;
            Some((listener, Arc::new(config)))
        }
    };
    let listeners = ApiListeners { plain: vec![plain], tls };
    let app = app.clone();
    Ok(tokio::spawn(async move {
        control::http::run(listeners, app, shutdown).await.map_err(|error| Failure::Failed(error.to_string()))
    }))
}

/// Serves MQTT on its listeners, and ends the WebSockets of the API at the shutdown.
///
/// # Errors
/// A certificate cannot be used.
pub(crate) fn broker(
    app: &Arc<ApiState>,
    plain: Option<TcpListener>,
    tls: Option<(TcpListener, &TlsCerts)>,
    shutdown: CancellationToken,
) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
    let tls = match tls {
        None => None,
        Some((listener, certificates)) => {
            let config = certificates.server_config().map_err(|error| Failure::Failed(error.to_string()))?;
            Some((listener, Arc::new(config)))
        }
    };
    let (listeners, broker) = (BrokerListeners { plain, tls }, app.broker.clone());
    Ok(tokio::spawn(async move {
        events::live::run(listeners, broker, shutdown)
            .await
            .map_err(|error| Failure::Failed(error.to_string()))
    }))
}

/// Control as the edge calls it.
pub(crate) struct Upstream<'a> {
    /// The plain listener of the API.
    pub(crate) api: SocketAddr,
    /// The edge's key.
    pub(crate) key: &'a str,
}

/// Opens the edge over control in the same process and serves it.
///
/// # Errors
/// A certificate, the spool or a setting cannot be used.
pub(crate) fn edge(
    config: &Config,
    data_dir: &DataDir,
    app: &Arc<ApiState>,
    upstream: &Upstream<'_>,
    listeners: Listeners,
    certificates: Option<&TlsCerts>,
    shutdown: CancellationToken,
) -> Result<(JoinHandle<Result<(), Failure>>, EdgeHandle), Failure> {
    // Part of every scan's identity: another data folder is another edge, on the same Postgres too.
    let edge_id = data_dir.kept_name("edge-id").map_err(|error| Failure::failed("the edge's name", error))?;
    let mut settings = EdgeConfig::new(
        &format!("local-{edge_id}"),
        config.data_dir.join("edge"),
        &format!("http://{}", reachable(upstream.api)),
        &app.docs_url,
    );
    settings.geo = app.actions.geo_ip.clone();
    settings.trusted_proxies = app.trusted_proxies.clone();
    settings.is_replica = config.is_replica;
    settings.fast_redirects = config.fast_redirects;
    // Threads of its own: however busy the API is, the system gives them their turn, and redirects do not wait behind it.
    settings.workers = edge_threads(thread::available_parallelism().map_or(1, NonZero::get));
    settings.takes_certificates = config.edge_acme;
    // Sockets of all listeners come out of one limit: API and MQTT have a quarter each.
    let half = (platform::descriptors() / 2).max(64);
    settings.limits.connections = Some(config.edge_connections.unwrap_or(half));
    settings.limits.connections_per_address = config.edge_connections_per_address;
    settings.behind_tls_proxy = config.behind_tls_proxy;
    settings.contact = config.contact.clone();
    settings.strict_transport = config.tls != Tls::Dev;
    settings.control_token = Some(upstream.key.into());
    let edge = Edge::open(settings, InProcess::new(app.clone()), certificates.cloned(), SystemClock)
        .map_err(|error| Failure::failed("the edge", error))?;
    let handle = edge.handle();
    let task = tokio::spawn(async move {
        edge.serve(listeners, shutdown).await.map_err(|error| Failure::Failed(error.to_string()))
    });
    Ok((task, handle))
}

/// Waits until the edge answers.
///
/// # Errors
/// It does not within ten seconds.
pub(crate) async fn ready(handle: &EdgeHandle) -> Result<(), Failure> {
    let ready = async {
        while !handle.is_ready() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(READY_TIMEOUT, ready)
        .await
        .map_err(|_| Failure::Failed("the edge did not become ready".to_owned()))
}

/// The certificates of a folder.
///
/// # Errors
/// The folder, or a pair in it, cannot be used.
pub(crate) fn certificates(config: &Config, folder: &Path) -> Result<TlsCerts, Failure> {
    let key = if config.tls == Tls::Dev { "WAYMARK_DEV_TLS" } else { "WAYMARK_TLS_DIR" };
    TlsCerts::from_folder(folder).map_err(|error: EdgeError| {
        ConfigError::new(key, format!("{error}; each host needs <host>.pem and <host>.key")).into()
    })
}

/// Geography from the operator's database, or none.
///
/// # Errors
/// The file is not a database of addresses.
pub(crate) fn geo_database(config: &Config) -> Result<Option<GeoDatabase>, Failure> {
    let Some(path) = &config.geoip_db else { return Ok(None) };
    let database = GeoDatabase::open(path).map_err(|error| {
        ConfigError::new("WAYMARK_GEOIP_DB", format!("give a city database (.mmdb): {error}"))
    })?;
    Ok(Some(database))
}

/// Threads that serve short URLs on so many cores.
fn edge_threads(cores: usize) -> usize {
    cores.clamp(1, MAX_EDGE_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_has_a_thread_up_to_the_cap() {
        for (cores, expected) in [(1, 1), (2, 2), (64, 64), (65, 64), (384, 64)] {
            assert_eq!(edge_threads(cores), expected, "{cores}");
        }
    }
}
