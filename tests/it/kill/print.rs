//! kill -9 at random moments of a print order: no serial twice, none missing, and the bytes of a run that nobody disturbs.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{DEADLINE, Options, Product},
    repetitions,
};

use super::{Random, say, setting};

crate::on_both_engines!(a_print_order_survives_kills, a_reprint_survives_kills);

/// What drawing without optimisation takes, and leases of killed workers that run out.
const PATIENCE: u32 = 10;

async fn a_print_order_survives_kills(engine: Engine) -> Result<()> {
    // On Postgres a lease runs out after each kill; on SQLite the next process takes it away.
    let kills = if engine == Engine::Sqlite { repetitions(8, 60) } else { repetitions(3, 20) };
    let seed = match setting("WAYMARK_TEST_SEED")? {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|error| anyhow::anyhow!("{error}"))?,
    };
    say(&format!("{engine:?}: {kills} kills of print orders, WAYMARK_TEST_SEED={seed}"));
    let mut random = Random(seed);
    let count = repetitions(150, 3_000);
    let mut product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let of = product.create_product().await?;
    let drawing = json!({"format": "pdf-pages", "hri": {"text": "serial"}, "code": {"moduleMm": 0.5}});
    let with = |source: Value| {
        let mut body = drawing.clone();
        body["source"] = source;
        body
    };
    let serials = json!({"serials": {"product": of, "count": count, "form": "numbered", "prefix": "K",
        "defaultRedirectUrl": "https://example.com/"}});
    let path = order(&product, with(serials)).await?;

    disturb(&mut product, &path, &mut random, kills).await?;
    let ended = end(&product, &path).await?;
    ensure!(ended["status"] == "complete", "{ended}");

    let manifest = String::from_utf8(file(&product, &path, "manifest.csv").await?)?;
    let serials: Vec<&str> = manifest.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    let expected: Vec<String> = (1..=count).map(|n| format!("K{n}")).collect();
    ensure!(serials == expected, "{serials:?}");
    for (list, what) in [("thngs", "Things"), ("redirections", "links")] {
        let found = product.list(&format!("/{list}?filter=product={of}&perPage=100")).await?;
        ensure!(found.len() as u64 == count, "{} {what} for {count} serials", found.len());
    }

    let again = order(&product, with(json!({"filter": format!("product={of}")}))).await?;
    let ended = end(&product, &again).await?;
    ensure!(ended["status"] == "complete" && ended["progress"]["codes"] == count, "{ended}");
    for name in ["codes.pdf", "manifest.csv"] {
        let (one, two) = (file(&product, &path, name).await?, file(&product, &again, name).await?);
        ensure!(one == two, "{name}: {} and {} bytes", one.len(), two.len());
    }
    Ok(())
}

/// Kills the product at random moments of an order, until it has ended or was disturbed so often.
async fn disturb(product: &mut Product, path: &str, random: &mut Random, kills: u64) -> Result<()> {
    let (mut killed, mut stages) = (0, Vec::new());
    while killed < kills {
        let seen = read(product, path).await?;
        if seen.get("completedAt").is_some() {
            break;
        }
        // Somebody has it again, and is somewhere in the middle.
        moved(product, path, &seen).await?;
        tokio::time::sleep(random.millis(400)).await;
        stages.push(seen["status"].as_str().unwrap_or_default().to_owned());
        product.kill()?;
        killed += 1;
        product.start_again().context("the product does not come up after a kill")?;
    }
    say(&format!("killed {killed} times, in {stages:?}"));
    ensure!(killed >= 2, "the order was over before it was disturbed");
    Ok(())
}

