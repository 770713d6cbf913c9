//! `waymark backup` and `waymark restore`, and the export of actions from SQLite.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tests::{
    db::Engine,
    product::{Options, Product, binary, built},
};

use crate::store::schema::run;

fn waymark(product: &Product, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(binary()?);
    Ok(command.args(args).env("WAYMARK_DATA_DIR", &product.data).output()?)
}

fn refused(output: &Output, says: &str) -> Result<()> {
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(64) && error.contains(says), "{:?} {error}", output.status);
    ensure!(error.lines().count() == 1, "one line: {error}");
    Ok(())
}

async fn leads(product: &Product, short_id: &str) -> Result<bool> {
    Ok(product.scan(short_id).await?.0 == StatusCode::TEMPORARY_REDIRECT)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_backup_is_made_while_it_is_written_and_restored() -> Result<()> {
    let mut product = Product::start(Options { unlimited: true, ..Options::default() }).await?;
    let bag = product.create_product().await?;
    product.create_redirection(&bag, "https://example.com/", Some("BEFORE")).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("waymark.backup");
    let path = file.to_str().context("path")?;
    // Writes go on all the while.
    let http = product.http.clone();
    let (api, key) = (product.api.clone(), product.key.clone());
    let writing = tokio::spawn(async move {
        let mut count = 0;
        loop {
            let request = http.post(format!("{api}/products")).header("authorization", &key);
            let answer = request.json(&json!({"name": "Bag"})).send().await?;
            anyhow::ensure!(answer.status() == StatusCode::CREATED, "{}", answer.status());
            count += 1;
            if count == 200 {
                return anyhow::Ok(());
            }
        }
    });
    let output = waymark(&product, &["backup", path])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(said.contains("1 links") && said.contains("checked") && said.contains("files"), "{said}");
    ensure!(fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600);
    let scans = folder.path().join("waymark.backup.scans");
    ensure!(fs::metadata(&scans)?.permissions().mode() & 0o777 == 0o600);
    ensure!(fs::read_dir(folder.path())?.count() == 2, "nothing else is left");
    writing.await??;
    refused(&waymark(&product, &["backup", path])?, "is there already")?;

    product.create_redirection(&bag, "https://example.com/", Some("AFTER")).await?;
    refused(&waymark(&product, &["restore", path, "--replace"])?, "in use by another process")?;
    ensure!(product.stop()?.success());
    refused(&waymark(&product, &["restore", path])?, "--replace")?;
    for (name, bytes) in [("cut", &fs::read(&file)?[..8_192]), ("other", &b"not a database"[..])] {
        let broken = folder.path().join(name);
        fs::write(&broken, bytes)?;
        let broken = broken.to_str().context("path")?;
        refused(&waymark(&product, &["restore", broken, "--replace"])?, "cannot be restored")?;
    }
    let output = waymark(&product, &["restore", path, "--replace"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    product.start_again()?;
    ensure!(leads(&product, "BEFORE").await? && !leads(&product, "AFTER").await?);
    // What was replaced is still there.
    let names = fs::read_dir(&product.data)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    ensure!(names.into_iter().any(|name| name.starts_with("waymark.db.replaced-")));
    // And it is written as before.
    product.create_redirection(&bag, "https://example.com/", Some("NEW")).await?;
    ensure!(leads(&product, "NEW").await?);

    // The database was moved away by hand, and its scans are still there: they are kept.
    ensure!(product.stop()?.success());
    let database = product.data.join("waymark.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{suffix}", database.display()));
    }
    let scans = fs::read(product.data.join("waymark.db.scans"))?;
    refused(&waymark(&product, &["restore", path])?, "--replace")?;
    let output = waymark(&product, &["restore", path, "--replace"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut kept = Vec::new();
    for entry in fs::read_dir(&product.data)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name.starts_with("waymark.db.replaced-") && name.ends_with(".scans") {
            kept.push(fs::read(product.data.join(name))?);
        }
    }
    ensure!(kept.contains(&scans), "{} files", kept.len());
    // An attempt that was broken off is not in the way.
    let second = folder.path().join("second.backup");
    for suffix in [".partial", ".partial.scans"] {
        fs::write(format!("{}{suffix}", second.display()), b"half")?;
    }
    let output = waymark(&product, &["backup", second.to_str().context("path")?])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // Into an empty folder, and of Postgres there are tools.
    let empty = folder.path().join("data");
    let output = Command::new(binary()?).args(["restore", path]).env("WAYMARK_DATA_DIR", &empty).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let elsewhere = ["backup", "x", "--database-url", "postgres://nobody@127.0.0.1:1/none"];
    refused(&waymark(&product, &elsewhere)?, "pg_dump")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_are_exported_from_sqlite() -> Result<()> {
    let product = Product::start(Options { engine: Engine::Sqlite, ..Options::default() }).await?;
    let (_, thng) = product.call(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let action =
        product.must_answer(201, Method::POST, "/actions/shares", Some(json!({"thng": thng["id"]}))).await?;
    let past = "UPDATE actions SET created_at = created_at - 3 * 86400000".to_owned();
    run(&product.location(), &[past]).await?;
    let into = product.data.join("export");
    let database = product.data.join("waymark.db");
    let export = |database: &Path| {
        let mut command = Command::new(built("control")?);
        command.args(["export", "--into"]).arg(&into).arg("--database-url").arg(database);
        anyhow::Ok(command.output()?)
    };
    let output = export(&database)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(said.ends_with("1 files written.\n"), "{said} {}", String::from_utf8_lossy(&output.stderr));
    let key = said.split_once(':').context("no file")?.0;
    let lines = Command::new("gzip").arg("-dc").arg(into.join(key)).output()?;
    let line: serde_json::Value = serde_json::from_slice(&lines.stdout)?;
    ensure!(line["id"] == action["id"], "{line}");
    refused(&export(&product.data.join("none.db"))?, "no such file")
}
