//! How many redirections and scans control writes a second, beside `COPY` of the rows that they made.

use std::{
    io::{BufRead, BufReader, Write, stdout},
    process::Stdio,
    time::{Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use shared::{
    time::UnixMillis,
    wire::{
        internal::SCANS_PATH,
        scan::MAX_BATCH,
        spooled::{NewRecord, SPOOLED},
    },
};

use crate::{
    control::{Control, ControlArgs},
    http::Client,
    stats::Spread,
};

/// Redirections of one request.
const CHUNK: usize = 1_000;

/// What a phone says that scans.
const AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
    Version/18.1 Mobile/15E148 Safari/604.1";

/// Measures what control writes in bulk against a real Postgres; every row is counted.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Redirections, and scans, of each round
    #[arg(long, default_value_t = 50_000)]
    rows: usize,
    /// Rounds, alternated with COPY
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[command(flatten)]
    control: ControlArgs,
}

/// Runs the benchmark and prints two rows.
///
/// # Errors
/// A server does not start, an answer is wrong, or rows are missing.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.rows, args.rounds) = (2_000, 1);
    }
    ensure!(args.rows >= CHUNK && args.rows.is_multiple_of(CHUNK), "--rows must be a multiple of {CHUNK}");
    let control = Control::start(&args.control)?;
    let mut run = Run::new(&control)?;
    let mut out = stdout().lock();
    writeln!(out, "| rows | a second | `COPY` | ratio |\n|---|---:|---:|---:|")?;
    for kind in [Kind::Redirections, Kind::Scans] {
        let told = control.schema().sql("SELECT short_id FROM redirections ORDER BY folded")?;
        run.links = told.lines().map(ToOwned::to_owned).collect();
        if matches!(kind, Kind::Scans) {
            run.connect(&control)?;
            // The first scan of a month makes its table: a control that starts in the last days of one has made that of the next.
            run.scans(MAX_BATCH)?;
        }
        let table = &kind.table(&control)?;
        control.schema().sql(&format!("CREATE TABLE raw_{table} (LIKE {table} INCLUDING ALL)"))?;
        let (mut ours, mut raw) = (Vec::new(), Vec::new());
        for round in 0..args.rounds {
            let before = count(&control, table)?;
            run.connect(&control)?;
            let begun = Instant::now();
            match kind {
                Kind::Redirections => run.redirections(args.rows)?,
                Kind::Scans => run.scans(args.rows)?,
            }
            ours.push(args.rows as f64 / begun.elapsed().as_secs_f64());
            let made = count(&control, table)? - before;
            ensure!(made == args.rows, "{made} rows in {table}, not {}", args.rows);
            let new = format!("COPY (SELECT * FROM {table} ORDER BY seq OFFSET {before}) TO STDOUT");
            let rows = control.schema().sql(&new)?;
            raw.push(copy(&control, table, &rows)?);
            let copied = count(&control, &format!("raw_{table}"))?;
            ensure!(copied == (round + 1) * args.rows, "{copied} rows were copied");
        }
        let (ours, raw) = (Spread::of(&ours), Spread::of(&raw));
        let ratio = ours.median / raw.median;
        writeln!(out, "| {table} | {} | {} | {ratio:.2} |", ours.text(2), raw.text(2))?;
    }
    Ok(true)
}

/// What is written.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Redirections,
    Scans,
}

impl Kind {
    /// Scans go into the table of this month.
    fn table(self, control: &Control) -> Result<String> {
        match self {
            Self::Redirections => Ok("redirections".to_owned()),
            Self::Scans => {
                let name = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"scans_\"YYYYMM')";
                Ok(control.schema().sql(name)?.trim().to_owned())
            }
        }
    }
}

struct Run {
    api: Client,
    edge: Client,
    edge_key: String,
    product: String,
    /// Short ids that are there.
    links: Vec<String>,
    /// The sequence number of the edge's next scan.
    seq: usize,
}