/// The codes of a reprint are those that were asked for, in their order, and nothing else is made.
async fn a_reprint_survives_kills(engine: Engine) -> Result<()> {
    let kills = if engine == Engine::Sqlite { repetitions(3, 40) } else { repetitions(2, 15) };
    let seed = match setting("WAYMARK_TEST_SEED")? {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|error| anyhow::anyhow!("{error}"))?,
    };
    say(&format!("{engine:?}: {kills} kills of reprints, WAYMARK_TEST_SEED={seed}"));
    let mut random = Random(seed);
    // Some chunks, so that it is long enough to be disturbed.
    let count = repetitions(1_200, 6_000);
    let mut product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let of = product.create_product().await?;
    let body = json!({"source": {"serials": {"product": of, "count": count, "form": "numbered",
        "defaultRedirectUrl": "https://example.com/"}}, "format": "png", "naming": "{serial}_{shortId}"});
    let first = order(&product, body).await?;
    let ended = end(&product, &first).await?;
    ensure!(ended["status"] == "complete", "{ended}");
    let manifest = String::from_utf8(file(&product, &first, "manifest.csv").await?)?;
    let all: Vec<&str> = manifest.lines().skip(1).collect();

    let (from, to) = (11, count - 5);
    let uri = format!("{first}/reprint");
    let (status, again) = product.call(Method::POST, &uri, Some(json!({"from": from, "to": to}))).await?;
    ensure!(status == StatusCode::CREATED, "{status}: {again}");
    let again = format!("/jobs/qr/{}", again["id"].as_str().context("id")?);
    disturb(&mut product, &again, &mut random, kills).await?;
    let ended = end(&product, &again).await?;
    ensure!(ended["status"] == "complete" && ended["progress"]["codes"] == to - from + 1, "{ended}");
    let printed = String::from_utf8(file(&product, &again, "manifest.csv").await?)?;
    // But for the place each line is that of the order.
    let cells = |line: &str| line.split_once(',').map(|(_, rest)| rest.to_owned());
    let printed: Vec<Option<String>> = printed.lines().skip(1).map(cells).collect();
    let wanted = all.iter().skip(10).take(printed.len()).map(|line| cells(line));
    ensure!(printed.len() as u64 == to - from + 1 && wanted.eq(printed.iter().cloned()), "{printed:?}");
    for (list, what) in [("thngs", "Things"), ("redirections", "links")] {
        let found = product.list(&format!("/{list}?filter=product={of}&perPage=100")).await?;
        ensure!(found.len() as u64 == count, "{} {what} for {count} serials", found.len());
    }
    Ok(())
}

async fn order(product: &Product, body: Value) -> Result<String> {
    let (status, order) = product.call(Method::POST, "/jobs/qr", Some(body)).await?;
    ensure!(status == StatusCode::CREATED, "{status}: {order}");
    Ok(format!("/jobs/qr/{}", order["id"].as_str().context("id")?))
}

async fn read(product: &Product, path: &str) -> Result<Value> {
    let (status, order) = product.call(Method::GET, path, None).await?;
    ensure!(status == StatusCode::OK, "{status}: {order}");
    Ok(order)
}

/// Waits until an order is not as it was seen.
async fn moved(product: &Product, path: &str, seen: &Value) -> Result<()> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
    while read(product, path).await?["updatedAt"] == seen["updatedAt"] {
        ensure!(begun.elapsed() < DEADLINE * PATIENCE, "nobody goes on with {seen}");
        tick.tick().await;
    }
    Ok(())
}

async fn end(product: &Product, path: &str) -> Result<Value> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(100));
    loop {
        let order = read(product, path).await?;
        if order.get("completedAt").is_some() {
            return Ok(order);
        }
        ensure!(begun.elapsed() < DEADLINE * PATIENCE, "the order does not end: {order}");
        tick.tick().await;
    }
}

async fn file(product: &Product, path: &str, name: &str) -> Result<Vec<u8>> {
    let request = product.http.get(format!("{}{path}/files/{name}", product.api));
    let answer = request.header(header::AUTHORIZATION, &product.key).send().await?;
    ensure!(answer.status() == StatusCode::OK, "{name}: {}", answer.status());
    Ok(answer.bytes().await?.to_vec())
}
