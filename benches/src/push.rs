//! How long a change takes from its commit to the acknowledgement of every edge.

pub(crate) mod edges;

use std::{
    io::{Write, stdout},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::edges::Edges;
use ::tests::hist::Hist;

use crate::{
    control::{Control, ControlArgs},
    http::Client,
};

/// Redirections that single changes go to, one after another.
const LINKS: usize = 100;

/// Redirections of one request of the import.
const CHUNK: usize = 1_000;

/// Pauses between the answer to a change and the next one. Without any, edges owe more acknowledgements than the 200
/// a second that they may send, and the times are those at their rate.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::ZERO];

/// Pause between two urgent changes during the import.
const URGENT_PAUSE: Duration = Duration::from_millis(50);

/// Measures the push against a real control with Postgres; every answer and every frame's order is checked.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Numbers of simulated edges, in one process; growing
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3, 100, 1_000])]
    edges: Vec<usize>,
    /// Changes measured for each number of edges
    #[arg(long, default_value_t = 500)]
    changes: usize,
    /// Redirections imported while single changes are measured
    #[arg(long, default_value_t = 1_000_000)]
    bulk: usize,
    #[command(flatten)]
    control: ControlArgs,
}

/// What one row of the table says, in milliseconds.
struct Row {
    edges: usize,
    pause: Duration,
    acked: Hist,
    answered: Hist,
}

