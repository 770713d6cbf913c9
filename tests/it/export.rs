//! DuckDB reads exports, from a folder or a bucket, and its counts match the API's.

mod parquet;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection;
use tests::{
    db::{Engine, Location},
    is_long,
    killed::Killed,
    kills::until,
    product::{Options, Product, built, root},
    python,
};

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
    product.must_answer(202, Method::POST, "/jobs/actions", Some(body)).await?;
    until(product, "/jobs/actions", |jobs| jobs[0].get("completedAt").is_some()).await?;
    let actions = product.list("/actions/all?perPage=100").await?;
    ensure!(actions.len() == COUNT + 2, "{} actions", actions.len());
    Ok(actions)
}

/// Makes two days of the actions that are over, and leaves a few that are of today; gives the first.
async fn age(product: &Product, url: &str) -> Result<Vec<Value>> {
    let mut conn = sqlx::PgConnection::connect(url).await?;
    // Two days of them are over, and a few are of today.
    let past = "UPDATE actions SET created_at = ((SELECT MAX(created_at) FROM actions) / 86400000 - \
        CASE WHEN seq % 5 < 3 THEN 2 ELSE 5 END) * 86400000 + seq WHERE seq % 5 > 0";
    sqlx::raw_sql(past).execute(&mut conn).await?;
    let all = product.list("/actions/all?perPage=100").await?;
    let today = all.iter().filter_map(|action| action["createdAt"].as_i64()).max().context("today")?;
    let start = today - today.rem_euclid(86_400_000);
    let over: Vec<Value> =
        all.into_iter().filter(|action| action["createdAt"].as_i64().unwrap_or_default() < start).collect();
    ensure!(over.len() > COUNT / 2, "{}", over.len());
    Ok(over)
}

