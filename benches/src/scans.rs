//! The store of scans in this process: how many it takes a second, the room of one, and what a change of a redirection
//! waits for while scans come. On SQLite, and where `WAYMARK_TEST_DATABASE_URL` names a Postgres there, too, and with scans in
//! ClickHouse's engine behind the front of the tests.

mod month;
mod users;

use std::{
    io::{Write, stdout},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use control::worker::ingest_scans::ingest;
use kernel::{
    domain::{body::Purpose, listing::ListRequest},
    store::listing::Selection,
};
use redirects::{
    domain::redirection::{Draft, Writable},
    service::redirections::{self, DomainChoice},
};
use serde_json::json;
use shared::{
    id::ResourceId,
    time::UnixMillis,
    wire::scan::{MAX_BATCH, ScanBatch, ScanRecord},
};
use tests::db::{Engine, POSTGRES_URL, TestApp};

use crate::stats::Spread;

/// What phones say.
const AGENTS: usize = 400;

/// What keeps scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Store {
    Sqlite,
    Postgres,
    Clickhouse,
}

/// Measures the store of scans.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// What is measured; all but SQLite need a Postgres
    #[arg(long, value_enum, value_delimiter = ',', num_args = 1..,
        default_values_t = [Store::Sqlite, Store::Postgres, Store::Clickhouse])]
    stores: Vec<Store>,
    /// Redirections that are scanned
    #[arg(long, default_value_t = 2_000)]
    links: usize,
    /// Batches of 1,000 scans of each of five rounds
    #[arg(long, default_value_t = 50)]
    batches: usize,
    /// Scans a second while redirections are changed, for 20 s
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// Scans that are then taken as fast as it goes, while redirections are changed
    #[arg(long, default_value_t = 0)]
    backlog: u64,
    /// Instead of all that: drop a month with so many scans, while redirections are changed
    #[arg(long, value_name = "SCANS")]
    drop_month: Option<u64>,
    /// Instead of all that: delete an application with so many users, and do their erasures
    #[arg(long, value_name = "USERS", conflicts_with = "drop_month")]
    delete_users: Option<usize>,
    #[arg(skip = 5_usize)]
    rounds: usize,
    #[arg(skip = Duration::from_secs(20))]
    drain: Duration,
}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// Something could not be started, or scans are missing.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.links, args.batches, args.rounds, args.rate) = (20, 2, 1, 1_000);
        (args.drain, args.backlog) = (Duration::from_millis(500), 2_000);
    }
    ensure!(args.links >= 1 && args.batches >= 1 && args.rate >= 1, "sizes are out of range");
    let has_postgres = std::env::var_os(POSTGRES_URL).is_some();
    tokio::runtime::Runtime::new()?.block_on(async {
        writeln!(stdout(), "| engine | what | |\n|---|---|---:|")?;
        for store in &args.stores {
            let engine = match store {
                Store::Sqlite => Engine::Sqlite,
                Store::Postgres if has_postgres => Engine::Postgres,
                // The packages of ClickHouse's engine take half a minute to install.
                Store::Clickhouse if has_postgres && !is_smoke => Engine::ClickHouse,
                Store::Postgres | Store::Clickhouse => continue,
            };
            match (args.drop_month, args.delete_users) {
                (Some(scans), _) => month::run(engine, scans).await?,
                (None, Some(users)) => users::run(engine, users).await?,
                (None, None) => measure(engine, &args).await?,
            }
            if is_smoke {
                month::run(engine, 5_000).await?;
                users::run(engine, 1_500).await?;
            }
        }
        anyhow::Ok(())
    })?;
    Ok(true)
}

async fn measure(engine: Engine, form: &Args) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let links = links(&made, form.links).await?;
    let (mut taken, mut seq) = (Vec::new(), 0);
    for _ in 0..form.rounds {
        let batches: Vec<ScanBatch> =
            (0..form.batches).map(|n| batch(&links, seq + n as u64 * MAX_BATCH as u64)).collect();
        seq += (form.batches * MAX_BATCH) as u64;
        let begun = Instant::now();
        for batch in &batches {
            ingest(&made.app, batch).await?;
        }
        taken.push((form.batches * MAX_BATCH) as f64 / begun.elapsed().as_secs_f64());
    }
    if let Some(server) = &made.clickhouse {
        // As the server does in the background with parts of single batches.
        server.ask("OPTIMIZE TABLE scans FINAL").await?;
    }
    let found = made.app.actions.scans.pool.describe().await?;
    let bytes = found.bytes as f64 / seq as f64;
    let request = ListRequest::default();
    let limit = kernel::domain::grant::Limit::Account;
    let selection = Selection { account: made.account, limit: &limit, request: &request, within: &[] };
    let begun = Instant::now();
    ensure!(made.app.actions.scans.pool.page(&selection).await?.len() == 31, "a page is missing");
    let page = begun.elapsed();
    let quiet = changes(&made, &links, lasting(form.drain / 4)).await?;
    let draining = tokio::spawn(drain(made.app.clone(), links.clone(), seq, form.rate, form.drain));
    let busy = changes(&made, &links, lasting(form.drain)).await?;
    let drained = draining.await??;
    let mut rows = vec![
        ("scans taken a second, with what follows from them", Spread::of(&taken).text(0)),
        ("bytes a scan, with indexes and texts", format!("{bytes:.0}")),
        ("a page of scans, ms", format!("{:.2}", page.as_secs_f64() * 1e3)),
        (CHANGE, shown(quiet)),
        ("the same while scans come", shown(busy)),
        ("scans a second meanwhile", format!("{drained:.0}")),
    ];
    if form.backlog > 0 {
        // The numbers of another boot begin at 0.
        let taking = tokio::spawn(take_backlog(made.app.clone(), links.clone(), form.backlog));
        let busy = changes(&made, &links, |_| !taking.is_finished()).await?;
        rows.push(("the same while a backlog drains", shown(busy)));
        let rate = taking.await??;
        rows.push(("scans a second of the backlog", format!("{rate:.0}")));
    }
    print(engine, rows)
}

