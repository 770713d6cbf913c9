//! Real clients: the vendor's SDK and a browser drive the real product over TLS (`tests/clients`).

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{
    db::Engine,
    product::{Options, Product, root},
    python,
};

crate::on_both_engines!(sdk_5, sdk_6, the_vendors_suite, the_suites_of_other_versions, python_evrythng);

/// The client for Python from PyPI, unmodified; it knows no TLS settings.
async fn python_evrythng(engine: Engine) -> Result<()> {
    let python = python::programs("python_evrythng")?.join("python");
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let mut command = Command::new(python);
    command
        .arg(root().join("tests/clients/python_evrythng/walk.py"))
        .env("WAYMARK_API_URL", &product.api)
        .env("WAYMARK_OPERATOR_KEY", &product.key)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && said.trim_end().ends_with("done"), "{output:?}");
    Ok(())
}

async fn sdk_5(engine: Engine) -> Result<()> {
    drive(engine, &["sdk.mjs", "5"]).await
}

async fn sdk_6(engine: Engine) -> Result<()> {
    drive(engine, &["sdk.mjs", "6"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_follows_and_shows() {
    drive(Engine::Sqlite, &["browser.mjs"]).await.unwrap();
}

/// Tests of the vendor's suite, and how many of them are of what Waymark does not have: reactor scripts. Two more have
/// no body and are pending.
const VENDORS: (usize, usize) = (206, 8);

/// The same of the versions 5.0.0 and 5.1.0, which create redirections by `…/redirector` and `*/*`, and of 6.0.5, whose
/// suite is about access policies and access tokens.
const OTHERS: [(&str, (usize, usize)); 3] =
    [("--sdk=5.0", (193, 8)), ("--sdk=5.1", (196, 8)), ("--sdk=6", (6, 0))];

async fn the_vendors_suite(engine: Engine) -> Result<()> {
    suite(engine, &["e2e.mjs"], VENDORS).await
}

async fn the_suites_of_other_versions(engine: Engine) -> Result<()> {
    for (version, expected) in OTHERS {
        suite(engine, &["e2e.mjs", version], expected).await.context(version)?;
    }
    Ok(())
}

/// Runs a suite of the vendor; none of its tests fails, and so many there are, and are left out.
async fn suite(engine: Engine, script: &[&str], expected: (usize, usize)) -> Result<()> {
    let output = run(engine, script).await?;
    let said = String::from_utf8_lossy(&output.stdout);
    let tests: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["state"].is_string())
        .collect();
    let of = |state: &str| tests.iter().filter(|test| test["state"] == state).collect::<Vec<_>>();
    let failed: Vec<String> = of("failed")
        .into_iter()
        .map(|test| format!("{} > {}: {}", test["group"], test["title"], test["error"]))
        .collect();
    // In this order they are in what a failure says.
    let counts = ["passed", "failed", "pending", "excluded"].map(|state| of(state).len());
    ensure!(
        failed.is_empty(),
        "{engine:?}: {counts:?}\n{}\n{}",
        failed.join("\n"),
        String::from_utf8_lossy(&output.stderr)
    );
    let count = tests.iter().filter(|test| test["hook"] != true && test["state"] != "pending").count();
    ensure!(
        count == expected.0 && counts[3] == expected.1,
        "{engine:?}: {count} tests, {counts:?}\n{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Runs one script of ours against a product of its own; every step must pass.
async fn drive(engine: Engine, script: &[&str]) -> Result<()> {
    let output = run(engine, script).await?;
    let said = String::from_utf8_lossy(&output.stdout);
    let (passed, failed) = said.lines().last().and_then(totals).unwrap_or((0, u32::MAX));
    ensure!(
        output.status.success() && passed > 0 && failed == 0,
        "{script:?} on {engine:?}: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Runs a script against a product of its own, over TLS.
async fn run(engine: Engine, script: &[&str]) -> Result<Output> {
    let folder = root().join("tests/clients");
    ensure!(
        folder.join("node_modules").is_dir(),
        "tests/clients/node_modules is missing: run the tests by tests/run, or `npm ci` in tests/clients"
    );
    let product =
        Product::start(Options { engine, dev_tls: true, domains: "tn.gg", ..Options::default() }).await?;
    let edge = product.edge_tls.as_deref().context("no TLS at the edge")?;
    Command::new("node")
        .args(script)
        .current_dir(&folder)
        .env("WAYMARK_API_URL", product.api_tls.as_deref().context("no TLS at the API")?)
        .env("WAYMARK_OPERATOR_KEY", &product.key)
        .env("WAYMARK_SHORT_DOMAIN", "tn.gg")
        .env("WAYMARK_EDGE_TLS_PORT", edge.rsplit(':').next().context("no port")?)
        .env("NODE_EXTRA_CA_CERTS", product.data.join("dev-tls/ca.pem"))
        .output()
        .context("node")
}

/// Reads the closing line `N passed, M failed`.
fn totals(line: &str) -> Option<(u32, u32)> {
    let (passed, failed) = line.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}
