//! A whole Waymark on free ports of loopback, and the binary beside it.

use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use standalone::{Config, Running, config::DomainSetting};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The short domain of the tests; requests name it in `Host`.
pub(crate) const DOMAIN: &str = "tn.test";

/// The longest that anything may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// A key as `WAYMARK_OPERATOR_KEY` gives it.
pub(crate) fn key() -> String {
    "k".repeat(80)
}

/// The settings of the tests over a data folder.
pub(crate) fn config(data: &Path) -> Config {
    Config {
        short_domains: vec![DomainSetting { scheme: None, host: DOMAIN.to_owned() }],
        operator_key: Some(key()),
        ..Config::on_free_ports(data.to_owned())
    }
}

pub(crate) struct Waymark {
    pub(crate) folder: TempDir,
    pub(crate) running: Running,
    pub(crate) http: reqwest::Client,
    stop: CancellationToken,
}

impl Waymark {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&folder.path().join("data"));
        Self::start_with(folder, config).await
    }

    /// One with a Thng; gives its id, too.
    pub(crate) async fn with_thng() -> (Self, String) {
        let service = Self::start().await;
        let thng = service.thng().await;
        (service, thng)
    }

    pub(crate) async fn start_with(folder: TempDir, config: Config) -> Self {
        let stop = CancellationToken::new();
        let running = standalone::up(config, stop.clone()).await.unwrap();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(DEADLINE)
            .tls_certs_only([])
            .no_proxy()
            .build()
            .unwrap();
        Self { folder, running, http, stop }
    }

    /// Stops in order; gives the folder for another start.
    pub(crate) async fn stop(self) -> TempDir {
        self.stop.cancel();
        self.running.wait().await.unwrap();
        self.folder
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self
            .http
            .request(method.parse().unwrap(), format!("{}{path}", self.running.api_url))
            .header("authorization", key())
            .header("accept", "application/json");
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or(Value::Null))
    }

    /// A new Thng's id.
    pub(crate) async fn thng(&self) -> String {
        let (status, thng) = self.call("POST", "/thngs", Some(json!({"name": "bag"}))).await;
        assert_eq!(status, 201, "{thng}");
        thng["id"].as_str().unwrap().to_owned()
    }

    /// Asks the edge as a phone does; the status and where it leads.
    pub(crate) async fn scan(&self, domain: &str, short_id: &str) -> (u16, String) {
        let response = self
            .http
            .get(format!("http://{}/{short_id}", self.running.addresses.edge))
            .header("host", domain)
            .header("user-agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Safari/604.1")
            .send()
            .await
            .unwrap();
        let location = response.headers().get("location");
        let location = location.map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), location.unwrap_or_default())
    }

    /// What the admin listener says of the edge.
    pub(crate) async fn ready(&self) -> Value {
        let url = format!("http://{}/ready", self.running.addresses.admin);
        self.http.get(url).send().await.unwrap().json().await.unwrap()
    }

    /// The binary with the API's address and the key.
    pub(crate) fn tool(&self) -> Command {
        let mut command = waymark();
        command.env("WAYMARK_API_URL", &self.running.api_url).env("WAYMARK_OPERATOR_KEY", key());
        command
    }

    /// Runs the tool beside the running service.
    pub(crate) async fn run_tool(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = self.tool();
        command.args(args).current_dir(self.folder.path());
        tokio::task::spawn_blocking(move || texts(&command.output().unwrap())).await.unwrap()
    }
}

/// The binary, without any setting of the environment.
pub(crate) fn waymark() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waymark"));
    command.env_clear();
    command
}

pub(crate) fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Looks again until `condition` gives something.
pub(crate) async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
