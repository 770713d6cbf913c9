//! Transports of MQTT: a socket, a TLS stream, or the binary frames of a WebSocket.

use std::{future::Future, io};

use axum::extract::ws::{Message, WebSocket};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A way to the client and back.
pub trait Link: Send {
    /// Reads what has come, behind what `buffer` holds; 0 at the end. Cancel-safe.
    fn read(&mut self, buffer: &mut BytesMut) -> impl Future<Output = io::Result<usize>> + Send;

    /// Writes all of it.
    fn write(&mut self, bytes: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Sends a keep-alive, where silence would end the underlying connection.
    fn keep_alive(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Ends it in good order.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}

/// Most bytes per read.
const READ: usize = 16 << 10;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Link for S {
    async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        buffer.reserve(READ);
        self.read_buf(buffer).await
    }

    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        self.write_all(&bytes).await?;
        self.flush().await
    }

    async fn keep_alive(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) {
        // The client may be gone; then there is nothing to end.
        let _ = self.shutdown().await;
    }
}

/// A WebSocket with the subprotocol `mqtt`.
pub struct FromWebSocket(pub WebSocket);

shared::opaque!(FromWebSocket);

impl Link for FromWebSocket {
    async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        loop {
            match self.0.recv().await {
                None | Some(Ok(Message::Close(_))) => return Ok(0),
                Some(Ok(Message::Binary(bytes))) if bytes.is_empty() => {}
                Some(Ok(Message::Binary(bytes))) => {
                    buffer.extend_from_slice(&bytes);
                    return Ok(bytes.len());
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                // MQTT 5, 6: the frames must be binary.
                Some(Ok(Message::Text(_))) => return Err(io::ErrorKind::InvalidData.into()),
                Some(Err(error)) => return Err(io::Error::other(error)),
            }
        }
    }

    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        self.0.send(Message::Binary(bytes)).await.map_err(io::Error::other)
    }

    async fn keep_alive(&mut self) -> io::Result<()> {
        self.0.send(Message::Ping(Bytes::new())).await.map_err(io::Error::other)
    }

    async fn close(&mut self) {
        let _ = self.0.send(Message::Close(None)).await;
    }
}