/// Runs the benchmark and prints a table.
///
/// # Errors
/// A server does not start, an answer is wrong, or an edge's stream breaks its rules.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.edges, args.changes, args.bulk) = (vec![1, 3, 20], 20, 20_000);
    }
    ensure!(
        args.edges.is_sorted(),
        "the numbers of edges must grow: an edge that went counts for ten seconds"
    );
    let most = args.edges.last().copied().unwrap_or(0);
    let control = Control::start(&args.control)?;
    let keys = (0..most.max(3))
        .map(|n| {
            let name = format!("bench-{n}");
            let key = control.edge_key(&name)?;
            Ok((name, key))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut api = Client::connect(control.api, Some(&control.key))?;
    let (product, links) = prepare(&mut api)?;
    let mut bulk = None;
    let mut rows = Vec::new();
    for count in &args.edges {
        let edges = Edges::open(control.internal, &keys[..*count])?;
        for pause in PAUSES {
            rows.push(measure(&mut api, (&edges, *count), &links, args.changes, pause)?);
        }
        if *count >= 3 && bulk.is_none() {
            bulk = Some(measure_bulk(&control, &mut api, *count, &product, &links, args.bulk)?);
        }
        edges.close()?;
    }
    print(&rows, bulk.as_ref(), &args)?;
    Ok(true)
}

fn prepare(api: &mut Client) -> Result<(String, Vec<String>)> {
    let answer = api.ask("POST", "/products", Some(&json!({"name": "Bag"}).to_string()))?;
    ensure!(answer.status == 201, "POST /products: {}", answer.status);
    let product = answer.json()?["id"].as_str().context("no id")?.to_owned();
    let mut links = Vec::new();
    for n in 0..LINKS {
        let target = format!("https://example.com/{n}");
        let body = json!({"platformId": product, "defaultRedirectUrl": target});
        let answer = api.ask("POST", "/redirections", Some(&body.to_string()))?;
        ensure!(answer.status == 201, "POST /redirections: {}", answer.status);
        links.push(answer.json()?["shortId"].as_str().context("no shortId")?.to_owned());
    }
    Ok((product, links))
}

/// One change; gives the time from the commit to the last acknowledgement, and that to the answer.
fn change(api: &mut Client, link: &str, target: &str, edges: usize) -> Result<(Duration, Duration, u64)> {
    let body = json!({"defaultRedirectUrl": target}).to_string();
    let begun = Instant::now();
    let answer = api.ask("PUT", &format!("/redirections/{link}?wait=edges&timeout=20s"), Some(&body))?;
    let answered = begun.elapsed();
    let report = answer.json()?;
    ensure!(answer.status == 200, "{}: {report}", answer.status);
    let all = |name: &str| report[name].as_u64() == Some(edges as u64);
    ensure!(all("acked") && all("members"), "not every edge: {report}");
    let ms = report["ms"].as_f64().context("no ms in the answer")?;
    let rev = report["rev"].as_u64().context("no rev in the answer")?;
    Ok((Duration::from_secs_f64(ms / 1e3), answered, rev))
}

fn measure(
    api: &mut Client,
    (edges, count): (&Edges, usize),
    links: &[String],
    changes: usize,
    pause: Duration,
) -> Result<Row> {
    let (mut acked, mut answered) = (Hist::default(), Hist::default());
    for n in 0..changes {
        std::thread::sleep(pause);
        let link = &links[n % links.len()];
        let target = format!("https://example.com/{count}/{}/{n}", pause.as_millis());
        let (ack, answer, rev) = change(api, link, &target, count)?;
        // The first few find control still busy with the connections.
        if n >= changes / 20 {
            acked.add(ack);
            answered.add(answer);
        }
        ensure!(edges.applied() + 1 >= rev, "acknowledged {rev}, and had {}", edges.applied());
    }
    Ok(Row { edges: count, pause, acked, answered })
}

/// Urgent changes while an import runs; gives their row and how long the import took.
fn measure_bulk(
    control: &Control,
    api: &mut Client,
    count: usize,
    product: &str,
    links: &[String],
    bulk: usize,
) -> Result<(Row, Duration)> {
    let done = Arc::new(AtomicBool::new(false));
    let mut importer = Client::connect(control.api, Some(&control.key))?;
    let product = product.to_owned();
    let import = std::thread::spawn({
        let done = done.clone();
        move || {
            let begun = Instant::now();
            let result = import(&mut importer, &product, bulk);
            done.store(true, Ordering::Relaxed);
            result.map(|()| begun.elapsed())
        }
    });
    let (mut acked, mut answered, mut n) = (Hist::default(), Hist::default(), 0);
    while !done.load(Ordering::Relaxed) {
        let (ack, answer, _) =
            change(api, &links[n % links.len()], &format!("https://example.com/bulk/{n}"), count)?;
        acked.add(ack);
        answered.add(answer);
        n += 1;
        std::thread::sleep(URGENT_PAUSE);
    }
    let took = import.join().map_err(|_| anyhow::anyhow!("the import panicked"))??;
    Ok((Row { edges: count, pause: URGENT_PAUSE, acked, answered }, took))
}

fn import(api: &mut Client, product: &str, count: usize) -> Result<()> {
    for chunk in (0..count).step_by(CHUNK) {
        let items: Vec<Value> = (chunk..count.min(chunk + CHUNK))
            .map(|n| json!({"platformId": product, "defaultRedirectUrl": format!("https://example.com/i/{n}")}))
            .collect();
        let answer = api.ask("POST", "/redirections", Some(&Value::Array(items).to_string()))?;
        ensure!(answer.status == 200, "the import: {} {:?}", answer.status, answer.json());
    }
    Ok(())
}

fn print(rows: &[Row], bulk: Option<&(Row, Duration)>, args: &Args) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(
        out,
        "| Edges | Changes | Pause | Commit to last ack, p50 / p99 / max | Request to answer, p50 / p99 / max |"
    )?;
    writeln!(out, "|---:|---:|---:|---|---|")?;
    let cells = |hist: &Hist| {
        let [p50, p99, max] =
            [hist.quantile_us(0.5), hist.quantile_us(0.99), hist.max_us()].map(|us| us / 1e3);
        format!("{p50:.1} / {p99:.1} / {max:.1} ms")
    };
    for Row { edges, pause, acked, answered } in rows {
        let (changes, pause) = (args.changes - args.changes / 20, pause.as_millis());
        writeln!(out, "| {edges} | {changes} | {pause} ms | {} | {} |", cells(acked), cells(answered))?;
    }
    if let Some((Row { edges, pause, acked, answered }, took)) = bulk {
        let rate = args.bulk as f64 / took.as_secs_f64();
        writeln!(
            out,
            "| {edges} | beside an import of {} links, {rate:.0}/s | {} ms | {} | {} |",
            args.bulk,
            pause.as_millis(),
            cells(acked),
            cells(answered)
        )?;
    }
    Ok(())
}
