//! The servers that are compared, each with the same links.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result};

use super::certificate::Certificate;
use crate::{
    links::{HOST, Links},
    metrics::Admin,
    process::{self, Server},
    scripts::Answers,
    waymark::time_start,
};

/// One `waymark` process with SQLite.
pub(crate) const ONE_PROCESS: &str = "waymark up";
/// An edge that keeps what was asked for, before Redis.
pub(crate) const MOKA: &str = "edge, moka over Redis";
/// An edge that holds every link.
pub(crate) const REPLICA: &str = "edge, full replica";
/// nginx with a `map` of the links.
pub(crate) const NGINX_MAP: &str = "nginx map";
/// nginx with one fixed `return`.
pub(crate) const NGINX_FIXED: &str = "nginx return";
/// HAProxy with a map file of the links.
pub(crate) const HAPROXY: &str = "HAProxy map";
/// hyper with one fixed answer.
pub(crate) const HYPER: &str = "hyper fixed";

/// Where everybody who is started finds its things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The folder of the run.
    pub(crate) folder: &'a std::path::Path,
    /// The core of the servers.
    pub(crate) core: Option<usize>,
    /// The links that all hold.
    pub(crate) links: &'a Links,
    /// The certificate that all show.
    pub(crate) certificate: &'a Certificate,
}

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    /// HTTP/1.1.
    pub(crate) plain: SocketAddr,
    /// HTTP/2 with prior knowledge.
    pub(crate) h2: SocketAddr,
    /// TLS.
    pub(crate) tls: Option<SocketAddr>,
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Which one.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) ports: Ports,
    /// The host that it is asked for; `None`: its address.
    pub(crate) host: Option<&'static str>,
    /// What it answers.
    pub(crate) answers: Answers,
    /// What our process reports.
    pub(crate) admin: Option<Admin>,
    /// Whether every link must be held before it is measured.
    pub(crate) is_replica: bool,
    /// Its process.
    pub(crate) server: Server,
}

impl Peer {
    /// Lets it run, or sleep.
    pub(crate) fn set_awake(&self, is_awake: bool) -> Result<()> {
        self.server.signal(if is_awake { "CONT" } else { "STOP" })?;
        match self.admin {
            // After a sleep the next heartbeat of control reaches it.
            Some(admin) if is_awake => admin.wait_live(self.is_replica, AWAKE),
            Some(_) | None => Ok(()),
        }
    }

    /// Ends it.
    pub(crate) fn end(self) -> Result<()> {
        let Self { name, admin, server, .. } = self;
        if admin.is_some() { server.stop() } else { server.quit() }.context(name)
    }
}

/// How long one of ours may take to hear of control after a sleep.
const AWAKE: Duration = Duration::from_secs(60);

/// A server of somebody else, ready to be started.
#[derive(Debug)]
pub(crate) struct Other {
    /// Which one.
    pub(crate) name: &'static str,
    /// Where it will listen.
    pub(crate) ports: Ports,
    /// What it will answer.
    pub(crate) answers: Answers,
    /// Its program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Where it may write.
    pub(crate) log: PathBuf,
    /// Whether a process that it starts is the one that serves.
    pub(crate) has_worker: bool,
}

impl Other {
    fn spawn(&self, core: Option<usize>) -> Result<Server> {
        let log = std::fs::File::options().create(true).append(true).open(&self.log)?;
        let mut command = process::command(&self.program, core);
        command.args(&self.arguments).stdout(log.try_clone()?).stderr(log);
        Server::spawn(&mut command)
    }

    /// Starts it so often, and gives the times until its first right redirect; the last one goes on.
    pub(crate) fn start(&self, place: &Place<'_>, starts: usize) -> Result<(Peer, Vec<f64>)> {
        let (mut times, mut running) = (Vec::new(), None::<Server>);
        for _ in 0..starts {
            if let Some(server) = running.take() {
                server.quit()?;
            }
            let (plain, status) = (self.ports.plain, self.answers.status());
            let (server, took) =
                time_start(plain, Some(HOST), status, place.links, || self.spawn(place.core))
                    .with_context(|| format!("{}: {}", self.name, self.last_words()))?;
            times.push(took.as_secs_f64());
            running = Some(server);
        }
        let mut server = running.context("no start was asked for")?;
        if self.has_worker {
            server.pid = *process::children(server.pid)?.first().context("it has no worker")?;
        }
        let (name, ports, answers) = (self.name, self.ports, self.answers);
        let peer = Peer { name, ports, host: Some(HOST), answers, admin: None, is_replica: false, server };
        Ok((peer, times))
    }

    /// What it wrote last, should it not have started.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().last().unwrap_or_default().to_owned()
    }
}
