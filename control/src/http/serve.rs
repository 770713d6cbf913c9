//! Serves the API on plain and TLS listeners until shutdown, then drains.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::connect_info::Connected,
    middleware::from_fn,
    serve::{IncomingStream, Listener},
};
use platform::{Bounded, Handle, Permit, Permits, TimeLimits};
use shared::client_address::TrustedProxies;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

use super::{busy, router};
use crate::state::ApiState;

/// Longest time from the shutdown until open requests are dropped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept, mostly for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The bound sockets of the API.
#[derive(Debug, Default)]
pub struct ApiListeners {
    /// Plain HTTP: loopback, or behind a proxy that ends TLS.
    pub plain: Vec<std::net::TcpListener>,
    /// HTTPS, with the certificates to present.
    pub tls: Option<(std::net::TcpListener, Arc<rustls::ServerConfig>)>,
}

/// How a request reached us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The other end.
    pub peer: SocketAddr,
    /// Whether TLS ends here.
    pub is_tls: bool,
    /// Our own end.
    pub local: Option<IpAddr>,
}

/// A connection with its permit, as requests get it.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) connection: Connection,
    /// The listener itself has none.
    pub(super) permit: Option<Handle>,
}

impl Connected<IncomingStream<'_, Plain>> for Served {
    fn connect_info(stream: IncomingStream<'_, Plain>) -> Self {
        stream.remote_addr().clone()
    }
}

impl Connected<IncomingStream<'_, Tls>> for Served {
    fn connect_info(stream: IncomingStream<'_, Tls>) -> Self {
        stream.remote_addr().clone()
    }
}

/// The bounds of a listener's clients.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    pub(super) permits: Arc<Permits>,
    pub(super) times: TimeLimits,
    /// Those that bring the connections of others.
    pub(super) proxies: TrustedProxies,
}

impl Clients {
    /// The permit of a new connection; a refusal is counted.
    fn enter(&self, peer: SocketAddr) -> Option<Permit> {
        let ip = peer.ip().to_canonical();
        let is_proxy = self.proxies.trust(ip);
        let permit = self.permits.enter(ip, self.proxies.is_exempt(ip)).ok()?;
        if is_proxy {
            permit.handle().relay();
        }
        Some(permit)
    }
}

/// Serves until `shutdown`, then finishes open requests for up to ten seconds.
///
/// # Errors
/// A socket cannot be used.
pub async fn run(listeners: ApiListeners, app: Arc<ApiState>, shutdown: CancellationToken) -> io::Result<()> {
    let clients = Clients {
        permits: app.core.capacity.api.clone(),
        times: app.core.capacity.limits.times,
        proxies: app.trusted_proxies.clone(),
    };
    run_router(listeners, router::router(app), clients, shutdown).await
}

/// Serves any routes to clients within their bounds.
pub(super) async fn run_router(
    listeners: ApiListeners,
    router: axum::Router,
    clients: Clients,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = router.layer(from_fn(busy::note_request));
    let service = router.into_make_service_with_connect_info::<Served>();
    let mut servers = JoinSet::new();
    for listener in listeners.plain {
        let listener = Plain { listener: from_std(listener)?, clients: clients.clone() };
        let server =
            axum::serve(listener, service.clone()).with_graceful_shutdown(shutdown.clone().cancelled_owned());
        servers.spawn(server.into_future());
    }
    if let Some((listener, config)) = listeners.tls {
        let listener = Tls {
            listener: from_std(listener)?,
            acceptor: TlsAcceptor::from(config),
            handshakes: JoinSet::new(),
            clients,
        };
        let server =
            axum::serve(listener, service).with_graceful_shutdown(shutdown.clone().cancelled_owned());
        servers.spawn(server.into_future());
    }
    let drained = async {
        while let Some(server) = servers.join_next().await {
            server.map_err(io::Error::other)??;
        }
        Ok(())
    };
    tokio::select! {
        result = drained => result,
        () = async { shutdown.cancelled().await; tokio::time::sleep(DRAIN_TIMEOUT).await } => {
            tracing::warn!("requests were dropped at the end of the drain");
            Ok(())
        }
    }
}

fn local_ip(stream: &TcpStream) -> Option<IpAddr> {
    stream.local_addr().ok().map(|local| local.ip().to_canonical())
}

fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

struct Plain {
    listener: TcpListener,
    clients: Clients,
}

impl Listener for Plain {
    type Io = Bounded<TcpStream>;
    type Addr = Served;

    async fn accept(&mut self) -> (Self::Io, Served) {
        let (stream, peer, permit) = accept(&self.listener, &self.clients).await;
        let local = local_ip(&stream);
        bounded(stream, Connection { peer, is_tls: false, local }, permit, self.clients.times)
    }

    fn local_addr(&self) -> io::Result<Served> {
        let connection = Connection { peer: self.listener.local_addr()?, is_tls: false, local: None };
        Ok(Served { connection, permit: None })
    }
}

type TlsHandshake = Option<(TlsStream<TcpStream>, SocketAddr, Permit)>;

/// Shakes hands in tasks of their own, so that a slow client holds nobody up.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<TlsHandshake>,
    clients: Clients,
}

impl Listener for Tls {
    type Io = Bounded<TlsStream<TcpStream>>;
    type Addr = Served;

    async fn accept(&mut self) -> (Self::Io, Served) {
        loop {
            tokio::select! {
                Some(done) = self.handshakes.join_next() => {
                    if let Ok(Some((stream, peer, permit))) = done {
                        let local = local_ip(stream.get_ref().0);
                        return bounded(stream, Connection { peer, is_tls: true, local }, permit, self.clients.times);
                    }
                }
                (stream, peer, permit) = accept(&self.listener, &self.clients) => {
                    let handshake = self.acceptor.accept(stream);
                    self.handshakes.spawn(async move {
                        let stream = tokio::select! {
                            done = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake) => done.ok()?.ok()?,
                            () = permit.displaced() => return None,
                        };
                        Some((stream, peer, permit))
                    });
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Served> {
        let connection = Connection { peer: self.listener.local_addr()?, is_tls: true, local: None };
        Ok(Served { connection, permit: None })
    }
}

fn bounded<S>(io: S, connection: Connection, permit: Permit, times: TimeLimits) -> (Bounded<S>, Served) {
    let served = Served { connection, permit: Some(permit.handle()) };
    (Bounded::new(io, times, permit), served)
}

/// The next connection that gets a permit; others are closed at once. Cancel-safe.
async fn accept(listener: &TcpListener, clients: &Clients) -> (TcpStream, SocketAddr, Permit) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small: they must not wait for more.
                let _ = stream.set_nodelay(true);
                if let Some(permit) = clients.enter(peer) {
                    return (stream, peer, permit);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
