//! The engine of ClickHouse behind the HTTP interface that the product uses.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use scan_store::domain::scan_server::ScanServer;

use crate::{
    killed::Killed,
    product::{client, root},
    python,
};

/// The password of its user.
const PASSWORD: &str = "a p@ssword/of scans";

/// A server of its own, which ends with this.
pub struct ClickHouse {
    running: Mutex<Running>,
    port: u16,
    folder: tempfile::TempDir,
}

struct Running {
    child: Killed,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl ClickHouse {
    /// Starts one on a free port.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (running, port) = run(&folder, 0)?;
        Ok(Self { running: Mutex::new(running), port, folder })
    }

    /// Kills it, and starts it again on its data and its port.
    pub fn start_again(&self) -> Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = running.child.kill();
        running.child.wait()?;
        (*running, _) = run(&self.folder, self.port)?;
        Ok(())
    }

    /// What it does with the next statement that begins so: `lose` the answer, `die` before, `hang`, `passing` for an error
    /// that passes, or `wait`, which `go` ends.
    pub fn tell(&self, statement: &str, what: &str) -> Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(running.ask, "{statement}|{what}")?;
        loop {
            match line(&mut running.said)?.as_str() {
                "noted" => return Ok(()),
                // What it was told before, and nobody waited for.
                said => ensure!(said.starts_with("did "), "{said}"),
            }
        }
    }

    /// Waits until it has done what it was told.
    ///
    /// # Errors
    /// It did something else.
    pub fn await_done(&self, what: &str) -> Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let said = line(&mut running.said)?;
        ensure!(said == format!("did {what}"), "{said}");
        Ok(())
    }

    /// The answer to a statement.
    pub async fn ask(&self, sql: &str) -> Result<String> {
        let url = format!("http://127.0.0.1:{}/?database=waymark", self.port);
        let request = client()?.post(url).body(sql.to_owned());
        let request = request.header("x-clickhouse-user", "waymark").header("x-clickhouse-key", PASSWORD);
        let answer = request.send().await?;
        let (status, said) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{sql}: {said}");
        Ok(said)
    }

    /// The value of `WAYMARK_SCANS_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("clickhouse://waymark:a%20p%40ssword%2Fof%20scans@127.0.0.1:{}/waymark", self.port)
    }

    /// The same as the product reads it.
    ///
    /// # Errors
    /// None: the URL is right.
    pub fn server(&self) -> Result<ScanServer> {
        Ok(self.url().parse()?)
    }
}

fn run(folder: &tempfile::TempDir, port: u16) -> Result<(Running, u16)> {
    let mut child = Command::new(python::listed_programs("clickhouse")?.join("python"))
        .arg(root().join("tests/clients/clickhouse/serve.py"))
        .arg(folder.path())
        .arg(port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let ask = child.stdin.take().context("stdin")?;
    let said = BufReader::new(child.stdout.take().context("stdout")?);
    let mut running = Running { child: Killed(child), ask, said };
    let said = line(&mut running.said)?;
    let port = said.strip_prefix("listening ").with_context(|| said.clone())?.parse()?;
    Ok((running, port))
}

fn line(said: &mut BufReader<ChildStdout>) -> Result<String> {
    let mut line = String::new();
    ensure!(said.read_line(&mut line)? > 0, "ClickHouse has ended");
    Ok(line.trim().to_owned())
}
