//! Imports and scans until the product dies, with a record of what it acknowledged.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use tests::product::{PHONE, Product, client};
use tokio::task::JoinHandle;

/// Links of one request of the import.
pub(super) const BATCH: usize = 10;
/// Scanners, and the least time between two scans of one.
const SCANNERS: usize = 3;
const PACE: Duration = Duration::from_millis(2);

/// What the product acknowledged before it died.
pub(super) struct Done {
    /// Short id and target of each link.
    pub(super) links: Vec<(String, String)>,
    /// When each scan's answer arrived.
    pub(super) answered: HashMap<u64, Instant>,
    /// Scans that were sent at least in part; their numbers are all below.
    pub(super) sent: u64,
}

/// Requests under way.
pub(super) struct Load {
    import: JoinHandle<Result<Vec<(String, String)>>>,
    scanners: Vec<JoinHandle<Result<HashMap<u64, Instant>>>>,
    next: Arc<AtomicU64>,
}

impl Load {
    /// Begins to import links of a Thng and to scan `scanned`, number `n` on the one at `n % len`.
    pub(super) fn start(product: &Product, thng: &str, round: u64, scanned: &[String]) -> Result<Self> {
        // Connections of its own: the next process shall not meet those of this one.
        let http = client()?;
        let import = Import {
            http: http.clone(),
            url: format!("{}/redirections", product.api),
            key: product.key.clone(),
            thng: thng.to_owned(),
            round,
        };
        let next = Arc::new(AtomicU64::new(0));
        let scanners = (0..SCANNERS)
            .map(|_| {
                let urls = scanned.iter().map(|id| format!("{}/{id}", product.edge)).collect();
                tokio::spawn(scan(http.clone(), urls, next.clone()))
            })
            .collect();
        Ok(Self { import: tokio::spawn(import.run()), scanners, next })
    }

    /// What was acknowledged, after the product has died.
    pub(super) async fn finish(self) -> Result<Done> {
        let mut answered = HashMap::new();
        for scanner in self.scanners {
            answered.extend(scanner.await??);
        }
        Ok(Done { links: self.import.await??, answered, sent: self.next.load(SeqCst) })
    }
}

struct Import {
    http: reqwest::Client,
    url: String,
    key: String,
    thng: String,
    round: u64,
}

impl Import {
    /// Imports until the product does not answer any more.
    async fn run(self) -> Result<Vec<(String, String)>> {
        let mut links = Vec::new();
        for batch in 0_u64.. {
            let targets: Vec<String> =
                (0..BATCH).map(|n| format!("https://example.com/{}/{batch}/{n}", self.round)).collect();
            let items: Vec<Value> = targets
                .iter()
                .map(|target| json!({"platformId": self.thng, "defaultRedirectUrl": target}))
                .collect();
            let request = self.http.post(&self.url).header(header::AUTHORIZATION, &self.key).json(&items);
            let Ok(response) = request.send().await else { break };
            let status = response.status();
            // A body that broke off acknowledges nothing.
            let Ok(bytes) = response.bytes().await else { break };
            ensure!(status == StatusCode::OK, "{status}: {}", String::from_utf8_lossy(&bytes));
            let results: Vec<Value> = serde_json::from_slice(&bytes)?;
            ensure!(results.len() == BATCH, "{} results", results.len());
            for (result, target) in results.into_iter().zip(targets) {
                ensure!(result["status"] == 201, "{result}");
                links.push((result["shortId"].as_str().context("shortId")?.to_owned(), target));
            }
        }
        Ok(links)
    }
}

/// Scans until the product does not answer any more.
async fn scan(
    http: reqwest::Client,
    urls: Vec<String>,
    next: Arc<AtomicU64>,
) -> Result<HashMap<u64, Instant>> {
    let mut answered = HashMap::new();
    let mut ticks = tokio::time::interval(PACE);
    loop {
        ticks.tick().await;
        let number = next.fetch_add(1, SeqCst);
        let url = &urls[usize::try_from(number)? % urls.len()];
        let request = http.get(format!("{url}?n={number}")).header(header::USER_AGENT, PHONE);
        match request.send().await {
            Ok(response) if response.status() == StatusCode::TEMPORARY_REDIRECT => {
                answered.insert(number, Instant::now());
            }
            Ok(response) => bail!("scan {number}: {}", response.status()),
            Err(_) => return Ok(answered),
        }
    }
}

/// A thread that rests and wakes as the writer of scans does; measures how late this machine lets it.
pub(super) struct Canary {
    thread: thread::JoinHandle<Duration>,
    stop: Arc<AtomicBool>,
}

impl Canary {
    pub(super) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::spawn(move || {
            let mut worst = Duration::ZERO;
            while !seen.load(SeqCst) {
                let begun = Instant::now();
                thread::park_timeout(Duration::from_millis(5));
                worst = worst.max(begun.elapsed());
            }
            worst
        });
        Self { thread, stop }
    }

    /// The longest time between two looks.
    pub(super) fn stop(self) -> Duration {
        self.stop.store(true, SeqCst);
        self.thread.join().unwrap_or_default()
    }
}
