//! Print orders over HTTP, with workers in this process: what is made and printed, once, and what is left of it.

mod ends;
mod inputs;
mod refused;
mod reprints;
mod steps;

use std::{
    collections::BTreeSet,
    io::{Cursor, Read as _},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use printing::worker::{Part, work};
use serde_json::{Value, json};
use tests::{db::Engine, product::DEADLINE};
use tokio_util::sync::CancellationToken;

use super::Api;
use crate::decode::tools;

crate::on_both_engines!(
    serials_are_made_in_order_and_printed,
    random_serials_are_told_apart_and_say_their_bits,
    the_same_codes_give_the_same_bytes,
    listed_codes_are_printed_in_the_order_of_the_list,
    codes_of_digital_links_decode_to_their_uri,
);

/// A GTIN with its check digit.
const GTIN: &str = "09521234543213";

/// Lets the worker bring all orders as far as they go.
pub(super) async fn work_all(api: &Api) -> Result<()> {
    while work(&api.made.app.printing, Part::All, &CancellationToken::new()).await? {}
    Ok(())
}

/// Orders, and lets the worker bring the order to its end; gives the order.
pub(super) async fn finished(api: &Api, body: Value) -> Result<Value> {
    let path = order(api, body).await?;
    ended(api, &path).await
}

/// Orders; gives the path of the order.
async fn order(api: &Api, body: Value) -> Result<String> {
    let answer = api.post("/jobs/qr", body).await?;
    ensure!(answer.status == 201 && answer.json()["status"] == "waiting", "{answer:?}");
    let path = format!("/jobs/qr/{}", answer.json()["id"].as_str().context("id")?);
    let location = answer.header("location").context("location")?;
    ensure!(location.ends_with(&path), "{location}");
    Ok(path)
}

/// The order when it has ended.
async fn ended(api: &Api, path: &str) -> Result<Value> {
    let begun = Instant::now();
    loop {
        work_all(api).await?;
        let order = api.get(path).await?.json();
        if order.get("completedAt").is_some() {
            return Ok(order);
        }
        ensure!(begun.elapsed() < DEADLINE * 4, "the order does not end: {order}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A product with a GTIN.
async fn product(api: &Api) -> Result<String> {
    let body = json!({"name": "Bag", "identifiers": {"gs1:01": GTIN}});
    Ok(api.create("/products", body).await?["id"].as_str().context("id")?.to_owned())
}

async fn with_product(engine: Engine) -> Result<(Api, String)> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    Ok((api, product))
}

fn serials(product: &str, count: u64, more: Value) -> Value {
    let mut serials = json!({"product": product, "count": count, "form": "numbered",
        "defaultRedirectUrl": "https://example.com/{shortId}"});
    if let (Value::Object(serials), Value::Object(more)) = (&mut serials, more) {
        serials.extend(more);
    }
    json!({"serials": serials})
}

/// A file of an order that is complete.
async fn file(api: &Api, path: &str, name: &str) -> Result<Vec<u8>> {
    let answer = api.get(&format!("{path}/files/{name}")).await?.must_be(200)?;
    Ok(answer.bytes)
}

/// The lines of the manifest, each with its columns by name.
async fn manifest(api: &Api, path: &str) -> Result<Vec<Value>> {
    let text = String::from_utf8(file(api, path, "manifest.csv").await?)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().context("header")?.split(',').collect();
    Ok(lines.map(|line| names.iter().copied().zip(line.split(',')).collect()).collect())
}

fn column<'a>(lines: &'a [Value], name: &str) -> Vec<&'a str> {
    lines.iter().filter_map(|line| line[name].as_str()).collect()
}

async fn serials_are_made_in_order_and_printed(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let source = serials(&product, 60, json!({"prefix": "A", "digits": 4, "tags": ["week 12"]}));
    let body = json!({"name": "Labels", "source": source, "format": "png", "naming": "{serial}_{shortId}",
        "layout": {"size": "roll-100x50"}, "hri": {"text": "gs1"}});
    let path = order(&api, body).await?;
    let waiting = api.get(&path).await?.json();
    ensure!(
        waiting["serials"] == json!({"form": "numbered", "first": "A0001", "last": "A0060"}),
        "{waiting}"
    );
    ensure!(waiting["progress"]["codes"] == 60 && waiting["progress"]["percentage"] == 0.0, "{waiting}");
    api.get(&format!("{path}/files")).await?.problem(409, 40901);

    let order = ended(&api, &path).await?;
    ensure!(order["status"] == "complete" && order["name"] == "Labels", "{order}");
    let progress = json!({"percentage": 100.0, "codes": 60, "made": 60, "rendered": 60});
    ensure!(order["progress"] == progress && order["filesUntil"].is_i64(), "{order}");
    ensure!(order["edges"]["lagging"] == json!([]) && order["format"] == "png", "{order}");

    let lines = manifest(&api, &path).await?;
    let expected: Vec<String> = (1..=60).map(|n| format!("A{n:04}")).collect();
    ensure!(column(&lines, "serial") == expected, "{lines:?}");
    ensure!(column(&lines, "gtin") == [GTIN; 60], "{lines:?}");
    let short_ids = column(&lines, "shortId");
    ensure!(short_ids.iter().collect::<BTreeSet<_>>().len() == 60, "{short_ids:?}");
    // Each leads to the Thng with its serial.
    for (short_id, serial) in short_ids.iter().zip(&expected).step_by(13) {
        let link = api.get(&format!("/redirections/{short_id}")).await?.json();
        let thng = api.get(&format!("/thngs/{}", link["platformId"].as_str().context("thng")?)).await?.json();
        ensure!(thng["identifiers"]["gs1:21"] == serial.as_str() && thng["product"] == product, "{thng}");
        ensure!(thng["tags"] == json!(["week 12"]), "{thng}");
        ensure!(link["defaultRedirectUrl"] == "https://example.com/{shortId}", "{link}");
    }
    let receipt: Value = serde_json::from_slice(&file(&api, &path, "receipt.json").await?)?;
    ensure!(receipt["decoded"] == 60 && receipt["codes"] == 60, "{receipt}");

    let files = api.get(&format!("{path}/files")).await?.json();
    let names: Vec<&str> =
        files.as_array().context("files")?.iter().filter_map(|f| f["name"].as_str()).collect();
    ensure!(names == ["codes.zip", "manifest.csv", "receipt.json"], "{files}");
    let answer = api.get(&format!("{path}/files/codes.zip")).await?;
    ensure!(answer.header("content-type") == Some("application/zip"), "{answer:?}");
    ensure!(answer.bytes.len() as u64 == files[0]["sizeBytes"].as_u64().context("size")?, "{files}");
    let mut archive = zip::ZipArchive::new(Cursor::new(answer.bytes))?;
    ensure!(archive.len() == 62, "{}", archive.len());
    ensure!(archive.by_name(&format!("A0060_{}.png", short_ids[59])).is_ok());
    api.get(&format!("{path}/files/other.zip")).await?.problem(404, 40401);
    Ok(())
}

async fn random_serials_are_told_apart_and_say_their_bits(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let source = serials(&product, 40, json!({"form": "random", "prefix": "R-"}));
    let order = finished(&api, json!({"source": source, "format": "zpl"})).await?;
    ensure!(order["status"] == "complete", "{order}");
    ensure!(order["serials"] == json!({"form": "random", "bits": 79}), "{order}");
    let lines = manifest(&api, &format!("/jobs/qr/{}", order["id"].as_str().context("id")?)).await?;
    let found: BTreeSet<&str> = column(&lines, "serial").into_iter().collect();
    ensure!(found.len() == 40, "{found:?}");
    ensure!(found.iter().all(|serial| serial.len() == 18 && serial.starts_with("R-")), "{found:?}");
    Ok(())
}

async fn the_same_codes_give_the_same_bytes(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let drawing =
        json!({"format": "pdf-sheets", "layout": {"size": "a4-63.5x38.1"}, "hri": {"text": "serial"}});
    let with = |source: Value| {
        let mut body = drawing.clone();
        body["source"] = source;
        body
    };
    let made = finished(&api, with(serials(&product, 50, json!({})))).await?;
    let again = finished(&api, with(json!({"filter": format!("product={product}")}))).await?;
    ensure!(made["status"] == "complete" && again["status"] == "complete", "{made} {again}");
    ensure!(again["progress"]["codes"] == 50 && again.get("serials").is_none(), "{again}");
    let path = |order: &Value| format!("/jobs/qr/{}", order["id"].as_str().unwrap_or_default());
    for name in ["codes.pdf", "manifest.csv"] {
        let (one, two) = (file(&api, &path(&made), name).await?, file(&api, &path(&again), name).await?);
        ensure!(one == two && one.len() > 1_000, "{name}: {} and {} bytes", one.len(), two.len());
    }

    // The numbers go on, and none is given out again.
    let next = finished(&api, with(serials(&product, 5, json!({"form": "numbered"})))).await?;
    ensure!(next["serials"] == json!({"form": "numbered", "first": "51", "last": "55"}), "{next}");
    let body = with(serials(&product, 5, json!({"start": 55})));
    let faults = api.post("/jobs/qr", body).await?.problem(409, 40901);
    ensure!(faults[0].contains("below 56"), "{faults:?}");
    let later = finished(&api, with(serials(&product, 2, json!({"start": 70})))).await?;
    ensure!(later["serials"]["first"] == "70", "{later}");
    Ok(())
}

async fn listed_codes_are_printed_in_the_order_of_the_list(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut thngs = Vec::new();
    for (name, short_ids) in [("a", ["A-1", "A-2"]), ("b", ["B-1", "B-2"])] {
        let thng = api.create("/thngs", json!({"name": name})).await?["id"].clone();
        for short_id in short_ids {
            let link =
                json!({"platformId": thng, "defaultRedirectUrl": "https://e.com", "shortId": short_id});
            ensure!(api.post("/redirections", link).await?.status.is_success());
        }
        thngs.push(thng);
    }
    thngs.reverse();
    let printed = async |list: Value| -> Result<Vec<String>> {
        let order =
            finished(&api, json!({"source": {"list": list}, "format": "zpl", "waitForEdges": "none"}))
                .await?;
        ensure!(order["status"] == "complete" && order.get("edges").is_none(), "{order}");
        let lines = manifest(&api, &format!("/jobs/qr/{}", order["id"].as_str().context("id")?)).await?;
        Ok(column(&lines, "shortId").into_iter().map(str::to_owned).collect())
    };
    ensure!(printed(json!({"shortIds": ["B-2", "a-1", "B-2"]})).await? == ["B-2", "A-1", "B-2"]);
    // Of each Thng the oldest one.
    thngs.push(thngs[0].clone());
    ensure!(printed(json!({"thngs": thngs})).await? == ["B-1", "A-1", "B-1"]);
    Ok(())
}

async fn codes_of_digital_links_decode_to_their_uri(engine: Engine) -> Result<()> {
    const SERIALS: [(&str, &str, &str); 4] = [
        ("PLAIN", "aB-7_c.9", "aB-7_c.9"),
        ("SLASH", "A/1", "A%2F1"),
        ("PERCENT", "A%2F1", "A%252F1"),
        ("SIGNS", "!%&'()*+-./:;<=>?_", "%21%25%26%27%28%29%2A%2B-.%2F%3A%3B%3C%3D%3E%3F_"),
    ];
    let api = Api::new(engine).await?;
    api.resolve("tn.gg", true).await?;
    let product = product(&api).await?;
    for (short_id, serial, _) in SERIALS {
        let item = json!({"name": "Bag", "product": product, "identifiers": {"gs1:21": serial}});
        let item = api.create("/thngs", item).await?["id"].clone();
        let link = json!({"platformId": item, "defaultRedirectUrl": "https://e.com", "shortId": short_id});
        ensure!(api.post("/redirections", link).await?.status.is_success());
    }
    for format in ["png", "svg", "pdf"] {
        let body = json!({"source": {"list": {"shortIds": SERIALS.map(|(short_id, ..)| short_id)}},
            "format": format, "layout": {"size": "roll-100x50"}, "waitForEdges": "none",
            "code": {"payload": "gs1dl", "ecl": "M", "moduleMm": 0.5}});
        let order = finished(&api, body).await?;
        ensure!(order["status"] == "complete", "{order}");
        let path = format!("/jobs/qr/{}", order["id"].as_str().context("id")?);
        let mut archive = zip::ZipArchive::new(Cursor::new(file(&api, &path, "codes.zip").await?))?;
        let lines = manifest(&api, &path).await?;
        ensure!(lines.len() == SERIALS.len(), "{lines:?}");
        for (line, (short_id, _, encoded)) in lines.iter().zip(SERIALS) {
            let mut image = Vec::new();
            archive.by_name(line["file"].as_str().context("file")?)?.read_to_end(&mut image)?;
            let png = match format {
                "png" => image,
                "svg" => tools::rsvg(&image, "4"),
                _ => tools::pdftoppm(&image, "600"),
            };
            let read = tools::rqrr(&png, short_id);
            ensure!(read == [format!("https://tn.gg/01/{GTIN}/21/{encoded}")], "{format}: {read:?}");
        }
    }
    Ok(())
}
