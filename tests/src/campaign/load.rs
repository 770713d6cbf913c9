//! The writers and readers of a campaign, and what they record.

mod reader;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use self::reader::Reader;
use super::{
    history::{DELETED, History, Micros, Outcome, Version, Write},
    world::call,
};

/// Keys that one writer has at a time, all of them there before the first fault.
pub const KEYS_PER_WRITER: u32 = 400;

/// Keys that were written last: every other read is of one of them, since a reader that finds something old
/// must come soon.
const RECENT: usize = 32;

/// One in so many writes deletes a key for ever (an id that was deleted is not given again): a new one comes
/// for it. Most reads are then of redirections that are there.
const WRITES_PER_DELETION: u64 = 50;

/// How long a key is left alone when nobody knows whether its last write is stored. It is longer than a
/// request of a client that gave up (10 s) can rest in a control that is stopped (15 s) and end after that
/// (a statement: 5 s): what is read after it is all that will come.
const UNSETTLED: Duration = Duration::from_secs(45);

/// What all of them share.
pub struct Shared {
    begun: Instant,
    history: Mutex<History>,
    next_key: AtomicU32,
    requests: AtomicU64,
    errors: AtomicU64,
    by_status: Mutex<BTreeMap<String, u64>>,
    recent: Mutex<VecDeque<u32>>,
    unfit: AtomicU64,
    degraded: AtomicU64,
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
            recent: Mutex::default(),
            unfit: AtomicU64::new(0),
            degraded: AtomicU64::new(0),
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
    /// Writes that were refused though they fitted all that is stored.
    pub unfit: u64,
    /// Redirects that readers got: scans that must be counted.
    pub sent: u64,
    /// Scans that edges with a full disk counted by link and minute alone.
    pub degraded: u64,
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
            unfit: self.unfit.load(Ordering::SeqCst),
            degraded: self.degraded.load(Ordering::SeqCst),
            sent: self.sent.load(Ordering::SeqCst),
            unseen: self.unseen.load(Ordering::SeqCst),
        }
    }

    /// Adds scans that an edge with a full disk counted by link and minute alone.
    pub fn add_degraded(&self, scans: u64) {
        self.degraded.fetch_add(scans, Ordering::SeqCst);
    }

    /// Notes that a key is written.
    fn note(&self, key: u32) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(key);
    }

    /// A key to read: every other one was written lately.
    fn pick(&self, seed: &mut u64) -> Option<u32> {
        let turn = random(seed);
        if turn.is_multiple_of(2) {
            let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if !recent.is_empty() {
                return recent.get((turn / 2 % recent.len() as u64) as usize).copied();
            }
        }
        let keys = u64::from(self.keys());
        // Below the number of keys.
        (keys > 0).then(|| (turn / 2 % keys) as u32)
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
    /// Bases of the APIs, which it uses in rotation.
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

/// What a writer knows after a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Stored,
    Refused,
    Unknown,
}

/// A key of a writer.
#[derive(Clone, Copy)]
struct Key {
    number: u32,
    /// The last version that was tried.
    tried: Version,
}

impl Writer {
    /// Creates the keys that are there from the begin.
    ///
    /// # Errors
    /// One of them is refused: nothing is at fault yet.
    pub async fn seed(&mut self) -> Result<Vec<u32>> {
        // Taken before they are written: the writers that are at work already make keys, too.
        let begin = self.shared.next_key.fetch_add(KEYS_PER_WRITER, Ordering::SeqCst);
        let start = self.shared.now();
        let keys: Vec<u32> = (begin..begin + KEYS_PER_WRITER).collect();
        let bodies: Vec<Value> = keys.iter().map(|key| self.body(*key)).collect();
        let (status, said) =
            call(&self.http, &self.apis[0], &self.key, "POST", "/redirections", Some(Value::Array(bodies)))
                .await?;
        let is_right = said.as_array().is_some_and(|all| all.iter().all(|one| one["status"] == 201));
        ensure!(status == 200 && is_right, "{status} {said}");
        let end = self.shared.now();
        let writes =
            keys.iter().map(|key| Write { key: *key, version: 1, start, end, outcome: Outcome::Stored });
        self.shared.history().writes.extend(writes);
        Ok(keys)
    }

    /// Changes, deletes and creates until `stop`.
    pub async fn run(mut self, seeded: Vec<u32>, stop: CancellationToken) {
        let mut live: Vec<Key> = seeded.into_iter().map(|number| Key { number, tried: 1 }).collect();
        let mut unsettled: VecDeque<(Key, Instant)> = VecDeque::new();
        let mut spare = None;
        while !stop.is_cancelled() {
            if let Some((key, since)) = unsettled.pop_front() {
                if since.elapsed() < UNSETTLED {
                    unsettled.push_front((key, since));
                } else {
                    match self.is_there(key.number).await {
                        Some(true) => live.push(key),
                        Some(false) => {}
                        None => unsettled.push_back((key, since)),
                    }
                }
            }
            let is_creation = live.len() + unsettled.len() < KEYS_PER_WRITER as usize || live.is_empty();
            let (mut key, next) = if is_creation {
                let new = || self.shared.next_key.fetch_add(1, Ordering::SeqCst);
                (Key { number: spare.take().unwrap_or_else(new), tried: 0 }, 1)
            } else {
                let at = (self.random() % live.len() as u64) as usize;
                let is_deletion = self.random().is_multiple_of(WRITES_PER_DELETION);
                let key = live.swap_remove(at);
                (key, if is_deletion { DELETED } else { key.tried + 1 })
            };
            self.shared.note(key.number);
            match self.write(key.number, next).await {
                Written::Stored if next == DELETED => {}
                Written::Stored => {
                    key.tried = next;
                    live.push(key);
                }
                // It never came to be, or is as it was.
                Written::Refused if is_creation => spare = Some(key.number),
                Written::Refused => live.push(key),
                Written::Unknown => {
                    key.tried = if next == DELETED { key.tried } else { next };
                    unsettled.push_back((key, Instant::now()));
                }
            }
        }
    }

    /// Whether control has a key now, if it says.
    async fn is_there(&mut self, key: u32) -> Option<bool> {
        let turn = self.random();
        let api = &self.apis[(turn % self.apis.len() as u64) as usize];
        let path = format!("/redirections/{}", short_id(key));
        match call(&self.http, api, &self.key, "GET", &path, None).await {
            Ok((200, _)) => Some(true),
            Ok((404, _)) => Some(false),
            Ok(_) | Err(_) => None,
        }
    }

    fn body(&self, key: u32) -> Value {
        json!({"platformId": self.product, "defaultRedirectUrl": target(key, 1), "shortId": short_id(key)})
    }

    /// One write.
    async fn write(&mut self, key: u32, version: Version) -> Written {
        let turn = self.random();
        let api = self.apis[(turn % self.apis.len() as u64) as usize].clone();
        let wait = "?wait=edges&timeout=3s";
        let (method, path, body) = match version {
            1 => ("POST", format!("/redirections{wait}"), Some(self.body(key))),
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
            Ok((400..=499, _)) => {
                self.shared.unfit.fetch_add(1, Ordering::SeqCst);
                Outcome::Refused
            }
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
        let written = match outcome {
            Outcome::Acked(_) | Outcome::Stored => Written::Stored,
            Outcome::Refused => Written::Refused,
            Outcome::Unknown => Written::Unknown,
        };
        self.shared.history().writes.push(Write { key, version, start, end, outcome });
        if written != Written::Stored {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        written
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

/// A small generator of random numbers (splitmix64): a campaign can be repeated by its seed.
pub fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
