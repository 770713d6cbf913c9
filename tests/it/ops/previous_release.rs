//! The binaries of the newest tagged release beside those of this one; `tests/previous_release` builds them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::StatusCode;
use serde_json::json;
use tests::{
    fleet::Fleet,
    killed::Killed,
    product::{DEADLINE, Options, PHONE, Product, free_ports, root, spawn_until, spawn_up, value_of},
};

use crate::fleet::until;

/// A binary of the newest tagged release; `None` where it was not built and `WAYMARK_TEST_PREVIOUS` does not say
/// `required`.
#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
fn previous_release(name: &str) -> Result<Option<PathBuf>> {
    let tags = git(&["tag", "--list", "v*", "--sort=-v:refname"])?;
    let folder = root().join("target/previous");
    let path = tags.lines().next().map(|tag| folder.join(tag).join(name)).filter(|path| path.is_file());
    if path.is_none() {
        if std::env::var("WAYMARK_TEST_PREVIOUS").is_ok_and(|value| value == "required") {
            bail!("no release is tagged, or tests/previous_release has not built {name} of {tags:?}");
        }
        eprintln!("not run: tests/previous_release has not built {name} of a tagged release");
    }
    Ok(path)
}

fn git(args: &[&str]) -> Result<String> {
    Ok(String::from_utf8(Command::new("git").current_dir(root()).args(args).output()?.stdout)?)
}

/// Whether the newest tagged release may use the schema of this one: it knows the migration of `compatible_from`.
fn shares_the_schema() -> Result<bool> {
    let text = std::fs::read_to_string(root().join("control/kernel/migrations/compatible_from"))?;
    let from: u32 = text.lines().find_map(|line| line.parse().ok()).context("no number")?;
    let tags = git(&["tag", "--list", "v*", "--sort=-v:refname"])?;
    let tag = tags.lines().next().context("no tag")?;
    let files = git(&["ls-tree", "-r", "--name-only", tag])?;
    let migrations = files.lines().filter_map(|file| file.split_once("/migrations/sqlite/"));
    let newest = migrations.filter_map(|(_, name)| name.get(..4)?.parse::<u32>().ok()).max();
    Ok(newest.is_some_and(|newest| newest >= from))
}

/// A start of a release whose schema is too old: it changes nothing.
fn refused(mut command: Command) -> Result<()> {
    let output = command.output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(64) && error.contains("newer release"),
        "{:?} {error}",
        output.status
    );
    Ok(())
}

/// A process that is killed when the test ends, and what it said at its start.
struct Running {
    _child: Killed,
    said: Vec<String>,
}

impl Running {
    fn told(&self, label: &str) -> Result<String> {
        value_of(&self.said, label)
    }
}

/// Starts `control serve` of a release over the fleet's database.
fn serve(fleet: &Fleet, binary: &Path) -> Result<Running> {
    // It shares the schema, in which secrets are encrypted.
    let mut command = serve_command(fleet, binary);
    command.env("WAYMARK_SECRET_KEY_FILE", fleet.secret_key_file());
    let (child, said) = spawn_up(&mut command, DEADLINE)?;
    Ok(Running { _child: Killed(child), said })
}

fn serve_command(fleet: &Fleet, binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .arg("serve")
        .env("DATABASE_URL", fleet.database_url())
        .envs(fleet.redis_settings.iter().map(|(name, value)| (name, value)))
        .env("WAYMARK_FILES_URL", fleet.dir.join("files"));
    command.envs(free_ports(["API", "INTERNAL", "ADMIN"]));
    command
}

/// Creates a product by the API of a process.
async fn create_product(http: &reqwest::Client, api: &str, key: &str) -> Result<String> {
    let request = http.post(format!("{api}/products")).header("authorization", key);
    let response = request.json(&json!({"name": "Bag"})).send().await?;
    ensure!(response.status() == StatusCode::CREATED, "{}", response.status());
    let body: serde_json::Value = response.json().await?;
    Ok(body["id"].as_str().unwrap_or_default().to_owned())
}

