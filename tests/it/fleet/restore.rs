//! The restore drill: a dump, later changes, loss of the database, a start from the dump.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use kernel::store::Db;
use redirects::store::log;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    campaign::postgres::Postgres,
    db::{POSTGRES_URL, random16},
    fleet::Fleet,
    fleet_edge::FleetEdge,
    raw_edge::{RawEdge, hello},
};

use super::{replicas::edges, until};

/// A database of the test's own in the server of all tests.
async fn create_database() -> Result<String> {
    let url = std::env::var(POSTGRES_URL).context(POSTGRES_URL)?;
    let name: String = random16()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("t{name}");
    execute(&url, format!("CREATE DATABASE {name}")).await?;
    let (server, _) = url.rsplit_once('/').context("a URL with a database")?;
    Ok(format!("{server}/{name}"))
}

async fn drop_database(url: &str) -> Result<()> {
    let (_, name) = url.rsplit_once('/').context("a URL with a database")?;
    let admin = std::env::var(POSTGRES_URL).context(POSTGRES_URL)?;
    execute(&admin, format!("DROP DATABASE {name} WITH (FORCE)")).await
}

async fn execute(url: &str, sql: String) -> Result<()> {
    let pool = sqlx::PgPool::connect(url).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await?;
    pool.close().await;
    Ok(())
}

/// Runs a tool of Postgres.
fn tool(name: &str, args: &[&str]) -> Result<()> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").context("Postgres is not installed")?;
    let paths = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)));
    let path: PathBuf = paths.filter(|path| path.exists()).max().context("Postgres is not installed")?;
    let output = Command::new(path).args(args).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {said}");
    Ok(())
}

async fn put(fleet: &Fleet, short_id: &str, target: &str) -> Result<()> {
    let path = format!("/redirections/{short_id}?wait=edges&timeout=20s");
    let (status, body) =
        fleet.call(0, Method::PUT, &path, Some(json!({"defaultRedirectUrl": target}))).await?;
    ensure!(status == StatusCode::OK, "{status} {body}");
    Ok(())
}

async fn delete(fleet: &Fleet, short_id: &str) -> Result<()> {
    let path = format!("/redirections/{short_id}?wait=edges&timeout=20s");
    let (status, body) = fleet.call(0, Method::DELETE, &path, None).await?;
    ensure!(status == StatusCode::OK, "{status} {body}");
    Ok(())
}

