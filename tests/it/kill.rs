//! kill -9 at random moments of an import and of scans.
//!
//! Every scan has a number in its query, so that it can be found among the stored actions: which scans were lost, how
//! old they were when the process died, and whether one was counted twice.

mod erasure;
mod link_changes;
mod load;
mod print;

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tests::{
    db::Engine,
    kills::{Random, say, setting},
    product::{DEADLINE, Options, Product},
};

use self::load::{Canary, Load};

/// Short ids that are scanned in each round.
const SCANNED: usize = 4;
/// What a kill may lose when the writer keeps up.
const WRITE_INTERVAL: Duration = Duration::from_millis(5);
/// The writer syncs between two writes, at most every 200 ms, and a sync may take its time.
const SYNC: Duration = Duration::from_millis(200);

/// What all rounds added up to.
#[derive(Debug, Default)]
struct Totals {
    kills: u64,
    answered: u64,
    stored: u64,
    lost: u64,
    /// Stored, though the answer did not arrive: the process died between the two.
    unheard: u64,
    /// Rounds that lost nothing.
    lossless: u64,
    /// Age of the oldest lost scan of each round, and the writer's longest lag, in microseconds.
    ages_us: Vec<u64>,
    lags_us: Vec<u64>,
    redirections: u64,
    batches_cut: u64,
}

async fn a_kill_loses_no_acknowledged_link_and_only_the_newest_scans(engine: Engine) -> Result<()> {
    let default = if engine == Engine::Sqlite { 10 } else { 6 };
    let kills = setting("WAYMARK_TEST_KILLS")?.unwrap_or(default);
    let mut random = Random::seeded(&format!("{engine:?}: WAYMARK_TEST_KILLS={kills}"))?;
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let mut acknowledged: Vec<(String, String)> = Vec::new();
    let mut totals = Totals::default();
    while totals.kills < kills {
        let round = totals.kills;
        run(&mut product, &mut random, round, &mut acknowledged, &mut totals)
            .await
            .with_context(|| format!("round {round}"))?;
    }
    for (short_id, target) in &acknowledged {
        check_link(&product, short_id, target).await?;
    }
    judge(engine, totals)
}

