//! Counters of certificates.

use std::sync::{Mutex, PoisonError};

use prometheus_client::{metrics::counter::Counter, registry::Registry};
use shared::time::UnixMillis;

/// Certificates of short domains.
#[derive(Debug, Default)]
pub struct CertificateMetrics {
    /// Certificates that the authority gave.
    pub issued: Counter,
    /// Tries to get one that failed.
    pub failed: Counter,
    ends: Mutex<Vec<(String, UnixMillis)>>,
}

impl CertificateMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("domain_certificates_issued", "Certificates that the authority gave", &self.issued),
            ("domain_certificate_failures", "Tries to get a certificate that failed", &self.failed),
        ] {
            registry.register(name, help, counter.clone());
        }
    }

    /// Notes when certificates end, by host.
    pub(crate) fn ends_are(&self, ends: Vec<(String, UnixMillis)>) {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = ends;
    }

    /// When certificates that are renewed end, by host: the first thousand, as last read.
    #[must_use]
    pub fn ends(&self) -> Vec<(String, UnixMillis)> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
