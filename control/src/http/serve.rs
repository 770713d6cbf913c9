//! Serves the API on plain and TLS listeners until the shutdown, then drains.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

use super::{
    bounded::{Bounded, SILENCE},
    router,
};
use crate::service::App;

/// Longest time from the shutdown until open requests are dropped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Most connections of a listener at once, handshakes included; further clients wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 1_024;

/// Pause after the system could not accept, mostly for want of file handles.
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

impl Connected<IncomingStream<'_, Plain>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Plain>) -> Self {
        *stream.remote_addr()
    }
}

impl Connected<IncomingStream<'_, Tls>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Tls>) -> Self {
        *stream.remote_addr()
    }
}

/// Serves until `shutdown`, then finishes open requests for up to ten seconds.
///
/// # Errors
/// A socket cannot be used.
pub async fn run(listeners: ApiListeners, app: Arc<App>, shutdown: CancellationToken) -> io::Result<()> {
    run_router(listeners, router::router(app), MAX_CONNECTIONS, shutdown).await
}

/// Serves any routes within the bounds of the API's listeners, with so many connections of each at once.
pub(super) async fn run_router(
    listeners: ApiListeners,
    router: axum::Router,
    max_connections: usize,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let service = router.into_make_service_with_connect_info::<Connection>();
    let mut servers = JoinSet::new();
    for listener in listeners.plain {
        let listener = Plain { listener: from_std(listener)?, places: places(max_connections) };
        let server =
            axum::serve(listener, service.clone()).with_graceful_shutdown(shutdown.clone().cancelled_owned());
        servers.spawn(server.into_future());
    }
    if let Some((listener, config)) = listeners.tls {
        let listener = Tls {
            listener: from_std(listener)?,
            acceptor: TlsAcceptor::from(config),
            handshakes: JoinSet::new(),
            places: places(max_connections),
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

fn places(count: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(count))
}

struct Plain {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Listener for Plain {
    type Io = Bounded<TcpStream>;
    type Addr = Connection;

    async fn accept(&mut self) -> (Self::Io, Connection) {
        let (stream, peer, place) = accept(&self.listener, &self.places).await;
        let local = local_ip(&stream);
        (Bounded::new(stream, SILENCE, place), Connection { peer, is_tls: false, local })
    }

    fn local_addr(&self) -> io::Result<Connection> {
        Ok(Connection { peer: self.listener.local_addr()?, is_tls: false, local: None })
    }
}

/// Shakes hands in tasks of their own, so that a slow client holds nobody up.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Option<(Bounded<TlsStream<TcpStream>>, SocketAddr)>>,
    places: Arc<Semaphore>,
}

impl Listener for Tls {
    type Io = Bounded<TlsStream<TcpStream>>;
    type Addr = Connection;

    async fn accept(&mut self) -> (Self::Io, Connection) {
        loop {
            tokio::select! {
                Some(done) = self.handshakes.join_next() => {
                    if let Ok(Some((stream, peer))) = done {
                        let local = local_ip(stream.get_ref().get_ref().0);
                        return (stream, Connection { peer, is_tls: true, local });
                    }
                }
                (stream, peer, place) = accept(&self.listener, &self.places) => {
                    let handshake = self.acceptor.accept(stream);
                    self.handshakes.spawn(async move {
                        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await.ok()?.ok()?;
                        Some((Bounded::new(stream, SILENCE, place), peer))
                    });
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Connection> {
        Ok(Connection { peer: self.listener.local_addr()?, is_tls: true, local: None })
    }
}

/// The next connection, once there is a place for it. Cancel-safe.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        // Nobody closes the semaphore.
        let Ok(place) = places.clone().acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small: they must not wait for more.
                let _ = stream.set_nodelay(true);
                return (stream, peer, place);
            }
            Err(error) => {
                tracing::warn!(%error, "accept");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
