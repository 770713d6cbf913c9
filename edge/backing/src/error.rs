//! Why an edge could not start or had to stop.

use std::path::PathBuf;

/// Every way in which running an edge fails.
///
/// A request never ends in one of these: what goes wrong with a request is an answer.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// A value of the configuration cannot be used; nothing was started.
    #[error("{key}: {reason}")]
    Config {
        /// Name of the setting.
        key: &'static str,
        /// The allowed values.
        reason: String,
    },
    /// A folder or file of the edge's data cannot be used.
    #[error("{path}: {source}")]
    Storage {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("certificate {name}: {reason}")]
    Certificate {
        /// The host or file.
        name: String,
        /// The fault.
        reason: String,
    },
    /// A listener cannot be taken over.
    #[error("listener: {0}")]
    Listener(#[source] std::io::Error),
    /// TLS listeners were given, yet no certificates.
    #[error("a TLS listener needs certificates")]
    NoCertificates,
}
