//! The settings of the provider.

use std::{fmt, net::IpAddr};

use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use url::{Host, Url};

use crate::claim::RequiredClaim;

/// Most characters of the client's id and secret: four times what providers give.
const MAX_CHARS: usize = 1_024;

/// What is asked for: who somebody is, the address, and the name.
pub(crate) const SCOPES: [&str; 3] = ["openid", "email", "profile"];

/// Which provider is asked, and as which client.
#[derive(Clone, PartialEq, Eq)]
pub struct OidcSettings {
    issuer: String,
    is_loopback: bool,
    client_id: String,
    client_secret: String,
    ca: Option<Vec<u8>>,
    required_claim: Option<RequiredClaim>,
}

// The secret is not shown.
impl fmt::Debug for OidcSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcSettings")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Why a setting cannot be used; it does not repeat the text, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// The issuer.
    #[error(
        "{0}: give the issuer of the provider as its metadata have it, such as https://login.example.com"
    )]
    Issuer(&'static str),
    /// The id of the client.
    #[error("it has other characters than printable ASCII, more than 1024, or none")]
    ClientId,
    /// The secret of the client.
    #[error("the file does not hold one line of printable ASCII, of at most 1024 characters")]
    ClientSecret,
    /// The claim that each ID token must have.
    #[error("give a name and its value, such as hd=example.com, of at most 1024 characters")]
    RequiredClaim,
    /// The certificate of the authority.
    #[error("it is no PEM file with a certificate")]
    Ca,
}

impl OidcSettings {
    /// Reads the issuer, the id of the client and its secret. Blanks and line ends around the secret do not count.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn parse(issuer: &str, client_id: &str, client_secret: &str) -> Result<Self, InvalidSetting> {
        let wrong = InvalidSetting::Issuer;
        let url = Url::parse(issuer).map_err(|_| wrong("it is no URL"))?;
        let is_loopback = is_loopback(&url);
        match url.scheme() {
            "https" => {}
            "http" if is_loopback => {}
            "http" => return Err(wrong("without TLS it may be on this machine only")),
            _ => return Err(wrong("its scheme is not https")),
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it has a query or a fragment"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it has a user or a password"));
        }
        // The parser drops tabs and line ends; the text is compared with the provider's own as it is.
        if !issuer.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("it has characters that no URL has"));
        }
        let secret = client_secret.trim();
        let is_text = |text: &str| {
            !text.is_empty()
                && text.len() <= MAX_CHARS
                && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        if !is_text(client_id) {
            return Err(InvalidSetting::ClientId);
        }
        if !is_text(secret) {
            return Err(InvalidSetting::ClientSecret);
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            is_loopback: url.scheme() == "http",
            client_id: client_id.to_owned(),
            client_secret: secret.to_owned(),
            ca: None,
            required_claim: None,
        })
    }

    /// With the authority that signed the certificate of the provider, instead of those of the system.
    ///
    /// # Errors
    /// The text holds no certificate.
    pub fn with_ca(self, pem: Vec<u8>) -> Result<Self, InvalidSetting> {
        let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|_| InvalidSetting::Ca)?;
        let mut roots = RootCertStore::empty();
        if certificates.is_empty() || certificates.into_iter().any(|one| roots.add(one).is_err()) {
            return Err(InvalidSetting::Ca);
        }
        Ok(Self { ca: Some(pem), ..self })
    }

    /// With a claim that each ID token must have, as `name=value`.
    ///
    /// # Errors
    /// The text is none.
    pub fn with_required_claim(self, text: &str) -> Result<Self, InvalidSetting> {
        let required = RequiredClaim::parse(text).ok_or(InvalidSetting::RequiredClaim)?;
        Ok(Self { required_claim: Some(required), ..self })
    }

    /// The issuer, as it was given.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The id of the client.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn client_secret(&self) -> &str {
        &self.client_secret
    }

    pub(crate) const fn required_claim(&self) -> Option<&RequiredClaim> {
        self.required_claim.as_ref()
    }

    pub(crate) fn ca(&self) -> Option<&[u8]> {
        self.ca.as_deref()
    }

    /// Whether a URL of the provider may be used: https, or http on this machine if the issuer is such a URL.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        match url.scheme() {
            "https" => url.host().is_some(),
            "http" => self.is_loopback && is_loopback(url),
            _ => false,
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_a_url_over_tls() {
        for (issuer, fits) in [
            ("https://login.example.com", true),
            ("https://login.example.com/", true),
            ("https://login.example.com:8443/realms/one", true),
            ("http://127.0.0.1:3000", true),
            ("http://localhost:3000/x", true),
            ("http://[::1]:3000", true),
            ("http://login.example.com", false),
            ("http://10.0.0.1", false),
            ("http://localhost.example.com", false),
            ("ftp://login.example.com", false),
            ("login.example.com", false),
            ("https://", false),
            ("https://user@login.example.com", false),
            ("https://user:password@login.example.com", false),
            ("https://login.example.com?x=1", false),
            ("https://login.example.com#x", false),
            (" https://login.example.com", false),
            ("https://login.example.com/\n", false),
            ("", false),
        ] {
            let read = OidcSettings::parse(issuer, "id", "hidden");
            assert_eq!(read.is_ok(), fits, "{issuer:?}: {read:?}");
            assert!(!format!("{read:?}").contains("hidden"));
        }
    }

    #[test]
    fn id_and_secret_are_lines_of_text() {
        let read = |id: &str, secret: &str| OidcSettings::parse("https://login.example.com", id, secret);
        assert_eq!(read("id", " s e\n").unwrap().client_secret(), "s e");
        for secret in ["", "\n", "a\nb", "ü", &"a".repeat(1_025)] {
            assert_eq!(read("id", secret), Err(InvalidSetting::ClientSecret), "{secret:?}");
        }
        for id in ["", "a\nb", "ü", &"a".repeat(1_025)] {
            assert_eq!(read(id, "secret"), Err(InvalidSetting::ClientId), "{id:?}");
        }
        let settings = read("id", "secret").unwrap();
        for pem in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"] {
            assert_eq!(settings.clone().with_ca(pem.into()), Err(InvalidSetting::Ca), "{pem:?}");
        }
    }

    #[test]
    fn endpoints_without_tls_are_on_this_machine_only() {
        let read = |issuer: &str| OidcSettings::parse(issuer, "id", "secret").unwrap();
        let (public, local) = (read("https://login.example.com"), read("http://127.0.0.1:1"));
        for (url, of_public, of_local) in [
            ("https://other.example.com/token", true, true),
            ("http://127.0.0.1:2/token", false, true),
            ("http://login.example.com/token", false, false),
            ("http://169.254.169.254/", false, false),
            ("file:///etc/passwd", false, false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!((public.allows(&url), local.allows(&url)), (of_public, of_local), "{url}");
        }
    }
}
