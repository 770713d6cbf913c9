//! Bytes in, bytes out: a connection in memory. `tests/fuzz/src/plain.rs` uses this file, too.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use edge::{Connector, backing::Backing};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Times that the edge waits before the client says more, or leaves: an answer that is at hand is written by then.
const WAITS: u32 = 4;

/// The client's bytes in parts, and what came back.
struct Wire {
    parts: std::vec::IntoIter<Vec<u8>>,
    part: Vec<u8>,
    waits: u32,
    back: Arc<Mutex<Vec<u8>>>,
}

/// Sends `parts` one after the other, each once the edge waits for more, then the end; returns what was answered.
pub(crate) async fn exchange<B: Backing>(
    connector: &Connector<B>,
    peer: SocketAddr,
    parts: Vec<Vec<u8>>,
) -> Vec<u8> {
    let back = Arc::<Mutex<Vec<u8>>>::default();
    let wire = Wire { parts: parts.into_iter(), part: Vec::new(), waits: 0, back: back.clone() };
    connector.serve(wire, peer).await;
    back.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Answers without what differs from one to the next: the values of `Date` and `X-Request-Id`.
pub(crate) fn normal(answers: &[u8]) -> String {
    let text = String::from_utf8_lossy(answers);
    let lines = text.split_inclusive("\r\n").map(|line| match line.split_once(": ") {
        Some((name @ ("date" | "x-request-id"), value)) => format!("{name}: {} bytes\r\n", value.len()),
        _ => line.to_owned(),
    });
    lines.collect()
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.part.is_empty() {
            self.waits += 1;
            if self.waits <= WAITS {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.waits = 0;
            match self.parts.next() {
                Some(part) => self.part = part,
                // The end, however often it is asked for.
                None => return Poll::Ready(Ok(())),
            }
        }
        let taken = self.part.len().min(to.remaining());
        to.put_slice(&self.part[..taken]);
        self.part.drain(..taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.back.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
