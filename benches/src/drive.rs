//! The load generator: one thread, non-blocking sockets, HTTP/1.1 with keep-alive.
//!
//! Two system calls a request and almost no parsing, so that the server is what is measured. Every
//! answer is checked by the script that asked. HTTP/2 and TLS are in [`crate::other`].

mod outcome;

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mio::{Events, Interest, Poll, Token, net::TcpStream};

pub(crate) use self::outcome::Outcome;
use ::tests::hist::Hist;

use crate::{
    answer::{Answer, parse},
    links::Id,
};

/// Longest head and body of an answer; error pages have under 2 KiB, codes under 4.
const ANSWER_BYTES: usize = 16 << 10;
/// After this an answer counts as missing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two looks for missing answers.
const LOOK: Duration = Duration::from_millis(100);
/// An id in the request's template; replaced for each request.
const BLANK: &str = "0000000000";

/// What a phone's browser sends when it opens a scanned link.
pub(crate) const PHONE: &str = "User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) \
    AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.9\r\nAccept-Encoding: gzip, deflate\r\n";

/// Where, how and how long to ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// The server.
    pub(crate) address: SocketAddr,
    /// The host that is asked for; `None`: the address.
    pub(crate) host: Option<&'a str>,
    /// Asks with HEAD instead of GET.
    pub(crate) head: bool,
    /// The path before the id.
    pub(crate) prefix: &'a str,
    /// What stands behind the id in the path.
    pub(crate) suffix: &'a str,
    /// Connections, each with one request under way.
    pub(crate) connections: usize,
    /// Requests a second over all connections; `None`: as many as the server answers.
    ///
    /// A paced request's latency counts from the moment at which it was due.
    pub(crate) per_second: Option<f64>,
    /// When to stop, unless the script ends before.
    pub(crate) until: Until<'a>,
    /// Latencies are reported for each such interval, too; the last one may be shorter.
    pub(crate) window: Option<Duration>,
}

impl<'a> Plan<'a> {
    /// GET on so many connections, each asking again as soon as it is answered.
    pub(crate) const fn new(address: SocketAddr, connections: usize, until: Until<'a>) -> Self {
        Self {
            address,
            host: None,
            head: false,
            prefix: "/",
            suffix: "",
            connections,
            per_second: None,
            until,
            window: None,
        }
    }

    /// The host of a request.
    pub(crate) fn host(&self) -> String {
        self.host.map_or_else(|| self.address.to_string(), ToOwned::to_owned)
    }
}

/// When a run ends; requests under way are finished.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until<'a> {
    /// After a time.
    After(Duration),
    /// When another thread says so.
    Told(&'a AtomicBool),
    /// When the script has no more to ask.
    Done,
}

/// What is asked and what has to be answered.
pub(crate) trait Script {
    /// What the check needs to know of the request.
    type Ticket: Copy;

    /// The next short id to ask for; `None` when that was all.
    fn next(&mut self) -> Option<(Id, Self::Ticket)>;

    /// Whether the answer is right; an error says what is wrong.
    fn check(&mut self, ticket: Self::Ticket, answer: &Answer<'_>) -> Result<(), String>;
}

struct Conn<T> {
    stream: TcpStream,
    request: Vec<u8>,
    /// Bytes of the request that are sent.
    sent: usize,
    answer: Box<[u8]>,
    filled: usize,
    /// The request under way, and since when.
    under_way: Option<(T, Instant)>,
}

/// Runs a script against a server.
///
/// # Errors
/// No connection could be made; all else is counted in the outcome.
pub(crate) fn drive<S: Script>(plan: &Plan<'_>, script: &mut S) -> Result<Outcome> {
    Driver::new(plan, script)?.run()
}

struct Driver<'a, S: Script> {
    plan: &'a Plan<'a>,
    script: &'a mut S,
    poll: Poll,
    conns: Vec<Conn<S::Ticket>>,
    idle: Vec<usize>,
    outcome: Outcome,
    begun: Instant,
    /// Requests that were started.
    asked: u64,
    is_ending: bool,
    /// Latencies of the window that runs.
    window: Hist,
}

