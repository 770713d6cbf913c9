//! Who writes and who reads during a campaign, and what they record.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    history::{Answer, DELETED, History, Micros, Outcome, Read, Version, Write},
    world::call,
};
use crate::product::PHONE;

/// Keys that one writer has at a time.
const KEYS_PER_WRITER: usize = 12;

/// Keys that are read, the newest: those that are gone are among them for a while.
const READ_KEYS: u32 = 120;

/// What all of them share.
pub struct Shared {
    begun: Instant,
    history: Mutex<History>,
    next_key: AtomicU32,
    requests: AtomicU64,
    errors: AtomicU64,
    by_status: Mutex<BTreeMap<String, u64>>,
    /// Redirects that readers got, and those that may have been given without being seen.
    sent: AtomicU64,
    unseen: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            history: Mutex::default(),
            next_key: AtomicU32::new(0),
            requests: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            by_status: Mutex::default(),
            sent: AtomicU64::new(0),
            unseen: AtomicU64::new(0),
        }
    }
}

/// Sums of a campaign.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// Requests of writers and readers.
    pub requests: u64,
    /// Those that failed, or were answered by 5xx.
    pub errors: u64,
    /// Answers to readers by status, or by why there was none.
    pub by_status: BTreeMap<String, u64>,
    /// Redirects that readers got: scans that must be counted.
    pub sent: u64,
    /// Reads without an answer: scans that may be counted.
    pub unseen: u64,
}

impl Shared {
    /// Microseconds since the begin.
    #[must_use]
    pub fn now(&self) -> Micros {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The history, to add to it or to take it.
    pub fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many keys there were.
    #[must_use]
    pub fn keys(&self) -> u32 {
        self.next_key.load(Ordering::SeqCst)
    }

    /// The sums so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        Sums {
            requests: self.requests.load(Ordering::SeqCst),
            errors: self.errors.load(Ordering::SeqCst),
            by_status: self.by_status.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            sent: self.sent.load(Ordering::SeqCst),
            unseen: self.unseen.load(Ordering::SeqCst),
        }
    }

    fn count_status(&self, status: String) {
        *self.by_status.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }
}

/// The short id of a key.
#[must_use]
pub fn short_id(key: u32) -> String {
    format!("C{key:07}")
}

fn target(key: u32, version: Version) -> String {
    format!("https://example.com/{key}/{version}")
}

/// A writer: what it needs to call the APIs.
pub struct Writer {
    /// What is shared.
    pub shared: Arc<Shared>,
    /// A client of its own.
    pub http: reqwest::Client,
    /// Bases of the APIs, which it uses by turns.
    pub apis: Vec<String>,
    /// The operator's key.
    pub key: String,
    /// The product of all redirections.
    pub product: String,
    /// How many edges there are.
    pub edges: u16,
    /// Seed of its choices.
    pub seed: u64,
}

