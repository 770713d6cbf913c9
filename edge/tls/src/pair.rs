//! A chain of certificates with its key, read from PEM. No error names anything of a key.

use rustls::{client::verify_server_name, crypto::ring, server::ParsedCertificate, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};

/// Reads a chain; the error is for people.
pub(crate) fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the chain: {error}"))?;
    if chain.is_empty() {
        return Err("the chain holds no certificate".to_owned());
    }
    Ok(chain)
}

/// A chain with its key; the error is for people.
pub(crate) fn certified(chain: Vec<CertificateDer<'static>>, key: &[u8]) -> Result<CertifiedKey, String> {
    // The error of the reader may show a line of the file.
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|_| "the key is no private key as PEM".to_owned())?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| error.to_string())
}

/// Whether a certificate is one of a host.
pub(crate) fn names(chain: &[CertificateDer<'static>], host: &str) -> Result<(), String> {
    let wrong = |error: rustls::Error| error.to_string();
    let leaf = chain.first().ok_or_else(|| "the chain holds no certificate".to_owned())?;
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let leaf = ParsedCertificate::try_from(leaf).map_err(wrong)?;
    verify_server_name(&leaf, &name).map_err(|_| format!("it is not a certificate of {host}"))
}
