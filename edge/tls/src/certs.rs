//! The certificates of an edge, chosen by SNI: those of a folder, which is read again when it changes, and those from control.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use arc_swap::ArcSwap;
use backing::EdgeError;
use platform::{FileWatch, certificate, settings::open_to_others};
use prometheus_client::registry::Registry;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use shared::wire::{
    certificates::Challenge,
    stream::{Events, Rejected, Welcome},
};
use tokio_util::sync::CancellationToken;

use crate::{
    challenges::{ACME_TLS, is_validation},
    pair,
    received::{Received, name_of},
};

/// The name whose certificate serves clients that send no SNI (addresses have none).
const DEFAULT: &str = "default";

/// Certificates from control whose end is shown: each is a series of metrics for each edge.
const SHOWN: usize = 1_000;

type Table = HashMap<Box<str>, Arc<CertifiedKey>>;

/// Certificates of the short domains; clones share one table.
///
/// A certificate that somebody put into the folder comes before the one that control has for the same name.
#[derive(Debug, Clone, Default)]
pub struct TlsCerts {
    by_hand: Arc<ByHand>,
    /// Those from control, where the edge takes them.
    received: Option<Arc<Received>>,
}

#[derive(Debug, Default)]
struct ByHand {
    table: ArcSwap<Table>,
    /// The folder that they are from.
    folder: Option<FileWatch>,
}

impl TlsCerts {
    /// Certificates in memory: host, PEM chain, PEM key.
    ///
    /// The host `default`, else the only one, serves clients that send no SNI.
    ///
    /// # Errors
    /// A certificate or key cannot be read, or they do not belong together.
    pub fn from_pem<'a>(
        certs: impl IntoIterator<Item = (&'a str, &'a [u8], &'a [u8])>,
    ) -> Result<Self, EdgeError> {
        let mut table = Table::new();
        for (host, chain, key) in certs {
            table.insert(host.to_ascii_lowercase().into(), Arc::new(certified(host, chain, key)?));
        }
        let by_hand = Arc::new(ByHand { table: ArcSwap::from_pointee(table), folder: None });
        Ok(Self { by_hand, received: None })
    }

    /// Certificates of a folder: `<host>.pem` with `<host>.key`; read again whenever the folder changes.
    ///
    /// # Errors
    /// The folder or a pair in it cannot be read.
    pub fn from_folder(folder: &Path) -> Result<Self, EdgeError> {
        // Before reading: a pair that is replaced meanwhile is read once more.
        let watch = FileWatch::new(folder);
        let (table, errors) = read_folder(folder, &Table::new())?;
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        let by_hand = Arc::new(ByHand { table: ArcSwap::from_pointee(table), folder: Some(watch) });
        Ok(Self { by_hand, received: None })
    }

    /// The same, and those from control, which are kept in a folder, if there is one. Reads what it holds; blocks meanwhile.
    #[must_use]
    pub fn with_received(self, folder: Option<PathBuf>) -> Self {
        Self { received: Some(Arc::new(Received::open(folder))), ..self }
    }

    /// Reads the folder again; a pair that cannot be used leaves the one before it in use.
    ///
    /// # Errors
    /// The folder cannot be read; nothing changed.
    pub fn reload(&self) -> Result<(), EdgeError> {
        let Some(folder) = &self.by_hand.folder else { return Ok(()) };
        let (table, errors) = read_folder(folder.path(), &self.by_hand.table.load())?;
        for error in errors {
            tracing::error!(%error, "kept the previous certificate");
        }
        tracing::info!(certificates = table.len(), "certificates read");
        self.by_hand.table.store(Arc::new(table));
        Ok(())
    }

    /// Whether there is a certificate for a host.
    #[must_use]
    pub fn holds(&self, host: &str) -> bool {
        host != DEFAULT && self.find(host).is_some()
    }