/// Load, a kill, a start, and the reckoning.
async fn run(
    product: &mut Product,
    random: &mut Random,
    round: u64,
    acknowledged: &mut Vec<(String, String)>,
    totals: &mut Totals,
) -> Result<()> {
    let thng = product
        .must_answer(201, Method::POST, "/thngs", Some(json!({"name": format!("Round {round}")})))
        .await?;
    let thng = thng["id"].as_str().context("id")?.to_owned();
    let mut scanned = Vec::new();
    for n in 0..SCANNED {
        let (short_id, target) = (format!("SCAN-{round}-{n}"), format!("https://example.com/{round}/{n}"));
        product.create_redirection(&thng, &target, Some(&short_id)).await?;
        acknowledged.push((short_id.clone(), target));
        scanned.push(short_id);
    }

    let canary = Canary::start();
    let load = Load::start(product, &thng, round, &scanned)?;
    tokio::time::sleep(random.millis(800)).await;
    let metrics = product.metrics().await?;
    let killed = Instant::now();
    product.kill()?;
    let delay = canary.stop();
    let done = load.finish().await?;
    totals.kills += 1;
    product.start_again().context("the product does not come up after a kill")?;
    // What the process before left behind is being shipped now: the moment when a scan could count twice.
    while random.next(3) == 0 {
        tokio::time::sleep(random.millis(60)).await;
        product.kill()?;
        totals.kills += 1;
        product.start_again().context("the product does not come up after a kill at its start")?;
    }
    wait_for_spool(product).await?;

    // The links: every acknowledged one, and of the batch that was under way all or none.
    let stored = product.list(&format!("/redirections?platformId={thng}&perPage=100")).await?;
    let beyond = (stored.len()).checked_sub(done.links.len() + SCANNED);
    ensure!(
        beyond == Some(0) || beyond == Some(load::BATCH),
        "{} links are stored, {} were acknowledged",
        stored.len(),
        done.links.len() + SCANNED
    );
    totals.batches_cut += u64::from(beyond == Some(load::BATCH));
    let by_id: HashMap<&str, &str> = stored
        .iter()
        .filter_map(|item| Some((item["shortId"].as_str()?, item["defaultRedirectUrl"].as_str()?)))
        .collect();
    for (short_id, target) in &done.links {
        ensure!(by_id.get(short_id.as_str()) == Some(&target.as_str()), "{short_id} is not what it was");
        check_link(product, short_id, target).await?;
    }
    for _ in 0..20 {
        let at = usize::try_from(random.next(acknowledged.len() as u64))?;
        let (short_id, target) = &acknowledged[at];
        check_link(product, short_id, target).await?;
    }
    totals.redirections += done.links.len() as u64;
    acknowledged.extend(done.links.iter().cloned());

    // The scans: each stored one was sent, and is stored once.
    let actions =
        product.list(&format!("/thngs/{thng}/actions/implicitScans?context=true&perPage=100")).await?;
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    let mut hits: HashMap<String, i64> = HashMap::new();
    for action in &actions {
        let url = action["context"]["entryUrl"].as_str().context("entryUrl")?;
        let (short_url, number) = url.split_once("?n=").context("no number")?;
        let number: u64 = number.parse()?;
        *found.entry(number).or_default() += 1;
        let short_id = short_url.rsplit('/').next().unwrap_or_default();
        ensure!(short_id == scanned[usize::try_from(number)? % SCANNED], "scan {number} of {short_id}");
        *hits.entry(short_id.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = found.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "counted twice: {twice:?}");
    let invented: Vec<_> = found.keys().filter(|number| **number >= done.sent).collect();
    ensure!(invented.is_empty(), "never sent: {invented:?}");
    for item in stored.iter().filter(|item| item["hits"] != json!(0)) {
        let short_id = item["shortId"].as_str().unwrap_or_default();
        let expected = hits.remove(short_id).unwrap_or_default();
        ensure!(item["hits"] == json!(expected), "{short_id}: hits {} for {expected} actions", item["hits"]);
    }
    ensure!(hits.is_empty(), "actions without hits: {hits:?}");

    // What was on disk when the metrics were read is there: a process that dies takes no written byte along.
    let written = metrics.get("waymark_edge_scans_written_total").copied().context("written")?;
    ensure!(found.len() as f64 >= written, "{} scans are stored, {written} were written", found.len());
    let dropped = metrics.get("waymark_edge_scans_lost_total").copied().context("lost")?;
    ensure!(dropped == 0.0, "{dropped} scans were dropped under this little load");
    let lag = metrics.get("waymark_edge_writer_lag_max_seconds").copied().context("lag")?;
    let lag = Duration::from_secs_f64(lag);
    let lost: Vec<Duration> = done
        .answered
        .iter()
        .filter(|(number, _)| !found.contains_key(number))
        .map(|(_, at)| killed.saturating_duration_since(*at))
        .collect();
    let oldest = lost.iter().max().copied().unwrap_or_default();
    // A lost scan had waited for the writer from its answer to the kill, and longer than any that was
    // written only if the writer was in a sync or without a processor, as the canary then was too.
    let bound = lag + WRITE_INTERVAL + delay + SYNC;
    let within = done.answered.values().filter(|at| killed.saturating_duration_since(**at) <= bound).count();
    ensure!(
        oldest <= bound && lost.len() <= within,
        "{} scans are lost, the oldest {oldest:?} before the kill; the writer's lag was {lag:?}, the canary's \
         {delay:?}, and {within} scans were answered within {bound:?}",
        lost.len()
    );
    totals.answered += done.answered.len() as u64;
    totals.stored += found.len() as u64;
    totals.lost += lost.len() as u64;
    totals.unheard += found.keys().filter(|number| !done.answered.contains_key(number)).count() as u64;
    totals.lossless += u64::from(lost.is_empty());
    totals.ages_us.push(u64::try_from(oldest.as_micros())?);
    totals.lags_us.push(u64::try_from(lag.max(delay).as_micros())?);
    Ok(())
}

/// The sums, and what holds only over many rounds.
fn judge(engine: Engine, mut totals: Totals) -> Result<()> {
    totals.ages_us.sort_unstable();
    totals.lags_us.sort_unstable();
    let ms = |all: &[u64], share: usize| {
        all.get((all.len() * share / 100).min(all.len().saturating_sub(1))).map_or(0.0, |us| *us as f64 / 1e3)
    };
    let Totals { kills, answered, stored, lost, unheard, lossless, redirections, batches_cut, .. } = totals;
    let rounds = totals.ages_us.len();
    say(&format!(
        "{engine:?}: {kills} kills in {rounds} rounds. Links: {redirections} acknowledged, none missing; \
         {batches_cut} batches stored whole without an answer. Scans: {answered} answered + {unheard} without \
         an answer = {stored} stored + {lost} lost, none twice; {lossless} rounds lost none. Oldest lost scan: \
         p50 {:.1} ms, max {:.1} ms; writer's longest lag: p50 {:.1} ms, max {:.1} ms",
        ms(&totals.ages_us, 50),
        ms(&totals.ages_us, 100),
        ms(&totals.lags_us, 50),
        ms(&totals.lags_us, 100)
    ));
    ensure!(answered + unheard == stored + lost, "the sums differ");
    ensure!(answered > 20 * rounds as u64 && redirections > 10 * rounds as u64, "hardly any load");
    // Single rounds may have met a sync; half of them may not.
    let (age, lag) = (ms(&totals.ages_us, 50), ms(&totals.lags_us, 50));
    ensure!(
        rounds < 5 || age <= lag + 5.0,
        "half of the rounds lost scans older than {age} ms, lag {lag} ms"
    );
    Ok(())
}

/// Asks for a link without scanning it.
async fn check_link(product: &Product, short_id: &str, target: &str) -> Result<()> {
    let response = product.http.head(format!("{}/{short_id}", product.edge)).send().await?;
    let location = response.headers().get("location").and_then(|value| value.to_str().ok());
    ensure!(
        response.status() == StatusCode::TEMPORARY_REDIRECT && location == Some(target),
        "{short_id}: {} to {location:?}, not to {target}",
        response.status()
    );
    Ok(())
}

/// Waits until control has every scan that is on disk.
async fn wait_for_spool(product: &Product) -> Result<()> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    while begun.elapsed() < DEADLINE {
        tick.tick().await;
        if product.metrics().await?.get("waymark_edge_spool_bytes") == Some(&0.0) {
            return Ok(());
        }
    }
    anyhow::bail!("the spool is not shipped after {DEADLINE:?}")
}

crate::on_both_engines!(a_kill_loses_no_acknowledged_link_and_only_the_newest_scans);
