//! Whether a chain that an authority gave can be used.

use jiff::Timestamp;
use platform::certificate;
use rustls::{client::verify_server_name, crypto::ring, server::ParsedCertificate, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use shared::{short_url::Host, time::UnixMillis};

use super::certificate::Issued;

/// Most bytes of a chain: every edge holds those of all domains. Usual ones have 4 KiB.
const MAX_CHAIN: usize = 32 << 10;

/// Why a chain cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is no chain.
    #[error("what the authority gave is no certificate")]
    NoCertificate,
    /// It is too long.
    #[error("what the authority gave has more than {} bytes", MAX_CHAIN)]
    TooLong,
    /// The certificate has another key.
    #[error("the certificate has another key than the order")]
    OtherKey,
    /// The certificate is of other names.
    #[error("the certificate is not for {0}")]
    OtherNames(Host),
    /// It is not valid yet.
    #[error("the certificate is valid from {from} on, and it is {now} here: a clock is wrong, or the certificate", from = shown(.0), now = shown(.1))]
    NotYet(UnixMillis, UnixMillis),
    /// It has ended.
    #[error("the certificate ended at {end}, and it is {now} here: a clock is wrong, or the certificate", end = shown(.0), now = shown(.1))]
    Ended(UnixMillis, UnixMillis),
}

/// Checks a chain in PEM, that of the host first, against the key of the order, the name and the time.
///
/// # Errors
/// It cannot be used.
pub fn check(chain: &str, key: &str, host: &Host, now: UnixMillis) -> Result<Issued, Unfit> {
    if chain.len() > MAX_CHAIN {
        return Err(Unfit::TooLong);
    }
    let all = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|_| Unfit::NoCertificate)?;
    let leaf = all.first().cloned().ok_or(Unfit::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| Unfit::OtherKey)?;
    CertifiedKey::from_der(all, key, &ring::default_provider()).map_err(|_| Unfit::OtherKey)?;
    let other_names = || Unfit::OtherNames(host.clone());
    let name = ServerName::try_from(host.as_str()).map_err(|_| other_names())?;
    let parsed = ParsedCertificate::try_from(&leaf).map_err(|_| Unfit::NoCertificate)?;
    verify_server_name(&parsed, &name).map_err(|_| other_names())?;
    let (begin, end) = certificate::validity(&leaf).ok_or(Unfit::NoCertificate)?;
    let at = |seconds: i64| UnixMillis(seconds.saturating_mul(1_000));
    let (not_before, not_after) = (at(begin), at(end));
    if now < not_before {
        return Err(Unfit::NotYet(not_before, now));
    }
    if now >= not_after {
        return Err(Unfit::Ended(not_after, now));
    }
    let issuer = certificate::issuer(&leaf).unwrap_or_else(|| "unknown".to_owned());
    Ok(Issued { issuer, not_before, not_after })
}

fn shown(at: &UnixMillis) -> String {
    Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |time| format!("{time:.0}"))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    /// 2026-01-01 and 2026-04-01.
    const BEGIN: UnixMillis = UnixMillis(1_767_225_600_000);
    const END: UnixMillis = UnixMillis(1_775_001_600_000);

    fn made(names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "Test authority");
        (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2026, 4, 1));
        let key = KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn a_chain_fits_its_order_or_is_refused() {
        let host: Host = "go.example".parse().unwrap();
        let (chain, key) = made(&["go.example"]);
        let issued = check(&chain, &key, &host, BEGIN).unwrap();
        assert_eq!((issued.not_before, issued.not_after), (BEGIN, END));
        assert!(issued.issuer.contains("Test authority"), "{}", issued.issuer);
        let (before, after) = (UnixMillis(BEGIN.0 - 1), END);
        let refused = |chain: &str, key: &str, now| check(chain, key, &host, now).unwrap_err();
        assert_eq!(refused(&chain, &key, before), Unfit::NotYet(BEGIN, before));
        assert_eq!(refused(&chain, &key, after), Unfit::Ended(END, after));
        assert!(refused(&chain, &key, after).to_string().contains("2026-04-01T00:00:00Z"));
        let (other, other_key) = made(&["to.example"]);
        assert_eq!(refused(&other, &other_key, BEGIN), Unfit::OtherNames(host.clone()));
        assert_eq!(refused(&chain, &other_key, BEGIN), Unfit::OtherKey);
        assert_eq!(refused("", &key, BEGIN), Unfit::NoCertificate);
        assert_eq!(refused(&"a".repeat(MAX_CHAIN + 1), &key, BEGIN), Unfit::TooLong);
    }
}
