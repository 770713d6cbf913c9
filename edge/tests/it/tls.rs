//! Certificates by name, chosen protocols, and exchange while the edge runs.

use std::{fs, os::unix::fs::PermissionsExt as _};

use edge::TlsCerts;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::CertificateDer;

use crate::support::{Control, Running, eventually, over_tls};

/// An authority of the tests.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) root: CertificateDer<'static>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), root }
    }

    pub(crate) fn issue(&self, host: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

#[tokio::test]
async fn sni_selects_the_certificate_and_alpn_the_protocol() {
    let authority = Authority::new();
    let (gg, gg_key) = authority.issue("tn.gg");
    let (dev, dev_key) = authority.issue("dev.test");
    let pems: Vec<_> = [("tn.gg", &gg, &gg_key), ("dev.test", &dev, &dev_key)]
        .map(|(host, cert, key)| (host, cert.pem(), key.serialize_pem()))
        .into();
    let certs = TlsCerts::from_pem(pems.iter().map(|(h, c, k)| (*h, c.as_bytes(), k.as_bytes()))).unwrap();
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    let edge = Running::start(&control, folder.path(), Some(certs), |_| {}).await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    for (sni, alpn, expected, status) in
        [("tn.gg", "http/1.1", &gg, 307), ("tn.gg", "h2", &gg, 307), ("dev.test", "h2", &dev, 421)]
    {
        let (shown, answer) = over_tls(edge.tls, sni, alpn, &authority.root, "/ABC").await.unwrap();
        assert_eq!(&shown, expected.der(), "{sni}");
        assert_eq!(answer.status, status, "{sni} {alpn}");
        assert_eq!(answer.header("strict-transport-security"), "max-age=31536000", "{sni} {alpn}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{sni} {alpn}");
    }
    assert!(over_tls(edge.tls, "other.test", "h2", &authority.root, "/ABC").await.is_err());
    edge.stop().await;
}

#[tokio::test]
async fn a_new_certificate_in_the_folder_is_loaded() {
    let authority = Authority::new();
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let install = |(cert, key): (Certificate, KeyPair)| {
        fs::write(folder.path().join("tn.gg.pem"), cert.pem()).unwrap();
        let key_file = folder.path().join("tn.gg.key");
        fs::write(&key_file, key.serialize_pem()).unwrap();
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
        cert.der().clone()
    };
    let first = install(authority.issue("tn.gg"));
    let certs = TlsCerts::from_folder(folder.path()).unwrap();
    let control = Control::new();
    let edge = Running::start(&control, data.path(), Some(certs.clone()), |_| {}).await;
    let shown = async || over_tls(edge.tls, "tn.gg", "h2", &authority.root, "/").await.unwrap().0;
    assert_eq!(shown().await, first);

    // A pair that does not fit, and rubbish, leave the old one in use.
    fs::write(folder.path().join("tn.gg.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    certs.reload().unwrap();
    assert_eq!(shown().await, first);
    fs::write(folder.path().join("tn.gg.pem"), "rubbish").unwrap();
    certs.reload().unwrap();
    assert_eq!(shown().await, first);
    assert!(TlsCerts::from_folder(folder.path()).is_err());

    let second = install(authority.issue("tn.gg"));
    let end = tokio::time::Instant::now() + crate::support::DEADLINE;
    while shown().await != second {
        assert!(tokio::time::Instant::now() < end, "the new certificate is not shown");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // A key that every user of the machine can read is refused, and leaves the pair before it in use.
    fs::set_permissions(folder.path().join("tn.gg.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let refused = TlsCerts::from_folder(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("chmod 600"), "{refused}");
    certs.reload().unwrap();
    assert_eq!(shown().await, second);
    eventually("still live", || edge.handle.is_ready()).await;
    edge.stop().await;
}
