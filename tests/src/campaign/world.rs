//! The processes of a campaign: a Postgres, a Redis, two controls and three edges, each behind its own links.

mod process;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

pub use self::process::Process;
use super::{disk::SmallDisk, postgres::Postgres, proxy::Link};
use crate::{
    clock::Clock,
    product::{client, random_key},
    redis::{RedisServer, free_port},
};

/// Longest wait for a process to come up, beside all the others on two cores.
const UP: Duration = Duration::from_secs(60);

/// A control and where it listens.
pub struct Control {
    /// The process.
    pub process: Process,
    /// Base of its API.
    pub api: String,
    /// Base of its admin listener.
    pub admin: String,
}

/// An edge and where it listens.
pub struct Edge {
    /// The process.
    pub process: Process,
    /// Base of short URLs.
    pub url: String,
    /// Base of its admin listener.
    pub admin: String,
    /// Its links: to each control, then to Redis.
    pub links: Vec<Link>,
    /// Its data folder, if that is a file system of its own; behind the process, which ends before it.
    disk: Option<SmallDisk>,
}

/// All of it.
pub struct World {
    /// The database.
    pub postgres: Postgres,
    /// The Redis that is the primary now.
    pub redis: RedisServer,
    /// Where controls find Redis, whichever it is.
    pub redis_link: Link,
    /// Replicas of control.
    pub controls: Vec<Control>,
    /// Edges.
    pub edges: Vec<Edge>,
    /// The operator's key.
    pub key: String,
    /// The product that all redirections are of.
    pub product: String,
    /// A client that follows no redirect.
    pub http: reqwest::Client,
    /// Why edges have no disks of their own though they should.
    pub no_disks: Option<String>,
    logs: PathBuf,
    dir: tempfile::TempDir,
}

/// What differs between uses of a world.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Replicas of control.
    pub controls: usize,
    /// Edges.
    pub edges: usize,
    /// Whether wall clocks can be moved.
    pub has_clocks: bool,
    /// Whether each edge has a small disk of its own, where that can be had.
    pub has_small_disks: bool,
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn program(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let found = this.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("{name} is not built: run tests/campaign/run"))
}

