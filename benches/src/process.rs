//! Processes from outside: start and stop, CPU and memory by the kernel's own accounting, cores.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde::Serialize;
// The module of the tests here has the name of the crate.
use ::tests::redis::signal;

/// Microseconds of one clock tick of `/proc`: `USER_HZ` is 100 on every Linux that Debian runs on.
const TICK_US: f64 = 10_000.0;
/// How long a process may take to stop when it is asked to; the edge drains for up to 30 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(45);

/// The core that servers are pinned to.
const SERVER_CORE: usize = 0;
/// The core of the load generator and of the tools.
const CLIENT_CORE: usize = 1;

/// CPU time, in microseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cpu {
    /// In user mode.
    pub(crate) user_us: f64,
    /// In the kernel.
    pub(crate) system_us: f64,
}

impl Cpu {
    /// Both together.
    pub(crate) fn total_us(self) -> f64 {
        self.user_us + self.system_us
    }

    /// What was used since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { user_us: self.user_us - earlier.user_us, system_us: self.system_us - earlier.system_us }
    }
}

/// Memory of a process in bytes.
#[derive(Debug, Default, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    /// Resident set.
    pub(crate) rss: u64,
    /// Its anonymous part: without files that are mapped.
    pub(crate) anonymous: u64,
}

/// CPU time of all threads of a process since its start, those that ended included.
pub(crate) fn cpu(pid: u32) -> Result<Cpu> {
    read_stat(&format!("/proc/{pid}/stat")).map(|stat| stat.cpu)
}

/// CPU time of the threads that live, summed by name, in microseconds.
pub(crate) fn cpu_by_thread_name(pid: u32) -> Result<BTreeMap<String, f64>> {
    let mut sums = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the two looks.
        let Ok(Stat { name, cpu, .. }) = read_stat(&format!("{}/stat", thread?.path().display())) else {
            continue;
        };
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned();
        *sums.entry(name).or_default() += cpu.total_us();
    }
    Ok(sums)
}

/// CPU time of a process, of those that it started, and of all that have ended among these.
pub(crate) fn cpu_of_family(first: u32) -> Result<Cpu> {
    let mut sum = Cpu::default();
    for entry in fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some(found) = stat(pid)?.filter(|found| pid == first || found.parent == first)
        {
            for cpu in [found.cpu, found.ended] {
                (sum.user_us, sum.system_us) = (sum.user_us + cpu.user_us, sum.system_us + cpu.system_us);
            }
        }
    }
    Ok(sum)
}

/// A process or thread as Linux shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stat {
    /// The name of its program.
    pub(crate) name: String,
    /// The process that started it.
    pub(crate) parent: u32,
    /// Its CPU time; that of all threads, those that ended included, of a process.
    pub(crate) cpu: Cpu,
    /// That of the processes that it started and that have ended.
    pub(crate) ended: Cpu,
}

/// A process; `None` when it is gone.
pub(crate) fn stat(pid: u32) -> Result<Option<Stat>> {
    match read_stat(&format!("/proc/{pid}/stat")) {
        Ok(stat) => Ok(Some(stat)),
        Err(_) if !Path::new(&format!("/proc/{pid}")).exists() => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_stat(path: &str) -> Result<Stat> {
    let text = fs::read_to_string(path)?;
    parse_stat(&text).with_context(|| format!("{path} has an unknown form"))
}

/// Reads a `stat` line; the name may hold any character, so the last `)` ends it.
fn parse_stat(text: &str) -> Option<Stat> {
    let (head, fields) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    // The fields behind the name begin with the third, the state.
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let us = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? * TICK_US);
    let cpu = |at: usize| Some(Cpu { user_us: us(at)?, system_us: us(at + 1)? });
    let parent = fields.get(1)?.parse().ok()?;
    Some(Stat { name: name.to_owned(), parent, cpu: cpu(11)?, ended: cpu(13)? })
}

/// What a process holds in memory.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| {
        let kib = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10
    };
    Ok(Memory { rss: field("VmRSS:"), anonymous: field("RssAnon:") })
}

