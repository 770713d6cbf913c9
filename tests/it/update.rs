//! A change is live when `wait=edges` says so: under scan load, over the real product (I5, I6).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{Options, Product},
    repetitions,
};
use tokio::task::JoinSet;

/// Changes of a target, and links that come and go: in the gate, and in the long form.
const CHANGES: [u64; 2] = [120, 1_000];
const ROUNDS: [u64; 2] = [20, 50];
const READERS: usize = 4;
/// Least time between two scans of a reader: in all 1,000 a second, of which none is lost on two cores.
const PACE: Duration = Duration::from_millis(4);
const BASE: &str = "https://example.com/target/";

/// Takes the edges' state out of an answer; gives the milliseconds from commit to acknowledgement.
fn acknowledged(body: &Value) -> Result<u64> {
    let members = body["members"].as_u64().context("members")?;
    ensure!(members >= 1 && body["acked"] == members, "not every edge has it: {body}");
    ensure!(body.get("lagging").is_none() && body["unreachable"] == json!([]), "an edge lags: {body}");
    body["ms"].as_u64().context("ms")
}

fn report(what: &str, engine: Engine, mut ms: Vec<u64>) {
    ms.sort_unstable();
    let at = |share: usize| ms.get((ms.len() * share / 100).min(ms.len() - 1)).copied().unwrap_or_default();
    #[expect(clippy::print_stdout, reason = "the figures are what a reader of the test's output wants")]
    {
        println!(
            "{engine:?}: {} {what}, commit to acknowledgement: p50 {} ms, p99 {} ms, max {} ms",
            ms.len(),
            at(50),
            at(99),
            at(100)
        );
    }
}

/// What the readers of one short id know together.
#[derive(Default)]
struct Seen {
    /// The newest acknowledged counter.
    acked: AtomicU64,
    /// The newest counter that any reader saw.
    newest: AtomicU64,
    scans: AtomicU64,
    stop: AtomicBool,
}

/// Scans until it is told to stop; an answer is never older than what was known when it was asked for.
async fn read(product: Arc<Product>, short_id: String, seen: Arc<Seen>) -> Result<()> {
    let mut ticks = tokio::time::interval(PACE);
    while !seen.stop.load(SeqCst) {
        ticks.tick().await;
        let floor = seen.acked.load(SeqCst).max(seen.newest.load(SeqCst));
        let (status, location) = product.scan(&short_id).await?;
        ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status}");
        let location = location.context("location")?;
        let counter: u64 = location.strip_prefix(BASE).context("another target")?.parse()?;
        ensure!(counter >= floor, "saw {counter} after {floor}");
        seen.newest.fetch_max(counter, SeqCst);
        seen.scans.fetch_add(1, SeqCst);
    }
    Ok(())
}

/// Changes a target again and again while others scan it.
async fn an_old_target_is_never_served_after_the_acknowledgement(engine: Engine) -> Result<()> {
    let product = Arc::new(Product::start(Options { engine, ..Options::default() }).await?);
    let id = product.create_product().await?;
    product.create_redirection(&id, &format!("{BASE}0"), Some("MOVES")).await?;
    let seen = Arc::new(Seen::default());
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        readers.spawn(read(product.clone(), "MOVES".to_owned(), seen.clone()));
    }
    let mut ms = Vec::new();
    let changes = repetitions(CHANGES[0], CHANGES[1]);
    for counter in 1..=changes {
        let target = format!("{BASE}{counter}");
        let body = json!({"defaultRedirectUrl": target});
        let body = product
            .must_answer(200, Method::PUT, "/redirections/MOVES?wait=edges&timeout=20s", Some(body))
            .await?;
        ms.push(acknowledged(&body)?);
        seen.acked.store(counter, SeqCst);
        let (status, location) = product.scan("MOVES").await?;
        ensure!(
            (status, location.as_deref()) == (StatusCode::TEMPORARY_REDIRECT, Some(target.as_str())),
            "{status} to {location:?} after {target} was acknowledged"
        );
        // A reader that failed ends the test at once.
        if let Some(ended) = readers.try_join_next() {
            ended??;
        }
    }
    seen.stop.store(true, SeqCst);
    while let Some(ended) = readers.join_next().await {
        ended??;
    }
    let scans = seen.scans.load(SeqCst);
    ensure!(scans > changes, "only {scans} scans: no load");
    ensure!(seen.newest.load(SeqCst) <= changes, "a target that nobody wrote");
    report(&format!("changes under {scans} scans"), engine, ms);
    Ok(())
}

