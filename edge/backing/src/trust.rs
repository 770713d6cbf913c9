//! The certificate authorities that the edge trusts for connections to control: one CA file, or the system's roots.

use std::{path::Path, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use crate::error::EdgeError;

/// TLS configuration for connections to control, without ALPN. If TLS is not needed, one that trusts no certificate.
///
/// # Errors
/// The CA file cannot be read or holds no certificate; or the system has no roots.
pub fn client_config(ca: Option<&Path>, is_needed: bool) -> Result<ClientConfig, EdgeError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let wrong = |reason: String| EdgeError::Certificate { name: path.display().to_string(), reason };
            let pem =
                std::fs::read(path).map_err(|source| EdgeError::Storage { path: path.to_owned(), source })?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("it holds no certificate".to_owned()));
            }
        }
        None if !is_needed => {}
        None => {
            // Some of a system's roots may be damaged: those that are not will do.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                let name = "the roots of this system".to_owned();
                let reason = "there are none; name the CA's file instead".to_owned();
                return Err(EdgeError::Certificate { name, reason });
            }
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| EdgeError::Certificate { name: "tls".to_owned(), reason: error.to_string() })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