    /// The certificate for a name in lower case: one look-up, or two.
    fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let by_hand = self.by_hand.table.load().get(name).cloned();
        by_hand.or_else(|| self.received.as_ref()?.find(name))
    }

    /// When each certificate in use ends, in seconds since 1970, by the name of its files or by its host, and whether it is from
    /// control: of these the thousand that end first.
    #[must_use]
    pub fn expiries(&self) -> Vec<(Box<str>, bool, i64)> {
        let by_hand = self.by_hand.table.load();
        let end_of = |pair: &CertifiedKey| certificate::not_after(pair.cert.first()?);
        let mut received = self.received.as_ref().map(|received| received.ends()).unwrap_or_default();
        received.retain(|(_, host)| !by_hand.contains_key(host));
        received.sort_unstable();
        received.truncate(SHOWN);
        let by_hand = by_hand.iter().filter_map(|(name, pair)| Some((name.clone(), false, end_of(pair)?)));
        let mut ends: Vec<_> =
            by_hand.chain(received.into_iter().map(|(end, host)| (host, true, end))).collect();
        ends.sort_unstable();
        ends
    }

    /// Registers the counters of what comes from control.
    pub fn register(&self, registry: &mut Registry) {
        if let Some(received) = &self.received {
            received.register(registry);
        }
    }

    /// The configuration of a TLS listener with these certificates.
    ///
    /// # Errors
    /// The TLS library refuses its defaults, or has no random bits.
    pub fn server_config(&self) -> Result<ServerConfig, EdgeError> {
        let wrong = |error: rustls::Error| EdgeError::Certificate {
            name: "tls".to_owned(),
            reason: error.to_string(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.received.is_some() {
            config.alpn_protocols.push(ACME_TLS.to_vec());
        }
        config.ticketer = ring::Ticketer::new().map_err(wrong)?;
        Ok(config)
    }

    /// Follows changes of the folder until `shutdown`.
    pub async fn follow(self, shutdown: CancellationToken) {
        let Some(folder) = self.by_hand.folder.clone() else { return };
        let read = move || {
            if let Err(error) = self.reload() {
                tracing::error!(%error, "certificates could not be reloaded");
            }
        };
        folder.follow(shutdown, read).await;
    }

    /// Digests of the certificates from control, for the next welcome; `None` where the edge takes none.
    #[must_use]
    pub fn digests(&self) -> Option<Vec<u64>> {
        self.received.as_ref().map(|received| received.digests())
    }

    /// Takes the certificates and challenges of a welcome; what cannot be used is refused, and the one before it stays.
    pub async fn welcome(&self, welcome: &Welcome) -> Vec<Rejected> {
        let Some(received) = self.received.clone() else { return Vec::new() };
        let (head, certificates) = (welcome.head, welcome.certificates.clone());
        let (kept, challenges) = (welcome.kept_certificates.clone(), welcome.challenges.clone());
        let hosts: HashSet<Box<str>> =
            welcome.domains.iter().map(|domain| name_of(domain.host.as_str())).collect();
        // Thousands of keys take a second.
        let replace = move || received.replace(head, kept.as_deref(), &certificates, &challenges, &hosts);
        let taken = tokio::task::spawn_blocking(replace);
        taken.await.unwrap_or_else(|error| {
            tracing::error!(%error, "taking the certificates of a welcome panicked");
            Vec::new()
        })
    }

    /// Applies the certificates and challenges among events; those that were applied before change nothing.
    #[must_use]
    pub fn apply(&self, events: &Events) -> Vec<Rejected> {
        self.received.as_ref().map(|received| received.apply(events)).unwrap_or_default()
    }

    /// Writes changed certificates to disk until `stop`, and once more then.
    pub async fn keep(self, stop: CancellationToken) {
        if let Some(received) = self.received {
            received.keep(stop).await;
        }
    }

    /// The challenge that an authority asks for over HTTP, if it is known and has not ended.
    #[must_use]
    pub fn challenge(&self, host: &str, token: &str) -> Option<Arc<Challenge>> {
        self.received.as_ref()?.challenges.asked(&name_of(host), token, Instant::now())
    }
}

impl ResolvesServerCert for TlsCerts {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls gives names in lower case.
        let name = hello.server_name();
        if let Some(received) = self.received.as_ref().filter(|_| is_validation(&hello)) {
            return received.challenges.certificate(name?, Instant::now());
        }
        match name {
            Some(name) => self.find(name),
            None => {
                let table = self.by_hand.table.load();
                table.get(DEFAULT).or_else(|| table.values().next().filter(|_| table.len() == 1)).cloned()
            }
        }
    }
}

/// Reads every pair of a folder; for one that fails the entry of `before` stays, if there is one.
fn read_folder(folder: &Path, before: &Table) -> Result<(Table, Vec<EdgeError>), EdgeError> {
    let failed = |source| EdgeError::Storage { path: folder.to_owned(), source };
    let (mut table, mut errors) = (Table::new(), Vec::new());
    for file in fs::read_dir(folder).map_err(failed)? {
        let path = file.map_err(failed)?.path();
        let Some(host) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if path.extension().is_none_or(|extension| extension != "pem") {
            continue;
        }
        let host = host.to_ascii_lowercase().into_boxed_str();
        match read_pair(&host, &path) {
            Ok(Some(pair)) => drop(table.insert(host, Arc::new(pair))),
            // A certificate without a key is an authority's, or a pair that is being written.
            Ok(None) => drop(before.get(&host).map(|pair| table.insert(host.clone(), pair.clone()))),
            Err(error) => {
                if let Some(pair) = before.get(&host) {
                    table.insert(host, pair.clone());
                }
                errors.push(error);
            }
        }
    }
    Ok((table, errors))
}

fn read_pair(host: &str, chain: &Path) -> Result<Option<CertifiedKey>, EdgeError> {
    let read =
        |path: &Path| fs::read(path).map_err(|source| EdgeError::Storage { path: path.to_owned(), source });
    let key = chain.with_extension("key");
    if !key.exists() {
        return Ok(None);
    }
    let mode = fs::metadata(&key).map_err(|source| EdgeError::Storage { path: key.clone(), source })?.mode();
    if let Some(reason) = open_to_others(&key, mode) {
        return Err(EdgeError::Certificate { name: host.to_owned(), reason });
    }
    certified(host, &read(chain)?, &read(&key)?).map(Some)
}

fn certified(host: &str, chain: &[u8], key: &[u8]) -> Result<CertifiedKey, EdgeError> {
    let wrong = |reason| EdgeError::Certificate { name: host.to_owned(), reason };
    let chain = pair::chain(chain).map_err(wrong)?;
    pair::certified(chain, key).map_err(wrong)
}
