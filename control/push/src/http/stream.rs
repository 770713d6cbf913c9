//! The change stream of one edge over the network: frames in both directions after an HTTP upgrade.
//!
//! An edge that reads slowly costs its cursor and the kernel's buffers: the next message is built when the previous one
//! was sent, and a message that cannot be sent in time ends the connection.

use std::{io, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use shared::wire::{
    OLDEST_PROTOCOL, PROTOCOL,
    frame::{self, Decoder, FrameError},
    internal::STREAM_UPGRADE,
    stream::{Hello, ToControl, ToEdge},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    time::{Instant, timeout},
};
use web::api_error::ApiError;

use super::{Edge, EdgeApi};
use crate::{
    error::EdgeError,
    hub::{EdgeSession, LEASE},
    store::StoreError,
};

/// Longest wait for the first message of an edge.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that one message may take to go out.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long edges have to leave after a Goaway; the drain of control ends by then.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Edges that are sent away come back to other replicas within this time.
const LEAVE_JITTER_MS: u64 = 2_000;

/// Bytes per read from an edge.
const READ_BYTES: usize = 16 << 10;

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Said(&'static str),
}

/// Opens the stream of the edge whose key was sent.
pub(super) async fn open(
    State(api): State<EdgeApi>,
    edge: Edge,
    mut request: Request,
) -> Result<Response, ApiError> {
    if !asks_for_stream(request.headers()) {
        return Err(EdgeError::NoUpgrade(STREAM_UPGRADE).into());
    }
    let upgrade = hyper::upgrade::on(&mut request);
    let streams = api.streams.clone();
    streams.spawn(async move {
        let name = edge.name.clone();
        let io = match upgrade.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return tracing::debug!(edge = %name, %error, "no stream came of an upgrade"),
        };
        let (read, write) = tokio::io::split(io);
        let mut stream = Stream { api, edge, reader: Reader::new(read), write };
        if let Err(end) = stream.run().await {
            tracing::info!(edge = %name, %end, "the stream of an edge ended");
        }
        // The edge may be gone, and notices by itself.
        let _ = timeout(LEAVE_TIMEOUT, stream.write.shutdown()).await;
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(STREAM_UPGRADE));
    Ok(response)
}

fn asks_for_stream(headers: &HeaderMap) -> bool {
    let has = |name, word: &str| {
        let lines = headers.get_all(name).into_iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    has(header::CONNECTION, "upgrade") && has(header::UPGRADE, STREAM_UPGRADE)
}

struct Stream<S> {
    api: EdgeApi,
    edge: Edge,
    reader: Reader<ReadHalf<S>>,
    write: WriteHalf<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    async fn run(&mut self) -> Result<(), End> {
        let hello = match timeout(HELLO_TIMEOUT, self.reader.next()).await {
            Ok(Ok(ToControl::Hello(hello))) => hello,
            Ok(Ok(ToControl::Ack { .. } | ToControl::Resync { .. })) => {
                return self.refuse("the first message must be a hello").await;
            }
            Ok(Err(end)) => return Err(end),
            Err(_) => return Err(End::Said("no hello came in time")),
        };
        if hello.edge_id != self.edge.name {
            return self.refuse("the hello is not of the edge whose key was sent").await;
        }
        if let Some(reason) = misfit(&hello) {
            return self.refuse(&reason).await;
        }
        let mut session = match self.api.hub.connect(&hello).await {
            Ok(session) => session,
            Err(error) => {
                self.say_goodbye("the database does not answer", 1_000).await?;
                return Err(error.into());
            }
        };
        tracing::info!(edge = %hello.edge_id, applied = hello.applied, build = %hello.build, "an edge connected");
        self.follow(&mut session).await
    }

    /// Sends events and receives acknowledgements until one side leaves.
    async fn follow(&mut self, session: &mut EdgeSession) -> Result<(), End> {
        let mut heard = Instant::now();
        // Registered once: thousands of streams that did so at each message would queue for its lock.
        let mut leave = std::pin::pin!(self.api.leave.clone().cancelled_owned());
        loop {
            tokio::select! {
                outgoing = session.next_outgoing() => {
                    let outgoing = outgoing?;
                    self.send(outgoing.frames()?, session, &mut heard).await?;
                    if outgoing.is_goaway() {
                        return Ok(());
                    }
                    if self.api.edge_keys.edge_of_hash(&self.edge.key).is_none() {
                        return self.refuse("the key of the edge was revoked").await;
                    }
                    if heard.elapsed() > LEASE {
                        return Err(End::Said("no message came from the edge"));
                    }
                }
                message = self.reader.next() => {
                    heard = Instant::now();
                    session.receive(message?);
                }
                () = &mut leave => return self.leave(session).await,
            }
        }
    }

    /// Sends an edge to another replica, and takes its last acknowledgements.
    async fn leave(&mut self, session: &mut EdgeSession) -> Result<(), End> {
        self.say_goodbye("this replica stops", self.jitter()).await?;
        let last = async {
            loop {
                session.receive(self.reader.next().await?);
            }
        };
        timeout(LEAVE_TIMEOUT, last).await.unwrap_or(Ok(()))
    }

    /// A pause that differs between edges, so that they do not all reconnect at once.
    fn jitter(&self) -> u64 {
        let [byte, other, ..] = self.api.access.core.random16().unwrap_or_default();
        u64::from(u16::from_le_bytes([byte, other])) % LEAVE_JITTER_MS
    }

    /// Sends frames, while it keeps receiving messages of the edge.
    async fn send(
        &mut self,
        frames: Vec<Bytes>,
        session: &mut EdgeSession,
        heard: &mut Instant,
    ) -> Result<(), End> {
        let write = async {
            for part in &frames {
                self.write.write_all(part).await?;
            }
            self.write.flush().await
        };
        let mut write = std::pin::pin!(timeout(WRITE_TIMEOUT, write));
        loop {
            tokio::select! {
                written = &mut write => {
                    return written.map_err(|_| End::Said("the edge reads too slowly"))?.map_err(End::Io);
                }
                message = self.reader.next() => {
                    *heard = Instant::now();
                    session.receive(message?);
                }
            }
        }
    }

    async fn refuse(&mut self, reason: &str) -> Result<(), End> {
        tracing::warn!(edge = %self.edge.name, reason, "an edge was sent to another replica");
        self.say_goodbye(reason, 5_000).await
    }

    async fn say_goodbye(&mut self, reason: &str, retry_after_ms: u64) -> Result<(), End> {
        let message = ToEdge::Goaway { reason: reason.to_owned(), retry_after_ms };
        let frames = frame::encode(&message)?;
        let write = async {
            self.write.write_all(&frames).await?;
            self.write.flush().await
        };
        timeout(WRITE_TIMEOUT, write).await.map_err(|_| End::Said("the edge reads too slowly"))??;
        Ok(())
    }
}

/// Why an edge of this release cannot be served: one release apart is.
fn misfit(hello: &Hello) -> Option<String> {
    let allowed = OLDEST_PROTOCOL..=PROTOCOL + 1;
    (!allowed.contains(&hello.proto)).then(|| {
        let (oldest, newest) = (allowed.start(), allowed.end());
        format!("protocol {} is not spoken here: {oldest} to {newest} are", hello.proto)
    })
}

/// Messages of an edge as they come in.
struct Reader<R> {
    read: R,
    decoder: Decoder<ToControl>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(read: R) -> Self {
        Self { read, decoder: Decoder::default() }
    }

    /// The next message. Cancel-safe.
    async fn next(&mut self) -> Result<ToControl, End> {
        loop {
            if let Some(message) = self.decoder.decode()? {
                return Ok(message);
            }
            self.decoder.buffer.reserve(READ_BYTES);
            if self.read.read_buf(&mut self.decoder.buffer).await? == 0 {
                return Err(End::Said("the edge left"));
            }
        }
    }
}
