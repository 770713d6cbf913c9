//! Read budget: bounds the bytes a connection reads per poll, so that one that sends without pause does not delay the
//! others on its thread.
//!
//! A task reads as long as there is data, and tokio bounds that at 128 reads: with 16 KiB each and small HTTP/2 frames
//! in them, that is tens of milliseconds of work.

use std::{
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take},
    task::yield_now,
};

/// A connection that yields after its read budget, until the thread has polled its other tasks.
#[derive(Debug)]
pub struct ReadBudget<I> {
    io: Take<I>,
    bytes: u64,
    rest: Option<Arc<Rest>>,
}

/// The time between two budgets, in which reads return nothing.
#[derive(Debug, Default)]
struct Rest {
    is_over: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Rest {
    fn wake(self: Arc<Self>) {
        self.is_over.store(true, SeqCst);
        self.task.wake();
    }
}

impl<I: AsyncRead> ReadBudget<I> {
    /// A connection that may read `bytes` per poll.
    pub fn new(io: I, bytes: usize) -> Self {
        let bytes = bytes as u64;
        Self { io: io.take(bytes), bytes, rest: None }
    }

    /// Whether the next budget is available; else the task is woken for it.
    fn has_rested(&mut self, context: &Context<'_>) -> bool {
        let begins = self.rest.is_none();
        let rest = self.rest.get_or_insert_default();
        // Registered before the check, so that a wake in between is not lost.
        rest.task.register(context.waker());
        if begins {
            // Its first poll asks to be woken after the sockets were polled, which a plain wake does not do.
            let waker = Waker::from(rest.clone());
            let _ = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
        }
        let is_over = rest.is_over.load(SeqCst);
        if is_over {
            self.rest = None;
        }
        is_over
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ReadBudget<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.io.limit() == 0 {
            if !self.has_rested(context) {
                return Poll::Pending;
            }
            let bytes = self.bytes;
            self.io.set_limit(bytes);
        }
        let polled = Pin::new(&mut self.io).poll_read(context, buffer);
        if polled.is_pending() {
            let bytes = self.bytes;
            self.io.set_limit(bytes);
        }
        polled
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ReadBudget<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.io.get_mut()).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io.get_mut()).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.io.get_mut()).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.io.get_mut()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.get_ref().is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::atomic::AtomicU64};

    use tokio::{
        io::repeat,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    const TURN: usize = 4 << 10;

    #[tokio::test]
    async fn an_endless_sender_does_not_starve_other_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let [flooded, asked_at] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let (count, mark) = (flooded.clone(), asked_at.clone());
        let flood = tokio::spawn(async move {
            let mut endless = ReadBudget::new(repeat(b'x'), TURN);
            let mut buffer = [0; 1 << 10];
            for reads in 0_usize.. {
                let before = count.fetch_add(endless.read(&mut buffer).await.unwrap() as u64, SeqCst);
                // The other connection sends while this one is read, and only the kernel knows of it.
                if reads % 1_000 == 5 {
                    mark.store(before, SeqCst);
                    near.try_write(b"?").unwrap();
                }
            }
        });
        let mut far = ReadBudget::new(far, TURN);
        // The kernel may be late to pass it on, but not each time.
        let mut least = u64::MAX;
        for _ in 0..10 {
            far.read_u8().await.unwrap();
            least = least.min(flooded.load(SeqCst) - asked_at.load(SeqCst));
        }
        assert!(least <= 2 * TURN as u64, "{least} bytes of the other came first");
        flood.abort();
    }

    #[tokio::test]
    async fn a_second_poll_gets_no_further_budget() {
        let mut endless = ReadBudget::new(repeat(b'x'), TURN);
        let mut read = |context: &mut Context<'_>| {
            let mut buffer = [0; 3 << 10];
            let mut buffer = ReadBuf::new(&mut buffer);
            let polled = Pin::new(&mut endless).poll_read(context, &mut buffer);
            polled.map(|result| result.map(|()| buffer.filled().len()).unwrap())
        };
        for _ in 0..3 {
            let of_a_turn = poll_fn(|context| {
                let polls = [(); 100].map(|()| read(context));
                Poll::Ready(
                    polls
                        .iter()
                        .map(|poll| if let Poll::Ready(count) = poll { *count } else { 0 })
                        .sum::<usize>(),
                )
            });
            assert_eq!(of_a_turn.await, TURN);
            // The thread polls its sockets.
            yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}