impl<'a, S: Script> Driver<'a, S> {
    fn new(plan: &'a Plan<'a>, script: &'a mut S) -> Result<Self> {
        let poll = Poll::new()?;
        let mut conns = Vec::with_capacity(plan.connections);
        for index in 0..plan.connections {
            conns.push(connect(plan, &poll, index)?);
        }
        Ok(Self {
            plan,
            script,
            poll,
            idle: (0..conns.len()).rev().collect(),
            conns,
            outcome: Outcome::default(),
            begun: Instant::now(),
            asked: 0,
            is_ending: false,
            window: Hist::default(),
        })
    }

    fn run(mut self) -> Result<Outcome> {
        let mut events = Events::with_capacity(self.conns.len().max(1));
        let mut looked = self.begun;
        loop {
            let now = Instant::now();
            self.is_ending |= match self.plan.until {
                Until::After(time) => now - self.begun >= time,
                Until::Told(flag) => flag.load(Relaxed),
                Until::Done => false,
            };
            self.turn_window(now);
            self.fill(now)?;
            if self.is_ending && self.idle.len() == self.conns.len() {
                break;
            }
            if now - looked >= LOOK {
                looked = now;
                self.give_up(now)?;
            }
            self.poll.poll(&mut events, Some(self.patience())).or_else(|error| match error.kind() {
                io::ErrorKind::Interrupted => Ok(()),
                _ => Err(error),
            })?;
            for event in &events {
                self.attend(event.token().0)?;
            }
        }
        self.outcome.took = self.begun.elapsed();
        if self.plan.window.is_some() {
            self.outcome.windows.push(self.window);
        }
        Ok(self.outcome)
    }

    /// Begins another window when the one before is over.
    fn turn_window(&mut self, now: Instant) {
        let Some(window) = self.plan.window else { return };
        while now - self.begun >= window * (self.outcome.windows.len() as u32 + 1) {
            self.outcome.windows.push(std::mem::take(&mut self.window));
        }
    }

    /// How long to sleep without an event: to the next paced request, else to the next look.
    fn patience(&self) -> Duration {
        let Some(rate) = self.plan.per_second.filter(|_| !self.is_ending && !self.idle.is_empty()) else {
            return LOOK;
        };
        let due = Duration::from_secs_f64(self.asked as f64 / rate);
        due.saturating_sub(self.begun.elapsed()).min(LOOK)
    }

    /// Starts requests on idle connections, as many as are due.
    fn fill(&mut self, now: Instant) -> Result<()> {
        while !self.is_ending && !self.idle.is_empty() {
            let since = match self.plan.per_second {
                None => now,
                Some(rate) => {
                    let due = self.begun + Duration::from_secs_f64(self.asked as f64 / rate);
                    if due > now {
                        return Ok(());
                    }
                    due
                }
            };
            let Some(index) = self.idle.pop() else { return Ok(()) };
            self.ask(index, since)?;
        }
        Ok(())
    }

    fn ask(&mut self, index: usize, since: Instant) -> Result<()> {
        let Some((id, ticket)) = self.script.next() else {
            self.is_ending = true;
            self.idle.push(index);
            return Ok(());
        };
        self.asked += 1;
        let at = if self.plan.head { "HEAD " } else { "GET " }.len() + self.plan.prefix.len();
        let conn = &mut self.conns[index];
        conn.request[at..at + id.len()].copy_from_slice(&id);
        (conn.sent, conn.filled, conn.under_way) = (0, 0, Some((ticket, since)));
        match conn.send() {
            Ok(()) => Ok(()),
            Err(error) => self.broken(index, &format!("sending failed: {error}")),
        }
    }

