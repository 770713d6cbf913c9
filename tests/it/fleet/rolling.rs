//! Rolling restarts and upgrades under load: requests for held links never fail.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{fleet::Fleet, product::PHONE, redis::signal};

use super::until;

/// What a reader of one edge saw.
#[derive(Debug, Default)]
struct Seen {
    /// The edge is being restarted: refusals are its own.
    is_away: AtomicBool,
    answers: AtomicU64,
    failed: AtomicU64,
}

/// Asks an edge for what it holds until it is aborted.
async fn read(http: reqwest::Client, url: String, seen: Arc<Seen>) {
    loop {
        let request = http.get(format!("{url}/HELD")).header("host", "tn.gg").header("user-agent", PHONE);
        let answered = request.send().await.is_ok_and(|answer| answer.status() == 307);
        if answered {
            seen.answers.fetch_add(1, SeqCst);
        } else if !seen.is_away.load(SeqCst) {
            seen.failed.fetch_add(1, SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Changes a link at whichever replica answers; gives how many edges have it.
async fn change(fleet: &Fleet, n: &mut u64) -> Result<(StatusCode, Value)> {
    *n += 1;
    let body = json!({"defaultRedirectUrl": format!("https://example.com/{n}")});
    let path = "/redirections/MOVING?wait=edges&timeout=5s";
    for at in (0..fleet.controls.len()).cycle().take(fleet.controls.len() * 20) {
        if let Ok(answer) = fleet.call(at, Method::PUT, path, Some(body.clone())).await
            && !answer.0.is_server_error()
        {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    anyhow::bail!("no replica answers")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolling_restart() -> Result<()> {
    let mut fleet = Fleet::start(2).await?;
    let product = fleet.create_product(0).await?;
    let mut edges = [fleet.add_edge("e1")?, fleet.add_edge("e2")?, fleet.add_edge("e3")?];
    for short_id in ["HELD", "MOVING"] {
        fleet.create_redirection(0, &product, Some(short_id), "").await?;
    }
    let (mut readers, mut seen) = (Vec::new(), Vec::new());
    for edge in &edges {
        edge.until_live(&fleet.http, 2).await?;
        // Held from here on.
        ensure!(edge.scan(&fleet.http, "HELD").await?.0 == 307);
        let mine = Arc::new(Seen::default());
        readers.push(tokio::spawn(read(fleet.http.clone(), edge.url.clone(), mine.clone())));
        seen.push(mine);
    }
    let mut n = 0;
    let all_have_it = async |fleet: &Fleet, n: &mut u64| {
        let (status, body) = change(fleet, n).await?;
        let is_whole = status == StatusCode::OK && body["members"] == 3;
        // 202 is an honest answer while an edge is on its way; 200 with fewer members would be none.
        ensure!(status != StatusCode::OK || body["members"] == body["acked"], "{body}");
        anyhow::Ok(is_whole)
    };
    for at in [0, 1] {
        fleet.controls[at].terminate()?;
        ensure!(fleet.controls[at].ended().await?.success(), "control {at}");
        until("the other replica has all edges", async || all_have_it(&fleet, &mut n).await).await?;
        fleet.restart_control(at)?;
        until("all edges are there", async || all_have_it(&fleet, &mut n).await).await?;
    }
    for at in 0..edges.len() {
        seen[at].is_away.store(true, SeqCst);
        ensure!(edges[at].stop().await?.success(), "edge {at}");
        change(&fleet, &mut n).await?;
        edges[at].start_again()?;
        edges[at].until_live(&fleet.http, 0).await?;
        seen[at].is_away.store(false, SeqCst);
        until("all edges are there", async || all_have_it(&fleet, &mut n).await).await?;
        for edge in &edges {
            let (_, location) = edge.scan(&fleet.http, "MOVING").await?;
            ensure!(location == Some(format!("https://example.com/{n}")), "{}: {location:?}", edge.name);
        }
    }
    readers.iter().for_each(tokio::task::JoinHandle::abort);
    let sum = |of: fn(&Seen) -> &AtomicU64| seen.iter().map(|seen| of(seen).load(SeqCst)).sum::<u64>();
    let (answers, failed) = (sum(|seen| &seen.answers), sum(|seen| &seen.failed));
    println!("{answers} redirects while everything was restarted, {failed} failed, {n} changes");
    ensure!(failed == 0 && answers > 100, "{answers} answered, {failed} failed");
    Ok(())
}

/// An edge whose clock, so to speak, stood still goes on where it was; a control that slept does no harm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_replica_does_not_report_for_its_edges() -> Result<()> {
    let fleet = Fleet::start(2).await?;
    let product = fleet.create_product(0).await?;
    let edges = [fleet.add_edge("e1")?, fleet.add_edge("e2")?];
    fleet.create_redirection(0, &product, Some("MOVING"), "").await?;
    for edge in &edges {
        edge.until_live(&fleet.http, 1).await?;
    }
    let sleeper = fleet.controls[0].pid();
    signal(sleeper, "STOP")?;
    // Its edges hear nothing for a second, and go to the other one.
    let whole = until("the other replica has all edges", async || {
        let body = json!({"defaultRedirectUrl": "https://example.com/awake"});
        let path = "/redirections/MOVING?wait=edges&timeout=2s";
        let (status, body) = fleet.call(1, Method::PUT, path, Some(body)).await?;
        ensure!(status != StatusCode::OK || body["acked"] == body["members"], "{body}");
        Ok(status == StatusCode::OK && body["members"] == 2)
    })
    .await;
    signal(sleeper, "CONT")?;
    whole?;
    for edge in &edges {
        let (_, location) = edge.scan(&fleet.http, "MOVING").await?;
        ensure!(location.as_deref() == Some("https://example.com/awake"), "{}: {location:?}", edge.name);
    }
    // What it knew is old; it learns better before it answers.
    let (status, body) =
        fleet.create_redirection(0, &product, Some("TWO"), "?wait=edges&timeout=20s").await?;
    ensure!(status == StatusCode::CREATED && body["acked"] == 2 && body["members"] == 2, "{status} {body}");
    Ok(())
}
