//! Private keys of certificates on their way to edges: encrypted in the database and in the change log, and decrypted here.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrets::keys::{KEY_LEN, NONCE_LEN, open_with, seal_with};
use shared::wire::{
    certificates::DomainCertificate,
    stream::{Change, Event, Events},
};

use super::hub::Hub;

/// Encrypts and decrypts the private keys of certificates.
#[derive(Clone)]
pub struct CertificateKey([u8; KEY_LEN]);

impl CertificateKey {
    /// By the secret that all replicas share.
    #[must_use]
    pub const fn new(secret: [u8; KEY_LEN]) -> Self {
        Self(secret)
    }

    /// A text of a host, encrypted, as it is stored; `None`: it is too long for the cipher. `nonce` is random.
    #[must_use]
    pub fn seal(&self, host: &str, text: &str, nonce: [u8; NONCE_LEN]) -> Option<String> {
        let sealed = seal_with(&self.0, &name(host), text.as_bytes(), nonce)?;
        Some(STANDARD.encode(sealed))
    }

    /// What [`Self::seal`] encrypted for this host; `None`: it was changed, or is of another host.
    #[must_use]
    pub fn open(&self, host: &str, sealed: &str) -> Option<String> {
        let bytes = open_with(&self.0, &name(host), &STANDARD.decode(sealed).ok()?)?;
        String::from_utf8(bytes).ok()
    }

    /// A certificate with its key; one that does not decrypt is left out, which the log says.
    fn reveal(&self, certificate: &DomainCertificate) -> Option<Arc<DomainCertificate>> {
        let Some(key) = self.open(&certificate.host, &certificate.key) else {
            tracing::error!(host = %certificate.host, "the key of a certificate was changed and does not decrypt");
            return None;
        };
        Some(Arc::new(DomainCertificate { key: key.into(), ..certificate.clone() }))
    }

    /// An event as edges get it.
    fn reveal_event(&self, event: Event) -> Event {
        match event.change {
            Change::Certificate(host, Some(certificate)) => {
                let change = Change::Certificate(host, self.reveal(&certificate));
                Event { rev: event.rev, change }
            }
            change => Event { rev: event.rev, change },
        }
    }
}

impl Hub {
    /// Decrypts the keys of certificates for edges from here on; without it they are told of none. Once, before anybody
    /// connects.
    pub fn reveal_certificates(&self, key: CertificateKey) {
        if self.0.certificate_key.set(key).is_err() {
            tracing::error!("the key of certificates is set twice");
        }
    }

    /// Events as edges get them.
    pub(super) fn reveal(&self, events: Vec<Event>) -> Vec<Event> {
        match self.0.certificate_key.get() {
            None => events,
            Some(key) => events.into_iter().map(|event| key.reveal_event(event)).collect(),
        }
    }

    /// Certificates as edges get them.
    pub(super) fn reveal_all(&self, stored: &[DomainCertificate]) -> Vec<Arc<DomainCertificate>> {
        self.0.certificate_key.get().map_or_else(Vec::new, |key| {
            stored.iter().filter_map(|certificate| key.reveal(certificate)).collect()
        })
    }
}

/// Events without certificates, for an edge that takes none, in revisions without a gap; `None`: they hold none.
pub(super) fn without(events: &Events) -> Option<Events> {
    let has_one = |event: &Event| matches!(event.change, Change::Certificate(_, Some(_)));
    if !events.items.iter().any(has_one) {
        return None;
    }
    let mut left = events.clone();
    for event in &mut left.items {
        if let Change::Certificate(_, certificate) = &mut event.change {
            *certificate = None;
        }
    }
    Some(left)
}

fn name(host: &str) -> String {
    format!("certificate of {host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_one_host() {
        let key = CertificateKey::new([7; KEY_LEN]);
        let sealed = key.seal("go.example", "PEM", [1; NONCE_LEN]).unwrap();
        assert!(!sealed.contains("PEM"));
        assert_eq!(key.open("go.example", &sealed).as_deref(), Some("PEM"));
        assert_eq!(key.open("to.example", &sealed), None, "of another host");
        assert_eq!(CertificateKey::new([8; KEY_LEN]).open("go.example", &sealed), None, "another secret");
        assert_eq!(key.open("go.example", "no base64"), None);

        let stored = |sealed: &str| {
            let certificate = DomainCertificate {
                host: "go.example".into(),
                chain: "CHAIN".into(),
                key: sealed.into(),
                not_after: 9,
            };
            let change = Change::Certificate("go.example".into(), Some(Arc::new(certificate)));
            key.reveal_event(Event { rev: 1, change }).change
        };
        assert!(matches!(stored(&sealed), Change::Certificate(_, Some(one)) if &*one.key == "PEM"));
        let event = Event { rev: 7, change: stored(&sealed) };
        let mut events = Events { prev: 6, items: vec![event], last: 7 };
        let left = without(&events).unwrap();
        events.items[0].change = Change::Certificate("go.example".into(), None);
        assert_eq!(left, events, "an edge that takes none");
        assert_eq!(without(&left), None);
        assert!(matches!(stored("AAAA"), Change::Certificate(_, None)), "edges are told of none");
    }
}
