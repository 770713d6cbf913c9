//! Redis processes for tests: on free ports, with their files in temporary folders.

use std::{
    net::TcpListener,
    ops::Range,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::product::DEADLINE;

/// Attempts to find ports that nobody takes before the server does.
const ATTEMPTS: u32 = 10;

/// Below those that Linux gives to connections.
const PORTS: Range<u16> = 10_000..32_000;

/// A running server; killed when dropped.
pub struct RedisServer {
    /// Where it listens, on loopback.
    pub port: u16,
    arguments: Vec<String>,
    dir: tempfile::TempDir,
    child: Child,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    ///
    /// # Errors
    /// `redis-server` is not installed or does not start.
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// Starts a server with more arguments, such as `--appendonly yes`.
    ///
    /// # Errors
    /// `redis-server` is not installed or does not start.
    pub async fn start_with(arguments: &[&str]) -> Result<Self> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let (port, dir) = (free_port()?, tempfile::tempdir()?);
            let mut child = spawn(port, dir.path(), &arguments)?;
            match wait(port, &mut child).await {
                Ok(()) => return Ok(Self { port, arguments, dir, child }),
                Err(error) => last = Some(error),
            }
            end(&mut child);
        }
        Err(last.context("no attempt")?)
    }

    /// The URL of its database 0.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The folder of its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection.
    pub async fn connection(&self) -> Result<redis::aio::MultiplexedConnection> {
        // A loaded machine is slow to answer; what a test waits for has a deadline of its own.
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(DEADLINE));
        let client = redis::Client::open(self.url())?;
        Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// Runs a command given by its words.
    pub async fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let (name, rest) = words.split_first().context("an empty command")?;
        Ok(redis::cmd(name).arg(rest).query_async(&mut self.connection().await?).await?)
    }

    /// Kills it as a power cut of the process would.
    pub fn kill(&mut self) {
        end(&mut self.child);
    }

    /// Starts it again on the same port and folder, after [`Self::kill`].
    pub async fn start_again(&mut self) -> Result<()> {
        self.child = spawn(self.port, self.dir.path(), &self.arguments)?;
        wait(self.port, &mut self.child).await
    }

    /// Makes a replica a primary, which it stays when it is started again.
    pub async fn promote(&mut self) -> Result<()> {
        self.arguments.clear();
        self.command(&["REPLICAOF", "NO", "ONE"]).await
    }

    /// Stops its clock, so to speak: it answers nothing until [`Self::go_on`].
    pub fn pause(&self) -> Result<()> {
        signal(self.pid(), "STOP")
    }

    /// Lets it go on after [`Self::pause`].
    pub fn go_on(&self) -> Result<()> {
        signal(self.pid(), "CONT")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Servers that form a cluster, each a primary of its share of the slots.
pub struct RedisCluster {
    /// The servers.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts `count` primaries, at least 3, and makes a cluster of them.
    ///
    /// # Errors
    /// `redis-server` or `redis-cli` are not installed or the cluster does not start.
    pub async fn start(count: usize) -> Result<Self> {
        let mut nodes = Vec::new();
        while nodes.len() < count {
            let bus = free_port()?.to_string();
            let arguments = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            nodes.push(RedisServer::start_with(&arguments).await?);
        }
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create"]);
        for node in &nodes {
            create.arg(format!("127.0.0.1:{}", node.port));
        }
        let made = create.args(["--cluster-replicas", "0", "--cluster-yes"]).output().context("redis-cli")?;
        if !made.status.success() {
            bail!("no cluster: {}", String::from_utf8_lossy(&made.stdout));
        }
        let cluster = Self { nodes };
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            let mut ok = 0;
            for node in &cluster.nodes {
                let info: String = node.command(&["CLUSTER", "INFO"]).await?;
                ok += usize::from(info.contains("cluster_state:ok"));
            }
            if ok == count {
                return Ok(cluster);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the cluster does not come up")
    }

    /// The URL that names its nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// A connection.
    pub async fn connection(&self) -> Result<redis::cluster_async::ClusterConnection> {
        let nodes = self.nodes.iter().map(RedisServer::url);
        let client = redis::cluster::ClusterClient::builder(nodes).response_timeout(DEADLINE).build()?;
        Ok(client.get_async_connection().await?)
    }
}

/// A port of loopback that nobody listened on a moment ago, and that the system gives to nobody by itself: a
/// process that is started again finds it as it left it.
///
/// # Errors
/// The machine has none.
pub fn free_port() -> Result<u16> {
    let mut random = [0; 2];
    for _ in 0..1_000 {
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("{error}"))?;
        let port = PORTS.start + u16::from_le_bytes(random) % (PORTS.end - PORTS.start);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free")
}

/// Sends a signal to a process of the test.
pub fn signal(pid: u32, name: &str) -> Result<()> {
    let mut kill = Command::new("kill");
    // The check below reports that it is gone.
    let status = kill.args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status()?;
    if !status.success() {
        bail!("cannot send {name} to {pid}");
    }
    Ok(())
}

fn spawn(port: u16, dir: &Path, arguments: &[String]) -> Result<Child> {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
        .arg(dir)
        .args(["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"])
        .args(["--logfile", "redis.log"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("redis-server")
}

/// Waits until it has loaded what it keeps.
async fn wait(port: u16, child: &mut Child) -> Result<()> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait()? {
            bail!("redis-server ended: {status}");
        }
        if let Ok(mut connection) = client.get_multiplexed_async_connection().await
            && redis::cmd("PING").query_async::<()>(&mut connection).await.is_ok()
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("redis-server did not come up")
}

fn end(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}
