//! A connection some bytes of which were read already.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads the bytes that were read before once more, then the rest of the connection.
#[derive(Debug)]
pub(crate) struct Replay<I> {
    before: Vec<u8>,
    at: usize,
    io: I,
}

impl<I> Replay<I> {
    /// A connection that begins with `before` once more.
    pub(super) const fn new(before: Vec<u8>, io: I) -> Self {
        Self { before, at: 0, io }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Replay<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at == self.before.len() {
            return Pin::new(&mut self.io).poll_read(context, buffer);
        }
        let end = self.before.len().min(self.at + buffer.remaining());
        buffer.put_slice(&self.before[self.at..end]);
        self.at = end;
        if end == self.before.len() {
            // Frees them.
            (self.before, self.at) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Replay<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
