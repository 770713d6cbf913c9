//! A connection in memory: one request at a time, each once the answer before it is written.

use std::{
    io::{IoSlice, Result},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    vec::IntoIter,
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The server's end.
pub(crate) struct Wire {
    requests: IntoIter<Vec<u8>>,
    start: Vec<u8>,
    turn: Turn,
    /// Who waits for the next request.
    reader: Option<Waker>,
    seen: Arc<Seen>,
}

/// What a client does that asks one thing after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Its request is there.
    Asks,
    /// It waits for the answer.
    Waits,
    /// It has the answer, and the next request is under way.
    Reads,
}

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    right: AtomicUsize,
    wrong: AtomicUsize,
}

impl Seen {
    /// Answers with the expected status, and others.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.right.load(Relaxed), self.wrong.load(Relaxed))
    }
}

impl Wire {
    /// A connection that asks all of `requests`, ends, and expects one status.
    pub(crate) fn new(requests: Vec<Vec<u8>>, status: &str) -> (Self, Arc<Seen>) {
        let seen = Arc::<Seen>::default();
        let start = format!("HTTP/1.1 {status} ").into_bytes();
        (
            Self {
                requests: requests.into_iter(),
                start,
                turn: Turn::Asks,
                reader: None,
                seen: seen.clone(),
            },
            seen,
        )
    }

    fn take(&mut self, written: &[u8]) {
        // Bodies come in writes of their own.
        if written.starts_with(&self.start) {
            self.seen.right.fetch_add(1, Relaxed);
        } else if written.starts_with(b"HTTP/") {
            self.seen.wrong.fetch_add(1, Relaxed);
        }
        self.turn = Turn::Reads;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        match self.turn {
            Turn::Asks => {
                if let Some(request) = self.requests.next() {
                    to.put_slice(&request);
                }
                self.turn = Turn::Waits;
                Poll::Ready(Ok(()))
            }
            Turn::Waits => {
                self.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Turn::Reads => {
                // As from a socket: the task sleeps, and is woken by what comes.
                self.turn = Turn::Asks;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if let Some(first) = slices.first() {
            self.take(first);
        }
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}