    fn attend(&mut self, index: usize) -> Result<()> {
        let conn = &mut self.conns[index];
        if conn.under_way.is_some()
            && conn.sent < conn.request.len()
            && let Err(error) = conn.send()
        {
            return self.broken(index, &format!("sending failed: {error}"));
        }
        loop {
            let conn = &mut self.conns[index];
            match conn.stream.read(&mut conn.answer[conn.filled..]) {
                Ok(0) => return self.broken(index, "the connection was closed"),
                Ok(count) => conn.filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.broken(index, &format!("reading failed: {error}")),
            }
            match self.finish(index) {
                Ok(None) => {}
                // Not read to the end: the answer is whole, and more bytes make a new event.
                Ok(Some(now)) if self.plan.per_second.is_none() && !self.is_ending => {
                    return self.ask(index, now);
                }
                Ok(Some(_)) => {
                    self.idle.push(index);
                    return Ok(());
                }
                Err(reason) => return self.broken(index, &reason),
            }
        }
    }

    /// Takes a whole answer and says when it was whole; `None` when bytes are missing.
    fn finish(&mut self, index: usize) -> Result<Option<Instant>, String> {
        let conn = &mut self.conns[index];
        let bytes = conn.answer.get(..conn.filled).unwrap_or_default();
        let head = parse(bytes)?;
        let length = head
            .as_ref()
            .map_or(usize::MAX, |head| head.length + if self.plan.head { 0 } else { head.content_length });
        let (Some(head), true) = (head, bytes.len() >= length) else {
            return if bytes.len() < ANSWER_BYTES { Ok(None) } else { Err("too long an answer".into()) };
        };
        let Some((ticket, since)) = conn.under_way.filter(|_| bytes.len() == length) else {
            return Err("bytes that nobody asked for".into());
        };
        conn.under_way = None;
        let (now, outcome) = (Instant::now(), &mut self.outcome);
        outcome.answers += 1;
        outcome.redirects += u64::from(matches!(head.answer.status, 302 | 307));
        outcome.bytes += length as u64;
        let took = now.saturating_duration_since(since);
        outcome.hist.add(took);
        if self.plan.window.is_some() {
            self.window.add(took);
        }
        if let Err(what) = self.script.check(ticket, &head.answer) {
            outcome.wrong(what);
        }
        Ok(Some(now))
    }

    fn give_up(&mut self, now: Instant) -> Result<()> {
        for index in 0..self.conns.len() {
            let is_late = self.conns[index]
                .under_way
                .is_some_and(|(_, since)| now.saturating_duration_since(since) > ANSWER_TIMEOUT);
            if is_late {
                self.broken(index, "no answer came")?;
            }
        }
        Ok(())
    }

    /// Replaces a connection; a fault only when an answer was owed.
    fn broken(&mut self, index: usize, what: &str) -> Result<()> {
        if self.conns[index].under_way.is_some() {
            self.outcome.wrong(what.to_owned());
            self.idle.push(index);
        }
        self.conns[index] = connect(self.plan, &self.poll, index)?;
        Ok(())
    }
}

impl<T> Conn<T> {
    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn connect<T>(plan: &Plan<'_>, poll: &Poll, index: usize) -> Result<Conn<T>> {
    let stream = std::net::TcpStream::connect(plan.address)
        .with_context(|| format!("cannot connect to {}", plan.address))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut stream = TcpStream::from_std(stream);
    poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
    let method = if plan.head { "HEAD" } else { "GET" };
    let (prefix, suffix, host) = (plan.prefix, plan.suffix, plan.host());
    let request = format!("{method} {prefix}{BLANK}{suffix} HTTP/1.1\r\nHost: {host}\r\n{PHONE}\r\n");
    Ok(Conn {
        stream,
        request: request.into_bytes(),
        sent: 0,
        answer: vec![0; ANSWER_BYTES].into(),
        filled: 0,
        under_way: None,
    })
}
