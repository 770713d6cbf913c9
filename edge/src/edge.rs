//! Builds an edge from its parts and runs it until shutdown.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use scan_limits::ScanLimits;
use scans::{Agents, Scans, SpoolLimits};
use shared::time::Clock;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    EdgeError, TlsCerts,
    admin::{self, EdgeHandle},
    backing::{
        Backing, Delivery,
        limiter::{LOOK, Limiter},
        unknown,
    },
    cache::EdgeCache,
    config::{EdgeConfig, Limits, Listeners},
    connection::Client,
    disk,
    domains::Domains,
    handler::{App, request_ids::RequestIds},
    images::Renderer,
    metrics::Metrics,
    pages,
    proxy::Proxy,
    response::Prepared,
    server::Server,
    sync::{Boot, Follower, SyncStatus},
    workers::{self, Socket},
};

/// An edge that is ready to serve.
pub struct Edge<B> {
    app: Arc<App<B>>,
    scans: Scans,
    handle: EdgeHandle,
    tls: Option<TlsCerts>,
}

impl<B> std::fmt::Debug for Edge<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge").field("id", &self.app.config.edge_id).finish_non_exhaustive()
    }
}

impl<B: Backing> Edge<B> {
    /// Checks the settings, takes a boot number, and recovers what earlier boots have not shipped.
    ///
    /// Reads all spool files and the saved certificates once; blocks meanwhile.
    ///
    /// # Errors
    /// A setting or the data folder cannot be used.
    pub fn open(
        config: EdgeConfig,
        backing: B,
        tls: Option<TlsCerts>,
        clock: impl Clock,
    ) -> Result<Self, EdgeError> {
        let (config, clock): (_, Arc<dyn Clock>) = (Arc::new(config), Arc::new(clock));
        let metrics = Arc::new(Metrics::default());
        let proxy = Proxy::new(&config)?;
        let Limits { spool_bytes, segment_bytes, .. } = config.limits;
        let limits = SpoolLimits { spool_bytes, segment_bytes };
        let (recorder, scans) =
            scans::open(&config.data_dir, limits, config.geo.clone(), &metrics.scans, clock.now())
                .map_err(|source| EdgeError::Storage { path: config.data_dir.clone(), source })?;
        let counts = Arc::new(ScanLimits::open(&config.data_dir, config.edge_id.clone()));
        let open = if config.is_replica { EdgeCache::full } else { EdgeCache::new };
        let (cache, status) = (Arc::new(open(config.cache_bytes)), Arc::new(SyncStatus::default()));
        let (domains, backing) = (Arc::new(Domains::default()), Arc::new(backing));
        status.watch(backing.clone());
        if config.disk.is_some() && disk::load(&config.data_dir, &cache, &domains).is_some() {
            status.begin(Boot::Disk, &*clock);
        }
        let kept = config.disk.map(|_| config.data_dir.join("certificates"));
        let tls =
            if config.takes_certificates { Some(tls.unwrap_or_default().with_received(kept)) } else { tls };
        let handle = EdgeHandle::new(
            cache.clone(),
            status.clone(),
            metrics.clone(),
            config.data_dir.clone(),
            tls.clone(),
        );
        let app = Arc::new(App {
            domains,
            cache,
            backing,
            status,
            recorder,
            limits: counts,
            renderer: Renderer::new(config.image_cache_bytes, config.limits.render_queue),
            limiter: Arc::new(Limiter::new(
                config.limits.misses_per_address,
                config.limits.misses_per_second,
            )),
            proxy,
            metrics,
            clock,
            agents: Agents::default(),
            ids: RequestIds::new(),
            prepared: Prepared::new(&config.docs_url, config.contact.as_ref()),
            unknown_ids: Arc::default(),
            tls: tls.clone(),
            config,
        });
        Ok(Self { app, scans, handle, tls })
    }

    /// The edge as operators see it; stays good while it serves.
    #[must_use]
    pub fn handle(&self) -> EdgeHandle {
        self.handle.clone()
    }

    /// Serves connections that the caller accepted itself, besides those of the listeners, until `shutdown`.
    #[must_use]
    pub fn connector(&self, shutdown: CancellationToken) -> Connector<B> {
        Connector(Server::new(self.app.clone(), shutdown))
    }

