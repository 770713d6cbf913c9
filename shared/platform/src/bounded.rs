//! A socket with time limits: for the headers of a request, for idleness, and for a client that does not read.
//!
//! A client that sends single bytes cannot keep a connection open: a request has to begin in time, and responses have
//! to be read at a minimum rate.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::permits::{Permit, Refused};

/// How HTTP/2 begins; no method of HTTP/1 does.
const H2_PREFACE: &[u8] = b"PRI";

/// Time limits of a connection that serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// From the first byte of a request, or from the start of the connection, to the end of its headers: 5 s by
    /// default, two lost packets on a phone.
    pub headers: Duration,
    /// Longest time without a request: above what clients keep idle connections for.
    pub idle: Duration,
    /// Time in which a client that has bytes waiting takes [`Self::read_bytes`] of them.
    pub reading: Duration,
    /// Least bytes that it takes in that time: 1 KiB a second where it takes 75 s.
    pub read_bytes: u64,
}

impl Default for TimeLimits {
    fn default() -> Self {
        let reading = Duration::from_secs(75);
        Self { headers: Duration::from_secs(5), idle: Duration::from_secs(75), reading, read_bytes: 75 << 10 }
    }
}

/// A connection that is closed when it breaks its time limits or is displaced by another, and returns its permit.
pub struct Bounded<S> {
    io: S,
    limits: TimeLimits,
    since: Instant,
    is_h2: Option<bool>,
    /// First byte that came while no request was under way, and how many requests had begun then.
    first_byte: Option<(Instant, u64)>,
    /// Since when bytes wait for the client, how many it took since, and whether some wait now.
    writing: Option<Writing>,
    timer: Pin<Box<Sleep>>,
    displaced: Pin<Box<WaitForCancellationFutureOwned>>,
    permit: Permit,
}

struct Writing {
    since: Instant,
    taken: u64,
    waits: bool,
}

impl<S> std::fmt::Debug for Bounded<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bounded").field("permit", &self.permit).finish_non_exhaustive()
    }
}

impl<S> Bounded<S> {
    /// A connection that has `permit` for as long as it lives.
    pub fn new(io: S, limits: TimeLimits, permit: Permit) -> Self {
        let since = Instant::now();
        Self {
            io,
            limits,
            since,
            is_h2: None,
            first_byte: None,
            writing: None,
            timer: Box::pin(tokio::time::sleep_until(since + limits.headers)),
            displaced: Box::pin(permit.displaced()),
            permit,
        }
    }

    /// When the connection ends, and why, if nothing happens; `None` while others watch it.
    fn deadline(&self) -> Option<(Instant, Refused)> {
        let slow = self.writing.as_ref().filter(|writing| writing.waits);
        let slow = slow.map(|writing| (writing.since + self.limits.reading, Refused::SlowReader));
        if self.permit.is_upgraded() {
            return slow;
        }
        let late = match self.permit.activity() {
            (_, None) => return slow,
            (0, Some(_)) => (self.since + self.limits.headers, Refused::HeadersLate),
            (begun, Some(quiet)) => {
                let idle = (Instant::from_std(quiet) + self.limits.idle, Refused::Idle);
                let first =
                    self.first_byte.filter(|(_, before)| *before == begun && self.is_h2 != Some(true));
                match first.map(|(at, _)| (at + self.limits.headers, Refused::HeadersLate)) {
                    Some(late) if late.0 < idle.0 => late,
                    Some(_) | None => idle,
                }
            }
        };
        Some(slow.filter(|slow| slow.0 < late.0).unwrap_or(late))
    }

