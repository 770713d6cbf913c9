//! Counters of mail.

use prometheus_client::{metrics::counter::Counter, registry::Registry};

/// Mail.
#[derive(Debug, Default)]
pub struct MailMetrics {
    /// Mails that the server took.
    pub sent: Counter,
    /// Tries that failed.
    pub failed: Counter,
    /// Mails whose recipient the server refused.
    pub refused: Counter,
    /// Mails that could not be sent in time.
    pub given_up: Counter,
}

impl MailMetrics {
    /// Adds them to what is shown.
    pub fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("mails_sent", "Mails that the server took", &self.sent),
            ("mail_failures", "Tries to send a mail that failed", &self.failed),
            ("mails_refused", "Mails whose recipient the server refused", &self.refused),
            ("mails_given_up", "Mails that could not be sent in time", &self.given_up),
        ] {
            registry.register(name, help, counter.clone());
        }
    }
}
