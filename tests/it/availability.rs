//! Time windows, pauses and ended pages over the real product, on both engines, by the real clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    json::merged,
    product::{DEADLINE, Options, PHONE, Product},
    wait::read_until,
};

crate::on_both_engines!(a_window_opens_and_ends_while_the_edge_runs, a_pause_holds_from_its_acknowledgement);

const TARGET: &str = "https://example.com/own";
const OVER: &str = "https://example.com/over?id={shortId}";

/// The time now.
pub(crate) fn now() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

async fn make(product: &Product, more: Value) -> Result<String> {
    let owner = product.create_product().await?;
    let body = merged(json!({"platformId": owner, "defaultRedirectUrl": TARGET}), &more);
    let (status, made) =
        product.call(Method::POST, "/redirections?wait=edges&timeout=20s", Some(body)).await?;
    ensure!(status == StatusCode::CREATED && made["acked"] == made["members"], "{status}: {made}");
    Ok(owner)
}

/// An answer that differs from the one before.
struct Changed {
    status: StatusCode,
    location: Option<String>,
    /// When it was there at the latest.
    at: i64,
    /// Scans up to it.
    scans: u64,
}

/// Scans until the answer is another one.
async fn changes(product: &Product, short_id: &str, from: &Option<String>) -> Result<Changed> {
    let begun = std::time::Instant::now();
    let mut scans = 0;
    loop {
        let (status, location) = product.scan(short_id).await?;
        scans += 1;
        if location != *from {
            return Ok(Changed { status, location, at: now()?, scans });
        }
        ensure!(begun.elapsed() < DEADLINE, "{short_id} still answers {location:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn hits(product: &Product, short_id: &str) -> Result<u64> {
    let found = product.must_answer(200, Method::GET, &format!("/redirections/{short_id}"), None).await?;
    found["hits"].as_u64().with_context(|| found.to_string())
}

async fn a_window_opens_and_ends_while_the_edge_runs(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let (from, until) = (now()? + 1_500, now()? + 3_000);
    let owner = make(&product, json!({"shortId": "WINDOW", "validFrom": from, "validUntil": until})).await?;
    let (status, location) = product.scan("WINDOW").await?;
    ensure!(status == StatusCode::NOT_FOUND && location.is_none(), "{status}");
    // A press prints before the start.
    let image = product.http.get(format!("{}/WINDOW.png", product.edge)).send().await?;
    ensure!(image.status() == StatusCode::OK && now()? < from, "{}", image.status());
    let opened = changes(&product, "WINDOW", &None).await?;
    let (status, location) = (opened.status, &opened.location);
    ensure!(status == StatusCode::TEMPORARY_REDIRECT && location.as_deref() == Some(TARGET), "{location:?}");
    ensure!(opened.at >= from, "{} ms too early", from - opened.at);
    let ended = changes(&product, "WINDOW", &opened.location).await?;
    ensure!(ended.status == StatusCode::GONE && ended.location.is_none(), "{:?}", ended.location);
    ensure!(ended.at >= until, "{} ms too early", until - ended.at);
    let page = product.http.get(format!("{}/WINDOW", product.edge)).header("accept", "text/html");
    let page = page.header("user-agent", PHONE).send().await?;
    ensure!(page.status() == StatusCode::GONE, "{}", page.status());
    let text = page.text().await?;
    ensure!(text.contains("This code is no longer active"), "{text}");

    // Each was counted once, whether the link was open or closed.
    let scans = 2 + opened.scans + ended.scans;
    let counts = async || anyhow::Ok((hits(&product, "WINDOW").await?, product.count_scans(&owner).await?));
    let counts = read_until(counts, |(hits, stored)| *hits >= scans && *stored >= scans).await?;
    ensure!(counts == (scans, scans), "{counts:?} of {scans}");
    Ok(())
}

async fn a_pause_holds_from_its_acknowledgement(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let owner = make(&product, json!({"shortId": "PAUSE"})).await?;
    make(&product, json!({"shortId": "OVER", "validUntil": now()? - 1, "endedUrl": OVER})).await?;
    let (status, location) = product.scan("OVER").await?;
    ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status}");
    ensure!(location.as_deref() == Some("https://example.com/over?id=OVER"), "{location:?}");
    let path = "/redirections/PAUSE?wait=edges&timeout=20s";
    let mut scans = 0;
    for (more, expected) in [
        (json!({}), Some(TARGET)),
        (json!({"status": "paused"}), None),
        // What says nothing of it leaves it.
        (json!({}), None),
        (json!({"endedUrl": OVER}), Some("https://example.com/over?id=PAUSE")),
        (json!({"status": "active"}), Some(TARGET)),
        (json!({"status": "paused", "endedUrl": null}), None),
        (json!({"status": null}), Some(TARGET)),
    ] {
        let body = merged(json!({"defaultRedirectUrl": TARGET}), &more);
        let (status, put) = product.call(Method::PUT, path, Some(body)).await?;
        ensure!(status == StatusCode::OK && put["acked"] == put["members"], "{status}: {put}");
        let (status, location) = product.scan("PAUSE").await?;
        scans += 1;
        ensure!(location.as_deref() == expected, "{more}: {status} {location:?}");
        ensure!(expected.is_some() || status == StatusCode::NOT_FOUND, "{more}: {status}");
    }
    let counted = read_until(async || product.count_scans(&owner).await, |count| *count >= scans).await?;
    ensure!(counted == scans, "{counted} of {scans}");
    Ok(())
}