/// Scans a short id that comes and goes: absent, there, absent for ever; never back a step.
async fn watch(product: Arc<Product>, short_id: String, phase: Arc<AtomicU64>) -> Result<()> {
    let (mut was_there, mut is_gone) = (false, false);
    loop {
        // 1: the create was acknowledged, 2: the delete was begun, 3: it was acknowledged, 4: over.
        let before = phase.load(SeqCst);
        if before == 4 {
            return Ok(());
        }
        let (status, _) = product.scan(&short_id).await?;
        let after = phase.load(SeqCst);
        match status {
            StatusCode::TEMPORARY_REDIRECT => {
                ensure!(before < 3 && !is_gone, "{short_id} came back after its delete");
                was_there = true;
            }
            StatusCode::NOT_FOUND if was_there || before >= 1 => {
                ensure!(after >= 2, "{short_id} went away by itself");
                is_gone = true;
            }
            StatusCode::NOT_FOUND => {}
            other => anyhow::bail!("{short_id}: {other}"),
        }
    }
}

/// An unknown id that edges remember as unknown becomes known at once, and a deleted one unknown for good.
async fn created_links_are_served_and_deleted_ones_are_404(engine: Engine) -> Result<()> {
    let product = Arc::new(Product::start(Options { engine, ..Options::default() }).await?);
    let id = product.create_product().await?;
    let (mut created, mut deleted) = (Vec::new(), Vec::new());
    let rounds = repetitions(ROUNDS[0], ROUNDS[1]);
    for round in 0..rounds {
        let short_id = format!("COMES-{round}");
        let phase = Arc::new(AtomicU64::new(0));
        for _ in 0..2 {
            let (status, _) = product.scan(&short_id).await?;
            ensure!(status == StatusCode::NOT_FOUND, "{status} before the create");
        }
        let watcher = tokio::spawn(watch(product.clone(), short_id.clone(), phase.clone()));
        let body =
            json!({"platformId": id, "defaultRedirectUrl": "https://example.com/", "shortId": short_id});
        let body = product
            .must_answer(201, Method::POST, "/redirections?wait=edges&timeout=20s", Some(body))
            .await?;
        created.push(acknowledged(&body)?);
        phase.store(1, SeqCst);
        let (status, _) = product.scan(&short_id).await?;
        ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{status} after the create");
        phase.store(2, SeqCst);
        let path = format!("/redirections/{short_id}?wait=edges&timeout=20s");
        let (status, body) = product.call(Method::DELETE, &path, None).await?;
        ensure!(status == StatusCode::OK, "{status}: {body}");
        deleted.push(acknowledged(&body)?);
        phase.store(3, SeqCst);
        for _ in 0..5 {
            let (status, _) = product.scan(&short_id).await?;
            ensure!(status == StatusCode::NOT_FOUND, "{status} after the delete");
        }
        phase.store(4, SeqCst);
        watcher.await??;
    }
    // Long after, in any case of letters, and for whoever wants the short id again.
    for round in 0..rounds {
        let (status, _) = product.scan(&format!("comes-{round}")).await?;
        ensure!(status == StatusCode::NOT_FOUND, "{status} long after the delete");
        let body = json!({"platformId": id, "defaultRedirectUrl": "https://example.com/",
            "shortId": format!("Comes-{round}")});
        product.must_answer(409, Method::POST, "/redirections", Some(body)).await?;
    }
    report("creates of ids known as unknown", engine, created);
    report("deletes", engine, deleted);
    Ok(())
}

crate::on_both_engines!(
    an_old_target_is_never_served_after_the_acknowledgement,
    created_links_are_served_and_deleted_ones_are_404,
);
