//! The real edge as a host of the simulated network, its backing over that network, and its readers.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use axum::http::HeaderValue;
use edge::{
    Connector, DiskLimits, Edge, EdgeConfig, Listeners,
    backing::{
        Backing, BackingError, Changes,
        stream::{self, FrameStream},
    },
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use shared::{
    redirect::RedirectKey,
    time::{ManualClock, UnixMillis},
    wire::{
        links::LinksPage,
        scan::ScanReceipt,
        spooled::SpooledScans,
        stream::{Fill, Hello, ToControl, ToEdge},
    },
};
use tests::{
    campaign::{
        history::{Answer, Read},
        load::random,
    },
    product::PHONE,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, duplex},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use turmoil::net::TcpStream;

use super::{
    control::{KEYS, STREAM},
    truth::{Form, HOST, Truth, short_id, version_in},
};

/// Names of the replicas of control.
pub(super) const CONTROLS: [&str; 2] = ["control-0", "control-1"];

/// Name of the host of the view.
pub(super) const REDIS: &str = "redis";

/// Readers of one edge.
const READERS: u64 = 2;

/// Keys that are read, the newest: those that are gone are among them for a while.
const NEWEST: u32 = 24;

/// Fewer bytes than all keys take: what is evicted must be filled again.
const CACHE_BYTES: u64 = 12 << 10;

/// What an edge needs to be started, and started again.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) number: u16,
    pub(super) folder: PathBuf,
    pub(super) truth: Truth,
    pub(super) form: Form,
    pub(super) seed: u64,
}

