//! Where scans are kept in ClickHouse: the value of `WAYMARK_SCANS_URL`.
//!
//! ```text
//! clickhouse://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?cluster=NAME]
//! ```
//!
//! It is spoken over HTTP, with `clickhouses` over TLS. User and password are percent-encoded. With a cluster the tables
//! are those of `deploy/clickhouse/cluster.sql`; without one they are made at the start.

use std::{fmt, str::FromStr};

use http::HeaderValue;
use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use url::{Host, Url};

/// Port of HTTP where none is named.
const PORT: u16 = 8123;
/// Port of HTTPS where none is named.
const TLS_PORT: u16 = 8443;

/// A ClickHouse server for scans, and how to sign in.
#[derive(Clone, PartialEq, Eq)]
pub struct ScanServer {
    /// `http://host:port/` or `https://host:port/`.
    pub(crate) origin: String,
    pub(crate) is_tls: bool,
    pub(crate) user: HeaderValue,
    pub(crate) password: HeaderValue,
    pub(crate) database: String,
    pub(crate) cluster: Option<String>,
    /// The authority that signed its certificate, as PEM; `None` means those of the system.
    pub(crate) ca: Option<Vec<u8>>,
}

/// Why a text is no [`ScanServer`]; the text is not repeated, as it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScanServer {
    /// The URL.
    #[error(
        "it is not of the form clickhouse://user:password@host:8123/database, with clickhouses for TLS and ?cluster=NAME \
         for a cluster"
    )]
    Url,
    /// The database, or the cluster.
    #[error(
        "the names of database and cluster have letters, digits and _ only, and do not begin with a digit"
    )]
    Name,
    /// A member of the query.
    #[error("after the database only ?cluster=NAME may follow")]
    Parameter,
    /// The password.
    #[error("the password must be one line without control characters")]
    Password,
    /// The password is given twice.
    #[error("the password is in the URL and in a file: give one of them")]
    TwoPasswords,
    /// The certificate of the authority.
    #[error("it is no certificate in PEM form")]
    Ca,
    /// A certificate where there is no TLS.
    #[error("it is of no use without TLS: begin WAYMARK_SCANS_URL with clickhouses://")]
    CaWithoutTls,
}

impl FromStr for ScanServer {
    type Err = InvalidScanServer;

    fn from_str(text: &str) -> Result<Self, InvalidScanServer> {
        let url = Url::parse(text).map_err(|_| InvalidScanServer::Url)?;
        let (is_tls, default) = match url.scheme() {
            "clickhouse" => (false, PORT),
            "clickhouses" => (true, TLS_PORT),
            _ => return Err(InvalidScanServer::Url),
        };
        let host = url.host().ok_or(InvalidScanServer::Url)?;
        // The host of another scheme than HTTP's is taken as it is written.
        let host = Host::parse(&host.to_string()).map_err(|_| InvalidScanServer::Url)?;
        let port = url.port().unwrap_or(default);
        if port == 0 || url.fragment().is_some() {
            return Err(InvalidScanServer::Url);
        }
        let database = url.path().strip_prefix('/').filter(|name| !name.is_empty());
        let database = database.ok_or(InvalidScanServer::Url)?;
        let mut cluster = None;
        for (name, value) in url.query_pairs() {
            if name != "cluster" || cluster.is_some() {
                return Err(InvalidScanServer::Parameter);
            }
            cluster = Some(value.into_owned());
        }
        if !is_name(database) || cluster.as_deref().is_some_and(|name| !is_name(name)) {
            return Err(InvalidScanServer::Name);
        }
        let user = if url.username().is_empty() { "default" } else { url.username() };
        Ok(Self {
            origin: format!("{}://{host}:{port}/", if is_tls { "https" } else { "http" }),
            is_tls,
            user: secret(&decode(user)?)?,
            password: secret(&decode(url.password().unwrap_or_default())?)?,
            database: database.to_owned(),
            cluster,
            ca: None,
        })
    }
}

