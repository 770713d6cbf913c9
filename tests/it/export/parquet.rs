//! A Parquet export is the lines of the same export, row by row and column by column, as DuckDB reads it.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, header};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    is_long,
    product::{Options, PHONE, Product, built, root},
    python, repetitions,
    wait::until,
};

use super::{COUNT, fill};

/// The form in `Accept` and `Content-Type`.
const PARQUET: &str = "application/vnd.apache.parquet";

/// An address in Köln.
const VISITOR: &str = "203.0.113.77";

/// What `rows.py` says of files that are equal: how many rows, the types of columns, and how many values are there.
#[derive(Debug)]
pub(super) struct Compared(Value);

impl Compared {
    fn rows(&self) -> usize {
        count(&self.0["rows"])
    }

    fn values(&self, column: &str) -> usize {
        count(&self.0["values"][column])
    }
}

fn count(value: &Value) -> usize {
    value.as_u64().and_then(|count| count.try_into().ok()).unwrap_or_default()
}

/// Compares files of both forms, given as patterns.
pub(super) fn compare(programs: &Path, parquet: &str, lines: &str) -> Result<Compared> {
    let script = root().join("tests/clients/duckdb/rows.py");
    let output = Command::new(programs.join("python")).arg(script).args([parquet, lines]).output()?;
    ensure!(output.status.success(), "{parquet}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Compared(serde_json::from_slice(&output.stdout)?))
}

/// Reads an export in both forms into a folder, and compares them.
async fn both(product: &Product, key: &str, uri: &str, folder: &Path, programs: &Path) -> Result<Compared> {
    for (name, accept) in [("lines", "*/*"), ("parquet", PARQUET)] {
        let request = product.http.get(format!("{}{uri}", product.api));
        let request = request.header(header::AUTHORIZATION, key).header(header::ACCEPT, accept);
        let answer = request.send().await?.error_for_status()?;
        let kind = answer.headers().get(header::CONTENT_TYPE).context("type")?.to_str()?.to_owned();
        ensure!((kind == PARQUET) == (name == "parquet"), "{uri} as {accept}: {kind}");
        ensure!(answer.headers().get_all(header::VARY).iter().any(|value| value == "Accept"), "{answer:?}");
        fs::write(folder.join(name), answer.bytes().await?)?;
    }
    let path = |name: &str| folder.join(name).display().to_string();
    compare(programs, &path("parquet"), &path("lines"))
}

/// Actions whose members fit no column, and scans of a redirection.
async fn add(product: &Product) -> Result<usize> {
    let item = product.create_product().await?;
    let position = json!({"type": "Point", "coordinates": [7.5, 46]});
    for body in [
        json!({"product": item, "location": {"position": position}, "locationSource": "sensor", "tags": ["a", "ä"]}),
        json!({"product": item, "customFields": {"more": {"x": 1}, "bot": "no", "shortId": 7, "big": 1e300}}),
        json!({"product": item, "timestamp": 1, "customFields": {}}),
    ] {
        product.must_answer(201, Method::POST, "/actions/checkins", Some(body)).await?;
    }
    product.create_redirection(&item, "https://example.com/", Some("COLUMNS")).await?;
    for agent in [PHONE, "Googlebot/2.1 (+http://www.google.com/bot.html)", PHONE] {
        let request = product.http.get(format!("{}/COLUMNS?a=%22", product.edge));
        let request = request.header(header::USER_AGENT, agent).header("x-forwarded-for", VISITOR);
        let status = request.header(header::ACCEPT_LANGUAGE, "de-CH").send().await?.status();
        ensure!(status == 307, "{status}");
    }
    until("the scans are stored", async || Ok(product.count_scans(&item).await? >= 3)).await?;
    Ok(product.list("/actions/all?perPage=100").await?.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duckdb_reads_the_file_as_the_lines() -> Result<()> {
    let (scratch, programs) = (tempfile::tempdir()?, python::programs("duckdb")?);
    // Files are made of the same rows on both.
    let engines: &[Engine] =
        if is_long() { &[Engine::Sqlite, Engine::Postgres] } else { &[Engine::Postgres] };
    for engine in engines.iter().copied() {
        let product = Product::start(Options { engine, cities: true, ..Options::default() }).await?;
        fill(&product).await?;
        let all = add(&product).await?;
        ensure!(all == COUNT + 8, "{all}");
        let token = json!({"name": "warehouse", "role": "analyst"});
        let token = product.must_answer(201, Method::POST, "/accessTokens", Some(token)).await?;
        let analyst = token["apiKey"].as_str().context("key")?;
        let read = async |key: &str, uri: &str| both(&product, key, uri, scratch.path(), &programs).await;

        let whole = read(&product.key, "/actions/all/export").await?;
        ensure!(whole.rows() == all, "{} of {all} rows", whole.rows());
        for (column, kind) in [
            ("id", "VARCHAR"),
            ("createdAt", "TIMESTAMP WITH TIME ZONE"),
            ("timestamp", "TIMESTAMP WITH TIME ZONE"),
            ("tags", "VARCHAR[]"),
            ("location", "STRUCT(latitude DOUBLE, longitude DOUBLE, place VARCHAR, more JSON)"),
            ("customFields", "STRUCT(shortDomain VARCHAR, shortId VARCHAR, bot BOOLEAN, more JSON)"),
            ("more", "JSON"),
        ] {
            ensure!(whole.0["types"][column] == kind, "{column}: {}", whole.0["types"]);
        }
        for (column, least) in [("context.city", 3), ("location.latitude", 1), ("customFields.bot", 1)] {
            ensure!(whole.values(column) >= least, "{column}: {whole:?}");
        }
        let personal = ["context.ipAddress", "context.userAgent", "context.city", "context.language"];
        ensure!(personal.iter().all(|column| whole.values(column) >= 2), "{whole:?}");

        // The same without personal data, of one type, of a time, and of nothing.
        let coarse = read(analyst, "/actions/all/export").await?;
        ensure!(coarse.rows() == all && coarse.values("context.countryCode") >= 3, "{coarse:?}");
        ensure!(personal.iter().all(|column| coarse.values(column) == 0), "{coarse:?}");
        ensure!(read(&product.key, "/actions/implicitScans/export").await?.rows() == 3);
        ensure!(read(&product.key, "/actions/all/export?to=1").await?.rows() == 0);
        let (_, first) = product.call(Method::GET, "/actions/shares", None).await?;
        let after = first[0]["id"].as_str().context("id")?;
        let rest = read(&product.key, &format!("/actions/all/export?after={after}")).await?;
        ensure!(rest.rows() == all - 1, "{}", rest.rows());
    }
    Ok(())
}

/// Kills exports at moments all over the time that a whole one takes; what then has the name of a file is whole.
pub(super) fn killed_exports_leave_no_part(
    programs: &Path,
    database: &str,
    scratch: &Path,
    lines: &str,
) -> Result<()> {
    let kills: u32 = repetitions(2, 8);
    let folder = scratch.join("killed");
    let start = || {
        let mut command = Command::new(built("control").map_err(std::io::Error::other)?);
        command.args(["export", "--format", "parquet", "--into"]).arg(&folder);
        command.args(["--database-url", database]).stdout(Stdio::null()).spawn()
    };
    let begun = Instant::now();
    ensure!(start()?.wait()?.success(), "the export failed");
    let whole = begun.elapsed();
    let pattern = format!("{}/*/*/*.parquet", folder.display());
    let rows = compare(programs, &pattern, lines)?.rows();
    for kill in 1..=kills {
        fs::remove_dir_all(&folder)?;
        let mut child = start()?;
        std::thread::sleep(whole * kill / (kills + 1));
        // It may have ended already.
        let _ = child.kill();
        child.wait()?;
        // It has made its folder, or not yet.
        fs::create_dir_all(&folder)?;
        let script = "import duckdb, glob, json, sys; print(json.dumps([duckdb.execute('SELECT count(*) FROM \
            read_parquet(?)', [name]).fetchone()[0] for name in glob.glob(sys.argv[1])]))";
        let output = Command::new(programs.join("python")).args(["-c", script, &pattern]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Vec<usize> = serde_json::from_slice(&output.stdout)?;
        ensure!(found.iter().sum::<usize>() <= rows, "{found:?}");
        // A file that is there is passed over, the others are written.
        ensure!(start()?.wait()?.success(), "the export failed after a kill");
        ensure!(compare(programs, &pattern, lines)?.rows() == rows, "after kill {kill}");
    }
    Ok(())
}

/// How many actions each day has, as the guide asks for them.
pub(super) fn by_day(actions: &[Value]) -> Result<Vec<(String, Option<String>, usize)>> {
    let mut days = std::collections::BTreeMap::<String, usize>::new();
    for action in actions {
        let at = action["createdAt"].as_i64().context("createdAt")?;
        let day = jiff::Timestamp::from_millisecond(at)?.strftime("%Y-%m-%d").to_string();
        *days.entry(day).or_default() += 1;
    }
    Ok(days.into_iter().map(|(day, count)| (day, None, count)).collect())
}