/// The processes that `pid` started.
pub(crate) fn children(pid: u32) -> Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Where servers and load generator run; `None`: wherever the kernel likes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cores {
    /// The core of servers.
    pub(crate) server: Option<usize>,
    /// That of the load generator and of the tools.
    pub(crate) client: Option<usize>,
}

/// Gives servers a core, and moves this process to another, if there are two and `taskset` is there.
pub(crate) fn split_cores() -> Result<Cores> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores <= CLIENT_CORE || quiet(Command::new("taskset").arg("--version")).is_err() {
        return Ok(Cores { server: None, client: None });
    }
    pin_self(CLIENT_CORE)?;
    Ok(Cores { server: Some(SERVER_CORE), client: Some(CLIENT_CORE) })
}

/// A command that runs on one core, where cores can be had.
pub(crate) fn command(program: &Path, core: Option<usize>) -> Command {
    match core {
        None => Command::new(program),
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &core.to_string()]).arg(program);
            command
        }
    }
}

/// Moves all threads of this process to one core.
fn pin_self(core: usize) -> Result<()> {
    let pid = std::process::id().to_string();
    quiet(Command::new("taskset").args(["-a", "-p", "-c", &core.to_string(), &pid]))
}

/// Runs a command without output.
pub(crate) fn quiet(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { bail!("{command:?}: {status}") }
}

/// A server that runs; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// The process that serves.
    pub(crate) pid: u32,
}

impl Server {
    /// Starts a server.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let child =
            command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {command:?}"))?;
        let pid = child.id();
        Ok(Self { child, pid })
    }

    /// Sends a signal, such as `STOP`, to the process that serves.
    pub(crate) fn signal(&self, name: &str) -> Result<()> {
        signal(self.pid, name)
    }

    /// Fails when the server has ended.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the server ended: {status}"),
        }
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(self) -> Result<()> {
        self.stop_within(STOP_TIMEOUT)
    }

    /// Asks it to stop, and waits so long until it has.
    pub(crate) fn stop_within(self, patience: Duration) -> Result<()> {
        let status = self.end(patience)?;
        if status.success() { Ok(()) } else { bail!("the server stopped badly: {status}") }
    }

    /// Ends a server of somebody else: some take the signal as it is.
    pub(crate) fn quit(self) -> Result<()> {
        self.end(STOP_TIMEOUT).map(drop)
    }

    fn end(mut self, patience: Duration) -> Result<ExitStatus> {
        signal(self.child.id(), "TERM")?;
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the server did not stop within {patience:?}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to do.
        if self.pid != self.child.id() {
            let _ = signal(self.pid, "KILL");
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_read_whatever_the_name_holds() {
        let line = "7 (a) b) R 1 7 7 0 -1 4194304 100 0 0 0 250 31 2 0 20 0 4 0 100 0 0";
        let stat = parse_stat(line).unwrap();
        let cpu = |user_us, system_us| Cpu { user_us, system_us };
        let (cpu, ended) = (cpu(2_500_000.0, 310_000.0), cpu(20_000.0, 0.0));
        assert_eq!(stat, Stat { name: "a) b".to_owned(), parent: 1, cpu, ended });
        assert!(parse_stat("7 (a").is_none());
    }

    #[test]
    fn this_process_has_threads_and_memory() {
        let pid = std::process::id();
        assert!(!cpu_by_thread_name(pid).unwrap().is_empty());
        assert!(memory(pid).unwrap().rss > 1 << 20);
        assert!(cpu(pid).unwrap().total_us() >= 0.0);
    }

    #[test]
    fn a_server_that_is_dropped_is_gone() {
        let server = Server::spawn(Command::new("sleep").arg("60")).unwrap();
        let pid = server.pid;
        drop(server);
        assert!(fs::metadata(format!("/proc/{pid}")).is_err());
    }
}
