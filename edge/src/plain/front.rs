//! Reads and answers the plain requests of one connection, then leaves it to hyper.

use std::{
    io, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use http::StatusCode;
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::poll_read_buf;

use super::{
    head::{self, Common},
    replay::Replay,
    request::{self, Begun},
};
use crate::{
    backing::Backing,
    connection::{Activity, Client},
    handler::{App, plain::Plainly, request_ids},
    metrics::Kind,
    redirect_head::RedirectHead,
};

/// Bytes read at a time, and the most that a plain request has: real ones have under 2 KiB.
const READ_BYTES: usize = 4 << 10;
/// Bytes of answers that are gathered before they are written: some ten of pipelined requests.
const WRITE_BYTES: usize = 4 << 10;

/// A connection of HTTP/1.1: plain requests are answered here, and with the first other one it becomes hyper's.
pub(crate) struct Front<B, I, F, C> {
    state: State<B, I, F, C>,
    /// The connection ends after what is under way.
    is_ending: bool,
}

enum State<B, I, F, C> {
    Reading(Reading<B, I>, F),
    Hyper(C),
    /// Only while one of the others becomes the next.
    Ended,
}

impl<B, I, F, C> Front<B, I, F, C>
where
    B: Backing,
    I: AsyncRead + AsyncWrite + Unpin,
    F: FnOnce(Replay<I>) -> C + Unpin,
    C: GracefulConnection + Unpin,
{
    /// A connection whose first request is still to come; `make` begins hyper's connection.
    pub(crate) fn new(app: Arc<App<B>>, activity: Arc<Activity>, client: Client, io: I, make: F) -> Self {
        // Another than the peer may be the client then, which hyper's side finds out.
        let is_open = !app.is_proxy(client.ip) && app.config.fast_redirects;
        let reading = Reading {
            strict: app.strict_transport(client.is_tls),
            app,
            activity,
            client,
            is_open,
            io,
            read: Vec::new(),
            part: 0,
            answers: Vec::new(),
            written: 0,
            must_flush: false,
        };
        Self { state: State::Reading(reading, make), is_ending: false }
    }

    /// Serves the connection until its end.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let State::Reading(reading, _) = &mut self.state {
            match ready!(reading.poll(context)) {
                Outcome::Ended => return Poll::Ready(()),
                Outcome::ForHyper => self.hand_over(),
            }
        }
        match &mut self.state {
            State::Hyper(connection) => Pin::new(connection).poll(context).map(drop),
            State::Reading(..) | State::Ended => Poll::Ready(()),
        }
    }

    /// Ends the connection after the answers under way; the next poll does so.
    pub(crate) fn graceful_shutdown(&mut self) {
        self.is_ending = true;
        match &mut self.state {
            // Answers that are half written are finished first.
            State::Reading(reading, _) => reading.is_open = false,
            State::Hyper(connection) => Pin::new(connection).graceful_shutdown(),
            State::Ended => {}
        }
    }

    fn hand_over(&mut self) {
        if let State::Reading(reading, make) = mem::replace(&mut self.state, State::Ended) {
            let mut connection = make(Replay::new(reading.read, reading.io));
            if self.is_ending {
                Pin::new(&mut connection).graceful_shutdown();
            }
            self.state = State::Hyper(connection);
        }
    }
}

/// What becomes of a connection.
enum Outcome {
    Ended,
    /// Every answer is written; what was read and not answered begins with a request for hyper.
    ForHyper,
}

struct Reading<B, I> {
    app: Arc<App<B>>,
    activity: Arc<Activity>,
    client: Client,
    /// Whether plain requests are answered here at all.
    is_open: bool,
    strict: Option<&'static str>,
    io: I,
    /// What was read and is not answered.
    read: Vec<u8>,
    /// Bytes at the start of `read` that are no whole request.
    part: usize,
    answers: Vec<u8>,
    /// Bytes of `answers` that are written.
    written: usize,
    must_flush: bool,
}

/// Why no further request is answered for now.
enum Pause {
    /// The next one is not whole.
    Part,
    /// Enough answers wait to be written.
    Full,
    /// The next one is for hyper.
    ForHyper,
}

impl<B: Backing, I: AsyncRead + AsyncWrite + Unpin> Reading<B, I> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let pause = if self.is_open { self.answer() } else { Pause::ForHyper };
            if ready!(self.poll_write(context)).is_err() {
                return Poll::Ready(Outcome::Ended);
            }
            match pause {
                Pause::Full => continue,
                Pause::ForHyper => return Poll::Ready(Outcome::ForHyper),
                Pause::Part => {}
            }
            // A no-op once it is this large.
            self.read.reserve_exact(READ_BYTES - self.read.len());
            match ready!(poll_read_buf(Pin::new(&mut self.io), context, &mut self.read)) {
                Ok(0) if self.read.is_empty() => {
                    let _ = ready!(Pin::new(&mut self.io).poll_shutdown(context));
                    return Poll::Ready(Outcome::Ended);
                }
                // Half a request: hyper says what becomes of it.
                Ok(0) => return Poll::Ready(Outcome::ForHyper),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Outcome::Ended),
            }
        }
    }

    /// Answers what was read, as far as it is plain requests.
    fn answer(&mut self) -> Pause {
        let Self { app, activity, client, read, answers, .. } = self;
        // Every head ends with a line: without a new line there is no new one. Whoever sends single bytes is not parsed
        // for each.
        if self.part > 0 && read.len() < READ_BYTES && !read[self.part..].contains(&b'\n') {
            return Pause::Part;
        }
        let limits = &app.config.limits;
        let mut at = 0;
        let pause = loop {
            let rest = &read[at..];
            if rest.is_empty() {
                break Pause::Part;
            }
            if answers.len() >= WRITE_BYTES {
                break Pause::Full;
            }
            // The answer says that the connection closes, then.
            if activity.is_last() {
                break Pause::ForHyper;
            }
            let begun = Instant::now();
            let plain = match request::read(rest, limits.headers) {
                Begun::Request(plain) if plain.length <= limits.header_bytes => plain,
                Begun::Part if rest.len() < READ_BYTES => break Pause::Part,
                Begun::Request(_) | Begun::Part | Begun::Other => break Pause::ForHyper,
            };
            let now = app.clock.now();
            let is_head = plain.is_head;
            let Some(answer) = app.answer_plainly(*client, is_head, plain.path, &plain.sent, now) else {
                break Pause::ForHyper;
            };
            let id = request_ids::digits(activity.count());
            let common = Common { is_head, id, strict: self.strict, now };
            let (kind, status) = match answer {
                Plainly::To(location, of) => {
                    head::redirect(answers, &common, &location, of);
                    (Kind::Redirect, of.status_code())
                }
                Plainly::Linked { location, status, link } => {
                    let of = RedirectHead { status, max_age: None };
                    head::linked(answers, &common, (&location, &link), of);
                    (Kind::Redirect, of.status_code())
                }
                Plainly::Unknown(kind, body) => {
                    head::unknown(answers, &common, (kind, &body));
                    (Kind::Other, StatusCode::NOT_FOUND)
                }
            };
            at += plain.length;
            app.metrics.answered(kind, status, begun.elapsed());
        };
        read.drain(..at);
        self.part = if matches!(pause, Pause::Part) { read.len() } else { 0 };
        pause
    }

    /// Writes the answers that wait.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.answers.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.io).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
            self.must_flush = true;
        }
        self.answers.clear();
        self.written = 0;
        if self.must_flush {
            ready!(Pin::new(&mut self.io).poll_flush(context))?;
            self.must_flush = false;
        }
        Poll::Ready(Ok(()))
    }
}
