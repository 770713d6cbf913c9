//! The bounds of a connection: how many there may be at once, and how long one may be silent.
//!
//! A client that opens connections and says nothing would otherwise take every file handle of the process,
//! which in one process are those of the edge too.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep},
};

/// Longest silence of both sides: above the time of a request, and above what clients keep idle ones for.
pub(super) const SILENCE: Duration = Duration::from_secs(75);

/// A connection that ends after a silence, and gives its place back.
pub(super) struct Bounded<S> {
    io: S,
    silence: Duration,
    end: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl<S> Bounded<S> {
    /// A connection that has `place` for as long as it lives.
    pub(super) fn new(io: S, silence: Duration, place: OwnedSemaphorePermit) -> Self {
        Self { io, silence, end: Box::pin(tokio::time::sleep(silence)), _place: place }
    }

    /// The connection itself.
    pub(super) fn get_ref(&self) -> &S {
        &self.io
    }

    fn is_alive(&mut self) {
        self.end.as_mut().reset(Instant::now() + self.silence);
    }

    fn wrote<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(written, Poll::Ready(Ok(_))) {
            self.is_alive();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(cx, buf) {
            this.is_alive();
            return Poll::Ready(read);
        }
        ready!(this.end.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.wrote(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        sync::Semaphore,
    };

    use super::*;

    #[tokio::test]
    async fn a_silent_connection_ends_and_gives_its_place_back() {
        let places = Arc::new(Semaphore::new(1));
        let (mut client, server) = tokio::io::duplex(64);
        let place = places.clone().try_acquire_owned().unwrap();
        let mut server = Bounded::new(server, Duration::from_millis(50), place);
        client.write_all(b"a").await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'a');
        assert_eq!(places.available_permits(), 0);
        assert_eq!(server.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(server);
        assert_eq!(places.available_permits(), 1);
        assert!(client.read_u8().await.is_err());
    }
}
