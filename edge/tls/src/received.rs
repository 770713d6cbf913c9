//! Certificates that came from control, by host: in memory, and on the disk of the edge.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use platform::certificate;
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use rustls::sign::CertifiedKey;
use shared::wire::{
    certificates::{Challenge, DomainCertificate},
    contents::{self, Digest},
    stream::{Change, Events, Rejected, Rev},
};
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{challenges::Challenges, disk::Folder, pair};

/// Most certificates: five times what was measured, some 250 MiB.
const MAX_CERTIFICATES: usize = 50_000;
/// Most bytes of a chain: ten certificates of the largest that authorities issue.
const MAX_CHAIN_BYTES: usize = 64 << 10;
/// Most bytes of a key: twice one of RSA with 4,096 bits.
const MAX_KEY_BYTES: usize = 8 << 10;
/// Wait before what could not be written is written again.
const WRITE_AGAIN: Duration = Duration::from_secs(60);

/// What is to be written to disk: the certificate of a host, or that it has none.
type Unsaved = BTreeMap<Box<str>, Option<Arc<DomainCertificate>>>;

type Table = HashMap<Box<str>, Held>;

/// A certificate that is held.
struct Held {
    pair: Arc<CertifiedKey>,
    digest: Digest,
    /// When it ends, in seconds since 1970, if that can be read.
    ends: Option<i64>,
}

/// The certificates from control.
pub(crate) struct Received {
    /// A handshake takes this lock for one look-up, and a change for one insertion.
    table: RwLock<Table>,
    /// Every change up to this revision is in the table.
    as_of: AtomicU64,
    folder: Option<Folder>,
    unsaved: Mutex<Unsaved>,
    changed: Notify,
    refused: Counter,
    /// What authorities are about to ask.
    pub(crate) challenges: Challenges,
}

// Neither certificates nor keys are shown.
impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").field("certificates", &self.read().len()).finish_non_exhaustive()
    }
}

impl Received {
    /// What a folder holds, if there is one.
    pub(crate) fn open(folder: Option<PathBuf>) -> Self {
        let received = Self {
            table: RwLock::default(),
            as_of: AtomicU64::new(0),
            folder: folder.map(Folder::new),
            unsaved: Mutex::default(),
            changed: Notify::new(),
            refused: Counter::default(),
            challenges: Challenges::default(),
        };
        let held = received.folder.as_ref().map(Folder::load).unwrap_or_default();
        for certificate in held {
            if let Err(reason) = received.insert(&Arc::new(certificate)) {
                tracing::error!(%reason, "a saved certificate cannot be used");
            }
        }
        // They are on the disk.
        received.unsaved().clear();
        received
    }

