//! kill -9 at random moments of a change of many links and of its undoing: each link is changed once and given back as it was.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tests::{
    db::Engine,
    kills::{Random, create, end_under_kills},
    product::{DEADLINE, Options, Product},
    repetitions,
};

crate::on_both_engines!(a_change_of_many_links_and_its_undo_survive_kills);

async fn a_change_of_many_links_and_its_undo_survive_kills(engine: Engine) -> Result<()> {
    // In the long form a lease runs out after each kill on Postgres; on SQLite the next process takes it away.
    let kills = if engine == Engine::Sqlite { repetitions(2, 40) } else { repetitions(2, 15) };
    let mut random = Random::seeded(&format!("{engine:?}: {kills} kills of a change and of an undo each"))?;
    let count = repetitions(1_500, 20_000);
    let mut product = Product::start(Options { engine, unlimited: true, ..Options::default() }).await?;
    let of = product.create_product().await?;
    for first in (0..count).step_by(1_000) {
        let link = |n: u64| {
            json!({"platformId": of, "defaultRedirectUrl": format!("https://example.com/{n}"),
                "tags": ["old", n.to_string()]})
        };
        let links: Vec<Value> = (first..count.min(first + 1_000)).map(link).collect();
        product.must_answer(200, Method::POST, "/redirections", Some(json!(links))).await?;
    }
    let before = links(&product, &of).await?;
    ensure!(before.len() as u64 == count, "{} links", before.len());

    let body = json!({"filter": "tags=old", "expect": count, "patch": {"title": "New",
        "defaultRedirectUrl": "https://example.com/new/{shortId}", "tags": {"add": ["new"], "remove": ["old"]}}});
    let change = ask(&product, "/jobs/redirections", body).await?;
    let ended = end_under_kills(&mut product, &change, (&mut random, 100), (1, kills)).await?;
    let progress = json!({"percentage": 100.0, "links": count, "done": count, "changed": count, "unchanged": 0,
        "conflicts": 0, "conflictsListed": 0});
    ensure!(ended["status"] == "complete" && ended["progress"] == progress, "{ended}");
    for (short_id, link) in links(&product, &of).await? {
        let own = &before[&short_id]["tags"][1];
        ensure!(link["tags"] == json!([own, "new"]) && link["title"] == "New", "{link}");
        ensure!(link["defaultRedirectUrl"] == "https://example.com/new/{shortId}", "{link}");
    }
    check_edge(&product, &before, &mut random, |short_id, _| format!("https://example.com/new/{short_id}"))
        .await?;

    let undo = ask(&product, &format!("{change}/undo"), json!({"strict": true})).await?;
    let ended = end_under_kills(&mut product, &undo, (&mut random, 100), (1, kills)).await?;
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
    let job = create(product, path, body).await?;
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
