//! Windows at edges that are cut off from everything, and scans that edges tell each other of: real processes, by the real clock.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tests::{fleet::Fleet, product::DEADLINE};

use super::until;
use crate::availability::now;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_ends_on_time_at_edges_without_control_and_redis() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    let mut full = fleet.redis_settings.clone();
    full.push(("WAYMARK_EDGE_REPLICA", "full".to_owned()));
    let edges = [fleet.add_edge("e1")?, fleet.add_edge_with("e2", full)?];
    for edge in &edges {
        edge.until_live(&fleet.http, 0).await?;
    }
    // One edge reads it from Redis, the other one has it from the stream.
    let ends = now()? + 6_000;
    let body = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "SOON",
        "validUntil": ends, "endedUrl": "https://example.com/over"});
    let path = "/redirections?wait=edges&timeout=5s";
    let (status, made) = fleet.call(0, Method::POST, path, Some(body)).await?;
    ensure!(status == StatusCode::CREATED && made["acked"] == 2, "{status}: {made}");
    let pause = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "PAUSED",
        "status": "paused"});
    let (status, made) = fleet.call(0, Method::POST, path, Some(pause)).await?;
    ensure!(status == StatusCode::CREATED && made["acked"] == 2, "{status}: {made}");
    let moved = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "MOVED",
        "statusCode": 308});
    let (status, made) = fleet.call(0, Method::POST, path, Some(moved)).await?;
    ensure!(status == StatusCode::CREATED && made["statusCode"] == 308, "{status}: {made}");
    let target = || Some("https://example.com/".to_owned());
    for edge in &edges {
        let (status, led) = edge.scan(&fleet.http, "SOON").await?;
        ensure!(led.as_deref() == Some("https://example.com/") && now()? < ends, "{status} {led:?}");
        ensure!(edge.scan(&fleet.http, "PAUSED").await? == (StatusCode::NOT_FOUND, None));
        ensure!(edge.scan(&fleet.http, "MOVED").await? == (StatusCode::PERMANENT_REDIRECT, target()));
    }
    // What one edge counts ends the link on the other one, too.
    let twice = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "TWICE",
        "maxScans": 2});
    let (status, made) = fleet.call(0, Method::POST, path, Some(twice)).await?;
    ensure!(status == StatusCode::CREATED && made["acked"] == 2, "{status}: {made}");
    for _ in 0..2 {
        ensure!(edges[0].scan(&fleet.http, "TWICE").await?.1 == target());
    }
    ensure!(edges[0].scan(&fleet.http, "TWICE").await? == (StatusCode::GONE, None));
    until("the other edge hears of it", async || {
        Ok(edges[1].scan(&fleet.http, "TWICE").await? == (StatusCode::GONE, None))
    })
    .await?;
    fleet.redis.kill();
    fleet.controls[0].kill()?;
    for edge in &edges {
        until("control is missed", async || Ok(edge.ready(&fleet.http).await?["state"] == "STALE")).await?;
    }
    ensure!(now()? < ends, "it took too long to see anything");
    for edge in &edges {
        let begun = Instant::now();
        loop {
            let (before, (status, led)) = (now()?, edge.scan(&fleet.http, "SOON").await?);
            ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status}");
            match led.as_deref() {
                // Asked when it was over, it is over.
                Some("https://example.com/") => ensure!(before < ends, "{} ms too late", before - ends),
                Some("https://example.com/over") => break,
                led => ensure!(false, "{led:?}"),
            }
            ensure!(begun.elapsed() < DEADLINE);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ensure!(now()? >= ends, "it ended too early");
        ensure!(edge.scan(&fleet.http, "PAUSED").await? == (StatusCode::NOT_FOUND, None));
        ensure!(edge.scan(&fleet.http, "MOVED").await? == (StatusCode::PERMANENT_REDIRECT, target()));
    }
    Ok(())
}
