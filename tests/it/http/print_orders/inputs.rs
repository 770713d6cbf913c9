//! Orders of uploaded files: what they print, and what bad lines do.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Api, column, ended, file, finished, manifest, order, serials, with_product};
use crate::http::{jobs, operators::machine};

crate::on_both_engines!(
    lines_name_codes_by_short_id_or_serial,
    a_large_file_is_read_in_many_steps,
    every_bad_line_is_named_and_nothing_is_made,
    a_file_that_cannot_be_read_is_refused,
    a_file_that_is_deleted_is_read_before,
);

fn of_file(location: &str, format: &str, more: Value) -> Value {
    let mut body = json!({"source": {"file": {"location": location, "format": format}}, "format": "zpl",
        "waitForEdges": "none"});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

fn path_of(order: &Value) -> String {
    format!("/jobs/qr/{}", order["id"].as_str().unwrap_or_default())
}

async fn lines_name_codes_by_short_id_or_serial(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let source = serials(&product, 3, json!({"prefix": "A"}));
    let made = finished(&api, json!({"source": source, "format": "zpl"})).await?;
    let lines = manifest(&api, &path_of(&made)).await?;
    let ids: Vec<String> = column(&lines, "shortId").into_iter().map(str::to_owned).collect();
    let before = api.fingerprint().await?;

    let csv =
        format!("Short id,serial,gtin\n# the last one first\n{},,\n,A1,09521234543213\r\n,A2,\n", ids[2]);
    let csv = jobs::file(&api, csv.as_bytes()).await?;
    let ndjson = format!(
        "{{\"shortId\":\"{}\"}}\n{{\"serial\":\"A1\",\"gtin\":\"9521234543213\"}}\n\n{{\"serial\":\"A2\"}}",
        ids[2]
    );
    let ndjson = jobs::file(&api, ndjson.as_bytes()).await?;
    let mut bytes = Vec::new();
    // The same file twice is the same order; the other form says the same.
    for (location, form) in [(&csv, "CSV"), (&csv, "CSV"), (&ndjson, "NDJSON")] {
        let order = finished(&api, of_file(location, form, json!({"hri": {"text": "gs1"}}))).await?;
        ensure!(order["status"] == "complete" && order["source"]["file"]["format"] == form, "{order}");
        ensure!(order["progress"]["codes"] == 3 && order["progress"]["made"] == 3, "{order}");
        let lines = manifest(&api, &path_of(&order)).await?;
        ensure!(column(&lines, "shortId") == [&ids[2], &ids[0], &ids[1]], "{lines:?}");
        ensure!(column(&lines, "serial") == ["A3", "A1", "A2"], "{lines:?}");
        bytes.push(file(&api, &path_of(&order), "codes.zpl").await?);
    }
    ensure!(bytes[0] == bytes[1] && bytes[0] == bytes[2], "the same lines give other bytes");
    let after = api.fingerprint().await?;
    ensure!(after["thngs"] == before["thngs"] && after["redirections"] == before["redirections"]);

    // What stands beside a short id is what text and names have.
    let csv = format!("shortId,serial\n{},Left\n{},Right\n", ids[0], ids[1]);
    let location = jobs::file(&api, csv.as_bytes()).await?;
    let named = json!({"format": "svg", "naming": "{serial}_{shortId}", "hri": {"text": "serial"}});
    let order = finished(&api, of_file(&location, "CSV", named)).await?;
    ensure!(order["status"] == "complete", "{order}");
    let archive = file(&api, &path_of(&order), "codes.zip").await?;
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive))?;
    ensure!(archive.by_name(&format!("Left_{}.svg", ids[0])).is_ok());
    Ok(())
}

async fn a_large_file_is_read_in_many_steps(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let made = finished(&api, json!({"source": serials(&product, 7, json!({})), "format": "zpl"})).await?;
    let lines = manifest(&api, &path_of(&made)).await?;
    let ids = column(&lines, "shortId");
    // More lines than a step takes.
    let text: String =
        ids.iter().cycle().take(1_010).fold("shortId\n".to_owned(), |text, id| text + *id + "\n");
    let location = jobs::file(&api, text.as_bytes()).await?;
    let path = order(&api, of_file(&location, "CSV", json!({}))).await?;
    let mut seen = Vec::new();
    while super::steps::step(&api).await?.is_some() {
        let progress = api.get(&path).await?.json()["progress"]["made"].as_u64().context("made")?;
        if seen.last() != Some(&progress) {
            seen.push(progress);
        }
    }
    ensure!(seen.len() >= 3 && seen.last() == Some(&1_010), "{seen:?}");
    let order = ended(&api, &path).await?;
    ensure!(order["status"] == "complete", "{order}");
    let printed = manifest(&api, &path).await?;
    let expected: Vec<&str> = ids.iter().copied().cycle().take(1_010).collect();
    ensure!(column(&printed, "shortId") == expected);
    Ok(())
}

