//! Listeners and connections: HTTP/1.1 and HTTP/2, limits, timeouts, graceful shutdown.

use std::{
    convert::Infallible,
    future::Future,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use edge_tls::ACME_TLS;
use http::{HeaderValue, header::CONNECTION};
use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
};
use platform::{Bounds, Permit, Permits, ReadBudget, Refused};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    backing::Backing,
    config::Limits,
    connection::{Activity, Client, ColdPathWaker, InFlight},
    handler::App,
    metrics::Metrics,
    plain::{Front, Replay},
};

/// Wait after a failed accept: descriptors come back when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Most connections accepted at shutdown: as many as the kernel queues for a socket. Clients that keep connecting
/// must not delay the shutdown.
const WAITING: usize = 4_096;
/// Wait between two checks of the first bytes, when fewer than three have arrived.
const SNIFF_PAUSE: Duration = Duration::from_millis(5);
/// Close timeout of an idle connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Drain grace: how long idle connections stay open at shutdown, so that requests on their way arrive.
const DRAIN_GRACE: Duration = Duration::from_millis(250);
/// Bytes that hyper reads at a time; the least buffer it takes.
const READ_BYTES: usize = 8 << 10;
/// Read budget of an HTTP/2 connection: some hundred requests.
const H2_READ_BUDGET: usize = 4 << 10;
/// Between pings of an HTTP/2 connection: a dead peer must not hold a drain (hyper#4170).
const H2_PING: Duration = Duration::from_secs(20);
/// Timeout of a keep-alive ping.
const H2_PONG: Duration = Duration::from_secs(10);

/// The public side of an edge.
pub(crate) struct Server<B> {
    app: Arc<App<B>>,
    permits: Arc<Permits>,
    connections: TaskTracker,
    shutdown: CancellationToken,
}

impl<B: Backing> Server<B> {
    /// A server that accepts until `shutdown`.
    pub(crate) fn new(app: Arc<App<B>>, shutdown: CancellationToken) -> Arc<Self> {
        let limits = &app.config.limits;
        let most = limits.connections.unwrap_or_else(platform::descriptors);
        let per_address = usize::try_from(limits.connections_per_address).unwrap_or(usize::MAX);
        Arc::new(Self {
            permits: Permits::new(Bounds::plain(most, per_address)),
            connections: TaskTracker::new(),
            shutdown,
            app,
        })
    }

    /// Accepts connections of one listener until shutdown.
    pub(crate) async fn accept(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        while let Some(accepted) = self.shutdown.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => self.take(stream, peer, tls.as_ref()),
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        if let Err(error) = self.take_waiting(listener, tls.as_ref()) {
            tracing::warn!(%error, "connections queued at shutdown may be lost");
        }
    }

