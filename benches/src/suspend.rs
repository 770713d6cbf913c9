//! How long a suspension takes from its commit to the acknowledgement of every edge, whatever number of links it concerns.

use std::{
    io::{Write, stdout},
    time::{Duration, Instant},
};

use ::tests::hist::Hist;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    control::{Control, ControlArgs},
    http::Client,
    push::edges::Edges,
};

/// Redirections of one request that creates them.
const CHUNK: usize = 1_000;

/// How long the edges may take until they have all links that were made.
const CATCH_UP: Duration = Duration::from_secs(300);

/// Pause between two changes.
const PAUSE: Duration = Duration::from_millis(20);

/// Suspends and resumes an account with many links, against a real control with Postgres.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Simulated edges, in one process
    #[arg(long, default_value_t = 100)]
    edges: usize,
    /// Links of the account; growing
    #[arg(long, value_delimiter = ',', default_values_t = [1, 100_000])]
    links: Vec<usize>,
    /// Suspensions measured for each number of links; as many times it is resumed
    #[arg(long, default_value_t = 200)]
    changes: usize,
    #[command(flatten)]
    control: ControlArgs,
}

/// Runs the benchmark and prints a table.
///
/// # Errors
/// A server does not start, an answer is wrong, or an edge's stream breaks its rules.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.edges, args.links, args.changes) = (3, vec![1, 2_000], 5);
    }
    ensure!(args.links.is_sorted(), "the numbers of links must grow");
    let control = Control::start(&args.control)?;
    let mut keys = Vec::new();
    for n in 0..args.edges {
        let name = format!("bench-{n}");
        keys.push((name.clone(), control.edge_key(&name)?));
    }
    let edges = Edges::open(control.internal, &keys)?;
    let mut api = Client::connect(control.api, Some(&control.key))?;
    let account = api.ask("GET", "/accounts", None)?.json()?[0]["id"].as_str().context("no id")?.to_owned();
    let mut platform = Client::connect(control.api, Some(&control.platform_key()?))?;
    let product = api.ask("POST", "/products", Some(&json!({"name": "Bag"}).to_string()))?;
    let product = product.json()?["id"].as_str().context("no id")?.to_owned();
    let mut out = stdout().lock();
    writeln!(out, "| Links | Edges | Changes | Commit to last ack, p50 / p99 / max |\n|---:|---:|---:|---|")?;
    let mut made = 0;
    for links in &args.links {
        create(&mut api, &product, made..*links)?;
        made = *links;
        catch_up(&mut platform, &account, args.edges)?;
        let mut acked = Hist::default();
        for _ in 0..args.changes {
            for (method, body) in [("PUT", Some(r#"{"reason":"a benchmark"}"#)), ("DELETE", None)] {
                std::thread::sleep(PAUSE);
                acked.add(change(&mut platform, &account, method, body, args.edges)?);
            }
        }
        let [p50, p99, max] =
            [acked.quantile_us(0.5), acked.quantile_us(0.99), acked.max_us()].map(|us| us / 1e3);
        let (count, changes) = (args.edges, 2 * args.changes);
        writeln!(out, "| {links} | {count} | {changes} | {p50:.1} / {p99:.1} / {max:.1} ms |")?;
    }
    edges.close()?;
    Ok(true)
}

/// Waits until every edge has what was made: one that lags counts as away, so that a change does not wait for it.
fn catch_up(api: &mut Client, account: &str, edges: usize) -> Result<()> {
    let begun = Instant::now();
    while let Err(error) = change(api, account, "DELETE", None, edges) {
        ensure!(begun.elapsed() < CATCH_UP, "the edges lag behind: {error}");
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// One change that every edge acknowledges; gives the time since its commit.
fn change(
    api: &mut Client,
    account: &str,
    method: &str,
    body: Option<&str>,
    edges: usize,
) -> Result<Duration> {
    let path = format!("/platform/accounts/{account}/suspension?wait=edges&timeout=20s");
    let answer = api.ask(method, &path, body)?;
    let report = answer.json()?;
    ensure!(answer.status == 200, "{}: {report}", answer.status);
    let all = |name: &str| report[name].as_u64() == Some(edges as u64);
    ensure!(all("acked") && all("members"), "not every edge: {report}");
    Ok(Duration::from_secs_f64(report["ms"].as_f64().context("no ms in the answer")? / 1e3))
}

fn create(api: &mut Client, product: &str, numbers: std::ops::Range<usize>) -> Result<()> {
    let all: Vec<Value> = numbers
        .map(|n| json!({"platformId": product, "defaultRedirectUrl": format!("https://example.com/{n}")}))
        .collect();
    for chunk in all.chunks(CHUNK) {
        let answer = api.ask("POST", "/redirections", Some(&json!(chunk).to_string()))?;
        ensure!(answer.status == 200, "the links: {} {:?}", answer.status, answer.json());
    }
    Ok(())
}