async fn every_bad_line_is_named_and_nothing_is_made(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    finished(&api, json!({"source": serials(&product, 2, json!({"prefix": "A"})), "format": "zpl"})).await?;
    let links = api.get(&format!("/redirections?filter=product={product}")).await?.json();
    let good = links[0]["shortId"].as_str().context("shortId")?;
    let bare = api.create("/thngs", json!({"name": "t", "identifiers": {"gs1:21": "BARE"}})).await?;
    let twin = api.create("/products", json!({"name": "Other bag"})).await?["id"].clone();
    api.create("/thngs", json!({"name": "t", "product": twin, "identifiers": {"gs1:21": "A1"}})).await?;
    ensure!(bare["id"].is_string());
    let text = format!(
        "shortId,serial,gtin\n{good},,\nNOTHING,,\na b,,\n,NOBODY,\n,BARE,\n,A1,\n,A2,1\n,,09521234543213\n"
    );
    let location = jobs::file(&api, text.as_bytes()).await?;
    let failed = finished(&api, of_file(&location, "CSV", json!({}))).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(failed["status"] == "failed", "{failed}");
    for part in [
        "line 3: NOTHING is no redirection",
        "line 4: \"a b\" is no short id",
        "line 5: NOBODY is the serial of no Thng",
        "line 6: the Thng with the serial BARE has no redirection",
        "line 7: 2 Thngs have the serial A1",
        "line 8: \"1\" is no GTIN",
        "line 9: it has neither",
    ] {
        ensure!(message.contains(part), "{part} is not in {message}");
    }
    ensure!(!message.contains("line 2:"), "{message}");
    super::work_all(&api).await?;
    let tables = api.fingerprint().await?;
    ensure!(tables["print_codes"].is_empty() && tables["print_chunks"].is_empty(), "{tables:?}");

    // The first hundred of more, whether a step reads all lines or not.
    for (count, is_more) in [(700, true), (101, true), (100, false)] {
        let text = format!("shortId\n{}", "NOTHING\n".repeat(count));
        let location = jobs::file(&api, text.as_bytes()).await?;
        let failed = finished(&api, of_file(&location, "CSV", json!({}))).await?;
        let message = failed["message"].as_str().context("message")?;
        ensure!(message.matches("line ").count() == 100, "{count}: {message}");
        ensure!(message.contains("may be more") == is_more, "{count}: {message}");
    }
    // What the drawing needs and a code lacks is a fault of its line.
    let text = format!("shortId\n{good}\n");
    let location = jobs::file(&api, text.as_bytes()).await?;
    let thng = api.create("/thngs", json!({"name": "plain"})).await?["id"].clone();
    let link = json!({"platformId": thng, "defaultRedirectUrl": "https://e.com", "shortId": "PLAIN"});
    ensure!(api.post("/redirections", link).await?.status.is_success());
    let fine = finished(&api, of_file(&location, "CSV", json!({"hri": {"text": "gs1"}}))).await?;
    ensure!(fine["status"] == "complete", "{fine}");
    let location = jobs::file(&api, b"shortId\nPLAIN\n").await?;
    let failed = finished(&api, of_file(&location, "CSV", json!({"hri": {"text": "gs1"}}))).await?;
    let message = failed["message"].as_str().context("message")?;
    ensure!(message.contains("line 2:") && message.contains("no serial"), "{message}");
    Ok(())
}

async fn a_file_that_cannot_be_read_is_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let location = jobs::file(&api, b"shortId\nA\n").await?;
    let bare = api.create("/files", json!({"name": "no content"})).await?["contentUrl"].clone();
    let bare = bare.as_str().context("contentUrl")?;
    let unknown = "https://api.example/files/UKXAGyEf8SQ5eTDmVgGpHqAa/content";
    let elsewhere = location.replace("api.example", "files.example");
    for (location, part) in [
        ("https://api.example/somewhere", "must be the contentUrl"),
        (elsewhere.as_str(), "of a file of this service"),
        (unknown, "was not found"),
        (bare, "has no content yet"),
    ] {
        let body = of_file(location, "CSV", json!({}));
        let faults = api.post("/jobs/qr", body).await?.problem(400, 40001);
        ensure!(
            faults[0].contains("source.file.location") && faults[0].contains(part),
            "{location}: {faults:?}"
        );
    }
    let mut body = of_file(&location, "CSV", json!({}));
    body["source"]["file"]["shortDomain"] = json!("other.gg");
    let faults = api.post("/jobs/qr", body).await?.problem(400, 40001);
    ensure!(faults[0].contains("other.gg is not a short domain"), "{faults:?}");
    // Another account's file is not there; a press may not read files.
    let body = of_file(&location, "CSV", json!({}));
    let theirs = api.call_as(&api.other_key, Method::POST, "/jobs/qr", Some(body.clone())).await?;
    let faults = theirs.problem(400, 40001);
    ensure!(faults[0].contains("was not found"), "{faults:?}");
    let (_, printer) = machine(&api, "printer", json!({})).await?;
    api.call_as(&printer, Method::POST, "/jobs/qr", Some(body)).await?.problem(403, 40301);
    // What is in it is seen when it is read.
    for (content, part) in [
        (b"PK\x03\x04".as_slice(), "ZIP"),
        (b"colour\nred\n".as_slice(), "\"colour\""),
        (b"shortId\n".as_slice(), "no redirection"),
    ] {
        let location = jobs::file(&api, content).await?;
        let failed = finished(&api, of_file(&location, "CSV", json!({}))).await?;
        let message = failed["message"].as_str().context("message")?;
        ensure!(failed["status"] == "failed" && message.contains(part), "{failed}");
    }
    Ok(())
}

async fn a_file_that_is_deleted_is_read_before(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    finished(&api, json!({"source": serials(&product, 1, json!({"prefix": "A"})), "format": "zpl"})).await?;
    let location = jobs::file(&api, b"serial\nA1\n").await?;
    let path = order(&api, of_file(&location, "CSV", json!({}))).await?;
    let id = location.split("/files/").nth(1).and_then(|rest| rest.split('/').next()).context("id")?;
    ensure!(api.delete(&format!("/files/{id}")).await?.status == 200);
    ensure!(ended(&api, &path).await?["status"] == "complete");
    let order = order(&api, of_file(&location, "CSV", json!({}))).await;
    ensure!(order.is_err(), "a file that was deleted is there");
    Ok(())
}
