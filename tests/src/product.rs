//! The real product: the `waymark` binary as a process, on free ports and a fresh database.

mod process;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

pub use self::process::{free_ports, spawn_until, spawn_up, value_of};
use self::process::{log_beside, spawn};
use crate::{
    clickhouse::ClickHouse,
    db::{Engine, Location, TestDb, copy_migrated},
    json::{self, id},
    killed::Killed,
};

/// Writes the key of an edge so that nobody else can read it.
pub fn write_key(path: &Path, key: &str) -> std::io::Result<()> {
    std::fs::write(path, key)?;
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

/// Longest wait for something that must come.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A user agent that counts in `hits`.
pub const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
    (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1";

/// How to start a product.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The engine behind it.
    pub engine: Engine,
    /// TLS listeners with certificates of a local CA.
    pub dev_tls: bool,
    /// Short domains; empty means the edge's own address.
    pub domains: &'static str,
    /// A key may make as many requests as it can.
    pub unlimited: bool,
    /// It knows where some addresses are: 203.0.113.0/24 in Köln, 198.51.100.0/24 in France. `X-Forwarded-For` names the client.
    pub cities: bool,
    /// Its log is kept, at the level at which it runs elsewhere: see [`Product::log`].
    pub logged: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::Sqlite,
            dev_tls: false,
            domains: "",
            unlimited: false,
            cities: false,
            logged: false,
        }
    }
}

/// A running product; killed when dropped.
pub struct Product {
    child: Killed,
    /// Base of the API: `http://127.0.0.1:port`.
    pub api: String,
    /// The API over TLS, if it is on.
    pub api_tls: Option<String>,
    /// MQTT without TLS, as `127.0.0.1:port`.
    pub mqtt: String,
    /// MQTT over TLS, if TLS is on.
    pub mqtt_tls: Option<String>,
    /// Base of the edge: `http://127.0.0.1:port`.
    pub edge: String,
    /// The edge over TLS, if it is on.
    pub edge_tls: Option<String>,
    /// Base of the admin listener.
    pub admin: String,
    /// The operator's key.
    pub key: String,
    /// The data folder.
    pub data: PathBuf,
    /// A client that follows no redirect.
    pub http: reqwest::Client,
    options: Options,
    db: Option<TestDb>,
    /// The server of scans, on [`Engine::ClickHouse`].
    pub clickhouse: Option<ClickHouse>,
    _dir: tempfile::TempDir,
}

/// Path of the repository.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Path of the binary that `cargo build` put beside this one.
pub fn binary() -> Result<PathBuf> {
    built("waymark")
}

/// Path of a binary that `cargo build` put beside this one.
pub fn built(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    // Tests lie one folder deeper than programs.
    let mut beside = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    beside
        .find(|path| path.is_file())
        .with_context(|| format!("{name} is not built beside {}: run the tests by tests/run", own.display()))
}

/// A key of 80 random characters.
pub fn random_key() -> Result<String> {
    let mut random = [0; 240];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("{error}"))?;
    kernel::domain::access::key_from_random("", &random).context("too few random bytes")
}

/// A client that follows no redirect, with connections of its own.
pub fn client() -> Result<reqwest::Client> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The environment may name a proxy; the product is on loopback.
    Ok(reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build()?)
}

impl Product {
    /// Starts the product on a fresh data folder.
    pub async fn start(options: Options) -> Result<Self> {
        let db = match options.engine {
            Engine::Sqlite => None,
            Engine::Postgres | Engine::ClickHouse => Some(TestDb::new(options.engine).await?),
        };
        Self::start_over(options, db).await
    }

