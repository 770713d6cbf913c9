//! kill -9 at random moments of a change of many links and of its undoing: each link is changed once and given back as it was.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{DEADLINE, Options, Product},
    repetitions,
};

use super::{Random, say, setting};

crate::on_both_engines!(a_change_of_many_links_and_its_undo_survive_kills);

/// What a change takes without optimisation, and leases of killed workers that run out.
const PATIENCE: u32 = 10;

async fn a_change_of_many_links_and_its_undo_survive_kills(engine: Engine) -> Result<()> {
    // On Postgres a lease runs out after each kill; on SQLite the next process takes it away.
    let kills = if engine == Engine::Sqlite { repetitions(6, 40) } else { repetitions(2, 15) };
    let seed = match setting("WAYMARK_TEST_SEED")? {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|error| anyhow::anyhow!("{error}"))?,
    };
    say(&format!("{engine:?}: {kills} kills of a change and of an undo each, WAYMARK_TEST_SEED={seed}"));
    let mut random = Random(seed);
    let count = repetitions(3_000, 20_000);
    let mut product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let of = product.create_product().await?;
    for first in (0..count).step_by(1_000) {
        let link = |n: u64| {
            json!({"platformId": of, "defaultRedirectUrl": format!("https://example.com/{n}"),
                "tags": ["old", n.to_string()]})
        };
        let links: Vec<Value> = (first..count.min(first + 1_000)).map(link).collect();
        let (status, made) = product.call(Method::POST, "/redirections", Some(json!(links))).await?;
        ensure!(status == StatusCode::OK, "{status}: {made}");
    }
    let before = links(&product, &of).await?;
    ensure!(before.len() as u64 == count, "{} links", before.len());

    let body = json!({"filter": "tags=old", "expect": count, "patch": {"title": "New",
        "defaultRedirectUrl": "https://example.com/new/{shortId}", "tags": {"add": ["new"], "remove": ["old"]}}});
    let change = ask(&product, "/jobs/redirections", body).await?;
    let ended = end_under_kills(&mut product, &change, kills, &mut random).await?;
    let progress = json!({"percentage": 100.0, "links": count, "done": count, "changed": count, "unchanged": 0,
        "conflicts": 0});
    ensure!(ended["status"] == "complete" && ended["progress"] == progress, "{ended}");
    for (short_id, link) in links(&product, &of).await? {
        let own = &before[&short_id]["tags"][1];
        ensure!(link["tags"] == json!([own, "new"]) && link["title"] == "New", "{link}");
        ensure!(link["defaultRedirectUrl"] == "https://example.com/new/{shortId}", "{link}");
    }
    check_edge(&product, &before, &mut random, |short_id, _| format!("https://example.com/new/{short_id}"))
        .await?;

    let undo = ask(&product, &format!("{change}/undo"), json!({"strict": true})).await?;
    let ended = end_under_kills(&mut product, &undo, kills, &mut random).await?;
    ensure!(ended["status"] == "complete" && ended["progress"] == progress, "{ended}");
    let after = links(&product, &of).await?;
    for (short_id, link) in &before {
        ensure!(after[short_id] == *link, "{link} became {}", after[short_id]);
    }
    check_edge(&product, &before, &mut random, |_, link| {
        link["defaultRedirectUrl"].as_str().unwrap_or_default().to_owned()
    })
    .await
}

/// Sends a request that makes a job; gives the path of the job.
async fn ask(product: &Product, path: &str, body: Value) -> Result<String> {
    let (status, job) = product.call(Method::POST, path, Some(body)).await?;
    ensure!(status == StatusCode::CREATED, "{status}: {job}");
    Ok(format!("/jobs/redirections/{}", job["id"].as_str().context("id")?))
}

/// All links of a product, by their short ids.
async fn links(product: &Product, of: &str) -> Result<BTreeMap<String, Value>> {
    let found = product.list(&format!("/redirections?product={of}&perPage=100")).await?;
    found
        .into_iter()
        .map(|link| Ok((link["shortId"].as_str().context("shortId")?.to_owned(), link)))
        .collect()
}

async fn read(product: &Product, path: &str) -> Result<Value> {
    let (status, job) = product.call(Method::GET, path, None).await?;
    ensure!(status == StatusCode::OK, "{status}: {job}");
    Ok(job)
}

/// Kills the product at random moments of a job, and then lets it end; gives the job.
async fn end_under_kills(
    product: &mut Product,
    path: &str,
    kills: u64,
    random: &mut Random,
) -> Result<Value> {
    let (mut killed, mut places) = (0, Vec::new());
    while killed < kills {
        let seen = read(product, path).await?;
        if seen.get("completedAt").is_some() {
            break;
        }
        // Somebody has it again, and is somewhere in the middle.
        moved(product, path, &seen).await?;
        tokio::time::sleep(random.millis(100)).await;
        places.push(seen["progress"]["done"].as_u64().unwrap_or_default());
        product.kill()?;
        killed += 1;
        product.start_again().context("the product does not come up after a kill")?;
    }
    say(&format!("killed {killed} times, at {places:?}"));
    ensure!(killed >= 1, "the job was over before it was disturbed");
    let begun = Instant::now();
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(100));
    loop {
        let job = read(product, path).await?;
        if job.get("completedAt").is_some() {
            return Ok(job);
        }
        ensure!(begun.elapsed() < DEADLINE * PATIENCE, "the job does not end: {job}");
        tick.tick().await;
    }
}

/// Waits until a job is not as it was seen.
async fn moved(product: &Product, path: &str, seen: &Value) -> Result<()> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(5));
    while read(product, path).await?["updatedAt"] == seen["updatedAt"] {
        ensure!(begun.elapsed() < DEADLINE * PATIENCE, "nobody goes on with {seen}");
        tick.tick().await;
    }
    Ok(())
}

/// Some links lead where they should, at the edge.
async fn check_edge(
    product: &Product,
    links: &BTreeMap<String, Value>,
    random: &mut Random,
    target: impl Fn(&str, &Value) -> String,
) -> Result<()> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
    for _ in 0..20 {
        let at = usize::try_from(random.next(links.len() as u64))?;
        let (short_id, link) = links.iter().nth(at).context("a link")?;
        let expected = target(short_id, link);
        // The edge follows a moment later.
        loop {
            let response = product.http.head(format!("{}/{short_id}", product.edge)).send().await?;
            let location = response.headers().get("location").and_then(|value| value.to_str().ok());
            if location == Some(expected.as_str()) {
                break;
            }
            ensure!(begun.elapsed() < DEADLINE, "{short_id} leads to {location:?}, not to {expected}");
            tick.tick().await;
        }
    }
    Ok(())
}