impl Run {
    fn new(control: &Control) -> Result<Self> {
        let mut api = Client::connect(control.api, Some(&control.key))?;
        let answer = api.ask("POST", "/products", Some(&json!({"name": "Bag"}).to_string()))?;
        ensure!(answer.status == 201, "POST /products: {}", answer.status);
        let product = answer.json()?["id"].as_str().context("no id")?.to_owned();
        let edge_key = format!("Bearer {}", control.edge_key("bench")?);
        let edge = Client::connect(control.internal, Some(&edge_key))?;
        Ok(Self { api, edge, edge_key, product, links: Vec::new(), seq: 0 })
    }

    /// Connects anew: a connection that nobody used while rows were made or copied is closed by control.
    fn connect(&mut self, control: &Control) -> Result<()> {
        self.api = Client::connect(control.api, Some(&control.key))?;
        self.edge = Client::connect(control.internal, Some(&self.edge_key))?;
        Ok(())
    }

    /// Imports links as `waymark import` does, by one client.
    fn redirections(&mut self, count: usize) -> Result<()> {
        for chunk in 0..count / CHUNK {
            let items: Vec<Value> = (0..CHUNK)
                .map(|n| {
                    let target = format!("https://example.com/items/{chunk}/{n}?utm_source=qr");
                    json!({"platformId": self.product, "defaultRedirectUrl": target})
                })
                .collect();
            let answer = self.api.ask("POST", "/redirections", Some(&Value::Array(items).to_string()))?;
            ensure!(answer.status == 200, "the import: {} {:?}", answer.status, answer.json());
        }
        Ok(())
    }

    /// Hands over scans as an edge does, one batch after the other.
    fn scans(&mut self, count: usize) -> Result<()> {
        let now = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
        for _ in 0..count / MAX_BATCH {
            let mut frames = Vec::new();
            for n in self.seq..self.seq + MAX_BATCH {
                // All over the links, in an order unlike theirs.
                let link = &self.links[(n * 7_919) % self.links.len()];
                let url = format!("https://tn.gg/{link}");
                let (texts, ip) =
                    (["tn.gg", &link.to_uppercase(), &url, AGENT, ""], [192, 0, 2, (n % 250) as u8]);
                NewRecord {
                    at: UnixMillis(now),
                    ip: ip.into(),
                    texts,
                    language: "",
                    rule: None,
                    link: None,
                    in_memory: false,
                }
                .write(&mut frames);
            }
            let path = format!("{SCANS_PATH}?edge=bench&boot=1&firstSeq={}", self.seq);
            let answer = self.edge.send("POST", &path, Some((SPOOLED, &frames)))?;
            self.seq += MAX_BATCH;
            ensure!(answer.status == 200 && answer.json()?["nextSeq"] == self.seq, "{:?}", answer.json());
        }
        Ok(())
    }
}

fn count(control: &Control, table: &str) -> Result<usize> {
    Ok(control.schema().sql(&format!("SELECT count(*) FROM {table}"))?.trim().parse()?)
}

/// Rows a second of `COPY` in statements of as many rows as a request has, each with a commit of its own.
fn copy(control: &Control, table: &str, rows: &str) -> Result<f64> {
    let lines: Vec<&str> = rows.lines().collect();
    let mut text = String::with_capacity(rows.len() + lines.len());
    for chunk in lines.chunks(CHUNK) {
        text += &format!("COPY raw_{table} FROM STDIN;\n{}\n\\.\n", chunk.join("\n"));
    }
    let mut psql = control.schema().psql();
    let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("psql")?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let mut told = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    // It is connected before it is measured, as our clients are.
    writeln!(stdin, "SELECT 1;")?;
    told.next().context("psql says nothing")??;
    let begun = Instant::now();
    stdin.write_all(text.as_bytes())?;
    drop(stdin);
    ensure!(child.wait()?.success(), "COPY failed");
    Ok(lines.len() as f64 / begun.elapsed().as_secs_f64())
}
