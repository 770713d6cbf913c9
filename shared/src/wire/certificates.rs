//! Certificates of short domains, and what a certificate authority asks edges.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The certificate of a short domain, with its private key. Sent to edges alone, never shown or logged.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainCertificate {
    /// The host.
    pub host: Arc<str>,
    /// The chain in PEM, that of the host first.
    pub chain: Arc<str>,
    /// The key in PEM (PKCS#8).
    pub key: Arc<str>,
    /// When the certificate ends, in milliseconds since 1970.
    pub not_after: i64,
}

// The key is not shown.
impl fmt::Debug for DomainCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DomainCertificate")
            .field("host", &self.host)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// What an edge answers a certificate authority that checks a host (RFC 8555 section 8.3, RFC 8737).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Challenge {
    /// The host.
    pub host: Arc<str>,
    /// The last segment of the path that the authority asks for.
    pub token: Arc<str>,
    /// The text of the answer.
    pub key_authorization: Arc<str>,
}
