//! The settings of the authority.

use std::fmt;

use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use url::Url;

/// Most characters of the contact.
const MAX_CONTACT: usize = 254;

/// Which authority is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct AcmeSettings {
    directory: String,
    contact: Option<String>,
    trust: Option<Vec<u8>>,
}

impl fmt::Debug for AcmeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeSettings").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Why a setting cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// The directory.
    #[error("{0}: give the URL of the authority's directory, such as https://acme.example/directory")]
    Directory(&'static str),
    /// The contact.
    #[error("give an address to which mail can be sent, such as ops@example.com, of at most 254 characters")]
    Contact,
    /// The root of the authority.
    #[error("it is no PEM file with a certificate")]
    Trust,
}

impl AcmeSettings {
    /// Reads the URL of the directory.
    ///
    /// # Errors
    /// It is none, or is not asked over TLS.
    pub fn parse(directory: &str) -> Result<Self, InvalidSetting> {
        let wrong = InvalidSetting::Directory;
        let url = Url::parse(directory).map_err(|_| wrong("it is no URL"))?;
        if url.scheme() != "https" {
            return Err(wrong("its scheme is not https"));
        }
        if url.fragment().is_some() {
            return Err(wrong("it has a fragment"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it has a user or a password"));
        }
        Ok(Self { directory: url.into(), contact: None, trust: None })
    }

    /// With an address that the authority may write to.
    ///
    /// # Errors
    /// It is none.
    pub fn with_contact(self, text: &str) -> Result<Self, InvalidSetting> {
        let address = text.strip_prefix("mailto:").unwrap_or(text);
        let parts = address.split_once('@').filter(|(name, host)| !name.is_empty() && host.contains('.'));
        let is_text = address.bytes().all(|byte| byte.is_ascii_graphic() && !b",;?\"<>".contains(&byte));
        if parts.is_none() || !is_text || address.len() > MAX_CONTACT {
            return Err(InvalidSetting::Contact);
        }
        Ok(Self { contact: Some(format!("mailto:{address}")), ..self })
    }

    /// With the authority that signed the certificate of the directory's server, instead of those of the system.
    ///
    /// # Errors
    /// The text holds no certificate.
    pub fn with_trust(self, pem: Vec<u8>) -> Result<Self, InvalidSetting> {
        let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|_| InvalidSetting::Trust)?;
        let mut roots = RootCertStore::empty();
        if certificates.is_empty() || certificates.into_iter().any(|one| roots.add(one).is_err()) {
            return Err(InvalidSetting::Trust);
        }
        Ok(Self { trust: Some(pem), ..self })
    }

    /// The URL of the directory.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    pub(crate) fn contact(&self) -> Option<&str> {
        self.contact.as_deref()
    }

    pub(crate) fn trust(&self) -> Option<&[u8]> {
        self.trust.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_or_refused() {
        for (text, fits) in [
            ("https://acme.example/directory", true),
            ("https://127.0.0.1:14000/dir", true),
            ("http://acme.example/directory", false),
            ("http://127.0.0.1/dir", false),
            ("https://user@acme.example/", false),
            ("https://acme.example/#a", false),
            ("acme.example", false),
            ("", false),
        ] {
            assert_eq!(AcmeSettings::parse(text).is_ok(), fits, "{text:?}");
        }
        let settings = AcmeSettings::parse("https://acme.example/directory").unwrap();
        for (text, contact) in [
            ("ops@example.com", Some("mailto:ops@example.com")),
            ("mailto:ops@example.com", Some("mailto:ops@example.com")),
            ("ops@localhost", None),
            ("@example.com", None),
            ("a@example.com,b@example.com", None),
            ("a b@example.com", None),
            ("https://example.com", None),
            ("", None),
        ] {
            let read = settings.clone().with_contact(text);
            assert_eq!(read.ok().as_ref().and_then(AcmeSettings::contact), contact, "{text:?}");
        }
        assert_eq!(settings.with_trust(b"PEM".to_vec()), Err(InvalidSetting::Trust));
    }
}
