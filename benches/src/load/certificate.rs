//! One certificate for all servers: self-signed, with a key on P-256, as most of today's have.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    version::TLS13,
};

use crate::links::HOST;

/// The certificate and where its files are.
#[derive(Debug)]
pub(crate) struct Certificate {
    /// A folder with `HOST.pem` and `HOST.key`, as an edge wants it.
    pub(crate) folder: PathBuf,
    /// Both in one file, as HAProxy wants it.
    pub(crate) bundle: PathBuf,
    der: CertificateDer<'static>,
}

impl Certificate {
    /// Makes one in a folder.
    pub(crate) fn generate(folder: &Path) -> Result<Self> {
        let folder = folder.join("tls");
        fs::create_dir_all(&folder)?;
        let made = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        fs::write(folder.join(format!("{HOST}.pem")), &certificate)?;
        let key_file = folder.join(format!("{HOST}.key"));
        fs::write(&key_file, &key)?;
        // One that others can read is refused.
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600))?;
        let bundle = folder.with_file_name("both.pem");
        fs::write(&bundle, certificate + &key)?;
        Ok(Self { folder, bundle, der: made.cert.der().clone() })
    }

    /// The file of the certificate.
    pub(crate) fn chain(&self) -> PathBuf {
        self.folder.join(format!("{HOST}.pem"))
    }

    /// The file of its key.
    pub(crate) fn key(&self) -> PathBuf {
        self.folder.join(format!("{HOST}.key"))
    }

    /// A client that knows this certificate alone, speaks TLS 1.3 alone, and never takes up an earlier session.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone())?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// A server that shows it.
    pub(crate) fn server(chain: &Path, key: &Path) -> Result<Arc<rustls::ServerConfig>> {
        use rustls::pki_types::pem::PemObject as _;
        let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<Vec<_>, _>>()?;
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
        Ok(Arc::new(config))
    }
}
