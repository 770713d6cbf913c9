//! What certificate authorities are about to ask, and the answers: HTTP-01 (RFC 8555, 8.3) and TLS-ALPN-01 (RFC 8737).

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockWriteGuard},
    time::{Duration, Instant},
};

use prometheus_client::{metrics::counter::Counter, registry::Registry};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use ring::digest::{SHA256, digest};
use rustls::{crypto::ring::sign::any_ecdsa_type, server::ClientHello, sign::CertifiedKey};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use shared::wire::certificates::Challenge;

use crate::received::{check_name, name_of};

/// The protocol by which an authority checks a host (TLS-ALPN-01). Nothing is sent over such a connection.
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// How long a challenge is answered after it came: authorities are done within minutes, also after their own retries. No wall
/// clock decides it, as that of the edge or of control may be wrong.
pub(crate) const ANSWERED: Duration = Duration::from_secs(60 * 60);

/// Most hosts whose challenges are held: control has a few orders at a time.
pub(crate) const MAX_HOSTS: usize = 1_024;
/// Most challenges of a host: those of an order that was begun again.
const MAX_OF_HOST: usize = 4;
/// Most bytes of a token and of its answer: authorities send 43, and 44 of the account follow.
const MAX_BYTES: usize = 512;

/// Challenges by host, in the order in which they came.
type Table = HashMap<Box<str>, Vec<Known>>;

/// Challenges that are known.
#[derive(Default)]
pub(crate) struct Challenges {
    by_host: RwLock<Table>,
    over_http: Counter,
    over_tls: Counter,
}

struct Known {
    challenge: Arc<Challenge>,
    /// What is shown over TLS. Made before anybody asks, so that asking costs nothing.
    pair: Arc<CertifiedKey>,
    ends: Instant,
}

impl Challenges {
    /// Registers the counters; they stay shared with the registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("acme_http_answers", "Challenges of authorities answered over HTTP", &self.over_http),
            ("acme_tls_answers", "Challenges of authorities answered over TLS", &self.over_tls),
        ] {
            registry.register(name, help, counter.clone());
        }
    }

    /// Takes a challenge, which is answered from now on for [`ANSWERED`]. Where there are too many, the oldest make room.
    pub(crate) fn add(&self, challenge: &Arc<Challenge>, now: Instant) -> Result<(), String> {
        let host = name_of(&challenge.host);
        let wrong = |reason: String| format!("the challenge of {host}: {reason}");
        check_name(&host).map_err(wrong)?;
        check(challenge).map_err(wrong)?;
        let known = self.look(&host, now, |known| known.challenge == *challenge);
        let pair = match known {
            Some((_, pair)) => pair,
            None => Arc::new(certificate(&host, &challenge.key_authorization).map_err(wrong)?),
        };
        let mut by_host = self.write();
        by_host.retain(|_, all| {
            all.retain(|known| known.ends > now);
            !all.is_empty()
        });
        if by_host.len() >= MAX_HOSTS && !by_host.contains_key(&host) {
            let newest = |all: &[Known]| all.last().map(|known| known.ends);
            let oldest = by_host.iter().min_by_key(|(_, all)| newest(all)).map(|(host, _)| host.clone());
            if let Some(oldest) = oldest {
                by_host.remove(&oldest);
            }
        }
        let all = by_host.entry(host).or_default();
        all.retain(|known| known.challenge.token != challenge.token);
        if all.len() >= MAX_OF_HOST {
            all.remove(0);
        }
        all.push(Known { challenge: challenge.clone(), pair, ends: now + ANSWERED });
        Ok(())
    }

    /// The challenge that is asked for over HTTP.
    pub(crate) fn asked(&self, host: &str, token: &str, now: Instant) -> Option<Arc<Challenge>> {
        let (challenge, _) = self.look(host, now, |known| *known.challenge.token == *token)?;
        self.over_http.inc();
        Some(challenge)
    }

    /// The certificate that is asked for over TLS: that of the newest challenge of a host.
    pub(crate) fn certificate(&self, host: &str, now: Instant) -> Option<Arc<CertifiedKey>> {
        let (_, pair) = self.look(host, now, |_| true)?;
        self.over_tls.inc();
        Some(pair)
    }

    /// The newest challenge of a host that is meant and has not ended.
    fn look(
        &self,
        host: &str,
        now: Instant,
        is_meant: impl Fn(&Known) -> bool,
    ) -> Option<(Arc<Challenge>, Arc<CertifiedKey>)> {
        let by_host = self.by_host.read().unwrap_or_else(PoisonError::into_inner);
        let mut newest_first = by_host.get(host)?.iter().rev();
        let known = newest_first.find(|known| known.ends > now && is_meant(known))?;
        Some((known.challenge.clone(), known.pair.clone()))
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.by_host.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a client is an authority that checks a host: it offers this protocol alone.
pub(crate) fn is_validation(hello: &ClientHello<'_>) -> bool {
    hello.alpn().is_some_and(|mut offered| offered.next() == Some(ACME_TLS) && offered.next().is_none())
}

fn check(challenge: &Challenge) -> Result<(), String> {
    let is_fine = |text: &str, others: &[u8]| {
        let is_text = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
        (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(is_text)
    };
    if !is_fine(&challenge.token, b"-_") || !is_fine(&challenge.key_authorization, b"-_.") {
        return Err("its token or answer has other characters than base64url has".to_owned());
    }
    Ok(())
}

/// The certificate that answers a challenge: of the host alone, with the digest of the answer.
fn certificate(host: &str, key_authorization: &str) -> Result<CertifiedKey, String> {
    let wrong = |error: rcgen::Error| error.to_string();
    let key = KeyPair::generate().map_err(wrong)?;
    let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(wrong)?;
    let answer = digest(&SHA256, key_authorization.as_bytes());
    params.custom_extensions.push(CustomExtension::new_acme_identifier(answer.as_ref()));
    let shown = params.self_signed(&key).map_err(wrong)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let key = any_ecdsa_type(&key).map_err(|error| error.to_string())?;
    // Not compared with the key: the parser does not know the extension, which is critical.
    Ok(CertifiedKey::new(vec![shown.der().clone()], key))
}
