//! Certificates from control: served after the acknowledgement and over restarts; answers to authorities that check a host.

use std::{io, net::SocketAddr, sync::Arc};

use edge::{DiskLimits, EdgeConfig, TlsCerts};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::ring,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use shared::{
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
    wire::{
        certificates::{Challenge, DomainCertificate},
        stream::Change,
    },
};
use tokio::{io::AsyncReadExt as _, net::TcpStream};
use tokio_rustls::TlsConnector;

use crate::{
    support::{Control, HOST, Running, edge_with, eventually, over_tls, request},
    tls::Authority,
};

const OTHER: &str = "other.test";
const TARGET: &str = "https://example.com/";
/// The time of the tests' clocks, in milliseconds since 1970.
const NOW: i64 = 1_790_000_000_000;
const DAY_MS: i64 = 24 * 3_600_000;

fn taking(config: &mut EdgeConfig) {
    config.takes_certificates = true;
    config.disk = Some(DiskLimits::default());
}

/// A certificate as control sends it, and as clients see it.
fn issue(authority: &Authority, host: &str) -> (DomainCertificate, CertificateDer<'static>) {
    let (certificate, key) = authority.issue(host);
    let (chain, key) = (certificate.pem().into(), key.serialize_pem().into());
    let sent = DomainCertificate { host: host.into(), chain, key, not_after: NOW };
    (sent, certificate.der().clone())
}

/// The certificate that an edge shows for a host.
async fn shown(edge: &Running, authority: &Authority, host: &str) -> Option<CertificateDer<'static>> {
    let (shown, answer) = over_tls(edge.tls, host, "h2", &authority.root, "/ABC").await.ok()?;
    assert_eq!(answer.status, 307, "{host}");
    Some(shown)
}

async fn metrics(edge: &Running) -> String {
    let answer = request(edge.admin, "GET", "admin", "/metrics", &[]).await;
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Whether the folder of an edge holds a file for a host.
fn is_kept(folder: &tempfile::TempDir, host: &str) -> bool {
    folder.path().join("certificates").join(format!("{host}.json")).exists()
}

#[tokio::test]
async fn certificates_follow_control_and_outlive_it() {
    let (authority, control, folder) = (Authority::new(), Control::new(), tempfile::tempdir().unwrap());
    let edge = Running::start(&control, folder.path(), None, taking).await;
    let domain = ShortDomain::new(Scheme::Https, OTHER).unwrap();
    control.commit([Change::Domain(domain)]);
    for host in [HOST, OTHER] {
        let mut record = crate::support::redirect("ABC", TARGET);
        record.domain = host.parse().unwrap();
        let key = shared::redirect::RedirectKey::new(host, "ABC");
        control.acked(control.commit([Change::Redirect(key, Some(Arc::new(record)))])).await;
    }
    assert_eq!(shown(&edge, &authority, HOST).await, None, "nothing came so far");

    // Each is shown once it is acknowledged; the newer one in place of the older.
    let (first, first_der) = issue(&authority, HOST);
    let (other, other_der) = issue(&authority, OTHER);
    control.acked(control.certify(HOST, Some(first))).await;
    control.acked(control.certify(OTHER, Some(other.clone()))).await;
    assert_eq!(shown(&edge, &authority, HOST).await, Some(first_der));
    assert_eq!(shown(&edge, &authority, OTHER).await, Some(other_der.clone()));
    let (second, second_der) = issue(&authority, HOST);
    control.acked(control.certify(HOST, Some(second.clone()))).await;
    assert_eq!(shown(&edge, &authority, HOST).await, Some(second_der.clone()));

    // One with the key of another is refused alone, and nobody reads of its key.
    let broken = DomainCertificate { key: other.key.clone(), ..issue(&authority, HOST).0 };
    let refused = control.certify(HOST, Some(broken));
    control.acked(control.put("DEF", TARGET)).await;
    assert_eq!(control.rejected(), [refused]);
    assert_eq!(shown(&edge, &authority, HOST).await, Some(second_der.clone()));
    let text = metrics(&edge).await;
    for line in [
        "waymark_edge_certificates_refused_total 1",
        "waymark_edge_events_rejected_total 1",
        "waymark_edge_certificate_expiry_timestamp_seconds{name=\"tn.gg\",source=\"control\"}",
        "waymark_edge_certificate_expiry_timestamp_seconds{name=\"other.test\",source=\"control\"}",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let secret = second.key.lines().nth(1).unwrap();
    assert!(!text.contains(secret));

    // A start without control.
    edge.stop().await;
    control.faults(|faults| faults.is_down = true);
    let edge = Running::start_cold(&control, folder.path(), None, taking);
    assert_eq!(edge.handle.status().state, "STALE");
    assert_eq!(shown(&edge, &authority, HOST).await, Some(second_der.clone()));
    assert_eq!(shown(&edge, &authority, OTHER).await, Some(other_der.clone()));

    // A control of the release before sends none: they stay. What is taken away goes from the disk, too.
    control.faults(|faults| (faults.is_down, faults.is_older) = (false, true));
    control.acked(control.put("GHI", TARGET)).await;
    assert_eq!(shown(&edge, &authority, OTHER).await, Some(other_der));
    control.acked(control.certify(OTHER, None)).await;
    assert_eq!(shown(&edge, &authority, OTHER).await, None);
    eventually("its file is gone", || !is_kept(&folder, OTHER)).await;
    assert!(is_kept(&folder, HOST));
    let gone = ShortDomain { removed: true, ..ShortDomain::new(Scheme::Https, HOST).unwrap() };
    control.acked(control.commit([Change::Domain(gone)])).await;
    assert_eq!(shown(&edge, &authority, HOST).await, None, "with its domain");
    eventually("its file is gone", || !is_kept(&folder, HOST)).await;
    edge.stop().await;
}

#[tokio::test]
async fn a_certificate_of_the_folder_wins_for_its_name() {
    let (authority, control, folder) = (Authority::new(), Control::new(), tempfile::tempdir().unwrap());
    let (by_hand, key) = authority.issue(HOST);
    let pems = (by_hand.pem(), key.serialize_pem());
    let certs = TlsCerts::from_pem([(HOST, pems.0.as_bytes(), pems.1.as_bytes())]).unwrap();
    control.put("ABC", TARGET);
    control.certify(HOST, Some(issue(&authority, HOST).0));
    // Both come with the welcome.
    control.certify(OTHER, Some(issue(&authority, OTHER).0));
    let edge =
        Running::start(&control, folder.path(), Some(certs), |config| config.takes_certificates = true).await;
    assert_eq!(shown(&edge, &authority, HOST).await.as_ref(), Some(by_hand.der()));
    let (_, answer) = over_tls(edge.tls, OTHER, "http/1.1", &authority.root, "/ABC").await.unwrap();
    assert_eq!(answer.status, 421, "a certificate makes no short domain");
    assert!(!is_kept(&folder, OTHER), "this edge writes nothing of what it holds");
    edge.stop().await;
}

/// Takes any certificate.
#[derive(Debug)]
struct Anything;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// What an authority sees that checks a host over TLS: the certificate, once the edge has closed the connection.
async fn check(at: SocketAddr, host: &str, offered: &[&[u8]]) -> io::Result<Vec<u8>> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything))
        .with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut stream =
        TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(at).await?).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"acme-tls/1"[..]));
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    // Without a close alert, as nothing was sent.
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(crate::support::DEADLINE, stream.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"", "nothing is sent over such a connection");
    Ok(shown)
}

