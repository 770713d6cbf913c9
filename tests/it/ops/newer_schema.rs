//! The binaries on a schema of a newer release, and control while Postgres is not up yet.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::StatusCode;
use tests::{
    db::{Engine, Location, TestDb},
    fleet::Fleet,
    product::{DEADLINE, Options, Product, binary, free_ports},
    redis::{free_port, signal},
};

use crate::{
    on_both_engines,
    store::schema::{newer, run},
};

/// One line on stderr and exit code 64.
fn refused(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    let line = error.lines().last().unwrap_or_default();
    ensure!(output.status.code() == Some(64), "{:?} {error}", output.status);
    ensure!(line.contains("DATABASE_URL") && line.contains("newer release"), "{error}");
    Ok(())
}

async fn waymark_up_starts_on_a_newer_compatible_schema(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    ensure!(product.stop()?.success());
    run(&product.location(), &newer(9_001, Some(41), engine)).await?;
    product.start_again()?;
    product.create_product().await?;
    ensure!(product.stop()?.success());
    run(&product.location(), &newer(9_002, Some(9_002), engine)).await?;
    let mut command = Command::new(binary()?);
    command.arg("up").env("WAYMARK_DATA_DIR", &product.data);
    command.envs(free_ports(["API", "EDGE", "ADMIN"]));
    let mut keys = Command::new(binary()?);
    keys.args(["keys", "list"]).env("WAYMARK_DATA_DIR", &product.data);
    if let Location::Postgres(url) = product.location() {
        for command in [&mut command, &mut keys] {
            command.env("DATABASE_URL", &url);
        }
    }
    refused(&mut keys)?;
    refused(&mut command)
}

on_both_engines!(waymark_up_starts_on_a_newer_compatible_schema);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_control_starts_once_a_newer_one_has_migrated() -> Result<()> {
    let db = TestDb::new(Engine::Postgres).await?;
    let Location::Postgres(url) = &db.location else { bail!("not Postgres") };
    let mut fleet = Fleet::start_on(url.clone(), db.db.clone(), 1).await?;
    run(&db.location, &newer(9_001, Some(41), Engine::Postgres)).await?;
    fleet.add_control()?;
    fleet.create_product(1).await?;
    run(&db.location, &newer(9_002, None, Engine::Postgres)).await?;
    for migrate in ["1", "0"] {
        let mut command = fleet.control_command()?;
        command
            .arg("serve")
            .envs(fleet.redis_settings.iter().map(|(name, value)| (name, value)))
            .env("WAYMARK_MIGRATE", migrate)
            .env("WAYMARK_FILES_URL", fleet.dir.join("files"));
        command.envs(free_ports(["API", "INTERNAL", "ADMIN"]));
        refused(&mut command)?;
    }
    let files = fleet.dir.join("export").display().to_string();
    for args in [
        &["keys", "list"][..],
        &["keys", "create"],
        &["accounts", "domains", "add", "later.example"],
        &["edge-keys", "create", "e1"],
        &["rebuild-edges"],
        &["export", "--into", &files],
    ] {
        refused(fleet.control_command()?.args(args))?;
    }
    // The one that runs goes on.
    fleet.create_product(0).await?;
    Ok(())
}

/// Starts a command and waits until it says on stderr that it waits for Postgres.
pub(crate) fn waits_for_postgres(command: &mut Command) -> Result<Child> {
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let stderr = child.stderr.take().context("no stderr")?;
    let (lines, said) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    let begun = Instant::now();
    let mut heard = Vec::new();
    while let Ok(line) = said.recv_timeout(DEADLINE.saturating_sub(begun.elapsed())) {
        ensure!(!line.contains("nobody") && !line.contains("PASSWORD"), "{line}");
        if line.contains("Postgres does not answer") {
            return Ok(child);
        }
        heard.push(line);
    }
    let _ = child.kill();
    bail!("it did not wait; it said {heard:?}")
}

/// Passes connections on to the address of a URL.
async fn pass_on(port: u16, to: (String, u16)) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (mut near, _) = listener.accept().await?;
        let to = to.clone();
        tokio::spawn(async move {
            let mut far = tokio::net::TcpStream::connect(to).await?;
            tokio::io::copy_bidirectional(&mut near, &mut far).await
        });
    }
}

/// As in the guide to a fleet, where `control serve &` stands beside a Postgres that may still be on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_waits_for_postgres_at_the_start() -> Result<()> {
    let fleet = Fleet::start(0).await?;
    let mut url = reqwest::Url::parse(fleet.database_url())?;
    let to = (url.host_str().context("no host")?.to_owned(), url.port().unwrap_or(5_432));
    let (port, api) = (free_port()?, free_port()?);
    ensure!(url.set_host(Some("127.0.0.1")).is_ok() && url.set_port(Some(port)).is_ok());
    let mut command = fleet.control_command()?;
    command
        .arg("serve")
        .env("DATABASE_URL", url.as_str())
        .envs(fleet.redis_settings.iter().map(|(name, value)| (name, value)))
        .env("WAYMARK_FILES_URL", fleet.dir.join("files"))
        .env("WAYMARK_API_LISTEN", format!("127.0.0.1:{api}"))
        .env("RUST_LOG", "warn");
    command.envs(free_ports(["INTERNAL", "ADMIN"]));
    let mut child = waits_for_postgres(&mut command)?;
    // Longer than anybody waits for a connection of the pool.
    let patient = Instant::now() + Duration::from_secs(11);
    while Instant::now() < patient {
        ensure!(child.try_wait()?.is_none(), "it gave up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let passing = tokio::spawn(pass_on(port, to));
    let asked = crate::fleet::until("the API answers", async || {
        let answer =
            fleet.http.get(format!("http://127.0.0.1:{api}/access")).header("authorization", &fleet.key);
        let answer = answer.timeout(Duration::from_secs(2)).send().await;
        Ok(answer.is_ok_and(|answer| answer.status() == StatusCode::OK))
    })
    .await;
    signal(child.id(), "KILL")?;
    child.wait()?;
    passing.abort();
    asked
}
