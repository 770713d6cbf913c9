//! A control replica that accepts connections and answers nothing, as a stalled machine does; and no backend at all.

use std::{
    fs::{self, File},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use tests::{
    fleet::Fleet,
    killed::Killed,
    product::{DEADLINE, metrics_of, spawn_up},
    redis::signal,
};

use super::{replicas::edges, until};

/// Longest time in which an edge is with another replica: the silence that ends its stream, two time limits of a dial,
/// and pauses; an edge that waited for the silent one would need longer than this for a single attempt.
const MOVED: Duration = Duration::from_secs(8);

/// The replica that holds the stream of the one edge.
async fn holder(fleet: &Fleet) -> Result<usize> {
    for at in 0..fleet.controls.len() {
        let metrics = fleet.controls[at].metrics(&fleet.http).await?;
        if metrics.get("waymark_control_streams") == Some(&1.0) {
            return Ok(at);
        }
    }
    anyhow::bail!("nobody holds the stream")
}

async fn an_edge_leaves_a_silent_replica(is_full: bool) -> Result<()> {
    let mut fleet = Fleet::start(2).await?;
    let product = fleet.create_product(0).await?;
    let mut settings = fleet.redis_settings.clone();
    if is_full {
        settings.push(("WAYMARK_EDGE_REPLICA", "full".to_owned()));
    }
    let edge = fleet.add_edge_with("e1", settings)?;
    edge.until_live(&fleet.http, 0).await?;
    let wait = "?wait=edges&timeout=20s";
    ensure!(fleet.create_redirection(0, &product, Some("ONE"), wait).await?.0 == StatusCode::CREATED);
    ensure!(edge.scan(&fleet.http, "ONE").await?.0 == StatusCode::TEMPORARY_REDIRECT);
    let frozen = holder(&fleet).await?;
    let other = 1 - frozen;
    // Redis is away too: only a look-up at control knows what is new.
    fleet.redis.kill();
    signal(fleet.controls[frozen].pid(), "STOP")?;
    let begun = Instant::now();
    let (status, body) = fleet.create_redirection(other, &product, Some("TWO"), "").await?;
    ensure!(status == StatusCode::CREATED, "{status} {body}");
    // Until then the edge takes what it holds for all there is.
    until("the silence is noticed", async || {
        Ok(edge.ready(&fleet.http).await?["state"] != "LIVE" || begun.elapsed() > Duration::from_secs(2))
    })
    .await?;
    // At once: the look-up goes to the second replica when the first is silent.
    let asked = Instant::now();
    let (status, _) = edge.scan(&fleet.http, "TWO").await?;
    ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status} after {:?}", asked.elapsed());
    ensure!(asked.elapsed() < Duration::from_secs(1), "a look-up took {:?}", asked.elapsed());
    let moved = async || {
        Ok(edge.ready(&fleet.http).await?["state"] == "LIVE" && begun.elapsed() > Duration::from_secs(2))
    };
    until("the edge follows the other one", moved).await?;
    ensure!(begun.elapsed() < MOVED, "the edge was stale for {:?}", begun.elapsed());
    // Scans are handed over, and reads through the edge answered.
    ensure!(edge.scan(&fleet.http, "ONE").await?.0 == StatusCode::TEMPORARY_REDIRECT);
    until("scans are counted", async || {
        Ok(fleet.call(other, Method::GET, "/redirections/ONE", None).await?.1["hits"] == 2)
    })
    .await?;
    if !is_full {
        // It stays where it is: nobody sends it to a replica that is silent, whatever the edge holds.
        let settled = Instant::now() + Duration::from_secs(6);
        while Instant::now() < settled {
            let ready = edge.ready(&fleet.http).await?;
            ensure!(ready["state"] == "LIVE", "{ready}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    signal(fleet.controls[frozen].pid(), "CONT")?;
    until("both show the edge", async || {
        Ok(edges(&fleet, frozen).await?.len() == 1 && edges(&fleet, other).await?.len() == 1)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_follows_another_control_when_one_is_silent() -> Result<()> {
    an_edge_leaves_a_silent_replica(false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_replica_finds_new_links_when_one_control_is_silent() -> Result<()> {
    an_edge_leaves_a_silent_replica(true).await
}

/// Everything behind the edge takes connections and is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_miss_without_any_backend_is_answered_quickly() -> Result<()> {
    let fleet = Fleet::start(2).await?;
    let edge = fleet.add_edge("e1")?;
    edge.until_live(&fleet.http, 0).await?;
    let all = [fleet.controls[0].pid(), fleet.controls[1].pid(), fleet.redis.pid()];
    all.iter().try_for_each(|pid| signal(*pid, "STOP"))?;
    let mut worst = Duration::ZERO;
    for n in 0..8 {
        let asked = Instant::now();
        let (status, _) = edge.scan(&fleet.http, &format!("NONE{n}")).await?;
        worst = worst.max(asked.elapsed());
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
    }
    all.iter().try_for_each(|pid| signal(*pid, "CONT"))?;
    ensure!(worst < Duration::from_millis(1_900), "a miss waited {worst:?}");
    Ok(())
}

/// A Redis that comes back empty after an outage is filled at once, however long it was away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_redis_is_noticed_at_once_after_an_outage() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    let (status, _) = fleet.create_redirection(0, &product, Some("ONE"), "").await?;
    ensure!(status == StatusCode::CREATED);
    let filled = async |fleet: &Fleet| Ok(fleet.redis.command::<i64>(&["DBSIZE"]).await? >= 3);
    until("the view is there", async || filled(&fleet).await).await?;
    fleet.redis.kill();
    // The pauses between attempts have grown to seconds by then.
    until("it was tried often", async || {
        let metrics = fleet.controls[0].metrics(&fleet.http).await?;
        Ok(metrics.iter().any(|(name, value)| name.contains("publisher_failures") && *value >= 7.0))
    })
    .await?;
    fleet.redis.start_again().await?;
    let begun = Instant::now();
    tokio::time::timeout(DEADLINE, until("the view is rebuilt", async || filled(&fleet).await)).await??;
    ensure!(begun.elapsed() < Duration::from_millis(2_000), "noticed after {:?}", begun.elapsed());
    Ok(())
}

/// An outage of Redis is in the log once, and in the metrics as often as it was noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_without_redis_logs_that_once() -> Result<()> {
    let (fleet, folder) = (Fleet::start(0).await?, tempfile::tempdir()?);
    let log = folder.path().join("log");
    let mut command = fleet.control_command()?;
    command
        .arg("serve")
        .env("REDIS_URL", "redis://127.0.0.1:1")
        .env("WAYMARK_FILES_URL", folder.path().join("files"))
        .envs(["API", "INTERNAL", "ADMIN"].map(|name| (format!("WAYMARK_{name}_LISTEN"), "127.0.0.1:0")))
        .stderr(File::create(&log)?);
    let (child, said) = spawn_up(&mut command, DEADLINE)?;
    let _child = Killed(child);
    let admin = said.iter().find_map(|line| line.strip_prefix("Admin ")).context("no admin listener")?.trim();
    until("it was tried often", async || {
        let metrics = metrics_of(&fleet.http, admin).await?;
        Ok(metrics.iter().any(|(name, value)| name.contains("publisher_failures") && *value >= 4.0))
    })
    .await?;
    let text = fs::read_to_string(&log)?;
    ensure!(text.matches("publishing failed").count() == 1, "{text}");
    Ok(())
}
