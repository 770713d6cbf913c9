//! A steady open-loop load on one edge: kept connections, known ids, a fixed rate.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::{Result, bail};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep_until, timeout},
};

use super::load::random;
use crate::product::PHONE;

/// After this an answer counts as missing.
const ANSWER: Duration = Duration::from_secs(3);

/// Longest head of an answer: a redirect has some 300 bytes.
const HEAD: usize = 8 << 10;

/// What is asked for.
#[derive(Clone)]
pub struct Load {
    /// The edge.
    pub address: SocketAddr,
    /// Host of the short domain.
    pub host: &'static str,
    /// Short ids with the target that each has to lead to.
    pub links: Arc<Vec<(String, String)>>,
    /// Connections, each with one request under way.
    pub connections: u32,
    /// Requests a second over all of them; `None`: as many as are answered.
    pub per_second: Option<f64>,
    /// Seed of the choices.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Right redirects.
    pub right: u64,
    /// All else: another status or target, no answer, a broken connection.
    pub failed: u64,
    /// The first that failed.
    pub first: Option<String>,
    /// How long each right one took from when it was due, in microseconds.
    pub micros: Vec<u64>,
}

impl Sums {
    /// Adds those of another load.
    pub fn add(&mut self, other: Self) {
        self.right += other.right;
        self.failed += other.failed;
        self.first = self.first.take().or(other.first);
        self.micros.extend(other.micros);
    }

    /// A quantile of the times in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        // A part of a length: below it, and not negative.
        let at = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
        sorted.get(at).map_or(0.0, |micros| *micros as f64 / 1e3)
    }
}

/// Asks until `stop`.
///
/// # Errors
/// A task panicked.
pub async fn run(load: Load, stop: Arc<AtomicBool>) -> Result<Sums> {
    let (begun, mut tasks) = (Instant::now(), tokio::task::JoinSet::new());
    for n in 0..load.connections {
        tasks.spawn(connection(load.clone(), n, begun, stop.clone()));
    }
    let mut sums = Sums::default();
    while let Some(done) = tasks.join_next().await {
        sums.add(done?);
    }
    Ok(sums)
}

async fn connection(load: Load, n: u32, begun: Instant, stop: Arc<AtomicBool>) -> Sums {
    let (mut sums, mut open, mut seed) = (Sums::default(), None, load.seed ^ u64::from(n) << 32);
    let each = load.per_second.map(|rate| f64::from(load.connections) / rate);
    let mut turn = f64::from(n) / f64::from(load.connections);
    while !stop.load(SeqCst) {
        let due = match each {
            Some(each) => {
                let due = begun + Duration::from_secs_f64(turn * each);
                sleep_until(due).await;
                turn += 1.0;
                due
            }
            None => Instant::now(),
        };
        let (id, target) = &load.links[(random(&mut seed) % load.links.len() as u64) as usize];
        match timeout(ANSWER, ask(&load, &mut open, id, target)).await {
            Ok(Ok(())) => {
                sums.right += 1;
                sums.micros.push(u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            failed => {
                open = None;
                sums.failed += 1;
                let why = failed.map_or_else(|_| "no answer".to_owned(), |e| format!("{:?}", e.err()));
                sums.first.get_or_insert(format!("{id} {:.3} s: {why}", begun.elapsed().as_secs_f64()));
            }
        }
    }
    sums
}

async fn ask(load: &Load, open: &mut Option<TcpStream>, id: &str, target: &str) -> Result<()> {
    let socket = match open {
        Some(socket) => socket,
        None => {
            let socket = TcpStream::connect(load.address).await?;
            socket.set_nodelay(true)?;
            open.insert(socket)
        }
    };
    let request = format!("GET /{id} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {PHONE}\r\n\r\n", load.host);
    socket.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(512);
    while !head.ends_with(b"\r\n\r\n") {
        if socket.read_buf(&mut head).await? == 0 || head.len() > HEAD {
            bail!("the answer ends after {:?}", String::from_utf8_lossy(&head));
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.lines();
    let is_redirect = lines.next().is_some_and(|line| line.starts_with("HTTP/1.1 307"));
    let location = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim())
    });
    if !is_redirect || location != Some(target) {
        bail!("{id} was answered {head}");
    }
    Ok(())
}
