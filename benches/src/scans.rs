//! The store of scans in this process: how many it takes a second, the room of one, and what a change of a redirection
//! waits for while scans come. On SQLite, and where `WAYMARK_TEST_DATABASE_URL` names a Postgres there, too, and with scans in
//! ClickHouse's engine behind the front of the tests.

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

/// How much is measured.
struct Form {
    links: usize,
    batches: usize,
    rounds: usize,
    /// Scans a second while redirections are changed, and for how long.
    rate: u32,
    drain: Duration,
}

const PLAIN: Form =
    Form { links: 2_000, batches: 50, rounds: 5, rate: 10_000, drain: Duration::from_secs(20) };
const SMOKE: Form = Form { links: 20, batches: 2, rounds: 1, rate: 1_000, drain: Duration::from_millis(500) };

/// Measures the store of scans.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {}

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// Something could not be started, or scans are missing.
pub(crate) fn run(is_smoke: bool) -> Result<bool> {
    let form = if is_smoke { SMOKE } else { PLAIN };
    let has_postgres = std::env::var_os(POSTGRES_URL).is_some();
    tokio::runtime::Runtime::new()?.block_on(async {
        writeln!(stdout(), "| engine | what | |\n|---|---|---:|")?;
        for engine in [Engine::Sqlite, Engine::Postgres, Engine::ClickHouse] {
            // The packages of ClickHouse's engine take half a minute to install.
            let is_measured = match engine {
                Engine::Sqlite => true,
                Engine::Postgres => has_postgres,
                Engine::ClickHouse => has_postgres && !is_smoke,
            };
            if is_measured {
                measure(engine, &form).await?;
            }
        }
        anyhow::Ok(())
    })?;
    Ok(true)
}

async fn measure(engine: Engine, form: &Form) -> Result<()> {
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
    let found = made.app.actions.scans.pool.describe().await?;
    let bytes = found.bytes as f64 / seq as f64;
    let request = ListRequest::default();
    let limit = kernel::domain::grant::Limit::Account;
    let selection = Selection { account: made.account, limit: &limit, request: &request, within: &[] };
    let begun = Instant::now();
    ensure!(made.app.actions.scans.pool.page(&selection).await?.len() == 31, "a page is missing");
    let page = begun.elapsed();
    let quiet = changes(&made, &links, form.drain / 4).await?;
    let draining = tokio::spawn(drain(made.app.clone(), links.clone(), seq, form.rate, form.drain));
    let busy = changes(&made, &links, form.drain).await?;
    let drained = draining.await??;
    let name = format!("{engine:?}");
    for (what, value) in [
        ("scans taken a second, with what follows from them", Spread::of(&taken).text(0)),
        ("bytes a scan, with indexes and texts", format!("{bytes:.0}")),
        ("a page of scans, ms", format!("{:.2}", page.as_secs_f64() * 1e3)),
        ("change of a redirection, p50 and p99, ms", shown(quiet)),
        ("the same while scans come", shown(busy)),
        ("scans a second meanwhile", format!("{drained:.0}")),
    ] {
        writeln!(stdout(), "| {name} | {what} | {value} |")?;
    }
    Ok(())
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

/// Changes redirections one after the other, with a pause; gives how long each took.
async fn changes(made: &TestApp, links: &[String], time: Duration) -> Result<Vec<Duration>> {
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
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
        }
    };
    let records = (first_seq..first_seq + MAX_BATCH as u64).map(record).collect();
    ScanBatch { edge: "e1".into(), boot: 1, first_seq, records }
}