/// Whether each edge answers each short id as expected: a target, or 404 without one.
async fn leads(fleet: &Fleet, edges: &[FleetEdge], expected: &[(&str, Option<&str>)]) -> Result<bool> {
    for edge in edges {
        for (short_id, target) in expected {
            let (status, location) = edge.scan(&fleet.http, short_id).await?;
            let code = if target.is_some() { 307 } else { 404 };
            if (status.as_u16(), location.as_deref()) != (code, *target) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

const OLD: &str = "https://example.com/old";
const NEW: &str = "https://example.com/new";

/// The drill: `target` is an empty database, in the same server or another one.
async fn drill(target: &str) -> Result<()> {
    let source = create_database().await?;
    let db = Db::connect_postgres(&source).await?;
    let mut fleet = Fleet::start_on(source.clone(), db, 2).await?;
    let product = fleet.create_product(0).await?;
    let running = [fleet.add_edge("e1")?, fleet.add_edge("e2")?];
    for edge in &running {
        edge.until_live(&fleet.http, 0).await?;
    }
    for short_id in ["KEPT", "CHANGED", "REVIVED", "GONE"] {
        let (status, body) = fleet.create_redirection(0, &product, Some(short_id), "").await?;
        ensure!(status == StatusCode::CREATED, "{body}");
        put(&fleet, short_id, OLD).await?;
    }
    delete(&fleet, "GONE").await?;
    let before = log::load_head(&mut fleet.db().read().await?).await?;

    let dump = fleet.dir.join("dump");
    let dump = dump.to_str().context("path")?;
    tool("pg_dump", &["-Fc", "-f", dump, &source])?;

    // After the dump: all of it is going to be lost, and every edge holds it.
    put(&fleet, "CHANGED", NEW).await?;
    delete(&fleet, "REVIVED").await?;
    fleet.create_redirection(0, &product, Some("LOST"), "?wait=edges&timeout=20s").await?;
    let newer = [
        ("KEPT", Some(OLD)),
        ("CHANGED", Some(NEW)),
        ("REVIVED", None),
        ("LOST", Some("https://example.com/")),
        ("GONE", None),
    ];
    ensure!(leads(&fleet, &running, &newer).await?, "before the loss");
    let shown: Value = running[0].ready(&fleet.http).await?;
    let applied = shown["applied"].as_u64().context("applied")?;
    ensure!(applied == before.head + 3, "{shown}");

    // The operations page: stop all controls, restore, start one.
    for at in [0, 1] {
        fleet.controls[at].terminate()?;
        ensure!(fleet.controls[at].ended().await?.success());
    }
    ensure!(leads(&fleet, &running, &newer).await?, "meanwhile edges serve what they hold");
    tool("pg_restore", &["--no-owner", "-d", target, dump])?;
    fleet.move_to(target.to_owned(), Db::connect_postgres(target).await?);
    fleet.restart_control(0)?;

    // A new epoch: everything is as of the dump, on every edge, though each had heard of more.
    let expected =
        [("KEPT", Some(OLD)), ("CHANGED", Some(OLD)), ("REVIVED", Some(OLD)), ("LOST", None), ("GONE", None)];
    until("every edge serves the state of the dump", async || leads(&fleet, &running, &expected).await)
        .await?;
    let after = log::load_head(&mut fleet.db().read().await?).await?;
    ensure!(after.epoch != before.epoch && after.head == before.head, "{after:?} after {before:?}");

    // Revisions that were used before mean other things now.
    for (n, short_id) in ["AGAIN1", "AGAIN2", "AGAIN3", "AGAIN4"].into_iter().enumerate() {
        let (status, body) =
            fleet.create_redirection(0, &product, Some(short_id), "?wait=edges&timeout=20s").await?;
        ensure!(status == StatusCode::CREATED && body["acked"] == 2 && body["members"] == 2, "{body}");
        ensure!(body["rev"] == before.head + 1 + n as u64, "{body}");
        ensure!(leads(&fleet, &running, &[(short_id, Some("https://example.com/"))]).await?);
    }
    ensure!(leads(&fleet, &running, &expected).await?, "and nothing of the lost history comes back");

    // An edge that holds nothing reads the state, too.
    let fresh = [fleet.add_edge("e3")?];
    fresh[0].until_live(&fleet.http, before.head + 4).await?;
    ensure!(leads(&fleet, &fresh, &expected).await?, "from the view, or from control");
    // The publisher's lease came back with the dump: it runs out first.
    until("the view is rebuilt", async || {
        let metrics = fleet.controls[0].metrics(&fleet.http).await?;
        Ok(metrics.get("waymark_control_publisher_rebuilds_total") >= Some(&1.0))
    })
    .await?;

    // The second replica comes back too.
    fleet.restart_control(1)?;
    until("both know all edges", async || {
        Ok(edges(&fleet, 0).await?.len() == 3 && edges(&fleet, 1).await?.len() == 3)
    })
    .await?;
    let (status, body) =
        fleet.create_redirection(1, &product, Some("LAST"), "?wait=edges&timeout=20s").await?;
    ensure!(status == StatusCode::CREATED && body["acked"] == 3, "{body}");
    drop(fleet);
    drop_database(&source).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore_drill_into_another_server() -> Result<()> {
    let server = Postgres::start()?;
    drill(&server.url()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore_drill_into_the_same_server() -> Result<()> {
    let target = create_database().await?;
    drill(&target).await?;
    drop_database(&target).await
}

/// A disk that was set back shows neither another server nor another table: an edge that has seen more does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_ahead_of_the_log_starts_a_new_epoch() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    let key = fleet.edge_key("e1")?;
    for _ in 0..3 {
        fleet.create_redirection(0, &product, None, "").await?;
    }
    let before = log::load_head(&mut fleet.db().read().await?).await?;
    fleet.controls[0].terminate()?;
    fleet.controls[0].ended().await?;
    let set_back = "DELETE FROM redirect_log WHERE rev > 1; DELETE FROM redirections WHERE rev > 1; \
        UPDATE log_head SET head = 1";
    execute(fleet.database_url(), set_back.to_owned()).await?;
    fleet.restart_control(0)?;
    let internal = fleet.controls[0].internal.clone();
    let at = hello("e1", Some(before.epoch.clone()), before.head);
    ensure!(RawEdge::connect(&internal, &key, at).await.is_err(), "it is not let in");
    ensure!(fleet.controls[0].ended().await?.code() == Some(75), "a new start will work");
    fleet.restart_control(0)?;
    let internal = fleet.controls[0].internal.clone();
    let at = hello("e1", Some(before.epoch.clone()), before.head);
    let (_, welcome) = RawEdge::connect(&internal, &key, at).await?;
    ensure!(welcome.epoch != before.epoch && welcome.head == 1, "{welcome:?}");
    Ok(())
}
