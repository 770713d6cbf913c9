//! TLS certificates by SNI, reloaded while the edge runs.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt as _, path::Path, sync::Arc};

use arc_swap::ArcSwap;
use platform::{FileWatch, settings::open_to_others};
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use shared::certificate;
use tokio_util::sync::CancellationToken;

use crate::EdgeError;

/// The name whose certificate serves clients that send no SNI (addresses have none).
const DEFAULT: &str = "default";

type Table = HashMap<Box<str>, Arc<CertifiedKey>>;

/// Certificates of the short domains; clones share one table.
#[derive(Debug, Clone)]
pub struct TlsCerts(Arc<Certs>);

#[derive(Debug)]
struct Certs {
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
        Ok(Self(Arc::new(Certs { table: ArcSwap::from_pointee(table), folder: None })))
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
        let folder = Some(watch);
        Ok(Self(Arc::new(Certs { table: ArcSwap::from_pointee(table), folder })))
    }

    /// Reads the folder again; a pair that cannot be used leaves the one before it in use.
    ///
    /// # Errors
    /// The folder cannot be read; nothing changed.
    pub fn reload(&self) -> Result<(), EdgeError> {
        let Some(folder) = &self.0.folder else { return Ok(()) };
        let (table, errors) = read_folder(folder.path(), &self.0.table.load())?;
        for error in errors {
            tracing::error!(%error, "kept the previous certificate");
        }
        tracing::info!(certificates = table.len(), "certificates read");
        self.0.table.store(Arc::new(table));
        Ok(())
    }

    /// Whether there is a certificate for a host.
    #[must_use]
    pub fn holds(&self, host: &str) -> bool {
        host != DEFAULT && self.0.table.load().contains_key(host)
    }

    /// The first host by name that there is a certificate for.
    #[must_use]
    pub fn first_name(&self) -> Option<String> {
        let table = self.0.table.load();
        table.keys().filter(|name| &***name != DEFAULT).min().map(|name| name.to_string())
    }

    /// When each certificate ends, in seconds since 1970, by the name of its files.
    pub(crate) fn expiries(&self) -> Vec<(Box<str>, i64)> {
        let table = self.0.table.load();
        let end = |pair: &CertifiedKey| certificate::not_after(pair.cert.first()?);
        let mut ends: Vec<_> =
            table.iter().filter_map(|(name, pair)| Some((name.clone(), end(pair)?))).collect();
        ends.sort_unstable();
        ends
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
            .with_cert_resolver(self.0.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.ticketer = ring::Ticketer::new().map_err(wrong)?;
        Ok(config)
    }

    /// Follows changes of the folder until `shutdown`.
    pub(crate) async fn follow(self, shutdown: CancellationToken) {
        let Some(folder) = self.0.folder.clone() else { return };
        let read = move || {
            if let Err(error) = self.reload() {
                tracing::error!(%error, "certificates could not be reloaded");
            }
        };
        folder.follow(shutdown, read).await;
    }
}

impl ResolvesServerCert for Certs {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let table = self.table.load();
        match hello.server_name() {
            // rustls gives names in lower case.
            Some(name) => table.get(name).cloned(),
            None => {
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
    let wrong = |reason: String| EdgeError::Certificate { name: host.to_owned(), reason };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(format!("the chain: {error}")))?;
    if chain.is_empty() {
        return Err(wrong("the chain holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong(format!("the key: {error}")))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| wrong(error.to_string()))
}
