//! Starts processes and waits until they say that they are up.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{DEADLINE, Options};
use crate::db::{Location, TestDb};

/// The log of a product, outside of its data.
pub(super) fn log_beside(data: &Path) -> PathBuf {
    data.with_file_name("log")
}

/// Starts the process and waits until it says that it is up; gives what it said, without indents.
pub(super) fn spawn(
    mut command: Command,
    data: &Path,
    key: &str,
    options: Options,
    db: Option<&TestDb>,
) -> Result<(Child, Vec<String>)> {
    command.arg("up").env("WAYMARK_DATA_DIR", data).env("WAYMARK_OPERATOR_KEY", key).env("RUST_LOG", "warn");
    // Receivers of tests are on this machine.
    command.env("WAYMARK_WEBHOOKS_LOOPBACK", "true");
    command.env("WAYMARK_ABUSE_CONTACT", "abuse@example.com");
    // Whoever comes through the edge is no program of this machine, and tests send wrong keys by the hundred.
    command.env("WAYMARK_REFUSALS_PER_ADDRESS", "0");
    if !options.domains.is_empty() {
        command.env("WAYMARK_SHORT_DOMAINS", options.domains);
    }
    if options.dev_tls {
        command.env("WAYMARK_DEV_TLS", "1");
    }
    if options.unlimited {
        command.env("WAYMARK_REQUESTS_PER_KEY", "0");
    }
    if options.cities {
        let cities = data.with_file_name("cities.mmdb");
        let networks = [
            (
                "203.0.113.0/24",
                json!({"city": "Köln", "country_code": "DE", "state1": "North Rhine-Westphalia", "asn": "AS64512"}),
            ),
            ("198.51.100.0/24", json!({"country_code": "FR"})),
        ];
        std::fs::write(&cities, crate::mmdb::database(4, &networks))?;
        command.env("WAYMARK_GEOIP_DB", cities).env("WAYMARK_TRUSTED_PROXIES", "127.0.0.1");
    }
    if options.logged {
        let log = std::fs::File::options().create(true).append(true).open(log_beside(data))?;
        command.env("RUST_LOG", "info").stderr(log);
    }
    if let Some(Location::Postgres(url)) = db.map(|db| &db.location) {
        command.env("DATABASE_URL", url);
    }
    spawn_up(&mut command, DEADLINE)
}

/// Settings that let a process listen on free ports; a name is such as `API` of `WAYMARK_API_LISTEN`.
#[must_use]
pub fn free_ports<const N: usize>(names: [&str; N]) -> [(String, &'static str); N] {
    names.map(|name| (format!("WAYMARK_{name}_LISTEN"), "127.0.0.1:0"))
}

/// What stands behind a label such as `API ` in the lines of a start.
///
/// # Errors
/// No line begins so.
pub fn value_of(lines: &[String], label: &str) -> Result<String> {
    let found = lines.iter().find_map(|line| line.strip_prefix(label)).map(|text| text.trim().to_owned());
    found.with_context(|| format!("no line {label:?} in {lines:?}"))
}

/// Starts a command that becomes `waymark up`, and waits until it says that it is up; gives what it said,
/// line by line and without indents.
///
/// # Errors
/// It does not start in time, and is ended then.
pub fn spawn_up(command: &mut Command, deadline: Duration) -> Result<(Child, Vec<String>)> {
    spawn_until(command, "Ctrl-C", deadline)
}

/// Starts a command and waits until it says a line that begins with `last`; gives what it said before, line by
/// line and without indents.
///
/// # Errors
/// It does not start in time, and is ended then.
pub fn spawn_until(command: &mut Command, last: &str, deadline: Duration) -> Result<(Child, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("{command:?}"))?;
    let stdout = child.stdout.take().context("no stdout")?;
    let (lines, said) = mpsc::channel();
    std::thread::spawn(move || {
        // Reads to the end, so that the process never waits for us.
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = lines.send(line.trim().to_owned());
        }
    });
    let begun = Instant::now();
    let mut heard = Vec::new();
    while let Ok(line) = said.recv_timeout(deadline.saturating_sub(begun.elapsed())) {
        if line.starts_with(last) {
            return Ok((child, heard));
        }
        heard.push(line);
    }
    let _ = child.kill();
    let _ = child.wait();
    bail!("it did not come up; it said {heard:?}")
}