#[tokio::test]
async fn an_authority_is_answered_at_any_time_of_the_clock_and_is_no_scan() {
    let (control, edge, _folder) = edge_with(|config| {
        config.takes_certificates = true;
        config.behind_tls_proxy = true;
    })
    .await;
    let challenge = |host: &str, token: &str| Challenge {
        host: host.into(),
        token: token.into(),
        key_authorization: format!("{token}.PRINT").into(),
    };
    control.challenge(challenge(OTHER, "TOKEN-2"));
    control.acked(control.challenge(challenge(HOST, "TOKEN-1"))).await;
    let path = |token: &str| format!("/.well-known/acme-challenge/{token}");
    for (method, host, token, status) in [
        ("GET", HOST, "TOKEN-1", 200),
        ("HEAD", HOST, "TOKEN-1", 200),
        ("GET", "TN.gg:5002", "TOKEN-1", 200),
        ("GET", OTHER, "TOKEN-2", 200),
        ("GET", HOST, "TOKEN-2", 404),
        ("GET", HOST, "TOKEN-1/", 404),
        ("GET", HOST, "", 404),
        ("GET", OTHER, "TOKEN-1", 421),
        ("POST", HOST, "TOKEN-1", 405),
    ] {
        let answer = request(edge.plain, method, host, &path(token), &[]).await;
        assert_eq!(answer.status, status, "{method} {host} {token}");
        if status == 200 {
            assert_eq!(
                (answer.header("content-type"), answer.header("cache-control")),
                ("text/plain", "no-store")
            );
            let body = if method == "GET" { format!("{token}.PRINT") } else { String::new() };
            assert_eq!(answer.body, body.as_bytes(), "{method} {host}");
        }
    }

    let shown = check(edge.tls, HOST, &[b"acme-tls/1"]).await.unwrap();
    // The extension of RFC 8737: its name, critical, and the SHA-256 of "TOKEN-1.PRINT".
    let extension = [
        &[
            0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x1F, 0x01, 0x01, 0xFF, 0x04, 0x22, 0x04,
            0x20,
        ][..],
        &[0x3A, 0xEA, 0x6F, 0xB9, 0xB7, 0xE1, 0x71, 0xFF, 0x54, 0x66, 0xDB, 0xAA, 0x26, 0x44, 0xF7, 0x15],
        &[0xEB, 0x55, 0x70, 0xC4, 0x49, 0x6F, 0xCC, 0x13, 0x38, 0x77, 0x85, 0x33, 0x5D, 0xA9, 0xB5, 0x4F],
    ]
    .concat();
    assert!(shown.windows(extension.len()).any(|part| part == extension), "{shown:02X?}");
    assert!(check(edge.tls, "third.test", &[b"acme-tls/1"]).await.is_err(), "no challenge");
    assert!(check(edge.tls, HOST, &[b"acme-tls/1", b"http/1.1"]).await.is_err(), "no authority");

    let text = metrics(&edge).await;
    for line in ["waymark_edge_acme_http_answers_total 4", "waymark_edge_acme_tls_answers_total 1"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    // A clock that is wrong changes nothing, be it before or after the challenge came.
    for wrong_by in [-100 * DAY_MS, 100 * DAY_MS] {
        edge.clock.0.set(UnixMillis(NOW + wrong_by));
        control.acked(control.challenge(challenge(HOST, "TOKEN-3"))).await;
        for token in ["TOKEN-1", "TOKEN-3"] {
            assert_eq!(edge.get(&path(token), &[]).await.status, 200, "{token}, {wrong_by} ms");
        }
        assert!(check(edge.tls, HOST, &[b"acme-tls/1"]).await.is_ok(), "{wrong_by} ms");
    }
    edge.stop().await;
    assert_eq!(control.count_scans(), 0);
}