    /// Fails once the connection has to end; else has the task woken when it may have to.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.displaced.as_mut().poll(cx).is_ready() {
            return Err(self.end(Refused::Displaced));
        }
        loop {
            let deadline = self.deadline();
            let at = deadline.map_or_else(|| Instant::now() + self.limits.idle, |(at, _)| at);
            // A later deadline is checked when the timer fires.
            if at < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(at);
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            let now = Instant::now();
            match deadline {
                Some((at, Refused::SlowReader)) if at <= now => {
                    let taken = self.writing.as_ref().map_or(0, |writing| writing.taken);
                    if taken < self.limits.read_bytes {
                        return Err(self.end(Refused::SlowReader));
                    }
                    self.writing = Some(Writing { since: now, taken: 0, waits: true });
                }
                Some((at, reason)) if at <= now => return Err(self.end(reason)),
                Some(_) | None => {}
            }
        }
    }

    fn end(&self, reason: Refused) -> io::Error {
        self.permit.note(reason);
        io::ErrorKind::TimedOut.into()
    }

    /// Notes bytes that came.
    fn came(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.is_h2.get_or_insert_with(|| bytes.starts_with(H2_PREFACE));
        let (begun, quiet) = self.permit.activity();
        let is_known = self.first_byte.is_some_and(|(_, before)| before == begun);
        if quiet.is_some() && !is_known {
            self.first_byte = Some((Instant::now(), begun));
        }
    }

    /// Notes what became of a write.
    fn wrote(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(count)) => {
                if let Some(writing) = &mut self.writing {
                    writing.taken = writing.taken.saturating_add(count as u64);
                    writing.waits = false;
                    // After enough bytes the measurement restarts, so that long downloads are not held to a stricter
                    // rate than short ones.
                    if writing.taken >= self.limits.read_bytes {
                        self.writing = None;
                    }
                }
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let now = Instant::now();
                match &mut self.writing {
                    Some(writing) => writing.waits = true,
                    None => self.writing = Some(Writing { since: now, taken: 0, waits: true }),
                }
                match self.check(cx) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(cx, buf) {
            this.came(buf.filled().get(before..).unwrap_or_default());
            return Poll::Ready(read);
        }
        match this.check(cx) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.wrote(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.wrote(cx, written)
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

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::permits::{Bounds, Permits};

    const LIMITS: TimeLimits = TimeLimits {
        headers: Duration::from_millis(100),
        idle: Duration::from_secs(10),
        reading: Duration::from_millis(100),
        read_bytes: 1_000,
    };

    fn connection(limits: TimeLimits) -> (Arc<Permits>, DuplexStream, Bounded<DuplexStream>) {
        let permits = Permits::new(Bounds { newcomers: Some(1), ..Bounds::plain(1, 10) });
        let (client, server) = tokio::io::duplex(64);
        let permit = permits.enter("127.0.0.1".parse().unwrap(), true).unwrap();
        (permits, client, Bounded::new(server, limits, permit))
    }

    async fn end(server: &mut Bounded<DuplexStream>) -> io::ErrorKind {
        loop {
            if let Err(error) = server.read_u8().await {
                return error.kind();
            }
        }
    }

    /// Sends a byte now and then for as long as the connection lives.
    async fn drip(client: &mut DuplexStream) {
        while client.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        std::future::pending::<()>().await;
    }

    #[tokio::test]
    async fn slow_headers_time_out_and_return_the_permit() {
        let (permits, mut client, mut server) = connection(LIMITS);
        tokio::select! {
            kind = end(&mut server) => assert_eq!(kind, io::ErrorKind::TimedOut),
            () = drip(&mut client) => {}
        }
        assert_eq!((permits.taken(), permits.refused(Refused::HeadersLate)), (1, 1));
        drop(server);
        assert_eq!(permits.taken(), 0);
        assert!(client.read_u8().await.is_err());
    }

    #[tokio::test]
    async fn a_second_request_has_its_time_and_an_idle_connection_more() {
        let (permits, mut client, mut server) = connection(LIMITS);
        drop(server.permit.handle().begin());
        let quiet = tokio::time::timeout(Duration::from_millis(300), server.read_u8()).await;
        assert!(quiet.is_err(), "it may be idle for longer");
        tokio::select! {
            kind = end(&mut server) => assert_eq!(kind, io::ErrorKind::TimedOut),
            () = drip(&mut client) => {}
        }
        assert_eq!(permits.refused(Refused::HeadersLate), 1);
        let (permits, _client, mut server) =
            connection(TimeLimits { idle: Duration::from_millis(50), ..LIMITS });
        drop(server.permit.handle().begin());
        assert_eq!(end(&mut server).await, io::ErrorKind::TimedOut);
        assert_eq!(permits.refused(Refused::Idle), 1);
    }

    #[tokio::test]
    async fn a_request_under_way_and_an_upgrade_have_time_limits_of_their_own() {
        let (_permits, _client, mut server) = connection(TimeLimits { idle: LIMITS.headers, ..LIMITS });
        let request = server.permit.handle().begin();
        let wait = Duration::from_millis(300);
        assert!(tokio::time::timeout(wait, server.read_u8()).await.is_err());
        server.permit.handle().upgrade();
        drop(request);
        assert!(tokio::time::timeout(wait, server.read_u8()).await.is_err());
    }

    #[tokio::test]
    async fn a_slow_reader_is_disconnected() {
        let (permits, mut client, mut server) = connection(LIMITS);
        let _request = server.permit.handle().begin();
        let slowly = async {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            written = server.write_all(&[0; 10_000]) => {
                assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
            () = slowly => {}
        }
        assert_eq!(permits.refused(Refused::SlowReader), 1);
    }

    #[tokio::test]
    async fn an_idle_newcomer_is_closed_when_displaced() {
        let (permits, _client, mut server) = connection(TimeLimits::default());
        let room = async {
            tokio::task::yield_now().await;
            let next = permits.enter("127.0.0.1".parse().unwrap(), true).unwrap();
            std::future::pending::<()>().await;
            drop(next);
        };
        tokio::select! {
            kind = end(&mut server) => assert_eq!(kind, io::ErrorKind::TimedOut),
            () = room => {}
        }
        drop(server);
        assert_eq!((permits.taken(), permits.refused(Refused::Displaced)), (0, 1));
    }
}
