//! The `edge` binary as a real process, beside a real Redis and the stand-in for control.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tests::redis::RedisServer;

use super::{
    peers::{MOKA, Peer, Place, Ports, REPLICA},
    standin::StandIn,
};
use crate::{
    drive::{Outcome, Plan, Until, drive},
    links::HOST,
    metrics::Admin,
    process::{self, Server},
    scripts::{Answers, Kind, Scans},
    waymark::{free_addresses, time_start},
};

/// Links that an edge reads from control in a second, at the very least; for how long is waited.
const LEAST_PER_SECOND: usize = 10_000;
/// MiB of a hundred million links on disk, written at the stop on a slow disk, and then some.
const STOP_PATIENCE: Duration = Duration::from_secs(600);
/// Bytes of a link in moka, with room: none may be thrown out while it is measured.
const MOKA_BYTES: usize = 1_500;

/// Which links an edge holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Those that were asked for.
    Asked,
    /// All.
    Every,
}

/// An edge that is not running.
#[derive(Debug)]
pub(crate) struct Edge {
    /// Its name among the peers.
    pub(crate) name: &'static str,
    /// Its name in the fleet.
    pub(crate) id: String,
    holds: Holds,
    program: PathBuf,
    folder: PathBuf,
    ports: Ports,
    admin: Admin,
    settings: Vec<(&'static str, String)>,
}

/// What the first start of an edge was like.
#[derive(Debug)]
pub(crate) struct Filled {
    /// Seconds until it held every link.
    pub(crate) fill_seconds: f64,
    /// Seconds of the stop, in which the links are written to disk.
    pub(crate) save_seconds: f64,
    /// Bytes of its files.
    pub(crate) disk_bytes: u64,
}

impl Edge {
    /// Prepares its folder; nothing is started.
    pub(crate) fn new(
        place: &Place<'_>,
        program: &Path,
        id: &str,
        holds: Holds,
        control: &StandIn,
        redis: &RedisServer,
    ) -> Result<Self> {
        let [plain, tls, admin] = free_addresses()?;
        let folder = place.folder.join(id);
        fs::create_dir_all(&folder)?;
        let key = folder.join("edge.key");
        fs::write(&key, "measured\n")?;
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let control = format!("http://{}", control.address);
        let cache_mib = match holds {
            Holds::Asked => ((place.links.count() * MOKA_BYTES) >> 20).max(1_024),
            // Beside the table only what is asked for while that is filled.
            Holds::Every => 64,
        };
        let settings = vec![
            ("WAYMARK_EDGE_ID", id.to_owned()),
            ("WAYMARK_DATA_DIR", folder.join("data").display().to_string()),
            ("WAYMARK_CONTROL_URLS", control.clone()),
            ("WAYMARK_API_URLS", control),
            ("WAYMARK_EDGE_KEY_FILE", key.display().to_string()),
            ("REDIS_URL", redis.url()),
            ("WAYMARK_EDGE_LISTEN", plain.to_string()),
            ("WAYMARK_EDGE_TLS_LISTEN", tls.to_string()),
            ("WAYMARK_TLS_DIR", place.certificate.folder.display().to_string()),
            ("WAYMARK_ADMIN_LISTEN", admin.to_string()),
            ("WAYMARK_CACHE_MIB", cache_mib.to_string()),
            ("WAYMARK_EDGE_REPLICA", if holds == Holds::Every { "full" } else { "off" }.to_owned()),
        ];
        Ok(Self {
            name: if holds == Holds::Every { REPLICA } else { MOKA },
            id: id.to_owned(),
            holds,
            program: program.to_owned(),
            folder,
            ports: Ports { plain, h2: plain, tls: Some(tls) },
            admin: Admin(admin),
            settings,
        })
    }

    fn spawn(&self, core: Option<usize>) -> Result<Server> {
        let log = File::options().create(true).append(true).open(self.folder.join("edge.log"))?;
        let mut command = process::command(&self.program, core);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WAYMARK_")) {
            command.env_remove(name);
        }
        let settings = self.settings.iter().map(|(name, value)| (name, value));
        command.env("RUST_LOG", "warn").envs(settings).stdout(log.try_clone()?).stderr(log);
        Server::spawn(&mut command)
    }

    /// Starts it, and waits for its first redirect; gives the time.
    fn begin(&self, place: &Place<'_>) -> Result<(Server, Duration)> {
        time_start(self.ports.plain, Some(HOST), 307, place.links, || self.spawn(place.core)).with_context(
            || {
                let log = fs::read_to_string(self.folder.join("edge.log")).unwrap_or_default();
                format!("{}: {}", self.id, log.lines().last().unwrap_or_default())
            },
        )
    }

    /// Its first start, with nothing on disk: reads every link from control, writes them down, and stops.
    pub(crate) fn fill(&self, place: &Place<'_>) -> Result<Filled> {
        let begun = Instant::now();
        let (server, _) = self.begin(place)?;
        self.admin
            .wait_live(true, Duration::from_secs(30 + (place.links.count() / LEAST_PER_SECOND) as u64))?;
        let fill_seconds = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        server.stop_within(STOP_PATIENCE)?;
        let save_seconds = begun.elapsed().as_secs_f64();
        let files = fs::read_dir(self.folder.join("data"))?;
        let disk_bytes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum();
        Ok(Filled { fill_seconds, save_seconds, disk_bytes })
    }

    /// Starts it so often, and gives the times until its first right redirect; the last one goes on.
    pub(crate) fn start(&self, place: &Place<'_>, starts: usize) -> Result<(Peer, Vec<f64>)> {
        let (mut times, mut running) = (Vec::new(), None::<Server>);
        for _ in 0..starts {
            if let Some(server) = running.take() {
                server.stop_within(STOP_PATIENCE)?;
            }
            let (server, took) = self.begin(place)?;
            // A replica that was filled before begins from its disk; until that is whole nothing is measured.
            self.admin.wait_live(self.holds == Holds::Every, Duration::from_secs(120))?;
            times.push(took.as_secs_f64());
            running = Some(server);
        }
        let peer = Peer {
            name: self.name,
            ports: self.ports,
            host: Some(HOST),
            answers: Answers::Link(307),
            admin: Some(self.admin),
            is_replica: self.holds == Holds::Every,
            server: running.context("no start was asked for")?,
        };
        Ok((peer, times))
    }
}

/// Asks for every known id once, by HEAD: then those that keep what was asked for keep all.
pub(crate) fn touch_all(place: &Place<'_>, peer: &Peer, connections: usize) -> Result<Outcome> {
    let plan = Plan { host: peer.host, head: true, ..Plan::new(peer.ports.plain, connections, Until::Done) };
    drive(&plan, &mut Scans::of(place.links, Kind::EachKnown, peer.answers, 0))
}