/// The files of days: each day that is over, once; those that are there are passed over, which one form in a folder and the other
/// one in a bucket shows.
fn days(database: &str, into: &str, format: &str, settings: &[(&str, &str)]) -> Result<()> {
    let export = |more: &[&str]| -> Result<String> {
        let mut command = Command::new(built("control")?);
        command.args(["export", "--into", into, "--format", format, "--database-url", database]).args(more);
        let output = command.envs(settings.iter().copied()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let said = export(&[])?;
    ensure!(said.ends_with("2 files written.\n"), "{said}");
    if (format == "ndjson") == into.starts_with("s3://") {
        return Ok(());
    }
    ensure!(export(&[])?.ends_with("0 files written.\n"), "what is there is passed over");
    ensure!(export(&["--again"])?.ends_with("2 files written.\n"));
    Ok(())
}

/// An S3 server with one bucket; it ends with this.
struct Bucket {
    _child: Killed,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
    url: String,
}

impl Bucket {
    fn start(programs: &Path) -> Result<Self> {
        let mut child = Command::new(programs.join("python"))
            .arg(root().join("tests/clients/moto/serve.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ask = child.stdin.take().context("stdin")?;
        let said = BufReader::new(child.stdout.take().context("stdout")?);
        let mut bucket = Self { _child: Killed(child), ask, said, url: String::new() };
        let line = bucket.line()?;
        let port = line.strip_prefix("listening ").with_context(|| line.clone())?;
        bucket.url = format!("http://127.0.0.1:{port}");
        Ok(bucket)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.said.read_line(&mut line)? > 0, "the S3 server has ended");
        Ok(line.trim().to_owned())
    }

    /// Reads every object into a folder with AWS's client; gives their keys.
    fn read_into(&mut self, folder: &Path) -> Result<Vec<String>> {
        writeln!(self.ask, "{}", folder.display())?;
        let mut keys = Vec::new();
        loop {
            let line = self.line()?;
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["object", key, _] => keys.push((*key).to_owned()),
                ["read", _] => return Ok(keys),
                _ => bail!("{line}"),
            }
        }
    }
}

/// What is in a bucket is what DuckDB counts as the API does; a bucket that is not there is no success.
fn bucket(scratch: &Path, programs: &Path, database: &str, over: &[Value]) -> Result<()> {
    let mut bucket = Bucket::start(&python::programs("moto")?)?;
    let url = bucket.url.clone();
    let settings = [
        ("AWS_ENDPOINT_URL", url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ];
    days(database, "s3://bucket/some/days", "ndjson", &settings)?;
    let folder = scratch.join("bucket");
    let keys = bucket.read_into(&folder)?;
    ensure!(keys.len() == 2 && keys.iter().all(|key| key.starts_with("some/days/")), "{keys:?}");
    let found = duckdb(programs, &format!("{}/some/days/*/*.ndjson.gz", folder.display()))?;
    ensure!(found == counted(over), "{found:?} and {:?}", counted(over));
    days(database, "s3://bucket/some/days", "parquet", &settings)?;
    ensure!(bucket.read_into(&folder)?.len() == 4, "two days in both forms");
    let files = |name: &str| format!("{}/some/days/{name}", folder.display());
    parquet::compare(programs, &files("*/*/*.parquet"), &files("*/*.ndjson.gz"))?;
    for format in ["ndjson", "parquet"] {
        let wrong = days(database, "s3://another/days", format, &settings);
        ensure!(wrong.is_err(), "there is no such bucket");
    }
    Ok(())
}

/// The statements of the guide to the export, beside a folder `exports`: one on lines, one on Parquet.
fn guide_counts(scratch: &Path, programs: &Path, over: &[Value]) -> Result<()> {
    let script = "import duckdb, json, sys; print(json.dumps(sorted(duckdb.sql(sys.argv[1]).fetchall(), \
        key=lambda row: [str(one) for one in row]), default=str))";
    let ask = |statement: &str| -> Result<Value> {
        let output = Command::new(programs.join("python"))
            .args(["-c", script, statement])
            .current_dir(scratch)
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let blocks = crate::readme::blocks()?.into_iter().filter(|block| block.language == "sql");
    let statements: Vec<String> = blocks.map(|block| block.text).collect();
    let [lines, columns] = statements.as_slice() else { bail!("{} statements", statements.len()) };
    let types: Vec<(String, usize)> =
        counted(over).into_iter().map(|(kind, count, ..)| (kind, count)).collect();
    let found = ask(lines)?;
    ensure!(found == json!(types), "{found} and {types:?}");
    let (found, expected) = (ask(columns)?, parquet::by_day(over)?);
    ensure!(found == json!(expected), "{found} and {expected:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_counts_what_the_api_counts() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let programs = python::programs("duckdb")?;
    // Exports of either engine are its lists: `http::export`.
    let engines: &[Engine] =
        if is_long() { &[Engine::Sqlite, Engine::Postgres] } else { &[Engine::Postgres] };
    for engine in engines.iter().copied() {
        let product = Product::start(Options { engine, ..Options::default() }).await?;
        let actions = fill(&product).await?;
        let request = product.http.get(format!("{}/actions/all/export", product.api));
        let answer = request.header("authorization", &product.key).send().await?.error_for_status()?;
        let file = scratch.path().join("all.ndjson");
        std::fs::write(&file, answer.bytes().await?)?;
        let found = duckdb(&programs, &file.display().to_string())?;
        ensure!(found == counted(&actions), "{found:?} and {:?}", counted(&actions));
        if let Location::Postgres(url) = product.location() {
            let over = age(&product, &url).await?;
            let folder = scratch.path().join("exports");
            for format in ["ndjson", "parquet"] {
                days(&url, &folder.display().to_string(), format, &[])?;
            }
            let found = duckdb(&programs, &format!("{}/*/*.ndjson.gz", folder.display()))?;
            ensure!(found == counted(&over), "{found:?} and {:?}", counted(&over));
            let files = |name: &str| format!("{}/{name}", folder.display());
            let lines = files("*/*.ndjson.gz");
            parquet::compare(&programs, &files("*/*/*.parquet"), &lines)?;
            guide_counts(scratch.path(), &programs, &over)?;
            parquet::killed_exports_leave_no_part(&programs, &url, scratch.path(), &lines)?;
            bucket(scratch.path(), &programs, &url, &over)?;
        }
    }
    Ok(())
}
