//! Reactions of the real product under repeated kills: effects within the platform occur once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{Options, Product},
};

use crate::jobs::submit_file;

/// Longest wait without anything new.
const DEADLINE: Duration = Duration::from_secs(60);

/// Actions of the job, and how often the product is killed meanwhile; `WAYMARK_TEST_REACTION_ACTIONS` is another
/// number of actions, with ten kills.
const ACTIONS: usize = 240;
const KILLS: usize = 3;
const MANY_KILLS: usize = 10;

async fn create(product: &Product, path: &str, body: Value) -> Result<String> {
    let made = product.must_answer(201, Method::POST, path, Some(body)).await?;
    Ok(made["id"].as_str().unwrap_or_default().to_owned())
}

/// What came of a reaction so far; `None` while the product starts.
async fn done(product: &Product, path: &str) -> Result<(usize, usize)> {
    let read = product.must_answer(200, Method::GET, path, None).await?;
    let number = |name: &str| read["outcome"][name].as_u64().and_then(|n| usize::try_from(n).ok());
    Ok((number("done").context("done")?, number("failed").context("failed")?))
}

/// Waits until a reaction was carried out so often.
async fn wait(product: &Product, path: &str, count: usize) -> Result<()> {
    let (mut since, mut last) = (Instant::now(), 0);
    loop {
        let (now, failed) = done(product, path).await?;
        ensure!(failed == 0, "{failed} failed");
        if now >= count {
            return Ok(());
        }
        if now > last {
            (since, last) = (Instant::now(), now);
        }
        ensure!(since.elapsed() < DEADLINE, "{now} of {count}, and no more");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// "Exactly once for effects inside the platform": an action and a value for each action of a job, whatever dies.
async fn effects_occur_once_after_any_crash(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let thng = create(&product, "/thngs", json!({"name": "t"})).await?;
    create(&product, "/actions", json!({"name": "_seen"})).await?;
    let (count, kills): (usize, usize) = match std::env::var("WAYMARK_TEST_REACTION_ACTIONS") {
        Ok(text) => (text.parse()?, MANY_KILLS),
        Err(_) => (ACTIONS, KILLS),
    };
    let reaction = |effect: Value| json!({"name": "r", "types": ["action.scans"], "effect": effect});
    let effect = json!({"type": "action", "action": {"type": "_seen"}});
    let makes = format!("/reactions/{}", create(&product, "/reactions", reaction(effect)).await?);
    let effect = json!({"type": "property", "key": "scan", "from": "id"});
    let sets = format!("/reactions/{}", create(&product, "/reactions", reaction(effect)).await?);
    let lines = format!("thng\r\n{}", format!("{thng}\r\n").repeat(count));
    submit_file(&product, "CSV", lines.into_bytes()).await?;
    for kill in 1..=kills {
        // At some point of the way, each time another.
        wait(&product, &makes, count * kill / (kills + 2)).await?;
        product.kill()?;
        product.start_again()?;
    }
    wait(&product, &makes, count).await?;
    wait(&product, &sets, count).await?;
    // Another that comes last: behind it nothing is left to be done twice.
    create(&product, "/actions/scans", json!({"thng": thng})).await?;
    wait(&product, &makes, count + 1).await?;
    wait(&product, &sets, count + 1).await?;
    let scans = product.list(&format!("/thngs/{thng}/actions/scans?perPage=100")).await?;
    let made = product.list(&format!("/thngs/{thng}/actions/_seen?perPage=100")).await?;
    let set = product.list(&format!("/thngs/{thng}/properties/scan?perPage=100")).await?;
    ensure!(scans.len() == count + 1, "{} scans", scans.len());
    ensure!(made.len() == count + 1, "{} actions of {} events", made.len(), count + 1);
    let of = |all: &[Value], member: &str| -> Vec<String> {
        let mut texts: Vec<String> = all.iter().map(|one| one[member].to_string()).collect();
        texts.sort_unstable();
        texts.dedup();
        texts
    };
    // Values of one millisecond replace each other; none comes twice, and none is of no event.
    let (events, values) = (of(&scans, "id"), of(&set, "value"));
    ensure!(values.len() == set.len(), "a value was set twice");
    ensure!(values.iter().all(|value| events.binary_search(value).is_ok()), "a value of no event");
    Ok(())
}

crate::on_both_engines!(effects_occur_once_after_any_crash);
