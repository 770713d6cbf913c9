//! The change stream over a connection: an HTTP upgrade, then frames in both directions.
//!
//! It works over any byte stream, so a simulated network runs the same code.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderValue, Request, StatusCode,
    header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE},
};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use shared::wire::{
    frame::{Decoder, Message},
    internal::{STREAM_PATH, STREAM_UPGRADE},
    stream::{Hello, ToControl, ToEdge},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use crate::{BackingError, Changes};

/// Bytes asked of the connection at a time.
const READ_BYTES: usize = 64 << 10;
/// How long control may take for the upgrade, which needs no other service.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the hello may take to go out.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);
/// Most bytes of a refusal that are read for the log.
const REFUSAL_BYTES: usize = 4 << 10;
/// How long reading it may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Why no stream was opened.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Control does not take the key.
    #[error("control does not take the key of this edge")]
    Denied,
    /// A step took longer than it may.
    #[error("{0} took too long")]
    Silent(&'static str),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl From<DialError> for BackingError {
    fn from(error: DialError) -> Self {
        Self::Unreachable(error.to_string())
    }
}

/// Frames over a connection.
pub struct FrameStream<T> {
    io: T,
    decoder: Decoder<ToEdge>,
    out: BytesMut,
}

impl<T> std::fmt::Debug for FrameStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameStream").field("unread", &self.decoder.buffer.len()).finish_non_exhaustive()
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> FrameStream<T> {
    /// Frames over a connection on which nothing else is sent.
    #[must_use]
    pub fn new(io: T) -> Self {
        Self { io, decoder: Decoder::default(), out: BytesMut::new() }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Changes for FrameStream<T> {
    async fn next(&mut self) -> Result<ToEdge, BackingError> {
        loop {
            match self.decoder.decode() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(error) => return Err(BackingError::Unreachable(error.to_string())),
            }
            self.decoder.buffer.reserve(READ_BYTES);
            // Data that was read stays in the buffer when this future is dropped.
            match self.io.read_buf(&mut self.decoder.buffer).await {
                Ok(0) => return Err(BackingError::Unreachable("control closed the stream".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(BackingError::Unreachable(error.to_string())),
            }
        }
    }

    async fn send(&mut self, message: ToControl) -> Result<(), BackingError> {
        let broken = |error: &dyn std::fmt::Display| BackingError::Unreachable(error.to_string());
        self.out.clear();
        message.encode(&mut self.out).map_err(|error| broken(&error))?;
        self.io.write_all(&self.out).await.map_err(|error| broken(&error))?;
        self.io.flush().await.map_err(|error| broken(&error))
    }
}

/// Requests the stream on a connection to control, and sends the hello; each step has its own timeout.
///
/// # Errors
/// Control refuses or is silent, or the connection ends.
pub async fn open<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    io: T,
    host: &str,
    key: HeaderValue,
    hello: Hello,
) -> Result<FrameStream<TokioIo<Upgraded>>, DialError> {
    let failed = |error: &dyn std::fmt::Display| DialError::Failed(error.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(io)).await.map_err(|error| failed(&error))?;
    // Ends with the connection, at the latest when the stream is dropped.
    tokio::spawn(connection.with_upgrades());
    let request = Request::get(STREAM_PATH)
        .header(HOST, host)
        .header(AUTHORIZATION, key)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, STREAM_UPGRADE)
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(&error))?;
    let response = timeout(UPGRADE_TIMEOUT, sender.send_request(request))
        .await
        .map_err(|_| DialError::Silent("the upgrade"))?
        .map_err(|error| failed(&error))?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(DialError::Denied),
        status => {
            let body = Limited::new(response.into_body(), REFUSAL_BYTES).collect();
            let said = match timeout(REFUSAL_TIMEOUT, body).await {
                Ok(Ok(body)) => String::from_utf8_lossy(&body.to_bytes()).into_owned(),
                Ok(Err(_)) | Err(_) => String::new(),
            };
            return Err(DialError::Failed(format!("control answers {status}: {said}")));
        }
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(|error| failed(&error))?;
    let mut stream = FrameStream::new(TokioIo::new(upgraded));
    timeout(HELLO_TIMEOUT, stream.send(ToControl::Hello(hello)))
        .await
        .map_err(|_| DialError::Silent("the hello"))?
        .map_err(|error| failed(&error))?;
    Ok(stream)
}
