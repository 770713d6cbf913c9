//! TLS certificates of control's listeners by SNI, reloaded while it runs.

use std::{collections::HashMap, fs, io, os::unix::fs::MetadataExt as _, path::Path, sync::Arc};

use platform::{certificate, settings::open_to_others};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_util::sync::CancellationToken;

use crate::follow::Followed;

/// The name whose certificate serves clients that send no SNI (addresses have none).
const DEFAULT: &str = "default";

type Table = HashMap<Box<str>, Arc<CertifiedKey>>;

/// Certificates of a folder: `<host>.pem` with `<host>.key`; clones share them.
#[derive(Debug, Clone)]
pub struct Certificates(Followed<Table>);

impl Certificates {
    /// Reads the folder.
    ///
    /// # Errors
    /// The folder or a pair in it cannot be used.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Followed::open(folder, read).map(Self)
    }

    /// Whether there is a certificate for a host.
    #[must_use]
    pub fn holds(&self, host: &str) -> bool {
        host != DEFAULT && self.0.current().contains_key(host)
    }

    /// The first host by name that there is a certificate for.
    #[must_use]
    pub fn first_name(&self) -> Option<String> {
        let table = self.0.current();
        table.keys().filter(|name| &***name != DEFAULT).min().map(|name| name.to_string())
    }

    /// The configuration of a TLS listener with these certificates.
    ///
    /// # Errors
    /// The TLS library refuses its defaults, or has no random bits.
    pub fn server_config(&self, protocols: &[&[u8]]) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        config.ticketer = ring::Ticketer::new()?;
        Ok(config)
    }

    /// When each certificate ends, in seconds since 1970, by the name of its files.
    #[must_use]
    pub fn expiries(&self) -> Vec<(Box<str>, i64)> {
        let table = self.0.current();
        let end = |pair: &CertifiedKey| certificate::not_after(pair.cert.first()?);
        let mut ends: Vec<_> =
            table.iter().filter_map(|(name, pair)| Some((name.clone(), end(pair)?))).collect();
        ends.sort_unstable();
        ends
    }

    /// Reads the folder again whenever it changed, until `shutdown`; while a pair in it cannot be used, all
    /// stay as they were.
    pub async fn follow(self, shutdown: CancellationToken) {
        self.0.follow(shutdown).await;
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let table = self.0.current();
        let fallback =
            || table.get(DEFAULT).or_else(|| table.values().next().filter(|_| table.len() == 1)).cloned();
        match hello.server_name() {
            // rustls gives names in lower case.
            Some(name) => table.get(name).cloned(),
            None => fallback(),
        }
    }
}

fn read(folder: &Path) -> io::Result<Table> {
    let mut table = Table::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let Some(host) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let key = path.with_extension("key");
        // A certificate without a key is an authority's.
        if path.extension().is_none_or(|extension| extension != "pem") || !key.exists() {
            continue;
        }
        if let Some(reason) = open_to_others(&key, fs::metadata(&key)?.mode()) {
            return Err(io::Error::other(reason));
        }
        let pair = certified(&fs::read(&path)?, &fs::read(&key)?)
            .map_err(|reason| io::Error::other(format!("{}: {reason}", path.display())))?;
        table.insert(host.to_ascii_lowercase().into(), Arc::new(pair));
    }
    Ok(table)
}

fn certified(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the chain: {error}"))?;
    if chain.is_empty() {
        return Err("the chain holds no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key: {error}"))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| error.to_string())
}
