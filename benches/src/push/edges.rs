//! Simulated edges: streams that take every frame, check its order and acknowledge it, all in one thread.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use mio::{Events, Interest, Poll, Token};
use shared::wire::{
    ack_limiter::AckLimiter,
    frame::{self, Decoder},
    internal::{STREAM_PATH, STREAM_UPGRADE},
    stream::{Start, ToControl, ToEdge},
};
use tests::raw_edge::hello;

/// How often the thread looks whether it may acknowledge what it owes.
const LOOK: Duration = Duration::from_millis(1);

/// How often the thread looks whether it shall stop.
const IDLE: Duration = Duration::from_millis(50);

/// How long a stream may take to open.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Edges at work; stopped when dropped.
pub(crate) struct Edges {
    stop: Arc<AtomicBool>,
    applied: Arc<AtomicU64>,
    thread: Option<JoinHandle<Result<()>>>,
}

struct Edge {
    io: mio::net::TcpStream,
    decoder: Decoder<ToEdge>,
    applied: u64,
    limiter: AckLimiter,
    owes: bool,
    /// A heartbeat asks for an answer, at once.
    is_asked: bool,
}

impl Edges {
    /// Opens a stream for each pair of name and key.
    pub(crate) fn open(internal: SocketAddr, keys: &[(String, String)]) -> Result<Self> {
        let mut edges = Vec::with_capacity(keys.len());
        for (name, key) in keys {
            edges.push(Edge::open(internal, name, key).with_context(|| format!("edge {name}"))?);
        }
        let (stop, applied) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = std::thread::spawn({
            let (stop, applied) = (stop.clone(), applied.clone());
            move || serve(edges, &stop, &applied)
        });
        Ok(Self { stop, applied, thread: Some(thread) })
    }

    /// The newest revision that the first edge has.
    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// Ends every stream.
    ///
    /// # Errors
    /// One broke its rules meanwhile.
    pub(crate) fn close(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => bail!("the thread of the edges panicked"),
            None => Ok(()),
        }
    }
}

impl Drop for Edges {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Edge {
    fn open(internal: SocketAddr, name: &str, key: &str) -> Result<Self> {
        let mut io = TcpStream::connect_timeout(&internal, TIMEOUT)?;
        io.set_nodelay(true)?;
        io.set_read_timeout(Some(TIMEOUT))?;
        let request = format!(
            "GET {STREAM_PATH} HTTP/1.1\r\nHost: {internal}\r\nAuthorization: Bearer {key}\r\n\
             Connection: upgrade\r\nUpgrade: {STREAM_UPGRADE}\r\n\r\n"
        );
        io.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(&io);
        let (mut first, mut line) = (String::new(), String::new());
        reader.read_line(&mut first)?;
        while reader.read_line(&mut line)? > 0 && line.trim_end() != "" {
            line.clear();
        }
        ensure!(first.starts_with("HTTP/1.1 101 "), "not let in: {first:?}");
        let mut decoder = Decoder::default();
        decoder.buffer.extend_from_slice(reader.buffer());
        io.write_all(&frame::encode(&ToControl::Hello(hello(name, None, 0)))?)?;
        let applied = loop {
            match decoder.decode()? {
                Some(ToEdge::Welcome(welcome)) => match welcome.start {
                    Start::Resume => break 0,
                    Start::Snapshot { at_rev } => break at_rev,
                },
                Some(other) => bail!("no welcome: {other:?}"),
                None => {
                    let mut bytes = [0; 64 << 10];
                    let count = io.read(&mut bytes)?;
                    ensure!(count > 0, "the stream ended");
                    decoder.buffer.extend_from_slice(&bytes[..count]);
                }
            }
        };
        io.set_nonblocking(true)?;
        let io = mio::net::TcpStream::from_std(io);
        Ok(Self {
            io,
            decoder,
            applied,
            limiter: AckLimiter::new(Instant::now()),
            owes: false,
            is_asked: true,
        })
    }

    /// Takes what is there.
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        loop {
            match self.io.read(bytes) {
                Ok(0) => bail!("the stream ended"),
                Ok(count) => {
                    self.decoder.buffer.extend_from_slice(&bytes[..count]);
                    // What fits is all there is: more comes with the next readiness.
                    if count < bytes.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        while let Some(message) = self.decoder.decode()? {
            match message {
                ToEdge::Events(events) => {
                    ensure!(events.prev == self.applied, "{} came at {}", events.prev, self.applied);
                    self.applied = events.last;
                    self.owes = true;
                }
                ToEdge::Heartbeat { head, .. } => {
                    ensure!(head <= self.applied, "a heartbeat of {head} came at {}", self.applied);
                    self.is_asked = true;
                }
                ToEdge::Goaway { reason, .. } => bail!("sent away: {reason}"),
                ToEdge::Welcome(_) => bail!("a second welcome"),
            }
        }
        Ok(())
    }

    /// Acknowledges, unless it did so a moment ago and nobody asks; gives whether it still owes.
    fn ack(&mut self) -> Result<bool> {
        let is_due = self.owes && self.limiter.next() <= Instant::now();
        if is_due || self.is_asked {
            let ack = ToControl::Ack { applied: self.applied, rejected: Vec::new() };
            // Some bytes, which an empty socket always takes.
            self.io.write_all(&frame::encode(&ack)?)?;
            if is_due {
                self.limiter.sent(Instant::now());
            }
            (self.owes, self.is_asked) = (false, false);
        }
        Ok(self.owes)
    }
}

fn serve(mut edges: Vec<Edge>, stop: &AtomicBool, applied: &AtomicU64) -> Result<()> {
    let mut poll = Poll::new()?;
    for (at, edge) in edges.iter_mut().enumerate() {
        poll.registry().register(&mut edge.io, Token(at), Interest::READABLE)?;
        // What came with the welcome.
        edge.read(&mut [0; 4096])?;
    }
    let (mut events, mut bytes) = (Events::with_capacity(1_024), vec![0; 64 << 10]);
    // Those that came too soon after the last one, and are acknowledged a little later.
    let mut owing: Vec<usize> = Vec::new();
    // What came with the welcome.
    owing.extend(0..edges.len());
    while !stop.load(Ordering::Relaxed) {
        poll.poll(&mut events, Some(if owing.is_empty() { IDLE } else { LOOK }))?;
        for event in &events {
            let at = event.token().0;
            if let Some(edge) = edges.get_mut(at) {
                edge.read(&mut bytes)?;
                if edge.ack()? {
                    owing.push(at);
                }
            }
        }
        let due = std::mem::take(&mut owing);
        for at in due {
            if let Some(edge) = edges.get_mut(at)
                && edge.ack()?
            {
                owing.push(at);
            }
        }
        if let Some(first) = edges.first() {
            applied.store(first.applied, Ordering::Relaxed);
        }
    }
    Ok(())
}