    /// Accepts the connections that wait in the kernel's queue, which would be reset when the socket is closed. Uses
    /// the socket directly, because the runtime only learns of them at its next poll.
    fn take_waiting(self: &Arc<Self>, listener: TcpListener, tls: Option<&TlsAcceptor>) -> io::Result<()> {
        let listener = listener.into_std()?;
        for _ in 0..WAITING {
            match listener.accept() {
                Ok((stream, peer)) => {
                    stream.set_nonblocking(true)?;
                    self.take(TcpStream::from_std(stream)?, peer, tls);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client left meanwhile.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, tls: Option<&TlsAcceptor>) {
        match self.admit(peer) {
            Ok(permit) => {
                self.connections.spawn(self.clone().connect(stream, peer, tls.cloned(), permit));
            }
            Err(reason) => self.app.metrics.refused_connection(reason),
        }
    }

    /// Waits until all connections have ended; each ends by itself within the drain timeout.
    pub(crate) async fn drained(&self) {
        self.connections.close();
        self.connections.wait().await;
    }

    fn admit(&self, peer: SocketAddr) -> Result<OpenConnection, Refused> {
        let ip = peer.ip().to_canonical();
        // A proxy brings the connections of all its clients; those of this machine are bounded by the descriptors.
        let permit = self.permits.enter(ip, self.app.config.trusted_proxies.is_exempt(ip))?;
        self.app.metrics.connections.inc();
        Ok(OpenConnection { _permit: permit, metrics: self.app.metrics.clone() })
    }

    async fn connect(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        tls: Option<TlsAcceptor>,
        _open: OpenConnection,
    ) {
        let limits = &self.app.config.limits;
        // An answer is one write; waiting for more would only delay it.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let client = Client::of(peer, tls.is_some());
        match tls {
            Some(acceptor) => {
                let handshake = timeout(limits.handshake_timeout, acceptor.accept(stream));
                let Some(Ok(Ok(stream))) = self.hurry(handshake).await else { return };
                let protocol = stream.get_ref().1.alpn_protocol();
                if protocol == Some(ACME_TLS) {
                    // The handshake was the answer.
                    return;
                }
                let is_h2 = protocol == Some(b"h2");
                self.serve(ReadBudget::new(stream, self.read_budget(is_h2)), client, is_h2).await;
            }
            None => {
                // A silent client must not delay the drain.
                let sniff = timeout(limits.header_timeout, begins_h2(&stream));
                let Some(Ok(Ok(is_h2))) = self.hurry(sniff).await else { return };
                self.serve(ReadBudget::new(stream, self.read_budget(is_h2)), client, is_h2).await;
            }
        }
    }

    /// The read budget of a connection.
    fn read_budget(&self, is_h2: bool) -> usize {
        // Of HTTP/1, whose requests are larger, a header that is somewhat too large is still read whole.
        if is_h2 { H2_READ_BUDGET } else { self.app.config.limits.header_bytes + READ_BYTES }
    }

    /// Waits as long as it takes, and a moment only once the edge stops: a request may be under way.
    async fn hurry<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let stop = async {
            self.shutdown.cancelled().await;
            sleep(DRAIN_GRACE).await;
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = stop => None,
        }
    }

    /// Serves one connection until its end.
    pub(crate) async fn serve<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        io: I,
        client: Client,
        is_h2: bool,
    ) {
        let limits = &self.app.config.limits;
        let activity = Arc::new(Activity::new(self.app.ids.next()));
        let link = Arc::new((self.app.clone(), activity.clone()));
        let service = service_fn(move |request| {
            // One clone of what belongs to this connection alone: no cache line is shared between cores.
            let link = link.clone();
            async move {
                let in_flight = InFlight::begin(&link.1);
                let mut response = link.0.answer(client, request, in_flight).await;
                if !is_h2 && link.1.is_last() {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        });
        if is_h2 {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(limits.h2_streams)
                .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
                .keep_alive_interval(H2_PING)
                .keep_alive_timeout(H2_PONG)
                .serve_connection(TokioIo::new(io), service);
            watch(ByHyper(connection), &activity, limits, &self.shutdown, Duration::ZERO).await;
        } else {
            // hyper's own header timeout runs while a connection is idle too, and costs a timer for each
            // request; `watch` bounds both with one timer for the connection. No `pipeline_flush`: with bytes
            // left to read it holds the last answer back, and a connection that then closes never sends it.
            let (header_bytes, headers) = (limits.header_bytes, limits.headers);
            let by_hyper = move |io| {
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(None)
                    .max_headers(headers)
                    .max_header_size(header_bytes)
                    // Extra buffer beyond the limit, so that a slightly oversized header is read completely and
                    // answered.
                    .max_buf_size(header_bytes + READ_BYTES)
                    // Nearly every answer is a head alone: one plain write is cheaper than a vector of one.
                    .writev(false)
                    .serve_connection(TokioIo::new(io), service)
            };
            let connection = Front::new(self.app.clone(), activity.clone(), client, io, by_hyper);
            // A request may be on its way on an idle connection: it is answered, and the response closes the
            // connection.
            watch(connection, &activity, limits, &self.shutdown, DRAIN_GRACE).await;
        }
    }
}

/// A connection that is driven to its end.
trait Connection {
    /// Serves it; ready at its end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
    /// Ends it after what is under way.
    fn graceful_shutdown(&mut self);
}

/// A connection that hyper serves from its first byte.
struct ByHyper<C>(C);

impl<C: GracefulConnection + Unpin> Connection for ByHyper<C> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }

    fn graceful_shutdown(&mut self) {
        Pin::new(&mut self.0).graceful_shutdown();
    }
}

impl<B, I, F, C> Connection for Front<B, I, F, C>
where
    B: Backing,
    I: AsyncRead + AsyncWrite + Unpin,
    F: FnOnce(Replay<I>) -> C + Unpin,
    C: GracefulConnection + Unpin,
{
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context)
    }

    fn graceful_shutdown(&mut self) {
        self.graceful_shutdown();
    }
}

