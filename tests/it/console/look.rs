//! The console of an account that `waymark demo` has filled: what the overview shows of it, pictures, and what Lighthouse says.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Result, ensure};
use tests::product::{binary, root};

use super::{node, start};
use crate::walk::Up;

/// Items of the demo: a city of each country, and cases to decide.
const ITEMS: &str = "300";

fn filled(home: &std::path::Path) -> Result<Up> {
    ensure!(
        webconsole::is_built(),
        "the console is not built: run control/console/build, then build the tests again"
    );
    let up = start(home, &[("WAYMARK_LOGINS_PER_ADDRESS", "0")])?;
    let demo = Command::new(binary()?)
        .args(["demo", "--items", ITEMS])
        .env("WAYMARK_API_URL", up.line("API")?)
        .env("WAYMARK_OPERATOR_KEY", up.line("Operator key")?)
        .stdin(Stdio::null())
        .output()?;
    ensure!(demo.status.success(), "waymark demo: {}", String::from_utf8_lossy(&demo.stderr));
    Ok(up)
}

/// Writes the pictures of the README with `WAYMARK_REFRESH_PICTURES=1`; otherwise those that it makes are thrown away.
#[test]
fn the_overview_shows_a_demo_and_pictures_are_small() -> Result<()> {
    let home = tempfile::tempdir()?;
    let up = filled(home.path())?;
    let is_refresh = std::env::var_os("WAYMARK_REFRESH_PICTURES").is_some();
    let folder = if is_refresh { root().join("deploy/pictures") } else { home.path().join("pictures") };
    let said = node(
        &up,
        Command::new("node")
            .arg("console-pictures.mjs")
            .current_dir(root().join("tests/clients"))
            .env("WAYMARK_PICTURES", folder),
    )?;
    note(&said)
}

/// Of the long form (`tests/nextest.toml`): it takes most of a minute. `WAYMARK_LIGHTHOUSE=FOLDER` keeps whole reports.
#[test]
fn lighthouse_finds_the_sign_in_and_the_overview_accessible_and_well_made() -> Result<()> {
    let folder: PathBuf = root().join("tests/clients/lighthouse");
    ensure!(
        folder.join("node_modules").is_dir(),
        "tests/clients/lighthouse/node_modules is missing: run the tests by tests/run --long, or `npm ci` there"
    );
    let home = tempfile::tempdir()?;
    let up = filled(home.path())?;
    note(&node(&up, Command::new("node").arg("lighthouse.mjs").current_dir(folder))?)
}

/// Shows the figures that a script prints, for whoever runs the tests with their output.
fn note(said: &str) -> Result<()> {
    let mut out = std::io::stderr().lock();
    for line in said.lines().filter(|line| line.starts_with("# ")) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
