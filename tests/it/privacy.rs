//! What the real product keeps of the people behind scans, under each setting of the account.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::{Router, body::Bytes, extract::State};
use reqwest::{Method, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    fingerprint::fingerprint,
    product::{DEADLINE, Options, PHONE, Product},
};

/// Scans of the test of marked values; `WAYMARK_TEST_MARKED_SCANS` is another number.
const SCANS: usize = 200;

/// An address that nothing else has, as a text and as bytes.
const IP: &str = "127.201.202.203";
const IP_BYTES: [u8; 4] = [127, 201, 202, 203];
/// The address from which the API is called: the audit trail has the networks of operators, so it is in another one.
const API_IP: &str = "127.201.204.205";
/// The network of it.
const API_NETWORK: &str = "127.201.204.0/24";
/// What is in every marked user agent.
const MARK: &str = "Marked4711Agent";

/// A client with a marked address.
fn client(ip: &str) -> Result<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    Ok(client.local_address(Some(ip.parse()?)).build()?)
}

fn agent() -> String {
    format!("{PHONE} {MARK}/7.1")
}

/// What came to a receiver of webhooks.
type Came = Arc<Mutex<Vec<u8>>>;

async fn receiver() -> Result<(String, Came)> {
    async fn take(State(came): State<Came>, body: Bytes) {
        came.lock().unwrap().extend_from_slice(&body);
    }
    let came = Came::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let app = Router::new().fallback(take).with_state(came.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((url, came))
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    Ok(files)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Where a marked value is, in the files of the product and in its database.
async fn traces(product: &Product) -> Result<Vec<String>> {
    let network = IP.rsplit_once('.').context("network")?.0;
    let hex: String = IP_BYTES.iter().map(|byte| format!("{byte:02x}")).collect();
    let texts = [MARK, network, API_IP, "Mozilla/"];
    let mut found = Vec::new();
    for path in files_below(&product.data)? {
        // It may have gone since.
        let bytes = fs::read(&path).unwrap_or_default();
        let is_marked = texts[..3].iter().any(|text| has(&bytes, text.as_bytes())) || has(&bytes, &IP_BYTES);
        found.extend(is_marked.then(|| path.display().to_string()));
    }
    for (table, rows) in fingerprint(&product.location()).await? {
        let is_marked = |row: &String| {
            texts.iter().any(|text| row.contains(text)) || row.to_ascii_lowercase().contains(&hex)
        };
        found.extend(rows.into_iter().filter(is_marked).map(|row| format!("{table}: {row}")));
    }
    Ok(found)
}

async fn keep(product: &Product, setting: &str) -> Result<()> {
    let (_, access) = product.call(Method::GET, "/access", None).await?;
    let uri = format!("/accounts/{}", access["account"].as_str().context("account")?);
    let (status, account) = product.call(Method::PUT, &uri, Some(json!({"personalData": setting}))).await?;
    ensure!(status == 200 && account["personalData"] == setting, "{status}: {account}");
    Ok(())
}

async fn scans_of(product: &Product, of: &str, count: usize) -> Result<Vec<Value>> {
    let begun = Instant::now();
    loop {
        let uri = format!("/products/{of}/actions/implicitScans?perPage=100&context=true");
        let scans = product.list(&uri).await?;
        if scans.len() >= count {
            ensure!(scans.len() == count, "{} scans", scans.len());
            return Ok(scans);
        }
        ensure!(begun.elapsed() < DEADLINE, "{} of {count} scans", scans.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn scan(product: &Product, client: &reqwest::Client, short_id: &str) -> Result<()> {
    let request = client.get(format!("{}/{short_id}", product.edge));
    let status = request.header(header::USER_AGENT, agent()).send().await?.status();
    ensure!(status == 307, "{status}");
    Ok(())
}

crate::on_both_engines!(nothing_of_a_marked_client_is_kept, each_setting_holds_from_its_change_on);

async fn nothing_of_a_marked_client_is_kept(engine: Engine) -> Result<()> {
    let count = std::env::var("WAYMARK_TEST_MARKED_SCANS").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(SCANS);
    let options = Options { engine, unlimited: true, logged: true, ..Options::default() };
    let mut product = Product::start(options).await?;
    let client = client(IP)?;
    keep(&product, "none").await?;
    let (url, came) = receiver().await?;
    let webhook = json!({"name": "w", "url": url, "types": ["action"]});
    ensure!(product.call(Method::POST, "/webhooks", Some(webhook)).await?.0 == 201);
    let of = product.create_product().await?;
    // Acknowledged after the setting: changes come to edges in one order.
    product.create_redirection(&of, "https://example.com/", Some("ONE")).await?;
    for _ in 0..count {
        scan(&product, &client, "ONE").await?;
    }
    // Ids that do not exist are counted by network elsewhere.
    let guessed = client.get(format!("{}/GUESSED", product.edge)).header(header::USER_AGENT, agent());
    ensure!(guessed.send().await?.status() == 404);
    let scans = scans_of(&product, &of, count).await?;
    for scan in &scans {
        let context = scan["context"].as_object().context("context")?;
        ensure!(!context.contains_key("ipAddress") && !context.contains_key("userAgent"), "{scan}");
        let names = (&scan["context"]["userAgentName"], &scan["context"]["operatingSystemName"]);
        ensure!(names == (&json!("Safari"), &json!("iPhone")), "categories stay: {scan}");
        ensure!(scan["locationSource"] == "unknown" && scan.get("location").is_none(), "{scan}");
    }
    // Actions by the API have the same context.
    let by_api = self::client(API_IP)?
        .post(format!("{}/actions/scans", product.api))
        .header(header::AUTHORIZATION, &product.key)
        .header(header::USER_AGENT, agent())
        .json(&json!({"product": of, "location": {"latitude": 46.948_127, "longitude": 7.447_456}}));
    let made: Value = by_api.send().await?.error_for_status()?.json().await?;
    ensure!(made["context"].get("ipAddress").is_none() && made["locationSource"] == "unknown", "{made}");
    // What is counted before the cut.
    let stats = product.must_answer(200, Method::GET, "/scans/stats?groupBy=system", None).await?;
    let totals = stats.to_string();
    ensure!(totals.contains("iPhone"), "{totals}");
    let export = product.http.get(format!("{}/actions/all/export", product.api));
    let export = export.header(header::AUTHORIZATION, &product.key).send().await?.error_for_status()?;
    let export = export.text().await?;
    ensure!(export.lines().count() == count + 1, "{} lines", export.lines().count());
    let begun = Instant::now();
    let is_told = || {
        let came = came.lock().unwrap();
        came.windows(b"implicitScans".len()).filter(|part| part == b"implicitScans").count() >= count
    };
    while !is_told() {
        ensure!(begun.elapsed() < DEADLINE, "webhooks do not come");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let told = came.lock().unwrap().clone();
    for (what, bytes) in [("the export", export.as_bytes()), ("webhooks", &told)] {
        for mark in [MARK, "Mozilla/", "127.201."] {
            ensure!(!has(bytes, mark.as_bytes()), "{what} has {mark}");
        }
    }
    let found = traces(&product).await?;
    ensure!(found.is_empty(), "while it runs: {found:?}");
    let log = product.log()?;
    ensure!(log.contains(API_NETWORK), "requests are logged with their networks: {log}");
    for text in [IP, API_IP, MARK, "Mozilla/"] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(text)).collect();
        ensure!(lines.is_empty(), "{text} is in the log: {lines:?}");
    }
    let warned = log.lines().filter(|line| line.contains("no city database")).count();
    ensure!(warned == 1, "the edge says once that it knows no places: {warned}");
    product.kill()?;
    let left = traces(&product).await?;
    ensure!(left.is_empty(), "after a kill: {left:?}");
    Ok(())
}

async fn each_setting_holds_from_its_change_on(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let client = client(IP)?;
    let (_, access) = product.call(Method::GET, "/access", None).await?;
    let uri = format!("/accounts/{}", access["account"].as_str().context("account")?);
    let (_, account) = product.call(Method::GET, &uri, None).await?;
    ensure!(account["personalData"] == "truncated", "of a new account: {account}");
    let of = product.create_product().await?;
    product.create_redirection(&of, "https://example.com/", Some("ONE")).await?;
    let sent = agent();
    let exact = (Some(IP), Some(sent.as_str()));
    let cut = (Some("127.201.202.0"), Some("Safari/17 (iPhone/17)"));
    let mut expected = Vec::new();
    for (number, (setting, kept)) in
        [(None, cut), (Some("full"), exact), (Some("none"), (None, None)), (Some("truncated"), cut)]
            .into_iter()
            .enumerate()
    {
        if let Some(setting) = setting {
            keep(&product, setting).await?;
            // Acknowledged after the setting.
            product.create_redirection(&of, "https://example.com/", Some(&format!("S{number}"))).await?;
        }
        scan(&product, &client, "ONE").await?;
        expected.push(kept);
        // The newest first; older ones stay as they are.
        let scans = scans_of(&product, &of, expected.len()).await?;
        let found: Vec<_> = scans
            .iter()
            .rev()
            .map(|scan| (scan["context"]["ipAddress"].as_str(), scan["context"]["userAgent"].as_str()))
            .collect();
        ensure!(found == expected, "{setting:?}: {found:?}");
    }
    for wrong in [json!("all"), json!(""), json!("NONE"), json!(1), json!(["full"])] {
        let (status, said) = product.call(Method::PUT, &uri, Some(json!({"personalData": wrong}))).await?;
        let errors: BTreeSet<&str> =
            said["errors"].as_array().context("errors")?.iter().filter_map(Value::as_str).collect();
        ensure!(status == 400 && !errors.is_empty(), "{said}");
        ensure!(errors.iter().all(|error| error.contains("personalData")), "{said}");
    }
    Ok(())
}