    /// Registers the counters; they stay shared with the registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Certificates and challenges from control that could not be used";
        registry.register("certificates_refused", help, self.refused.clone());
        self.challenges.register(registry);
    }

    /// The certificate of a name in lower case.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.read().get(name).map(|held| held.pair.clone())
    }

    /// Digests of what is held, by which a welcome leaves it out.
    pub(crate) fn digests(&self) -> Vec<u64> {
        contents::digests_of(self.read().values().map(|held| held.digest).collect())
    }

    /// When each certificate ends, in seconds since 1970, with its host.
    pub(crate) fn ends(&self) -> Vec<(i64, Box<str>)> {
        self.read().iter().filter_map(|(host, held)| Some((held.ends?, host.clone()))).collect()
    }

    /// Takes the lists of a welcome as of a revision or later, which came with these hosts of domains. Certificates of groups that
    /// are `kept` stay, and all others are those of the list.
    ///
    /// An older control sends neither groups nor certificates: then those of its domains stay.
    pub(crate) fn replace(
        &self,
        as_of: Rev,
        kept: Option<&[u8]>,
        certificates: &[Arc<DomainCertificate>],
        challenges: &[Arc<Challenge>],
        domains: &HashSet<Box<str>>,
    ) -> Vec<Rejected> {
        let listed: HashSet<Box<str>> = certificates.iter().map(|one| name_of(&one.host)).collect();
        let stays = |host: &str| match kept {
            Some(groups) => listed.contains(host) || groups.contains(&contents::group_of_host(host)),
            None => domains.contains(host),
        };
        let gone: Vec<Box<str>> = self.read().keys().filter(|host| !stays(host)).cloned().collect();
        for host in gone {
            self.remove(&host);
        }
        let inserted = certificates.iter().map(|certificate| self.insert(certificate));
        let now = Instant::now();
        let taken = inserted.chain(challenges.iter().map(|challenge| self.challenges.add(challenge, now)));
        let refused = taken.filter_map(|taken| self.refuse(as_of, taken)).collect();
        self.as_of.store(if kept.is_some() { as_of } else { 0 }, SeqCst);
        refused
    }

    /// Applies events that follow those of before; what was applied already changes nothing.
    pub(crate) fn apply(&self, events: &Events) -> Vec<Rejected> {
        let as_of = self.as_of.load(SeqCst);
        let new = events.items.iter().filter(|event| event.rev > as_of);
        let refused = new.filter_map(|event| {
            let taken = match &event.change {
                Change::Certificate(host, Some(certificate))
                    if name_of(host) == name_of(&certificate.host) =>
                {
                    self.insert(certificate)
                }
                Change::Certificate(host, Some(_)) => {
                    Err(format!("{host}: the certificate is of another host"))
                }
                Change::Certificate(host, None) => {
                    self.remove(&name_of(host));
                    Ok(())
                }
                Change::Domain(domain) if domain.removed => {
                    self.remove(&name_of(domain.host.as_str()));
                    Ok(())
                }
                Change::Challenge(challenge) => self.challenges.add(challenge, Instant::now()),
                Change::Domain(_)
                | Change::Redirect(..)
                | Change::Rules(_)
                | Change::Withhold(..)
                | Change::Unreadable(_) => Ok(()),
            };
            self.refuse(event.rev, taken)
        });
        let refused = refused.collect();
        self.as_of.fetch_max(events.last, SeqCst);
        refused
    }

    fn refuse(&self, rev: Rev, taken: Result<(), String>) -> Option<Rejected> {
        let reason = taken.err()?;
        self.refused.inc();
        Some(Rejected { rev, reason })
    }

    /// Takes a certificate, unless it is the one that is held; the reason names nothing of its key.
    fn insert(&self, certificate: &Arc<DomainCertificate>) -> Result<(), String> {
        let host = name_of(&certificate.host);
        let wrong = |reason: String| format!("the certificate of {host}: {reason}");
        check_name(&host).map_err(wrong)?;
        if certificate.chain.len() > MAX_CHAIN_BYTES || certificate.key.len() > MAX_KEY_BYTES {
            return Err(wrong("it is too large".to_owned()));
        }
        let chain = pair::chain(certificate.chain.as_bytes()).map_err(wrong)?;
        let held = self.find(&host);
        // The same certificate has the same key.
        if held.as_ref().is_some_and(|held| held.cert == chain) {
            return Ok(());
        }
        pair::names(&chain, &host).map_err(wrong)?;
        let pair = pair::certified(chain, certificate.key.as_bytes()).map_err(wrong)?;
        if held.is_none() && self.read().len() >= MAX_CERTIFICATES {
            return Err(wrong(format!("an edge holds at most {MAX_CERTIFICATES}")));
        }
        let digest = contents::digest_of_certificate(&host, &certificate.chain);
        let ends = pair.cert.first().and_then(|leaf| certificate::not_after(leaf));
        self.write().insert(host.clone(), Held { pair: Arc::new(pair), digest, ends });
        self.note(host, Some(certificate.clone()));
        Ok(())
    }

    fn remove(&self, host: &str) {
        if self.write().remove(host).is_some() {
            self.note(host.into(), None);
        }
    }

    /// Has a change written to disk.
    fn note(&self, host: Box<str>, certificate: Option<Arc<DomainCertificate>>) {
        if self.folder.is_some() {
            self.unsaved().insert(host, certificate);
            self.changed.notify_one();
        }
    }

    /// Writes what changed until `stop`, and once more then.
    pub(crate) async fn keep(self: Arc<Self>, stop: CancellationToken) {
        if self.folder.is_none() {
            return;
        }
        let mut is_running = true;
        while is_running {
            is_running = stop.run_until_cancelled(self.changed.notified()).await.is_some();
            let saving = self.clone();
            match tokio::task::spawn_blocking(move || saving.save()).await {
                Ok(true) => {}
                Ok(false) => {
                    let _ = stop.run_until_cancelled(sleep(WRITE_AGAIN)).await;
                    self.changed.notify_one();
                }
                Err(error) => tracing::error!(%error, "writing certificates panicked"),
            }
        }
    }

    /// Writes what changed; whether all of it is on the disk.
    pub(crate) fn save(&self) -> bool {
        let Some(folder) = &self.folder else { return true };
        let changes = std::mem::take(&mut *self.unsaved());
        let mut failed = Unsaved::new();
        for (host, certificate) in changes {
            if let Err(error) = folder.put(&host, certificate.as_deref()) {
                tracing::error!(%error, %host, "a certificate could not be saved");
                failed.insert(host, certificate);
            }
        }
        let is_done = failed.is_empty();
        let mut unsaved = self.unsaved();
        for (host, certificate) in failed {
            // What came meanwhile is newer.
            unsaved.entry(host).or_insert(certificate);
        }
        is_done
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsaved(&self) -> MutexGuard<'_, Unsaved> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a host: without its port, in lower case.
pub(crate) fn name_of(host: &str) -> Box<str> {
    host.split(':').next().unwrap_or_default().to_ascii_lowercase().into()
}

/// Whether a name is one of a host, and so safe as the name of a file.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if name.len() <= 253 && name.split('.').all(is_label) {
        return Ok(());
    }
    Err("its host is no name".to_owned())
}

#[cfg(test)]
mod tests;
