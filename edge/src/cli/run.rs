//! Runs an edge, from settings to shutdown.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use platform::settings::proxy_warning;
use sd_notify::NotifyState;
use shared::time::{Clock, UnixMillis};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{Config, Failure, config::named, say, sockets};
use crate::{
    EdgeError, EdgeKey, TlsCerts, admin::EdgeHandle, backing::Network, config::Listeners, edge::Edge,
};

/// How long the start may wait for control or the view; after that the edge reports itself as started, answers 503,
/// and keeps trying.
const READY_PATIENCE: Duration = Duration::from_secs(20);

/// The system's clock.
#[derive(Debug, Clone, Copy)]
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Serves until SIGTERM or SIGINT, then drains.
pub(super) async fn run(mut config: Config) -> Result<(), Failure> {
    let refused = |error: EdgeError| match named(&error) {
        Some(error) => Failure::Config(error),
        None => Failure::Failed(error.to_string()),
    };
    if let Some(warning) = proxy_warning(config.edge.behind_tls_proxy, &config.edge.trusted_proxies) {
        tracing::warn!("{warning}");
    }
    let shutdown = CancellationToken::new();
    let backing = Network::new(&config.network).map_err(refused)?;
    let (key, certificates, geo) =
        (config.network.key.clone(), config.certificates.clone(), config.geo.take());
    // All settings are checked by now; the data folder is taken, then ports are bound.
    let edge =
        Edge::open(config.edge.clone(), backing, certificates.clone(), SystemClock).map_err(refused)?;
    let listeners = sockets::open(&config)?;
    tell(&listeners);
    let handle = edge.handle();
    let mut helpers = tokio::task::JoinSet::new();
    if let Some(geo) = geo {
        helpers.spawn(geo.follow(shutdown.clone()));
    }
    helpers.spawn(follow_signals(shutdown.clone(), key, certificates));
    helpers.spawn(report(handle));
    if let Some(within) = sd_notify::watchdog_enabled() {
        helpers.spawn(feed_watchdog(within));
    }
    edge.serve(listeners, shutdown).await.map_err(refused)?;
    tracing::info!("stopped");
    Ok(())
}

/// Prints the listening addresses, which are otherwise unknown with port 0.
fn tell(listeners: &Listeners) {
    let lines = [
        ("Edge", "http", listeners.plain.first()),
        ("Edge, TLS", "https", listeners.tls.first()),
        ("Admin", "http", listeners.admin.as_ref()),
    ];
    for (label, scheme, listener) in lines {
        if let Some(address) = listener.and_then(|listener| listener.local_addr().ok()) {
            say(&format!("{label} {scheme}://{address}"));
        }
    }
}

/// Notifies the service manager once the edge serves.
async fn report(handle: EdgeHandle) {
    let ready = async {
        while !handle.is_ready() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if timeout(READY_PATIENCE, ready).await.is_err() {
        tracing::error!("neither control, Redis nor the disk has anything to serve");
    }
    say("Ready: SIGTERM drains and stops");
    notify(&[NotifyState::Ready]);
}

async fn feed_watchdog(within: Duration) {
    loop {
        notify(&[NotifyState::Watchdog]);
        tokio::time::sleep(within / 2).await;
    }
}

/// SIGTERM and SIGINT drain; SIGHUP reads certificates and key again.
async fn follow_signals(
    shutdown: CancellationToken,
    key: std::sync::Arc<EdgeKey>,
    certificates: Option<TlsCerts>,
) {
    let signals =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()));
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) = signals else {
        tracing::error!("signals cannot be followed");
        return;
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                key.reload();
                if let Some(Err(error)) = certificates.as_ref().map(TlsCerts::reload) {
                    tracing::error!(%error, "certificates could not be reloaded");
                }
            }
        }
    }
    tracing::info!("stopping: the edge drains");
    notify(&[NotifyState::Stopping]);
    shutdown.cancel();
}

fn notify(state: &[NotifyState<'_>]) {
    // Without a service manager there is no receiver.
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