impl ScanServer {
    /// With the password that a file holds; a line feed at its end is no part of it.
    ///
    /// # Errors
    /// The URL has one, too, or the text cannot be one.
    pub fn with_password(mut self, text: &str) -> Result<Self, InvalidScanServer> {
        if !self.password.is_empty() {
            return Err(InvalidScanServer::TwoPasswords);
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        self.password = secret(text.strip_suffix('\r').unwrap_or(text))?;
        if self.password.is_empty() { Err(InvalidScanServer::Password) } else { Ok(self) }
    }

    /// With the authority that signed its certificate, as PEM.
    ///
    /// # Errors
    /// It is none, or there is no TLS.
    pub fn with_ca(mut self, pem: Vec<u8>) -> Result<Self, InvalidScanServer> {
        if !self.is_tls {
            return Err(InvalidScanServer::CaWithoutTls);
        }
        roots(&pem).map_err(|_| InvalidScanServer::Ca)?;
        self.ca = Some(pem);
        Ok(self)
    }
}

// Never the password.
impl fmt::Debug for ScanServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, database, cluster, .. } = self;
        f.debug_struct("ScanServer")
            .field("origin", origin)
            .field("database", database)
            .field("cluster", cluster)
            .finish_non_exhaustive()
    }
}

/// The authorities of a PEM file.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(roots) }
}

fn is_name(text: &str) -> bool {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && text.len() <= 128 && text.starts_with(|first: char| !first.is_ascii_digit())
}

fn decode(text: &str) -> Result<String, InvalidScanServer> {
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| InvalidScanServer::Url)
}

/// A text as a header that no log shows.
fn secret(text: &str) -> Result<HeaderValue, InvalidScanServer> {
    let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| InvalidScanServer::Password)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (text, origin, cluster) in [
            ("clickhouse://localhost/waymark", "http://localhost:8123/", None),
            ("clickhouse://u:p@ch.example:9000/waymark", "http://ch.example:9000/", None),
            ("clickhouses://u@ch.example/waymark", "https://ch.example:8443/", None),
            ("clickhouses://u@[::1]:1/w_1?cluster=main", "https://[::1]:1/", Some("main")),
        ] {
            let server: ScanServer = text.parse().unwrap();
            assert_eq!((server.origin.as_str(), server.cluster.as_deref()), (origin, cluster), "{text}");
        }
        let server: ScanServer = "clickhouse://us%40er:p%3A%C3%A4%2F@h/d".parse().unwrap();
        assert_eq!((server.user.as_bytes(), server.password.as_bytes()), (&b"us@er"[..], "p:ä/".as_bytes()));
        assert!(!format!("{server:?}").contains("p:ä"), "{server:?}");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        use InvalidScanServer::{Name, Parameter, Password, Url};
        for (text, error) in [
            ("", Url),
            ("http://h/d", Url),
            ("clickhouse:///d", Url),
            ("clickhouse://h", Url),
            ("clickhouse://h/", Url),
            ("clickhouse://h:0/d", Url),
            ("clickhouse://h:99999/d", Url),
            ("clickhouse://a b/d", Url),
            ("clickhouse://h/d#x", Url),
            ("clickhouse://h/d/e", Name),
            ("clickhouse://h/d-e", Name),
            ("clickhouse://h/1d", Name),
            ("clickhouse://h/d?cluster=a%27b", Name),
            ("clickhouse://h/d?cluster=", Name),
            ("clickhouse://h/d?secure=1", Parameter),
            ("clickhouse://h/d?cluster=a&cluster=b", Parameter),
            ("clickhouse://u:a%0Ab@h/d", Password),
        ] {
            assert_eq!(text.parse::<ScanServer>().unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn a_password_comes_from_one_place() {
        let plain: ScanServer = "clickhouse://u@h/d".parse().unwrap();
        assert_eq!(plain.clone().with_password("secret\r\n").unwrap().password, "secret");
        assert_eq!(plain.clone().with_password("\n").unwrap_err(), InvalidScanServer::Password);
        assert_eq!(plain.clone().with_password("a\nb").unwrap_err(), InvalidScanServer::Password);
        assert_eq!(plain.with_ca(Vec::new()).unwrap_err(), InvalidScanServer::CaWithoutTls);
        let both: ScanServer = "clickhouses://u:p@h/d".parse().unwrap();
        assert_eq!(both.clone().with_password("x").unwrap_err(), InvalidScanServer::TwoPasswords);
        assert_eq!(both.with_ca(b"x".to_vec()).unwrap_err(), InvalidScanServer::Ca);
    }
}
