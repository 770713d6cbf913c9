//! Jobs whose ids come in a file.

use std::io::{Cursor, Write};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::json;
use tests::db::Engine;

use super::{super::Api, all, check, ended, file, of_file, submit, thng, work};
use crate::on_both_engines;

fn zip(files: &[(&str, &str)]) -> Result<Vec<u8>> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default())?;
        writer.write_all(text.as_bytes())?;
    }
    Ok(writer.finish()?.into_inner())
}

pub(super) async fn files_of_every_format_are_processed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(thng(&api, json!({"name": "t", "identifiers": {"sn": format!("S{n}")}})).await?);
    }
    let (a, b, c) = (&ids[0], &ids[1], &ids[2]);
    let csv = format!(
        "\u{feff}name,thng\r\n\"x, y\",{a}\r\n\r\n# no id\r\nz,\"{b}\"\r\nbad,\"{c}\r\nw\r\n{c},{c}\r\n"
    );
    let path = submit(&api, of_file("PLATFORM_IDS", "CSV", &file(&api, csv.as_bytes()).await?)).await?;
    check(&api, &path, "COMPLETED_WITH_FAILURES", 5, 2).await?;
    let logs = all(&api, &format!("{path}/logs")).await?;
    let told: Vec<&str> = logs.iter().rev().filter_map(|log| log["message"].as_str()).collect();
    ensure!(
        told == ["The file, line 6: has a quote that is not closed.", "The file, line 7: holds no id."],
        "{told:?}"
    );
    let archive = zip(&[("one.csv", "S0\nS1\nS9\n"), ("d/two.txt", "sn\nS2\n\"S0\n")])?;
    let mut body = of_file("EXTERNAL_IDS", "ZIP", &file(&api, &archive).await?);
    body["input"]["key"] = json!("sn");
    let path = submit(&api, body).await?;
    check(&api, &path, "COMPLETED_WITH_FAILURES", 5, 2).await?;
    let logs = all(&api, &format!("{path}/logs")).await?;
    ensure!(logs[0]["message"] == "d/two.txt, line 3: has a quote that is not closed.", "{logs:?}");
    ensure!(logs[1]["payload"] == json!({"type": "EXTERNAL_IDS", "key": "sn", "value": "S9"}), "{logs:?}");
    ensure!(all(&api, "/actions/scans").await?.len() == 3 + 3);
    // Short ids of the account's first domain: an entry of the log names it.
    let path = submit(&api, of_file("SHORT_IDS", "CSV", &file(&api, b"shortId\nNONE\n").await?)).await?;
    check(&api, &path, "COMPLETED_WITH_FAILURES", 1, 1).await?;
    let logs = all(&api, &format!("{path}/logs")).await?;
    let payload = json!({"type": "SHORT_IDS", "shortDomain": "tn.gg", "shortId": "NONE"});
    ensure!(logs[0]["payload"] == payload, "{logs:?}");
    for (content, requested) in [(b"".as_slice(), 0), (b"id\n", 0)] {
        let path = submit(&api, of_file("PLATFORM_IDS", "CSV", &file(&api, content).await?)).await?;
        check(&api, &path, "COMPLETED", requested, 0).await?;
    }
    // More than one part, and a file that goes as soon as the job is accepted.
    let many: String = (0..12_345).map(|n| format!("{}\n", ids[n % 3])).collect();
    let location = file(&api, many.as_bytes()).await?;
    let path = submit(&api, of_file("PLATFORM_IDS", "CSV", &location)).await?;
    let record = location.split_once("8080").context("path")?.1.trim_end_matches("/content").to_owned();
    ensure!(api.delete(&record).await?.status == 200);
    check(&api, &path, "COMPLETED", 12_345, 0).await?;
    let tables = api.fingerprint().await?;
    ensure!(tables["actions"].len() == 6 + 12_345 && tables["job_chunks"].is_empty());
    Ok(())
}

pub(super) async fn inputs_that_cannot_be_read_fail_as_a_whole(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let id = thng(&api, json!({"name": "t"})).await?;
    let inner = zip(&[("a.csv", &id)])?;
    let mut nested = zip::ZipWriter::new(Cursor::new(Vec::new()));
    nested.start_file("a.zip", zip::write::SimpleFileOptions::default())?;
    nested.write_all(&inner)?;
    let many: Vec<String> = (0..10_000).map(|n| format!("{n}.csv")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "x")).collect();
    let bomb = "\n".repeat(32 << 20);
    // A good file before the bad one: nothing of it is carried out either.
    for (format, content, part) in [
        ("CSV", inner.clone(), "The file is a ZIP archive."),
        ("CSV", b"\xff\xfeA\0".to_vec(), "The file is in UTF-16"),
        ("ZIP", id.clone().into_bytes(), "The archive is no ZIP archive"),
        ("ZIP", inner[..inner.len() - 9].to_vec(), "The archive is no ZIP archive, or is cut off"),
        ("ZIP", zip(&[])?, "The archive holds no CSV file."),
        ("ZIP", zip(&[("a.csv", &id), ("../../b.csv", &id)])?, "a name that leads out of it"),
        ("ZIP", nested.finish()?.into_inner(), "holds a.zip, which is no CSV file"),
        ("ZIP", zip(&many)?, "more than 100 files"),
        ("ZIP", zip(&[("a.csv", &id), ("b.csv", &bomb)])?, "more than 100 times its size"),
    ] {
        let path = submit(&api, of_file("PLATFORM_IDS", format, &file(&api, &content).await?)).await?;
        let job = ended(&api, &path).await?;
        ensure!(job["status"] == "FAILED", "{part}: {job}");
        ensure!(job["message"].as_str().is_some_and(|text| text.contains(part)), "{part}: {job}");
        ensure!(job["progress"]["amountCompleted"] == 0 && job["failedOperationsAmount"] == 0, "{job}");
        api.call(Method::POST, &format!("{path}/cancel"), None).await?.problem(409, 40901);
    }
    jobs::service::jobs::sweep(&api.made.app.jobs).await?;
    let tables = api.fingerprint().await?;
    ensure!(tables["actions"].is_empty() && tables["job_chunks"].is_empty() && tables["job_logs"].is_empty());
    Ok(())
}

on_both_engines!(files_of_every_format_are_processed, inputs_that_cannot_be_read_fail_as_a_whole);
