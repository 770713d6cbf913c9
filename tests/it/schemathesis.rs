//! Schemathesis over the OpenAPI document: every check (`tests/clients/schemathesis`). On Postgres, which takes fewer
//! texts and numbers than SQLite; in `tests/run --long` on both engines.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use tests::{
    db::Engine,
    is_long,
    product::{Options, Product, root},
    python, repetitions,
};

/// How long it may look on each engine, in seconds, unless `WAYMARK_TEST_FUZZ_SECONDS` says otherwise: in the gate, and in
/// the long form.
const SECONDS: [&str; 2] = ["35", "60"];

/// The document's examples name it.
const DOMAIN: &str = "tn.gg";

/// The short form looks at the same requests each time; a long one at others.
const SEED: &str = "20261121";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let tool = python::programs("schemathesis").unwrap().join("schemathesis");
    let engines: &[Engine] =
        if is_long() { &[Engine::Sqlite, Engine::Postgres] } else { &[Engine::Postgres] };
    for engine in engines.iter().copied() {
        look(&tool, scratch.path(), engine).await.unwrap();
    }
}

async fn look(tool: &Path, scratch: &Path, engine: Engine) -> Result<()> {
    let product =
        Product::start(Options { engine, dev_tls: false, domains: DOMAIN, ..Options::default() }).await?;
    let long = std::env::var("WAYMARK_TEST_FUZZ_SECONDS").ok();
    let seconds = long.as_deref().unwrap_or(repetitions(SECONDS[0], SECONDS[1]));
    let mut command = Command::new(tool);
    command
        // It leaves its notes where it stands.
        .current_dir(scratch)
        .arg("--config-file")
        .arg(root().join("tests/clients/schemathesis/schemathesis.toml"))
        .args(["run", &format!("{}/openapi.json", product.api), "--checks", "all", "--no-color"])
        // A list below a resource is empty, not absent, when all in it is deleted: this check knows no such lists.
        .args(["--exclude-checks", "use_after_free"])
        // Where sessions count no key is taken, and which password is right depends on the one before: `signin`.
        .args(["--exclude-path-regex", "^/(console/|me/password$)"])
        .args(["--continue-on-failure", "--warnings", "off", "--generation-database", "none"])
        .args(["--max-time", seconds])
        .args(["--header", &format!("Authorization: {}", product.key)])
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", root().join("tests/clients/schemathesis"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WAYMARK_API_URL", &product.api)
        .env("WAYMARK_OPERATOR_KEY", &product.key)
        .env("WAYMARK_SHORT_DOMAIN", DOMAIN);
    if long.is_none() {
        command.args(["--seed", SEED]);
    }
    let output = command.output().with_context(|| format!("{}", tool.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    // A run that tested nothing would also find nothing.
    let is_whole = said.contains("No issues found") || said.contains("passed");
    ensure!(
        output.status.success() && is_whole,
        "{engine:?}: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
