//! The listeners: plain and TLS, large bodies over a real socket, and the drain.

use std::{net::TcpListener, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use control::http::{ApiListeners, run};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tests::db::Engine;
use tokio_util::sync::CancellationToken;

use super::Api;

pub(super) async fn plain_and_tls_listeners_serve_and_drain(engine: Engine) -> Result<()> {
    // A second installation in one process is refused, and is no harm.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let api = Api::new(engine).await?;
    let (plain, tls) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (plain_port, tls_port) = (plain.local_addr()?.port(), tls.local_addr()?.port());
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let shutdown = CancellationToken::new();
    let listeners = ApiListeners { plain: vec![plain], tls: Some((tls, Arc::new(config))) };
    let server = tokio::spawn(run(listeners, api.made.app.clone(), shutdown.clone()));

    let client = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_der(made.cert.der())?])
        .build()?;
    for (base, scheme) in [
        (format!("http://127.0.0.1:{plain_port}"), "http"),
        (format!("https://localhost:{tls_port}"), "https"),
    ] {
        for name in ["a", "b"] {
            let answer = client
                .post(format!("{base}/v2/thngs"))
                .header("authorization", &api.key)
                .json(&json!({"name": name}))
                .send()
                .await?;
            assert_eq!(answer.status(), 201);
            let location = answer.headers()["location"].to_str()?.to_owned();
            assert!(location.starts_with(&format!("{base}/v2/thngs/")), "{location}");
        }
        let answer =
            client.get(format!("{base}/thngs?perPage=1")).header("authorization", &api.key).send().await?;
        let link = answer.headers()["link"].to_str()?.to_owned();
        assert!(link.starts_with(&format!("<{scheme}%3A%2F%2F")), "{link}");
        // The client gets to read the refusal although it is still sending.
        let answer = client
            .post(format!("{base}/thngs"))
            .header("authorization", &api.key)
            .header("content-type", "application/json")
            .body(vec![b' '; 2 << 20])
            .send()
            .await?;
        assert_eq!(answer.status(), 413);
        let bound = answer.headers().get("strict-transport-security").map(|value| value.to_str());
        assert_eq!(bound.transpose()?, (scheme == "https").then_some("max-age=31536000"), "{scheme}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers()["referrer-policy"], "no-referrer");
        // Whose request it is would be a guess.
        let two = client.get(format!("{base}/thngs")).header("authorization", &api.key);
        let two = two.header("authorization", &api.key).send().await?;
        assert_eq!(two.status(), 400, "{two:?}");
        let body: serde_json::Value = answer.json().await?;
        assert_eq!(body["code"], 41301);
    }
    drop(client);
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(20), server).await.context("no drain")???;
    anyhow::ensure!(TcpListener::bind(("127.0.0.1", plain_port)).is_ok(), "the port is still held");
    Ok(())
}

/// The listener for operators and probes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_listener_protects_browsers() -> Result<()> {
    let fleet = tests::fleet::Fleet::start(1).await?;
    for path in ["/live", "/ready", "/metrics", "/none"] {
        let answer = fleet.http.get(format!("{}{path}", fleet.controls[0].admin)).send().await?;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.headers().get(name).context(name)?, value, "{path}");
        }
    }
    Ok(())
}

/// A private key that every user of the machine can read is refused.
#[test]
fn certificates_whose_keys_others_can_read_are_refused() -> Result<()> {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    let folder = tempfile::tempdir()?;
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = folder.path().join("localhost.key");
    fs::write(folder.path().join("localhost.pem"), made.cert.pem())?;
    fs::write(&key, made.signing_key.serialize_pem())?;
    for (mode, is_refused) in [(0o644, true), (0o602, true), (0o640, false), (0o600, false)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode))?;
        let error = control::tls::Certificates::open(folder.path()).err().map(|error| error.to_string());
        assert_eq!(error.is_some_and(|error| error.contains("chmod 600")), is_refused, "{mode:o}");
    }
    Ok(())
}

crate::on_both_engines!(plain_and_tls_listeners_serve_and_drain);
