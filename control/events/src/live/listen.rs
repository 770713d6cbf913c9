//! Accepts MQTT over TCP and TLS, and counts open connections.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::Broker;
use super::session::{self, Limits};

/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a failed accept, mostly for lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Drain time of connections; those left are closed by other replicas or the next start.
const DRAIN: Duration = Duration::from_secs(5);

/// The bound sockets of the broker.
#[derive(Debug, Default)]
pub struct BrokerListeners {
    /// Plain MQTT: loopback, or behind a proxy that ends TLS.
    pub plain: Option<std::net::TcpListener>,
    /// MQTT over TLS, with the certificates to present.
    pub tls: Option<(std::net::TcpListener, Arc<rustls::ServerConfig>)>,
}

/// Serves clients until `shutdown`, then sends them away; waits without listeners.
///
/// # Errors
/// A socket cannot be used.
pub async fn run(
    listeners: BrokerListeners,
    broker: Arc<Broker>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let mut accepting = JoinSet::new();
    if let Some(listener) = listeners.plain {
        let doors = Doors::new(listener, None, &broker)?;
        accepting.spawn(doors.open());
    }
    if let Some((listener, config)) = listeners.tls {
        // Clients may name protocols that are not those of HTTP.
        let mut config = (*config).clone();
        config.alpn_protocols.clear();
        let doors = Doors::new(listener, Some(TlsAcceptor::from(Arc::new(config))), &broker)?;
        accepting.spawn(doors.open());
    }
    shutdown.cancelled().await;
    accepting.shutdown().await;
    // Those of WebSockets too, which came in by the API's listeners.
    broker.connections.stopping.cancel();
    let sessions = &broker.connections.sessions;
    sessions.close();
    if timeout(DRAIN, sessions.wait()).await.is_err() {
        tracing::warn!(left = sessions.len(), "connections were dropped at the end of the drain");
    }
    Ok(())
}

struct Doors {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    broker: Arc<Broker>,
}

impl Doors {
    fn new(
        listener: std::net::TcpListener,
        acceptor: Option<TlsAcceptor>,
        broker: &Arc<Broker>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(listener)?, acceptor, broker: broker.clone() })
    }

    async fn open(self) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => self.enter(stream, peer),
                Err(error) => {
                    tracing::warn!(%error, "accept");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn enter(&self, stream: TcpStream, peer: SocketAddr) {
        let ip = peer.ip().to_canonical();
        // A refusal is counted; the client sees the connection closed.
        let Ok(permit) = self.broker.capacity.mqtt.enter(ip, self.broker.trusted_proxies.is_exempt(ip))
        else {
            return;
        };
        // Messages are small: they must not wait for more.
        let _ = stream.set_nodelay(true);
        // MQTT names no client: behind a proxy, clients share the proxy's limit.
        let client = self.broker.trusted_proxies.client(peer.ip(), std::iter::empty());
        let (limited_as, permit_handle) = (client.limited(), Some(permit.handle()));
        let limits = Limits { ip: Some(client.ip), limited_as, token: None, permit: permit_handle };
        let (broker, acceptor) = (self.broker.clone(), self.acceptor.clone());
        self.broker.connections.sessions.spawn(async move {
            let serve = async {
                match acceptor {
                    None => session::serve(broker, stream, limits).await,
                    Some(acceptor) => {
                        if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                            session::serve(broker, stream, limits).await;
                        }
                    }
                }
            };
            // Only a connection whose CONNECT was not accepted yet can be displaced.
            tokio::select! {
                () = serve => {}
                () = permit.displaced() => {}
            }
        });
    }
}
