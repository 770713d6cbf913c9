//! Tools that use the OpenAPI document: linters, and generated clients (`tests/clients/openapi`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tests::{
    db::Engine,
    product::{Options, Product, root},
    python,
};

fn folder() -> PathBuf {
    root().join("tests/clients/openapi")
}

/// Runs a command to its end; gives what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{said}\n{error}", output.status);
    Ok(said)
}

/// A program of npm, run in a folder.
fn npm(program: &str, scratch: &Path) -> Result<Command> {
    let path = folder().join("node_modules/.bin").join(program);
    ensure!(
        path.exists(),
        "{} is missing: run the tests by tests/run, or `npm ci` in tests/clients/openapi",
        path.display()
    );
    let mut command = Command::new(path);
    // Neither asks for a newer version nor reports its use.
    command
        .current_dir(scratch)
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .env("REDOCLY_TELEMETRY", "off");
    Ok(command)
}

/// The document in a folder of its own.
fn scratch() -> Result<tempfile::TempDir> {
    let scratch = tempfile::tempdir()?;
    fs::write(scratch.path().join("openapi.json"), control::http::document().to_string())?;
    Ok(scratch)
}

/// Redocly looks at the examples, for which Spectral takes ten times as long.
const SPECTRAL: &str = "extends: [\"spectral:oas\"]\nrules:\n  oas3-valid-media-example: off\n  \
    oas3-valid-schema-example: off\n";
const REDOCLY: &str = "extends: [recommended]\nrules:\n  no-invalid-media-type-examples: error\n  \
    no-invalid-schema-examples: error\n  no-invalid-parameter-examples: error\n";

#[test]
fn linters_find_no_error_in_the_document() {
    let scratch = scratch().unwrap();
    let folder = scratch.path();
    fs::write(folder.join(".spectral.yaml"), SPECTRAL).unwrap();
    fs::write(folder.join("redocly.yaml"), REDOCLY).unwrap();
    let spectral = ["lint", "openapi.json", "--fail-severity", "error", "--format", "text"];
    run(npm("spectral", folder).unwrap().args(spectral)).unwrap();
    run(npm("redocly", folder).unwrap().args(["lint", "openapi.json"])).unwrap();
}

crate::on_both_engines!(
    clients_of_openapi_typescript_and_hey_api_walk,
    the_client_of_openapi_python_client_walks
);

async fn start(engine: Engine) -> Result<Product> {
    Product::start(Options { engine, domains: "tn.gg", ..Options::default() }).await
}

async fn clients_of_openapi_typescript_and_hey_api_walk(engine: Engine) -> Result<()> {
    let product = start(engine).await?;
    let scratch = scratch()?;
    let path = scratch.path();
    std::os::unix::fs::symlink(folder().join("node_modules"), path.join("node_modules"))?;
    fs::copy(folder().join("walk.ts"), path.join("walk.ts"))?;
    run(npm("openapi-typescript", path)?.args(["openapi.json", "-o", "openapi-typescript.d.ts"]))?;
    let client = ["-i", "openapi.json", "-o", "hey-api", "-c", "@hey-api/client-fetch"];
    run(npm("openapi-ts", path)?.args(client))?;
    // A type of the document that does not fit the walk is an error here.
    let typed = ["--strict", "--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--types", "node"];
    let modules =
        ["--module", "commonjs", "--moduleResolution", "node10", "--esModuleInterop", "--skipLibCheck"];
    run(npm("tsc", path)?.args(typed).args(modules).args(["--outDir", "out", "walk.ts"]))?;
    let said = run(Command::new("node")
        .arg("out/walk.js")
        .current_dir(path)
        .env("WAYMARK_API_URL", &product.api)
        .env("WAYMARK_OPERATOR_KEY", &product.key))?;
    ensure!(said.contains("ok - openapi-typescript") && said.contains("ok - hey-api"), "{said}");
    Ok(())
}

async fn the_client_of_openapi_python_client_walks(engine: Engine) -> Result<()> {
    let product = start(engine).await?;
    let scratch = scratch()?;
    let path = scratch.path();
    let programs = python::programs("openapi")?;
    // What is generated is run, and not read: it need not be formatted.
    fs::write(path.join("config.yaml"), "post_hooks: []\n")?;
    let paths = std::env::var("PATH").unwrap_or_default();
    let said = run(Command::new(programs.join("openapi-python-client"))
        .args(["generate", "--path", "openapi.json", "--output-path", "waymark", "--meta", "none"])
        .args(["--config", "config.yaml"])
        .current_dir(path)
        .env("PATH", format!("{}:{paths}", programs.display())))?;
    // An operation that it cannot read is left out with a warning; an export is no JSON, and is said to be left out.
    ensure!(!said.contains("Endpoint will not be generated"), "{said}");
    let said = run(Command::new(programs.join("python"))
        .arg(folder().join("walk.py"))
        .current_dir(path)
        .env("PYTHONPATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WAYMARK_API_URL", &product.api)
        .env("WAYMARK_OPERATOR_KEY", &product.key))?;
    ensure!(said.contains("ok - openapi-python-client"), "{said}");
    Ok(())
}