/// Creates a redirection that one edge acknowledges, opens it there, and finds the scan among the actions.
async fn a_link_works(fleet: &Fleet, api: &str, edge: &str) -> Result<()> {
    let product = create_product(&fleet.http, api, &fleet.key).await?;
    let body = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "ABC"});
    let request = fleet.http.post(format!("{api}/redirections?wait=edges&timeout=20s"));
    let request = request.header("authorization", &fleet.key).header("accept", "application/json");
    let response = request.json(&body).send().await?;
    let (status, body) = (response.status(), response.json::<serde_json::Value>().await?);
    ensure!(status == StatusCode::CREATED && body["acked"] == 1 && body["members"] == 1, "{status} {body}");
    let scan = fleet.http.get(format!("{edge}/ABC")).header("host", "tn.gg").header("user-agent", PHONE);
    let status = scan.send().await?.status();
    ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status}");
    until("the scan is an action", async || {
        let url = format!("{api}/products/{product}/actions/implicitScans");
        let response = fleet.http.get(url).header("authorization", &fleet.key).send().await?;
        Ok(response.json::<Vec<serde_json::Value>>().await?.len() == 1)
    })
    .await
}

/// The release before starts and writes on the schema of this one, or refuses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_runs_beside_this_one() -> Result<()> {
    let Some(previous) = previous_release("control")? else { return Ok(()) };
    let fleet = Fleet::start(1).await?;
    if !shares_the_schema()? {
        return refused(serve_command(&fleet, &previous));
    }
    let control = serve(&fleet, &previous)?;
    create_product(&fleet.http, &control.told("API ")?, &fleet.key).await?;
    fleet.create_product(0).await?;
    Ok(())
}

/// `waymark up` of the release before starts on a SQLite database that this one has migrated, and this one after it;
/// or it refuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waymark_up_starts_on_the_database_of_this_one() -> Result<()> {
    let Some(previous) = previous_release("waymark")? else { return Ok(()) };
    let mut product = Product::start(Options::default()).await?;
    let first = product.create_product().await?;
    ensure!(product.stop()?.success());
    let mut command = Command::new(previous);
    command.arg("up").env("WAYMARK_DATA_DIR", &product.data).env("WAYMARK_OPERATOR_KEY", &product.key);
    command.envs(free_ports(["API", "EDGE", "MQTT", "ADMIN"]));
    if !shares_the_schema()? {
        refused(command)?;
        product.start_again()?;
        ensure!(product.list("/products").await?.iter().any(|one| one["id"] == first));
        return Ok(());
    }
    let (child, said) = spawn_up(&mut command, DEADLINE)?;
    let older = Running { _child: Killed(child), said };
    let api = older.told("API ")?;
    let second = create_product(&product.http, &api, &product.key).await?;
    drop(older);
    product.start_again()?;
    let all = product.list("/products").await?;
    for id in [first, second] {
        ensure!(all.iter().any(|one| one["id"] == id), "{id} is not in {all:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_follows_this_control() -> Result<()> {
    let Some(previous) = previous_release("edge")? else { return Ok(()) };
    let fleet = Fleet::start(1).await?;
    let mut command = Command::new(previous);
    command.envs(fleet.edge_settings("e1")?).envs(fleet.redis_settings.clone());
    command.envs(free_ports(["EDGE", "ADMIN"]));
    let (child, said) = spawn_until(&mut command, "Ready", DEADLINE)?;
    let edge = Running { _child: Killed(child), said };
    a_link_works(&fleet, &fleet.controls[0].api, &edge.told("Edge ")?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_leads_this_edge() -> Result<()> {
    let Some(previous) = previous_release("control")? else { return Ok(()) };
    if !shares_the_schema()? {
        return Ok(());
    }
    let fleet = Fleet::start(0).await?;
    let control = serve(&fleet, &previous)?;
    let api = control.told("API ")?;
    let mut settings = fleet.redis_settings.clone();
    settings.push(("WAYMARK_CONTROL_URLS", control.told("Internal ")?));
    settings.push(("WAYMARK_API_URLS", api.clone()));
    let edge = fleet.add_edge_with("e1", settings)?;
    a_link_works(&fleet, &api, &edge.url).await
}

/// Without a tag no test above would notice that the script is gone.
#[test]
fn the_script_that_builds_the_previous_release_is_there() {
    assert!(root().join("tests/previous_release").is_file());
}
