//! DuckDB reads exports, and counts what the API counts.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use tests::{
    db::{Engine, Location},
    product::{DEADLINE, Options, Product, built, root},
};

use crate::schemathesis::install;

/// Actions of the job.
const COUNT: usize = 2_500;

/// Type, lines, different ids, and the sum of their times, as a text.
type Counts = Vec<(String, usize, usize, String)>;

/// What DuckDB says of the files of a pattern.
fn duckdb(programs: &Path, files: &str) -> Result<Counts> {
    let script = root().join("tests/clients/duckdb/count.py");
    let output = Command::new(programs.join("python")).arg(script).arg(files).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The same of what lists show.
fn counted(actions: &[Value]) -> Counts {
    let mut counts: BTreeMap<&str, (usize, i128)> = BTreeMap::new();
    for action in actions {
        let of_type = counts.entry(action["type"].as_str().unwrap_or_default()).or_default();
        of_type.0 += 1;
        of_type.1 += i128::from(action["timestamp"].as_i64().unwrap_or_default());
    }
    let row = |(kind, (count, sum)): (&str, (usize, i128))| (kind.to_owned(), count, count, sum.to_string());
    counts.into_iter().map(row).collect()
}

async fn fill(product: &Product) -> Result<Vec<Value>> {
    let (_, thng) = product.call(Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let thng = thng["id"].as_str().context("id")?;
    for kind in ["shares", "checkins"] {
        let body = json!({"thng": thng, "customFields": {"note": "line\nbreak, \u{2028} and \u{1f600}"}});
        ensure!(product.call(Method::POST, &format!("/actions/{kind}"), Some(body)).await?.0 == 201);
    }
    let body = json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": vec![thng; COUNT]}});
    let (status, said) = product.call(Method::POST, "/jobs/actions", Some(body)).await?;
    ensure!(status == 202, "{status}: {said}");
    let begun = std::time::Instant::now();
    loop {
        let actions = product.list("/actions/all?perPage=100").await?;
        if actions.len() == COUNT + 2 {
            return Ok(actions);
        }
        ensure!(begun.elapsed() < DEADLINE, "{} actions", actions.len());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// The files of days: each day that is over, once; those that are there are passed over.
async fn days(programs: &Path, product: &Product, url: &str, schema: &str, folder: &Path) -> Result<()> {
    let mut conn = sqlx::PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(format!("SET search_path = {schema}"))).execute(&mut conn).await?;
    // Two days of them are over, and a few are of today.
    let past = "UPDATE actions SET created_at = ((SELECT MAX(created_at) FROM actions) / 86400000 - \
        CASE WHEN seq % 5 < 3 THEN 2 ELSE 5 END) * 86400000 + seq WHERE seq % 5 > 0";
    sqlx::raw_sql(past).execute(&mut conn).await?;
    let database = format!("{url}?options[search_path]={schema}");
    let export = |more: &[&str]| -> Result<String> {
        let mut command = Command::new(built("control")?);
        command.args(["export", "--into"]).arg(folder).args(["--database-url", &database]).args(more);
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let said = export(&[])?;
    ensure!(said.ends_with("2 files written.\n"), "{said}");
    ensure!(export(&[])?.ends_with("0 files written.\n"), "what is there is passed over");
    ensure!(export(&["--again"])?.ends_with("2 files written.\n"));
    let all = product.list("/actions/all?perPage=100").await?;
    let today = all.iter().filter_map(|action| action["createdAt"].as_i64()).max().context("today")?;
    let start = today - today.rem_euclid(86_400_000);
    let over: Vec<Value> =
        all.into_iter().filter(|action| action["createdAt"].as_i64().unwrap_or_default() < start).collect();
    ensure!(over.len() > COUNT / 2, "{}", over.len());
    let found = duckdb(programs, &format!("{}/*/*.ndjson.gz", folder.display()))?;
    ensure!(found == counted(&over), "{found:?} and {:?}", counted(&over));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_counts_what_the_api_counts() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let programs = install(&scratch.path().join("venv"), "duckdb")?;
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let product = Product::start(Options { engine, ..Options::default() }).await?;
        let actions = fill(&product).await?;
        let request = product.http.get(format!("{}/actions/all/export", product.api));
        let answer = request.header("authorization", &product.key).send().await?.error_for_status()?;
        let file = scratch.path().join("all.ndjson");
        std::fs::write(&file, answer.bytes().await?)?;
        let found = duckdb(&programs, &file.display().to_string())?;
        ensure!(found == counted(&actions), "{found:?} and {:?}", counted(&actions));
        if let Location::Postgres(url, schema) = product.location() {
            days(&programs, &product, &url, &schema, &scratch.path().join("days")).await?;
        }
    }
    Ok(())
}
