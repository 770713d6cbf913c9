//! Logs and spans of a real process: they contain the request id, and no secret even at the most verbose level.

use std::{
    fs::{self, File},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::{Router, body::Bytes, extract::State, http::Uri};
use serde_json::{Value, json};
use tests::product::{DEADLINE, binary, client, free_ports, random_key, spawn_up, value_of};

/// What a collector got: path and body of each request.
type Got = Arc<Mutex<Vec<(String, Bytes)>>>;

/// An OTLP collector that keeps what it gets.
async fn collector() -> Result<(String, Got)> {
    let got = Got::default();
    let keep = |State(got): State<Got>, uri: Uri, body: Bytes| async move {
        got.lock().unwrap().push((uri.path().to_owned(), body));
    };
    let routes = Router::new().fallback(keep).with_state(got.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(axum::serve(listener, routes).into_future());
    Ok((url, got))
}

fn holds(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part == word.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_and_spans_hold_the_request_id_and_no_secret() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (otlp, got) = collector().await?;
    let dir = tempfile::tempdir()?;
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    let (key, wrong) = (random_key()?, random_key()?);
    let mut command = Command::new(binary()?);
    command
        .arg("up")
        .envs(free_ports(["API", "EDGE", "ADMIN"]))
        .env("WAYMARK_DATA_DIR", &data)
        .env("WAYMARK_OPERATOR_KEY", &key)
        .env("WAYMARK_OTLP_URL", &otlp)
        .env("WAYMARK_LOG_FORMAT", "json")
        .env("RUST_LOG", "trace")
        .stdin(Stdio::null())
        .stderr(File::create(&log)?);
    let (mut child, said) = spawn_up(&mut command, DEADLINE)?;
    let (api, edge) = (value_of(&said, "API ")?, value_of(&said, "Edge ")?);
    let http = client()?;
    let id = "ops-trace-0001";
    let made = http.post(format!("{api}/products")).header("authorization", &key);
    let made: Value = made.json(&json!({"name": "Bag"})).send().await?.json().await?;
    let product = made["id"].as_str().context("no id")?.to_owned();
    for (url, header) in [
        (format!("{api}/v2/products/{product}"), Some(key.clone())),
        (format!("{api}/products/{product}?access_token={key}"), None),
        (format!("{api}/products/{product}"), Some(format!("Bearer {wrong}"))),
        (format!("{api}/no/such/path?access_token={wrong}"), None),
        (format!("{edge}/redirections?access_token={key}"), None),
        (format!("{edge}/NOBODY?access_token={key}"), None),
    ] {
        let request = http.get(url).header("x-request-id", id);
        let request =
            header.into_iter().fold(request, |request, header| request.header("authorization", header));
        request.send().await?;
    }
    let login = json!({"email": "a@example.com", "password": "swordfish-of-the-test"});
    let login = http.post(format!("{api}/users/login?access_token={key}")).json(&login);
    login.send().await?;
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        ensure!(begun.elapsed() < DEADLINE, "it did not stop");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (log, got) = (fs::read(&log)?, got.lock().unwrap());
    ensure!(
        got.iter().all(|(path, _)| path == "/v1/traces"),
        "{:?}",
        got.iter().map(|(path, _)| path).collect::<Vec<_>>()
    );
    let spans: Vec<u8> = got.iter().flat_map(|(_, body)| body.to_vec()).collect();
    // The last one is the target of the operations in a crate of their own.
    for word in [
        "GET /products/{id}",
        "POST /products",
        id,
        "http.route",
        "service.name",
        "catalog::service::products",
    ] {
        let got = || String::from_utf8_lossy(&spans).into_owned();
        ensure!(holds(&spans, word), "the collector did not get {word:?}, but {:?}", got());
    }
    ensure!(holds(&log, id), "the log names requests");
    for line in log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).context("a line that is no JSON")?;
        ensure!(line["level"].is_string(), "{line}");
    }
    for secret in [&*key, &*wrong, "swordfish-of-the-test"] {
        ensure!(!holds(&spans, secret), "a secret left in a span");
        if let Some(line) = log.split(|byte| *byte == b'\n').find(|line| holds(line, secret)) {
            anyhow::bail!("a secret is in the log: {}", String::from_utf8_lossy(line));
        }
    }
    Ok(())
}