/// An edge from its start to the last read.
pub(super) async fn run(plan: Plan) -> turmoil::Result {
    let Plan { number, folder, truth, form, seed } = plan;
    let name = format!("edge-{number}");
    let mut config = EdgeConfig::new(&name, folder, "http://127.0.0.1:9", "https://docs.test/docs");
    config.cache_bytes = CACHE_BYTES;
    config.disk = Some(DiskLimits { interval: Duration::from_secs(1), ..DiskLimits::default() });
    let mut attempts = 0;
    let edge = loop {
        let backing = Net { next: AtomicUsize::new(usize::from(number)), form };
        match Edge::open(config.clone(), backing, None, ManualClock::new(UnixMillis(1_790_000_000_000))) {
            Ok(edge) => break edge,
            // The threads of the one that was killed still hold the folder.
            Err(_) if attempts < 5_000 => attempts += 1,
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let (connector, handle) = (Arc::new(edge.connector(CancellationToken::new())), edge.handle());
    // Nobody connects to it: an edge serves as long as it listens.
    let listeners =
        Listeners { plain: vec![std::net::TcpListener::bind("127.0.0.1:0")?], ..Listeners::default() };
    tokio::spawn(edge.serve(listeners, CancellationToken::new()));
    for reader in 0..READERS {
        tokio::spawn(read(connector.clone(), truth.clone(), number, seed + reader));
    }
    while handle.status().state != "LIVE" {
        sleep(Duration::from_millis(1)).await;
    }
    truth.is_live(number);
    while !truth.state().is_over {
        sleep(Duration::from_millis(5)).await;
    }
    let keys = truth.state().keys();
    for key in 0..keys {
        let mut last = one(&connector, &truth, number, key).await;
        for _ in 0..100 {
            if last.answer != Answer::Failed {
                break;
            }
            sleep(Duration::from_millis(20)).await;
            last = one(&connector, &truth, number, key).await;
        }
        truth.state().history.last.push(last);
    }
    truth.state().ended += 1;
    std::future::pending().await
}

async fn read(connector: Arc<Connector<Net>>, truth: Truth, edge: u16, mut seed: u64) {
    while !truth.state().is_over {
        sleep(Duration::from_millis(1 + random(&mut seed) % 6)).await;
        let keys = truth.state().keys();
        if keys > 0 {
            let back = random(&mut seed) % u64::from(keys.min(NEWEST));
            let read = one(&connector, &truth, edge, keys - 1 - back as u32).await;
            truth.state().history.reads.push(read);
        }
    }
}

/// One read, in memory: between the reader and the edge nothing is simulated.
async fn one(connector: &Connector<Net>, truth: &Truth, edge: u16, key: u32) -> Read {
    let start = truth.moment();
    let answer = timeout(Duration::from_secs(3), ask(connector, key)).await;
    let end = truth.moment();
    let answer = answer.ok().and_then(Result::ok).unwrap_or(Answer::Failed);
    Read { edge, key, start, end, answer }
}

async fn ask(connector: &Connector<Net>, key: u32) -> Result<Answer> {
    let (mut near, far) = duplex(16 << 10);
    let peer: SocketAddr = ([127, 0, 0, 1], 9).into();
    let exchange = async move {
        let request =
            format!("GET /{} HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {PHONE}\r\n\r\n", short_id(key));
        near.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") && near.read_buf(&mut answer).await? > 0 {}
        // The connection ends as its client leaves.
        Ok::<_, std::io::Error>(answer)
    };
    let ((), answer) = tokio::join!(connector.serve(far, peer), exchange);
    let answer = answer?;
    let text = std::str::from_utf8(&answer)?;
    let status = text.split(' ').nth(1).context("no status")?;
    let location = text.lines().find_map(|line| line.strip_prefix("location: "));
    Ok(match (status, location.and_then(|text| version_in(text, key))) {
        ("307", Some(version)) => Answer::Version(version),
        ("404", _) => Answer::NotFound,
        _ => Answer::Failed,
    })
}

/// The backing over the simulated network.
pub(super) struct Net {
    /// The replica of control that is tried next.
    next: AtomicUsize,
    form: Form,
}

impl Net {
    async fn fill(host: &str, key: &RedirectKey) -> Result<Fill> {
        let io = TcpStream::connect((host, KEYS)).await?;
        let (read, mut write) = io.into_split();
        write.write_all(format!("{}\n", key.folded).as_bytes()).await?;
        let mut line = String::new();
        BufReader::new(read).read_line(&mut line).await?;
        Ok(serde_json::from_str(&line)?)
    }
}

fn unreachable(error: impl std::fmt::Display) -> BackingError {
    BackingError::Unreachable(error.to_string())
}

impl Backing for Net {
    type Changes = Stream;

    async fn get(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let read = timeout(Duration::from_millis(250), Self::fill(REDIS, key));
        read.await.map_err(unreachable)?.map_err(unreachable)
    }

    async fn lookup(&self, key: &RedirectKey) -> Result<Fill, BackingError> {
        let host = CONTROLS[self.next.load(SeqCst) % CONTROLS.len()];
        let read = timeout(Duration::from_secs(1), Self::fill(host, key));
        read.await.map_err(unreachable)?.map_err(unreachable)
    }

    async fn changes(&self, hello: Hello) -> Result<Stream, BackingError> {
        let host = CONTROLS[self.next.fetch_add(1, SeqCst) % CONTROLS.len()];
        let connect = timeout(Duration::from_secs(1), TcpStream::connect((host, STREAM)));
        let io = connect.await.map_err(unreachable)?.map_err(unreachable)?;
        let inner = stream::open(io, host, HeaderValue::from_static("Bearer simulated"), hello).await?;
        Ok(Stream { inner, form: self.form, held: None })
    }

    async fn record_scans(&self, scans: &SpooledScans) -> Result<ScanReceipt, BackingError> {
        Ok(ScanReceipt { next_seq: scans.first_seq + scans.count as u64 })
    }

    async fn page(&self, _: &str, _: &str) -> Result<LinksPage, BackingError> {
        Err(unreachable("these edges hold no replica"))
    }
}

/// The edge's own stream; the broken form acknowledges what it holds back.
pub(super) struct Stream {
    inner: FrameStream<TokioIo<Upgraded>>,
    form: Form,
    held: Option<ToEdge>,
}

impl Changes for Stream {
    async fn next(&mut self) -> Result<ToEdge, BackingError> {
        if self.form != Form::AckBeforeApply {
            return self.inner.next().await;
        }
        if self.held.is_none() {
            let message = self.inner.next().await?;
            if let ToEdge::Events(events) = &message {
                self.inner.send(ToControl::Ack { applied: events.last, rejected: Vec::new() }).await?;
            }
            self.held = Some(message);
        }
        sleep(Duration::from_millis(20)).await;
        self.held.take().ok_or_else(|| unreachable("nothing is held"))
    }

    async fn send(&mut self, message: ToControl) -> Result<(), BackingError> {
        self.inner.send(message).await
    }
}