impl World {
    /// Starts everything and waits until each edge follows the stream; what the processes say goes to `logs`.
    pub async fn start(shape: Shape, logs: &Path) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let postgres = Postgres::start()?;
        let redis = RedisServer::start().await?;
        let redis_link = Link::open(local(redis.port)).await?;
        let mut world = Self {
            postgres,
            redis,
            redis_link,
            controls: Vec::new(),
            edges: Vec::new(),
            key: random_key()?,
            product: String::new(),
            http: client()?,
            no_disks: None,
            logs: logs.to_owned(),
            dir,
        };
        world.control(&["secrets", "new-key"])?;
        world.control(&["migrate"])?;
        let key = world.key.clone();
        world.control(&["accounts", "create", "--domains", "tn.gg", "--operator-key", &key])?;
        let mut internals = Vec::new();
        for n in 0..shape.controls {
            internals.push(world.add_control(n, shape.has_clocks)?);
        }
        for control in &world.controls {
            world.until_ok(&format!("{}/ready", control.admin)).await?;
        }
        for n in 0..shape.edges {
            world.add_edge(n, &internals, shape).await?;
        }
        for n in 0..shape.edges {
            world.until_live(n).await?;
        }
        let (status, body) = world.call(0, "POST", "/products", Some(json!({"name": "Bag"}))).await?;
        ensure!(status == 201, "POST /products: {status} {body}");
        world.product = body["id"].as_str().context("no id")?.to_owned();
        Ok(world)
    }

    fn secret_key_file(&self) -> String {
        self.dir.path().join("secret.key").display().to_string()
    }

    fn control(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program("control")?);
        command
            .env("DATABASE_URL", self.postgres.url())
            .env("WAYMARK_SECRET_KEY_FILE", self.secret_key_file());
        let output = command.args(arguments).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "control {}: {error}", arguments.join(" "));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn add_control(&mut self, n: usize, has_clock: bool) -> Result<u16> {
        let (api, internal, admin) = (free_port()?, free_port()?, free_port()?);
        let files = self.dir.path().join("files").display().to_string();
        let settings = [
            ("DATABASE_URL", self.postgres.url()),
            ("REDIS_URL", format!("redis://127.0.0.1:{}", self.redis_link.port)),
            ("WAYMARK_API_LISTEN", local(api).to_string()),
            ("WAYMARK_INTERNAL_LISTEN", local(internal).to_string()),
            ("WAYMARK_ADMIN_LISTEN", local(admin).to_string()),
            ("WAYMARK_FILES_URL", files),
            ("WAYMARK_SECRET_KEY_FILE", self.secret_key_file()),
            ("WAYMARK_REQUESTS_PER_KEY", "0".to_owned()),
            ("RUST_LOG", "info".to_owned()),
        ];
        let mut process = Process {
            name: format!("control-{n}"),
            log: self.logs.join(format!("control-{n}.log")),
            clock: self.clock(has_clock, &format!("control-{n}"))?,
            program: program("control")?,
            arguments: vec!["serve".to_owned()],
            settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
            child: None,
        };
        process.start()?;
        let (api, admin) = (format!("http://{}", local(api)), format!("http://{}", local(admin)));
        self.controls.push(Control { process, api, admin });
        Ok(internal)
    }

    async fn add_edge(&mut self, n: usize, internals: &[u16], shape: Shape) -> Result<()> {
        let (port, admin) = (free_port()?, free_port()?);
        let name = format!("edge-{n}");
        let folder = self.dir.path().join(&name);
        std::fs::create_dir_all(&folder)?;
        let key_file = folder.join("key");
        crate::product::write_key(&key_file, &self.control(&["edge-keys", "create", &name])?)?;
        let data = folder.join("data");
        let mut disk = None;
        if shape.has_small_disks {
            std::fs::create_dir_all(&data)?;
            match SmallDisk::mount(&data) {
                Ok(mounted) => disk = Some(mounted),
                Err(error) => self.no_disks = Some(format!("{error:#}")),
            }
        }
        let mut links = Vec::new();
        for internal in internals {
            links.push(Link::open(local(*internal)).await?);
        }
        let urls: Vec<String> = links.iter().map(|link| format!("http://{}", local(link.port))).collect();
        links.push(Link::open(local(self.redis_link.port)).await?);
        let redis = links.last().map_or(0, |link| link.port);
        let apis: Vec<String> = self.controls.iter().map(|control| control.api.clone()).collect();
        let settings = [
            ("WAYMARK_EDGE_ID", name.clone()),
            ("WAYMARK_DATA_DIR", data.display().to_string()),
            ("WAYMARK_CONTROL_URLS", urls.join(",")),
            ("WAYMARK_API_URLS", apis.join(",")),
            ("WAYMARK_EDGE_KEY_FILE", key_file.display().to_string()),
            ("REDIS_URL", format!("redis://127.0.0.1:{redis}")),
            ("WAYMARK_EDGE_LISTEN", local(port).to_string()),
            ("WAYMARK_ADMIN_LISTEN", local(admin).to_string()),
            ("WAYMARK_SNAPSHOT_SECONDS", "5".to_owned()),
            // The readers are all of one address, and ask for ids that are gone.
            ("WAYMARK_MISSES_PER_ADDRESS", "100000".to_owned()),
            ("WAYMARK_MISSES_PER_SECOND", "100000".to_owned()),
            ("RUST_LOG", "info".to_owned()),
        ];
        let mut process = Process {
            log: self.logs.join(format!("{name}.log")),
            clock: self.clock(shape.has_clocks, &name)?,
            name,
            program: program("edge")?,
            arguments: Vec::new(),
            settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
            child: None,
        };
        process.start()?;
        let (url, admin) = (format!("http://{}", local(port)), format!("http://{}", local(admin)));
        self.edges.push(Edge { process, url, admin, links, disk });
        Ok(())
    }

    fn clock(&self, has_clock: bool, name: &str) -> Result<Option<Clock>> {
        has_clock.then(|| Clock::new(self.dir.path().join(format!("clock-{name}")))).transpose()
    }

    /// The data folder of an edge.
    #[must_use]
    pub fn edge_folder(&self, edge: usize) -> PathBuf {
        self.dir.path().join(&self.edges[edge].process.name).join("data")
    }

    /// Has the disk of an edge be full for so long.
    ///
    /// # Errors
    /// It has none of its own, or it cannot be filled.
    pub async fn fill_disk(&self, edge: usize, hold: Duration) -> Result<()> {
        self.edges[edge].disk.as_ref().context("the edge has no disk of its own")?.fill(hold).await
    }

    /// Calls the API of a control with the operator's key; gives status and JSON (`null` for an empty body).
    pub async fn call(
        &self,
        control: usize,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Value)> {
        call(&self.http, &self.controls[control].api, &self.key, method, path, body).await
    }

    /// Where an edge says that it stands.
    pub async fn edge_status(&self, edge: usize) -> Result<Value> {
        let url = format!("{}/ready", self.edges[edge].admin);
        Ok(self.http.get(url).timeout(Duration::from_secs(2)).send().await?.json().await?)
    }

    /// Waits until an edge follows the stream.
    pub async fn until_live(&self, edge: usize) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < UP {
            if let Ok(status) = self.edge_status(edge).await
                && status["state"] == "LIVE"
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("edge {edge} is not live: {:?}", self.edge_status(edge).await)
    }

    /// Waits until a page answers 200.
    pub async fn until_ok(&self, url: &str) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < UP {
            let answer = self.http.get(url).timeout(Duration::from_secs(2)).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("{url} does not answer 200")
    }

    /// Every process that a service manager would look after.
    pub fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        let controls = self.controls.iter_mut().map(|control| &mut control.process);
        controls.chain(self.edges.iter_mut().map(|edge| &mut edge.process))
    }

    /// Makes another server the primary, which everybody finds at the same address.
    pub fn promote(&mut self, replica: RedisServer) {
        self.redis_link.lead_to(local(replica.port));
        self.redis = replica;
    }
}

/// Calls an API.
pub async fn call(
    http: &reqwest::Client,
    api: &str,
    key: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<(u16, Value)> {
    let request = http
        .request(method.parse()?, format!("{api}{path}"))
        .header("authorization", key)
        .header("accept", "application/json")
        .timeout(Duration::from_secs(10));
    let (status, body) = crate::json::send(request, body).await?;
    Ok((status.as_u16(), body))
}
