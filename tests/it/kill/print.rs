//! kill -9 at random moments of a print order: no serial twice, none missing, and the bytes of a run that nobody disturbs.

use anyhow::{Context, Result, ensure};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    is_long,
    kills::{Random, create, end_under_kills, ended},
    product::{Options, Product},
    repetitions,
};

crate::on_both_engines!(a_print_order_survives_kills);

async fn a_print_order_survives_kills(engine: Engine) -> Result<()> {
    // In the long form a lease runs out after each kill on Postgres; on SQLite the next process takes it away.
    let kills = if engine == Engine::Sqlite { repetitions(3, 60) } else { repetitions(2, 20) };
    let mut random = Random::seeded(&format!("{engine:?}: {kills} kills of print orders"))?;
    let count = repetitions(120, 3_000);
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

    let order_ended =
        end_under_kills(&mut product, &path, (&mut random, 400), (repetitions(1, 2), kills)).await?;
    ensure!(order_ended["status"] == "complete", "{order_ended}");

    let manifest = String::from_utf8(file(&product, &path, "manifest.csv").await?)?;
    let serials: Vec<&str> = manifest.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    let expected: Vec<String> = (1..=count).map(|n| format!("K{n}")).collect();
    ensure!(serials == expected, "{serials:?}");
    check_made(&product, &of, count).await?;

    let again = order(&product, with(json!({"filter": format!("product={of}")}))).await?;
    let found = ended(&product, &again).await?;
    ensure!(found["status"] == "complete" && found["progress"]["codes"] == count, "{found}");
    for name in ["codes.pdf", "manifest.csv"] {
        let (one, two) = (file(&product, &path, name).await?, file(&product, &again, name).await?);
        ensure!(one == two, "{name}: {} and {} bytes", one.len(), two.len());
    }
    // In the gate workers that die between steps are enough for reprints: they need many codes to be disturbed.
    if is_long() {
        check_reprint(&mut product, &path, &mut random, (count, kills)).await?;
        check_made(&product, &of, count).await?;
    }
    Ok(())
}

/// There is a Thing and a link for each serial.
async fn check_made(product: &Product, of: &str, count: u64) -> Result<()> {
    for (list, what) in [("thngs", "Things"), ("redirections", "links")] {
        let found = product.list(&format!("/{list}?filter=product={of}&perPage=100")).await?;
        ensure!(found.len() as u64 == count, "{} {what} for {count} serials", found.len());
    }
    Ok(())
}

/// The codes of a reprint under kills are those that were asked for, in their order.
async fn check_reprint(
    product: &mut Product,
    path: &str,
    random: &mut Random,
    (count, kills): (u64, u64),
) -> Result<()> {
    let (from, to) = (11, count - 5);
    let made = create(product, &format!("{path}/reprint"), json!({"from": from, "to": to})).await?;
    let again = format!("/jobs/qr/{}", made["id"].as_str().context("id")?);
    let found = end_under_kills(product, &again, (random, 400), (2, kills)).await?;
    ensure!(found["status"] == "complete" && found["progress"]["codes"] == to - from + 1, "{found}");
    // But for the place each line is that of the order.
    let cells = |line: &str| line.split_once(',').map(|(_, rest)| rest.to_owned());
    let all = String::from_utf8(file(product, path, "manifest.csv").await?)?;
    let printed = String::from_utf8(file(product, &again, "manifest.csv").await?)?;
    let printed: Vec<Option<String>> = printed.lines().skip(1).map(cells).collect();
    let wanted = all.lines().skip(11).take(printed.len()).map(cells);
    ensure!(printed.len() as u64 == to - from + 1 && wanted.eq(printed.iter().cloned()), "{printed:?}");
    Ok(())
}

async fn order(product: &Product, body: Value) -> Result<String> {
    let order = create(product, "/jobs/qr", body).await?;
    Ok(format!("/jobs/qr/{}", order["id"].as_str().context("id")?))
}

async fn file(product: &Product, path: &str, name: &str) -> Result<Vec<u8>> {
    let request = product.http.get(format!("{}{path}/files/{name}", product.api));
    let answer = request.header(header::AUTHORIZATION, &product.key).send().await?;
    ensure!(answer.status() == StatusCode::OK, "{name}: {}", answer.status());
    Ok(answer.bytes().await?.to_vec())
}
