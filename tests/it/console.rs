//! The console in a browser, against the real product (`tests/clients/console.mjs`), and the link that signs in once.

mod look;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tests::product::{binary, free_ports, root};

use crate::walk::Up;

/// The product as `deploy/run` starts it, with the city database of the guides.
fn start(home: &std::path::Path, settings: &[(&str, &str)]) -> Result<Up> {
    let cities = home.join("cities.mmdb");
    let made = Command::new(root().join("deploy/tour")).arg("--database").arg(&cities).status()?;
    ensure!(made.success(), "deploy/tour --database");
    let mut command = Command::new(binary()?);
    command.arg("up").current_dir(home).stderr(Stdio::inherit());
    command.envs(free_ports(["API", "EDGE", "MQTT", "ADMIN"])).envs([
        ("WAYMARK_GEOIP_DB", "cities.mmdb"),
        // From where the test scans. A proxy at 127.0.0.1 would pass on what the browser asks, too.
        ("WAYMARK_TRUSTED_PROXIES", "127.0.0.2"),
        // The receiver of its webhooks.
        ("WAYMARK_WEBHOOKS_LOOPBACK", "true"),
        ("RUST_LOG", "warn"),
    ]);
    command.envs(settings.iter().copied());
    Up::start(&mut command)
}

#[test]
fn every_screen_shows_what_the_api_says() -> Result<()> {
    ensure!(
        webconsole::is_built(),
        "the console is not built: run control/console/build, then build the tests again"
    );
    let home = tempfile::tempdir()?;
    let up = start(home.path(), &[("WAYMARK_LOGINS_PER_ADDRESS", "0")])?;
    node(&up, Command::new("node").arg("console.mjs").current_dir(root().join("tests/clients")))?;
    Ok(())
}

/// Runs a script against the product; gives what it said.
fn node(up: &Up, script: &mut Command) -> Result<String> {
    let output = script
        .env("WAYMARK_API_URL", up.line("API")?)
        .env("WAYMARK_OPERATOR_KEY", up.line("Operator key")?)
        .env("WAYMARK_CONSOLE_LINK", up.line("Console")?)
        .output()
        .context("node")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed = said.lines().last().is_some_and(|line| line.ends_with(" passed, 0 failed"));
    let faults: Vec<&str> = said.lines().filter(|line| !line.starts_with("ok - ")).collect();
    ensure!(
        output.status.success() && passed,
        "{}\n{}",
        faults.join("\n"),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(said)
}

#[test]
fn no_link_is_printed_where_others_reach_the_api() -> Result<()> {
    for settings in [
        [("WAYMARK_PUBLIC_URL", "https://api.example.com")],
        [("WAYMARK_BEHIND_TLS_PROXY", "true")],
        [("WAYMARK_TRUSTED_PROXIES", "127.0.0.1")],
    ] {
        let home = tempfile::tempdir()?;
        let up = start(home.path(), &settings)?;
        let console = up.line("Console")?;
        ensure!(console.ends_with("/console/") && !console.contains('#'), "{settings:?}: {console}");
    }
    let home = tempfile::tempdir()?;
    let up = start(home.path(), &[])?;
    let (page, code) = up.line("Console")?.split_once("#sign-in=").context("no link")?;
    ensure!(page == format!("{}/console/", up.line("API")?) && code.len() == 80, "{page} {code}");
    Ok(())
}