impl Writer {
    /// Creates, changes and deletes until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut live: Vec<(u32, Version)> = Vec::new();
        while !stop.is_cancelled() {
            if live.len() < KEYS_PER_WRITER {
                let key = self.shared.next_key.fetch_add(1, Ordering::SeqCst);
                if self.write(key, 1).await {
                    live.push((key, 1));
                }
                continue;
            }
            let at = (self.random() % live.len() as u64) as usize;
            let (key, version) = live[at];
            let next = if self.random().is_multiple_of(8) { DELETED } else { version + 1 };
            // What nobody knows the end of is written no more: it may still come, after anything else.
            if self.write(key, next).await && next != DELETED {
                live[at].1 = next;
            } else {
                live.swap_remove(at);
            }
        }
    }

    /// One write; gives whether it is stored.
    async fn write(&mut self, key: u32, version: Version) -> bool {
        let turn = self.random();
        let api = self.apis[(turn % self.apis.len() as u64) as usize].clone();
        let wait = "?wait=edges&timeout=3s";
        let (method, path, body) = match version {
            1 => {
                let body = json!({"platformId": self.product, "defaultRedirectUrl": target(key, 1),
                    "shortId": short_id(key)});
                ("POST", format!("/redirections{wait}"), Some(body))
            }
            DELETED => ("DELETE", format!("/redirections/{}{wait}", short_id(key)), None),
            _ => {
                let body = json!({"defaultRedirectUrl": target(key, version)});
                ("PUT", format!("/redirections/{}{wait}", short_id(key)), Some(body))
            }
        };
        let start = self.shared.now();
        let answered = call(&self.http, &api, &self.key, method, &path, body).await;
        let end = self.shared.now();
        self.shared.requests.fetch_add(1, Ordering::SeqCst);
        let outcome = match answered {
            Ok((200..=201, report)) => self.outcome(&report),
            Ok((202..=204, _)) => Outcome::Stored,
            Ok((400..=499, _)) => Outcome::Refused,
            // Nothing was sent.
            Err(error) if is_refused(&error) => {
                self.shared.errors.fetch_add(1, Ordering::SeqCst);
                Outcome::Refused
            }
            Ok(_) | Err(_) => {
                self.shared.errors.fetch_add(1, Ordering::SeqCst);
                Outcome::Unknown
            }
        };
        let is_stored = matches!(outcome, Outcome::Acked(_) | Outcome::Stored);
        self.shared.history().writes.push(Write { key, version, start, end, outcome });
        if !is_stored {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        is_stored
    }

    /// Which edges have it: all that are members, if they can be told.
    fn outcome(&self, report: &Value) -> Outcome {
        let unreachable: Vec<&str> =
            report["unreachable"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let members = report["members"].as_u64().unwrap_or(0);
        if members + unreachable.len() as u64 != u64::from(self.edges) || report["acked"] != report["members"]
        {
            return Outcome::Stored;
        }
        let edges = 0..self.edges;
        Outcome::Acked(edges.filter(|n| !unreachable.contains(&format!("edge-{n}").as_str())).collect())
    }

    fn random(&mut self) -> u64 {
        random(&mut self.seed)
    }
}

/// Whether there was no connection that a request could have gone through.
fn is_refused(error: &anyhow::Error) -> bool {
    error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect)
}

/// A reader of one edge.
pub struct Reader {
    /// What is shared.
    pub shared: Arc<Shared>,
    /// A client of its own.
    pub http: reqwest::Client,
    /// Number of the edge.
    pub edge: u16,
    /// Base of the edge.
    pub url: String,
    /// Seed of its choices.
    pub seed: u64,
}

impl Reader {
    /// Reads keys at random until `stop`, with a pause after each read.
    pub async fn run(mut self, pause: Duration, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let keys = self.shared.keys();
            if keys > 0 {
                let back = random(&mut self.seed) % u64::from(keys.min(READ_KEYS));
                // Below the number of keys.
                let read = self.read(keys - 1 - back as u32).await;
                self.shared.history().reads.push(read);
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One read.
    pub async fn read(&self, key: u32) -> Read {
        let start = self.shared.now();
        let request = self
            .http
            .get(format!("{}/{}", self.url, short_id(key)))
            .header("host", "tn.gg")
            .header("user-agent", PHONE)
            .timeout(Duration::from_secs(3));
        let answered = request.send().await;
        let end = self.shared.now();
        self.shared.requests.fetch_add(1, Ordering::SeqCst);
        let answer = match answered {
            Ok(response) => {
                let status = response.status().as_u16();
                self.shared.count_status(status.to_string());
                let location = response.headers().get("location").and_then(|value| value.to_str().ok());
                match (status, location.and_then(|text| version_in(text, key))) {
                    (307, Some(version)) => {
                        self.shared.sent.fetch_add(1, Ordering::SeqCst);
                        Answer::Version(version)
                    }
                    (404, _) => Answer::NotFound,
                    _ => Answer::Failed,
                }
            }
            Err(error) => {
                self.shared.count_status(if error.is_timeout() { "timeout" } else { "no answer" }.to_owned());
                self.shared.unseen.fetch_add(1, Ordering::SeqCst);
                Answer::Failed
            }
        };
        if answer == Answer::Failed {
            self.shared.errors.fetch_add(1, Ordering::SeqCst);
        }
        Read { edge: self.edge, key, start, end, answer }
    }
}

/// The version in a target; of another key, it is none that anybody wrote.
fn version_in(target: &str, key: u32) -> Option<Version> {
    let (of, version) = target.strip_prefix("https://example.com/")?.split_once('/')?;
    if of != key.to_string() {
        return Some(DELETED - 1);
    }
    version.parse().ok()
}

/// A small generator of random numbers (splitmix64): a campaign can be repeated by its seed.
pub fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