    /// Starts the product on a fresh data folder, over a database of Postgres if one is given.
    pub async fn start_over(options: Options, db: Option<TestDb>) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let data = dir.path().join("data");
        if db.is_none() {
            copy_migrated(&data.join("waymark.db")).await?;
        }
        let key = random_key()?;
        let mut command = Command::new(binary()?);
        command.envs(free_ports(["API", "EDGE", "MQTT", "ADMIN"]));
        if options.dev_tls {
            command.envs(free_ports(["MQTT_TLS", "API_TLS", "EDGE_TLS"]));
        }
        let clickhouse = (options.engine == Engine::ClickHouse).then(ClickHouse::start).transpose()?;
        command.envs(clickhouse.iter().map(|server| ("WAYMARK_SCANS_URL", server.url())));
        let (child, said) = spawn(command, &data, &key, options, db.as_ref())?;
        let http = client()?;
        let must = |label: &str| value_of(&said, label);
        let of = |label: &str| must(label).ok();
        Ok(Self {
            api: must("API ")?,
            api_tls: of("API, TLS "),
            mqtt: must("MQTT ")?.trim_start_matches("mqtt://").to_owned(),
            mqtt_tls: of("MQTT, TLS ").map(|url| url.trim_start_matches("mqtts://").to_owned()),
            edge: must("Edge ")?,
            edge_tls: of("Edge, TLS "),
            admin: must("Admin ")?,
            key,
            data,
            http,
            options,
            db,
            clickhouse,
            child: Killed(child),
            _dir: dir,
        })
    }

    /// Starts it again on the same data and the same ports, after [`Self::kill`] or [`Self::stop`].
    pub fn start_again(&mut self) -> Result<()> {
        let mut command = Command::new(binary()?);
        let host = |url: &str| url.rsplit('/').next().unwrap_or_default().to_owned();
        command
            .env("WAYMARK_API_LISTEN", host(&self.api))
            .env("WAYMARK_EDGE_LISTEN", host(&self.edge))
            .env("WAYMARK_MQTT_LISTEN", &self.mqtt)
            .env("WAYMARK_ADMIN_LISTEN", host(&self.admin));
        if let (Some(api), Some(edge)) = (&self.api_tls, &self.edge_tls) {
            command.env("WAYMARK_API_TLS_LISTEN", host(api)).env("WAYMARK_EDGE_TLS_LISTEN", host(edge));
        }
        command.envs(self.clickhouse.iter().map(|server| ("WAYMARK_SCANS_URL", server.url())));
        let (child, _) = spawn(command, &self.data, &self.key, self.options, self.db.as_ref())?;
        self.child = Killed(child);
        Ok(())
    }

    /// Kills it as a power cut of the process would: no time to tidy up.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to drain and stop, and waits until it has.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("waymark did not stop")
    }

    /// What it logged so far, with [`Options::logged`].
    pub fn log(&self) -> std::io::Result<String> {
        std::fs::read_to_string(log_beside(&self.data))
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its database is, to look behind the API.
    #[must_use]
    pub fn location(&self) -> Location {
        match &self.db {
            Some(db) => db.location.clone(),
            None => Location::Sqlite(self.data.join("waymark.db")),
        }
    }

    /// Reads the edge's metrics: name and value of each line.
    pub async fn metrics(&self) -> Result<HashMap<String, f64>> {
        metrics_of(&self.http, &self.admin).await
    }

    /// Calls the API with the operator's key; gives status and JSON (`null` for an empty body).
    pub async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<(StatusCode, Value)> {
        let request = self
            .http
            .request(method, format!("{}{path}", self.api))
            .header(header::AUTHORIZATION, &self.key)
            .header(header::ACCEPT, "application/json");
        json::send(request, body).await
    }

    /// [`Self::call`], which must be answered with this status; gives the body.
    pub async fn must_answer(
        &self,
        status: u16,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value> {
        let (found, body) = self.call(method, path, body).await?;
        ensure!(found == status, "{path}: {found}: {body}");
        Ok(body)
    }

    /// Creates a product; gives its id.
    pub async fn create_product(&self) -> Result<String> {
        let bag = json!({"name": "Bag"});
        id(&self.must_answer(201, Method::POST, "/products", Some(bag)).await?)
    }

    /// Creates a redirection and waits for the edge; gives the record.
    pub async fn create_redirection(
        &self,
        platform_id: &str,
        target: &str,
        short_id: Option<&str>,
    ) -> Result<Value> {
        let body = json!({"platformId": platform_id, "defaultRedirectUrl": target, "shortId": short_id});
        self.must_answer(201, Method::POST, "/redirections?wait=edges", Some(body)).await
    }

    /// Scans a short id as a phone; gives status and `Location`.
    pub async fn scan(&self, short_id: &str) -> Result<(StatusCode, Option<String>)> {
        let request = self.http.get(format!("{}/{short_id}", self.edge)).header(header::USER_AGENT, PHONE);
        let request = match self.options.domains.split(',').next().filter(|domain| !domain.is_empty()) {
            Some(domain) => request.header(header::HOST, domain),
            None => request,
        };
        let response = request.send().await?;
        let location =
            response.headers().get(header::LOCATION).map(|value| value.to_str().map(str::to_owned));
        Ok((response.status(), location.transpose()?))
    }

    /// Counts the scans that are stored as actions of a product.
    pub async fn count_scans(&self, product: &str) -> Result<u64> {
        let all = self.list(&format!("/products/{product}/actions/implicitScans?perPage=100")).await?;
        Ok(all.len() as u64)
    }

    /// Reads a list through all of its pages.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let (mut path, mut all) = (path.to_owned(), Vec::new());
        loop {
            let request =
                self.http.get(format!("{}{path}", self.api)).header(header::AUTHORIZATION, &self.key);
            let response = request.send().await?.error_for_status()?;
            let link =
                response.headers().get(header::LINK).and_then(|value| value.to_str().ok()).map(str::to_owned);
            all.extend(response.json::<Vec<Value>>().await?);
            let Some(link) = link else { return Ok(all) };
            let encoded = link.trim_start_matches('<').split('>').next().unwrap_or_default();
            let url = percent_encoding::percent_decode_str(encoded).decode_utf8()?.into_owned();
            path = url.trim_start_matches(&self.api).to_owned();
        }
    }
}

/// Reads the metrics of an admin listener: name and value of each line.
pub async fn metrics_of(http: &reqwest::Client, admin: &str) -> Result<HashMap<String, f64>> {
    let text = http.get(format!("{admin}/metrics")).send().await?.text().await?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.rsplit_once(' '));
    Ok(pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect())
}
