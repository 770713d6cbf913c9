//! What the systemd units rely on: inherited sockets, readiness, the watchdog, the stop notification.

use std::{
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use reqwest::{StatusCode, header};
use tests::{
    fleet::Fleet,
    killed::Killed,
    product::{DEADLINE, built},
    redis::signal,
};
use tokio::net::UnixDatagram;

/// A process with a service manager; killed when dropped.
struct Managed(Killed);

impl Managed {
    async fn ended(mut self) -> Result<std::process::ExitStatus> {
        self.0.ended().await
    }
}

/// The other end of `NOTIFY_SOCKET`.
struct Manager(UnixDatagram);

impl Manager {
    fn listen(path: &Path) -> Result<Self> {
        Ok(Self(UnixDatagram::bind(path)?))
    }

    /// Waits until a state is told; gives what was told before.
    async fn until(&self, state: &str) -> Result<Vec<String>> {
        let mut before = Vec::new();
        let told = async {
            loop {
                let mut text = [0; 1_024];
                let length = self.0.recv(&mut text).await?;
                let text = std::str::from_utf8(&text[..length])?.trim().to_owned();
                if text.lines().any(|line| line == state) {
                    return anyhow::Ok(());
                }
                before.push(text);
            }
        };
        tokio::time::timeout(DEADLINE, told).await.with_context(|| format!("{state} was not told"))??;
        Ok(before)
    }
}

/// Starts an edge as systemd does: the sockets are file descriptors 3 and 4.
fn activate(
    settings: &[(&'static str, String)],
    notify: &Path,
    plain: &TcpListener,
    admin: &TcpListener,
) -> Result<Managed> {
    // The shell becomes the edge, so that its own number is the one that the sockets are for.
    let script = r#"export LISTEN_PID=$$; exec "$0" 3<&0 4<&2 0</dev/null 2>/dev/null"#;
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(built("edge")?)
        .envs(settings.iter().map(|(name, value)| (name, value)))
        .env("LISTEN_FDS", "2")
        .env("LISTEN_FDNAMES", "edge:admin")
        .env("NOTIFY_SOCKET", notify)
        .env("WATCHDOG_USEC", "400000")
        .stdin(Stdio::from(OwnedFd::from(plain.try_clone()?)))
        .stdout(Stdio::null())
        .stderr(Stdio::from(OwnedFd::from(admin.try_clone()?)))
        .spawn()?;
    Ok(Managed(Killed(child)))
}

async fn scan(fleet: &Fleet, edge: SocketAddr) -> Result<StatusCode> {
    let request = fleet.http.get(format!("http://{edge}/ONE")).header(header::HOST, "tn.gg");
    Ok(request.timeout(DEADLINE).send().await?.status())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_under_a_service_manager() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    fleet.create_redirection(0, &product, Some("ONE"), "").await?;
    let mut settings = fleet.edge_settings("e1")?;
    settings.extend(fleet.redis_settings.clone());
    let (plain, admin) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (edge_at, admin_at) = (plain.local_addr()?, admin.local_addr()?);
    let path = fleet.dir.join("notify");
    let manager = Manager::listen(&path)?;

    // Asked before the edge is there: the socket is open, the answer comes when it has started.
    let early = tokio::spawn({
        let request = fleet.http.get(format!("http://{edge_at}/ONE")).header(header::HOST, "tn.gg");
        async move { request.timeout(DEADLINE).send().await }
    });
    let edge = activate(&settings, &path, &plain, &admin)?;
    manager.until("READY=1").await?;
    // 503 if it came before the edge knew its domains; never a refused connection.
    let status = early.await??.status();
    ensure!([307, 503].contains(&status.as_u16()), "{status}");
    ensure!(scan(&fleet, edge_at).await? == 307);
    let live = fleet.http.get(format!("http://{admin_at}/live")).send().await?;
    ensure!(live.status() == 200, "the second socket is the admin listener");
    for _ in 0..3 {
        manager.until("WATCHDOG=1").await?;
    }
    // A watchdog that is not fed ends a unit: a process that hangs does not feed it.
    let pid = edge.0.id();
    signal(pid, "TERM")?;
    manager.until("STOPPING=1").await?;
    ensure!(edge.ended().await?.success());

    // A restart refuses nobody: who comes between the two waits in the socket.
    let between = tokio::spawn({
        let request = fleet.http.get(format!("http://{edge_at}/ONE")).header(header::HOST, "tn.gg");
        async move { request.timeout(DEADLINE).send().await }
    });
    let edge = activate(&settings, &path, &plain, &admin)?;
    manager.until("READY=1").await?;
    ensure!(between.await??.status() == 307, "it boots from its disk, and answers");
    drop(edge);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_under_a_service_manager() -> Result<()> {
    let fleet = Fleet::start(0).await?;
    let path = fleet.dir.join("notify");
    let manager = Manager::listen(&path)?;
    let mut command = fleet.control_command()?;
    command
        .arg("serve")
        .env("WAYMARK_API_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_INTERNAL_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_ADMIN_LISTEN", "127.0.0.1:0")
        .env("WAYMARK_FILES_URL", fleet.dir.join("files"))
        .envs(fleet.redis_settings.iter().map(|(name, value)| (name, value)))
        .env("NOTIFY_SOCKET", &path)
        .stdout(Stdio::null());
    let control = Managed(Killed(command.spawn()?));
    manager.until("READY=1").await?;
    signal(control.0.id(), "TERM")?;
    manager.until("STOPPING=1").await?;
    ensure!(control.ended().await?.success());
    Ok(())
}