/// What became of a connection for now.
enum Turn {
    Ended,
    Stop,
    Look,
}

/// Drives a connection to its end: its own, that of its idle time, or that of the edge.
async fn watch(
    mut connection: impl Connection,
    activity: &Activity,
    limits: &Limits,
    shutdown: &CancellationToken,
    drain_grace: Duration,
) {
    let mut cancelled = pin!(shutdown.cancelled());
    let mut look = pin!(sleep(limits.header_timeout));
    let (cold_path, mut known) = (ColdPathWaker::new(), None);
    let waker = Waker::from(cold_path.clone());
    let (mut seen, mut quiet_looks, mut stuck_looks) = ((0, 0), 0, 0);
    let patience = loop {
        let read_budget = poll_fn(|context| {
            if cold_path.is_due(context, &mut known) {
                let mut beside = Context::from_waker(&waker);
                if cancelled.as_mut().poll(&mut beside).is_ready() {
                    return Poll::Ready(Turn::Stop);
                }
                if look.as_mut().poll(&mut beside).is_ready() {
                    return Poll::Ready(Turn::Look);
                }
            }
            connection.poll(context).map(|()| Turn::Ended)
        });
        match read_budget.await {
            Turn::Ended => return,
            Turn::Stop => {
                activity.end();
                // Without a request so far there is nothing to finish.
                break if activity.counts().0 == 0 { CLOSE_TIMEOUT } else { limits.drain_timeout };
            }
            Turn::Look => {
                let counts = activity.counts();
                let is_same = counts == seen;
                let is_idle = counts.0 == counts.1;
                quiet_looks = if is_same && is_idle { quiet_looks + 1 } else { 0 };
                stuck_looks = if is_same && !is_idle { stuck_looks + 1 } else { 0 };
                if counts.0 == 0 || quiet_looks == 2 || stuck_looks == 4 {
                    break CLOSE_TIMEOUT;
                }
                seen = counts;
                look.as_mut().reset(Instant::now() + limits.idle_timeout / 2);
                cold_path.look_again();
            }
        }
    };
    let until_end = poll_fn(|context| connection.poll(context));
    if shutdown.is_cancelled() && timeout(drain_grace, until_end).await.is_ok() {
        return;
    }
    connection.graceful_shutdown();
    // Without this bound a dead peer would hold the drain (hyper#4170).
    let _ = timeout(patience, poll_fn(|context| connection.poll(context))).await;
}

/// Whether the client speaks HTTP/2 with prior knowledge: its preface begins with a method no one else has.
async fn begins_h2(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; 3];
    loop {
        match stream.peek(&mut first).await? {
            0 => return Ok(false),
            3 => return Ok(&first == b"PRI"),
            some if first.get(..some) != b"PRI".get(..some) => return Ok(false),
            _ => sleep(SNIFF_PAUSE).await,
        }
    }
}

/// The permits of a connection.
struct OpenConnection {
    _permit: Permit,
    metrics: Arc<Metrics>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
