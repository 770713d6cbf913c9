//! A Postgres that belongs to the campaign, so that it can be killed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    product::DEADLINE,
    redis::{free_port, signal},
};

/// A server with one database, `postgres`; killed when dropped.
pub struct Postgres {
    /// Where it listens, on loopback.
    pub port: u16,
    bin: PathBuf,
    dir: tempfile::TempDir,
}

impl Postgres {
    /// Makes and starts a server.
    ///
    /// # Errors
    /// Postgres is not installed or does not start.
    pub fn start() -> Result<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").context("Postgres is not installed")?;
        let bins = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
        let bin = bins.max().context("Postgres is not installed")?;
        let dir = tempfile::tempdir()?;
        if is_root()? {
            ensure!(Command::new("chown").arg("postgres").arg(dir.path()).status()?.success(), "chown");
        }
        let server = Self { port: free_port()?, bin, dir };
        server.begin()?;
        Ok(server)
    }

    /// Makes an empty server and starts it.
    fn begin(&self) -> Result<()> {
        let data = self.data();
        self.run("initdb", &["-D", &data, "-A", "trust", "-U", "waymark", "--no-sync"])?;
        self.start_again()
    }

    /// Dumps everything, throws the server away and restores the dump into a new one in its place.
    ///
    /// # Errors
    /// A step fails.
    pub fn restore(&self) -> Result<()> {
        let (url, dump) = (self.url(), self.dir.path().join("dump.sql").display().to_string());
        self.run("pg_dump", &["-d", &url, "-f", &dump])?;
        self.kill()?;
        // The children of the one that was killed may still write a last file.
        let mut left = 600;
        while let Err(error) = fs::remove_dir_all(self.data()) {
            left -= 1;
            ensure!(left > 0, "{}: {error}", self.data());
            std::thread::sleep(Duration::from_millis(50));
        }
        self.begin()?;
        self.run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-d", &url, "-f", &dump])
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://waymark@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills it with all of its processes, as a power cut would.
    pub fn kill(&self) -> Result<()> {
        let pid = self.pid()?;
        // Its children end when they find it gone; what they hold is freed before the next start.
        signal(pid, "KILL")?;
        for _ in 0..200 {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!("Postgres does not end")
    }

    /// Restarts it at once: every session is cut off in the middle of what it does.
    pub fn restart_immediately(&self) -> Result<()> {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"])?;
        self.start_again()
    }

    /// Starts it again after [`Self::kill`].
    pub fn start_again(&self) -> Result<()> {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c max_connections=200 \
             -c max_prepared_transactions=4",
            self.port,
            self.dir.path().display()
        );
        let log = self.dir.path().join("log");
        let (data, log) = (self.data(), log.display().to_string());
        // The children of one that was killed may still hold its memory: on a busy machine for seconds.
        let begun = Instant::now();
        loop {
            match self.run("pg_ctl", &["-D", &data, "-w", "-l", &log, "-o", &options, "start"]) {
                Err(error) if begun.elapsed() > DEADLINE => return Err(error),
                Ok(()) => return Ok(()),
                Err(_) => std::thread::sleep(Duration::from_millis(250)),
            }
        }
    }

    fn data(&self) -> String {
        self.dir.path().join("data").display().to_string()
    }

    fn pid(&self) -> Result<u32> {
        let text = fs::read_to_string(self.dir.path().join("data/postmaster.pid"))?;
        Ok(text.lines().next().context("no pid")?.trim().parse()?)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let mut command = if is_root()? {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(self.bin.join(program));
            command
        } else {
            Command::new(self.bin.join(program))
        };
        let status = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        ensure!(status.success(), "{program}: {status}");
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It may have ended already.
        let data = self.data();
        let _ = self.run("pg_ctl", &["-D", &data, "-m", "immediate", "stop"]);
    }
}

fn is_root() -> Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).context("no Uid")?;
    Ok(uid.split_whitespace().next() == Some("0"))
}
