//! Real clients: the vendor's SDK and a browser drive the real product over TLS (`tests/clients`).

use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::{
    db::Engine,
    product::{Options, Product, root},
};

crate::on_both_engines!(sdk_5, sdk_6);

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

/// Runs one script against a product of its own; every step must pass.
async fn drive(engine: Engine, script: &[&str]) -> Result<()> {
    let folder = root().join("tests/clients");
    ensure!(
        folder.join("node_modules").is_dir(),
        "tests/clients/node_modules is missing: run the tests by tests/run, or `npm ci` in tests/clients"
    );
    let product = Product::start(Options { engine, dev_tls: true, domains: "tn.gg" }).await?;
    let edge = product.edge_tls.as_deref().context("no TLS at the edge")?;
    let output = Command::new("node")
        .args(script)
        .current_dir(&folder)
        .env("WAYMARK_API_URL", product.api_tls.as_deref().context("no TLS at the API")?)
        .env("WAYMARK_OPERATOR_KEY", &product.key)
        .env("WAYMARK_SHORT_DOMAIN", "tn.gg")
        .env("WAYMARK_EDGE_TLS_PORT", edge.rsplit(':').next().context("no port")?)
        .env("NODE_EXTRA_CA_CERTS", product.data.join("dev-tls/ca.pem"))
        .output()
        .context("node")?;
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

/// Reads the closing line `N passed, M failed`.
fn totals(line: &str) -> Option<(u32, u32)> {
    let (passed, failed) = line.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}
