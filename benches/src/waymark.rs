//! Our side: the `waymark` binary as a real process, and what it reports.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{
    http::Client,
    links::{Id, Links, Rng},
    metrics::{Admin, Scans},
    process::{self, Server},
};

/// How long a start may take; a database with a million links has to be read.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Where the product lives: its binary, its data, its ports.
#[derive(Debug)]
pub(crate) struct Waymark {
    binary: PathBuf,
    folder: PathBuf,
    core: Option<usize>,
    /// An operator's key.
    pub(crate) key: String,
    /// The API.
    pub(crate) api: SocketAddr,
    /// Short URLs.
    pub(crate) edge: SocketAddr,
    /// What the process reports.
    pub(crate) admin: Admin,
    /// A city database, if it shall have one.
    pub(crate) geoip: Option<PathBuf>,
    /// A Postgres database, if it shall have one; else SQLite.
    pub(crate) database: Option<String>,
    /// MQTT, if it shall be spoken.
    pub(crate) mqtt: Option<SocketAddr>,
    /// Whether webhooks may lead to this machine.
    pub(crate) has_local_webhooks: bool,
}

impl Waymark {
    /// Chooses ports and a key; nothing is started.
    pub(crate) fn new(binary: &Path, folder: &Path, core: Option<usize>, seed: u64) -> Result<Self> {
        let binary =
            binary.canonicalize().with_context(|| format!("there is no binary at {}", binary.display()))?;
        let alphabet: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
        let mut rng = Rng::new(seed ^ 0x6b65_7973);
        let key = (0..80).map(|_| alphabet[rng.below(alphabet.len())]).collect();
        let [api, edge, admin] = free_addresses()?;
        Ok(Self {
            binary,
            folder: folder.to_owned(),
            core,
            key,
            api,
            edge,
            admin: Admin(admin),
            geoip: None,
            database: None,
            mqtt: None,
            has_local_webhooks: false,
        })
    }

    /// `waymark up` over the data of earlier starts.
    pub(crate) fn spawn(&self) -> Result<Server> {
        let log = File::options().create(true).append(true).open(self.folder.join("waymark.log"))?;
        let mut command = process::command(&self.binary, self.core);
        command
            .args(["up", "--log", "warn"])
            .env("WAYMARK_DATA_DIR", self.folder.join("data"))
            .env("WAYMARK_API_LISTEN", self.api.to_string())
            .env("WAYMARK_EDGE_LISTEN", self.edge.to_string())
            .env("WAYMARK_ADMIN_LISTEN", self.admin.0.to_string())
            .env("WAYMARK_OPERATOR_KEY", &self.key)
            .stdout(log.try_clone()?)
            .stderr(log);
        match &self.geoip {
            Some(database) => command.env("WAYMARK_GEOIP_DB", database),
            None => command.env_remove("WAYMARK_GEOIP_DB"),
        };
        for name in ["WAYMARK_CONFIG", "WAYMARK_SHORT_DOMAINS", "DATABASE_URL", "REDIS_URL", "RUST_LOG"] {
            command.env_remove(name);
        }
        if let Some(database) = &self.database {
            // A load generator is one key.
            command.env("DATABASE_URL", database).env("WAYMARK_REQUESTS_PER_KEY", "0");
        }
        if let Some(mqtt) = self.mqtt {
            command.env("WAYMARK_MQTT_LISTEN", mqtt.to_string());
        }
        if self.has_local_webhooks {
            command.env("WAYMARK_WEBHOOKS_LOOPBACK", "true");
        }
        Server::spawn(&mut command)
    }

    /// `waymark import` of a file.
    pub(crate) fn import(&self, file: &Path, core: Option<usize>) -> Result<Command> {
        let log = File::options().create(true).append(true).open(self.folder.join("import.log"))?;
        let mut command = process::command(&self.binary, core);
        command
            .arg("import")
            .arg(file)
            .args(["--api", &format!("http://{}", self.api), "--key", &self.key])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    /// Waits until the API answers.
    pub(crate) fn wait_for_api(&self, server: &mut Server) -> Result<()> {
        wait_until(server, || {
            let mut client = Client::connect(self.api, Some(&self.key)).ok()?;
            (client.ask("GET", "/access", None).ok()?.status == 200).then_some(())
        })
    }

    /// Creates a product that owns the links, and gives its id.
    pub(crate) fn create_product(&self) -> Result<String> {
        let body = json!({"name": "Load"}).to_string();
        let answer = Client::connect(self.api, Some(&self.key))?.ask("POST", "/products", Some(&body))?;
        ensure!(answer.status == 201, "POST /products: {} {:?}", answer.status, answer.json());
        let product = answer.json()?;
        Ok(product["id"].as_str().context("a product without id")?.to_owned())
    }

    /// Creates every link by arrays.
    pub(crate) fn create_links(&self, links: &Links) -> Result<()> {
        let product = self.create_product()?;
        let mut client = Client::connect(self.api, Some(&self.key))?;
        for start in (0..links.count()).step_by(1_000) {
            let end = (start + 1_000).min(links.count());
            let items: Vec<Value> = (start..end)
                .map(|index| {
                    json!({
                        "shortId": String::from_utf8_lossy(&links.known(index)),
                        "platformId": product,
                        "defaultRedirectUrl": String::from_utf8_lossy(&links.target(index)),
                    })
                })
                .collect();
            let answer =
                client.ask("POST", "/redirections?wait=edges", Some(&Value::Array(items).to_string()))?;
            ensure!(answer.status == 200, "POST /redirections: {} {:?}", answer.status, answer.json());
        }
        Ok(())
    }

    /// The counters of scans.
    pub(crate) fn scans(&self) -> Result<Scans> {
        self.admin.scans()
    }

    /// Waits until every recorded scan is in the database; gives how many came in, and the time.
    pub(crate) fn settle(&self) -> Result<(u64, Duration)> {
        self.admin.settle()
    }
}

/// Starts a server and says how long it took from the start of its process to the first redirect of
/// a known link, which is also checked; `host` as in [`Plan`](crate::drive::Plan).
pub(crate) fn time_start(
    address: SocketAddr,
    host: Option<&str>,
    status: u16,
    links: &Links,
    spawn: impl FnOnce() -> Result<Server>,
) -> Result<(Server, Duration)> {
    let begun = Instant::now();
    let mut server = spawn()?;
    let (id, target) = (&links.known(0), links.target(0));
    let mut took = Duration::ZERO;
    wait_until(&mut server, || {
        let mut client = Client::connect(address, None).ok()?;
        client.set_host(host);
        let answer = client.ask("GET", &path(id), None).ok()?;
        took = begun.elapsed();
        (answer.status == status && answer.location.as_bytes() == target).then_some(())
    })?;
    Ok((server, took))
}

/// The path of a short URL.
pub(crate) fn path(id: &Id) -> String {
    format!("/{}", String::from_utf8_lossy(id))
}

/// Asks again and again until there is an answer.
fn wait_until<T>(server: &mut Server, mut ask: impl FnMut() -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        server.check_alive()?;
        if begun.elapsed() > START_TIMEOUT {
            bail!("the server did not answer as it should within {START_TIMEOUT:?}");
        }
        sleep(Duration::from_millis(2));
    }
}

/// Addresses of loopback that nobody listens on now.
pub(crate) fn free_addresses<const N: usize>() -> Result<[SocketAddr; N]> {
    // All are held until the last is known, so that no two are the same.
    let held: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>()?;
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    for (address, listener) in addresses.iter_mut().zip(&held) {
        *address = listener.local_addr()?;
    }
    Ok(addresses)
}