    /// Serves until `shutdown`; then ends requests under way, writes down all scans, tries to ship them.
    ///
    /// # Errors
    /// A listener cannot be used or a worker not be started, or TLS listeners are given without certificates;
    /// nothing was served.
    pub async fn serve(self, listeners: Listeners, shutdown: CancellationToken) -> Result<(), EdgeError> {
        let Self { app, scans, handle, tls } = self;
        let acceptor = match (&tls, listeners.tls.is_empty()) {
            (_, true) => None,
            (Some(certs), false) => Some(TlsAcceptor::from(Arc::new(certs.server_config()?))),
            (None, false) => return Err(EdgeError::NoCertificates),
        };
        let plain = listeners.plain.into_iter().map(|listener| (listener, None));
        let secure = listeners.tls.into_iter().map(|listener| (listener, acceptor.clone()));
        let public: Vec<Socket> = plain.chain(secure).collect();
        let admin = listeners.admin.map(adopt).transpose()?;

        // Dropping this future ends the connections too.
        let shutdown = shutdown.child_token();
        let _ended = shutdown.clone().drop_guard();
        // What serves requests lives longer than the requests: it stops by a token of its own.
        let stop = CancellationToken::new();
        let mut helpers = JoinSet::new();
        let follower = Follower {
            config: app.config.clone(),
            backing: app.backing.clone(),
            cache: app.cache.clone(),
            domains: app.domains.clone(),
            status: app.status.clone(),
            metrics: app.metrics.clone(),
            clock: app.clock.clone(),
            tls: tls.clone(),
            has_warned: AtomicBool::new(false),
        };
        helpers.spawn(follower.run(stop.clone()));
        helpers.spawn(unknown::report(
            app.backing.clone(),
            app.unknown_ids.clone(),
            app.config.edge_id.clone(),
            app.clock.now().0,
            stop.clone(),
        ));
        helpers.spawn(app.limits.clone().run(Delivery(app.backing.clone()), stop.clone()));
        helpers.spawn(watch_misses(app.limiter.clone(), app.metrics.clone(), stop.clone()));
        if app.config.is_replica {
            let (backing, domains) = (app.backing.clone(), app.domains.clone());
            helpers.spawn(pages::read(backing, app.cache.clone(), domains, stop.clone()));
        }
        if let Some(limits) = app.config.disk {
            let folder = app.config.data_dir.clone();
            if app.config.is_replica {
                helpers.spawn(pages::keep(folder.clone(), limits, app.cache.clone(), stop.clone()));
            }
            helpers.spawn(disk::keep(folder, limits, app.cache.clone(), app.domains.clone(), stop.clone()));
        }
        if let Some(certs) = tls {
            helpers.spawn(certs.clone().keep(stop.clone()));
            helpers.spawn(certs.follow(stop.clone()));
        }
        if let Some(listener) = admin {
            helpers.spawn(admin::serve(handle, listener, stop.clone()));
        }
        let scans_stop = CancellationToken::new();
        let mut shipping = JoinSet::new();
        let (name, intake) = (app.config.edge_id.clone(), Delivery(app.backing.clone()));
        shipping.spawn(scans.run(name, intake, scans_stop.clone()));

        let workers = app.config.workers;
        let server = Server::new(app, shutdown.clone());
        let served = match workers {
            0 => accept(&server, public).await,
            workers => workers::serve(&server, public, workers).await,
        };
        // Workers that started are stopped if others failed.
        shutdown.cancel();
        server.drained().await;
        scans_stop.cancel();
        if let Some(Err(error)) = shipping.join_next().await {
            tracing::error!(%error, "shipping scans failed");
        }
        stop.cancel();
        while helpers.join_next().await.is_some() {}
        served
    }
}

/// Serves connections in memory, for measurements that no kernel may take part in; none of the limits on
/// connections holds for them.
pub struct Connector<B>(Arc<Server<B>>);

impl<B> std::fmt::Debug for Connector<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

impl<B: Backing> Connector<B> {
    /// Serves one connection of HTTP/1.1 until its end.
    pub async fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, io: I, peer: SocketAddr) {
        self.0.serve(io, Client::of(peer, false), false).await;
    }
}

/// Opens an edge and serves until `shutdown`; see [`Edge`] for its two halves.
///
/// # Errors
/// Those of [`Edge::open`] and [`Edge::serve`].
pub async fn run<B: Backing>(
    listeners: Listeners,
    config: EdgeConfig,
    backing: B,
    tls: Option<TlsCerts>,
    clock: impl Clock,
    shutdown: CancellationToken,
) -> Result<(), EdgeError> {
    Edge::open(config, backing, tls, clock)?.serve(listeners, shutdown).await
}

/// Accepts on this runtime until the server's shutdown.
async fn accept<B: Backing>(server: &Arc<Server<B>>, sockets: Vec<Socket>) -> Result<(), EdgeError> {
    let mut accepting = JoinSet::new();
    for (listener, tls) in sockets {
        accepting.spawn(server.clone().accept(adopt(listener)?, tls));
    }
    while accepting.join_next().await.is_some() {}
    Ok(())
}

fn adopt(listener: std::net::TcpListener) -> Result<TcpListener, EdgeError> {
    listener.set_nonblocking(true).map_err(EdgeError::Listener)?;
    TcpListener::from_std(listener).map_err(EdgeError::Listener)
}

async fn watch_misses(limiter: Arc<Limiter>, metrics: Arc<Metrics>, stop: CancellationToken) {
    let on_change = |is_storm: bool| {
        metrics.miss_storm.set(is_storm.into());
    };
    stop.run_until_cancelled(limiter.watch(LOOK, on_change)).await;
}
