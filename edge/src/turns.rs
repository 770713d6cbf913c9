//! Connections take turns: whoever sends without end keeps nobody of the same thread waiting.
//!
//! A task reads as long as there is something, and tokio bounds that by 128 reads: with 16 KiB each and small frames
//! of HTTP/2 in them, tens of milliseconds of work.

use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take},
    task::yield_now,
};

/// Bytes that a connection is read before others have their turn: a hundred requests, less than a millisecond.
const TURN: u64 = 4 << 10;

/// A connection that gives way after [`TURN`] bytes, until the thread has looked what else there is to do.
#[derive(Debug)]
pub(crate) struct Turns<I>(Take<I>);

impl<I: AsyncRead> Turns<I> {
    /// A connection at the beginning of its first turn.
    pub(crate) fn new(io: I) -> Self {
        Self(io.take(TURN))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Turns<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = if self.0.limit() == 0 {
            // Its first poll asks to be woken after the sockets were looked at, which a plain wake does not.
            pin!(yield_now()).poll(context).map(Ok)
        } else {
            Pin::new(&mut self.0).poll_read(context, buffer)
        };
        if polled.is_pending() {
            self.0.set_limit(TURN);
        }
        polled
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Turns<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.get_ref().is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    };

    use tokio::{
        io::repeat,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[tokio::test]
    async fn who_sends_without_end_lets_others_be_heard() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let [flooded, asked_at] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let (count, mark) = (flooded.clone(), asked_at.clone());
        let flood = tokio::spawn(async move {
            let mut endless = Turns::new(repeat(b'x'));
            let mut buffer = [0; 1 << 10];
            for reads in 0_usize.. {
                let before = count.fetch_add(endless.read(&mut buffer).await.unwrap() as u64, SeqCst);
                // The other asks while this one has its turn, and the kernel alone knows of it.
                if reads % 1_000 == 5 {
                    mark.store(before, SeqCst);
                    near.try_write(b"?").unwrap();
                }
            }
        });
        let mut far = Turns::new(far);
        for _ in 0..10 {
            far.read_u8().await.unwrap();
            let between = flooded.load(SeqCst) - asked_at.load(SeqCst);
            assert!(between <= 2 * TURN, "{between} bytes of the other came first");
        }
        flood.abort();
    }
}