/// The row of changes beside other work.
const CHANGE: &str = "change of a redirection, p50 and p99, ms";

fn print(engine: Engine, rows: Vec<(&str, String)>) -> Result<()> {
    for (what, value) in rows {
        writeln!(stdout(), "| {engine:?} | {what} | {value} |")?;
    }
    Ok(())
}

/// Scans as fast as they are taken; gives how many a second.
async fn take_backlog(
    app: Arc<control::state::ApiState>,
    links: Arc<Vec<String>>,
    scans: u64,
) -> Result<f64> {
    let begun = Instant::now();
    for first_seq in (0..scans).step_by(MAX_BATCH) {
        ingest(&app, &ScanBatch { boot: 2, ..batch(&links, first_seq) }).await?;
    }
    Ok(scans as f64 / begun.elapsed().as_secs_f64())
}

/// Scans at a steady rate; gives the rate that was reached.
async fn drain(
    app: Arc<control::state::ApiState>,
    links: Arc<Vec<String>>,
    first: u64,
    rate: u32,
    time: Duration,
) -> Result<f64> {
    let (begun, mut seq) = (Instant::now(), first);
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(MAX_BATCH as f64 / f64::from(rate)));
    while begun.elapsed() < time {
        ticks.tick().await;
        ingest(&app, &batch(&links, seq)).await?;
        seq += MAX_BATCH as u64;
    }
    Ok((seq - first) as f64 / begun.elapsed().as_secs_f64())
}

/// For so long.
fn lasting(time: Duration) -> impl Fn(usize) -> bool {
    let begun = Instant::now();
    move |_| begun.elapsed() < time
}

/// Changes redirections one after the other, with a pause, as long as `goes_on` says after so many; gives how long each took.
async fn changes(made: &TestApp, links: &[String], goes_on: impl Fn(usize) -> bool) -> Result<Vec<Duration>> {
    let mut took = Vec::new();
    while goes_on(took.len()) {
        let link = &links[took.len() % links.len()];
        let target = format!("https://example.com/{}", took.len());
        let writable = Writable::parse(&json!({"defaultRedirectUrl": target})).ok().context("a target")?;
        let one = Instant::now();
        let (state, caller) = (&made.app.redirects, made.caller());
        redirections::replace(state, &caller, DomainChoice::default(), vec![link.clone()], writable).await?;
        took.push(one.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    took.sort_unstable();
    Ok(took)
}

fn shown(took: Vec<Duration>) -> String {
    let at = |share: f64| {
        let index = (took.len() as f64 * share) as usize;
        took.get(index.min(took.len().saturating_sub(1))).map_or(f64::NAN, |one| one.as_secs_f64() * 1e3)
    };
    format!("{:.1}, {:.1} of {}", at(0.5), at(0.99), took.len())
}

async fn links(made: &TestApp, count: usize) -> Result<Arc<Vec<String>>> {
    let mut links = Vec::with_capacity(count);
    for number in 0..count {
        let change = catalog::domain::resource::ThngChange::parse(&json!({"name": "t"}), Purpose::Create);
        let change = change.map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let thng = catalog::service::thngs::create(&made.app.core, &made.caller(), change, None).await?;
        let platform_id = ResourceId::from(thng.id);
        let short_id = format!("L{number}");
        let body = json!({"platformId": platform_id, "defaultRedirectUrl": "https://example.com/", "shortId": short_id});
        let draft = Draft::parse(&body, None).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let (state, caller) = (&made.app.redirects, made.caller());
        redirections::create(state, &caller, draft, DomainChoice::default(), None, None).await?;
        links.push(short_id);
    }
    Ok(Arc::new(links))
}

fn batch(links: &[String], first_seq: u64) -> ScanBatch {
    let record = |seq: u64| {
        let link = &links[(seq as usize * 7_919) % links.len()];
        let agent = seq as usize * 31 % AGENTS;
        ScanRecord {
            at: UnixMillis(1_760_000_000_000 + i64::try_from(seq / 10).unwrap_or_default()),
            domain: "tn.gg".into(),
            folded: link.as_str().into(),
            ip: [203, 0, (seq % 200) as u8, (seq % 250) as u8].into(),
            user_agent: Some(
                format!(
                    "Mozilla/5.0 (Linux; Android 14; SM-{agent}) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Chrome/126.0.0.0 Mobile Safari/537.36"
                )
                .into(),
            ),
            referer: None,
            language: Some(["de", "en-GB", "fr", "pt-BR"][(seq % 4) as usize].into()),
            entry_url: format!("https://tn.gg/{link}").into(),
            rule: None,
            count: None,
            client: None,
            digital_link: None,
        }
    };
    let records = (first_seq..first_seq + MAX_BATCH as u64).map(record).collect();
    ScanBatch { edge: "e1".into(), boot: 1, first_seq, records }
}
