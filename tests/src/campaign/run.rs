//! One campaign from the first process to the report.

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

use super::{
    faults::{self, Fault},
    history::{self, Kind, Outcome, Verdict},
    load::{Reader, Shared, Sums, Writer, random},
    world::{Shape, World},
};
use crate::product::client;

const CONTROLS: usize = 2;
const EDGES: u16 = 3;
const WRITERS: u64 = 3;
const READERS_PER_EDGE: u64 = 2;

/// Pause of a reader between two reads; longer in a campaign that is longer than [`LONG`], whose scans and
/// history would else fill gigabytes.
const PAUSE: Duration = Duration::from_millis(4);
const LONG_PAUSE: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(10 * 60);

/// Longest wait until everything has come to rest after the last fault.
const REST: Duration = Duration::from_secs(60);

/// Scans that a killed edge may lose beside what readers did not see: those of a quarter of a second, as its
/// writer may lag on a machine that is busy, at the rate of its readers.
const LOST_PER_KILL: u64 = 125;

/// The name of [`Outcome::Acked`] in the report.
const ACKED: &str = "acknowledged";

/// What a campaign found.
#[derive(Debug)]
pub struct Report {
    seed: u64,
    took: Duration,
    faults: BTreeMap<Fault, u64>,
    sums: Sums,
    verdict: Verdict,
    counted: u64,
    /// Scans that edges with a full disk counted by link and minute alone.
    degraded: u64,
    /// Hits of all redirections: those of scans and of sums.
    hits: u64,
    /// Why no disk could be filled, if so.
    no_disks: Option<String>,
    /// Writes by how they ended.
    writes: BTreeMap<&'static str, u64>,
    /// Processes that ended by themselves, and how often.
    ended: BTreeMap<String, u64>,
}

impl Report {
    /// Scans that readers got and nobody counted.
    fn lost(&self) -> u64 {
        self.sums.sent.saturating_sub(self.counted + self.degraded)
    }

    /// Scans that were counted more often than requests could have made them.
    fn doubled(&self) -> u64 {
        let (counted, may_be) = (self.counted + self.degraded, self.sums.sent + self.sums.unseen);
        counted.max(self.hits).saturating_sub(may_be)
    }

    /// Scans that readers got and no redirection counts among its hits: sums come a minute later, if the
    /// campaign is still there then, so this is said and not judged.
    fn lost_hits(&self) -> u64 {
        self.sums.sent.saturating_sub(self.hits)
    }

    fn may_lose(&self) -> u64 {
        self.faults.get(&Fault::KillEdge).copied().unwrap_or(0) * LOST_PER_KILL
    }

    /// Whether everything that is promised held, and there was something to hold: without acknowledgements
    /// by every edge nothing is promised of a write, an absent key shows less than one that is there, and a
    /// disk that is not full proves nothing.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.verdict.violations.is_empty()
            && self.doubled() == 0
            && self.lost() <= self.may_lose()
            && self.ended.is_empty()
            && self.writes.contains_key(ACKED)
            && self.sums.unfit == 0
            && self.verdict.redirects * 2 > self.verdict.judged
            && (self.degraded > 0 || self.no_disks.is_some())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sums { requests, errors, by_status, unfit, sent, unseen, degraded: _ } = &self.sums;
        writeln!(f, "campaign: seed {}, {:.0} s", self.seed, self.took.as_secs_f64())?;
        for (fault, count) in &self.faults {
            writeln!(f, "  fault {fault:?}: {count}")?;
        }
        if let Some(why) = &self.no_disks {
            writeln!(f, "  no disk was filled: {why}")?;
        }
        writeln!(f, "  requests {requests}, errors {errors}, answers to reads {by_status:?}")?;
        writeln!(f, "  writes {:?}, refused though they fitted {unfit}", self.writes)?;
        if !self.ended.is_empty() {
            writeln!(f, "  ended by themselves {:?}", self.ended)?;
        }
        let Verdict { judged, redirects, failed, excused, .. } = self.verdict;
        writeln!(f, "  reads judged {judged}, without an answer {failed}, excused after a boot {excused}")?;
        let share = |part: u64| part as f64 * 100.0 / judged.max(1) as f64;
        let (there, gone) = (share(redirects), share(judged - redirects));
        writeln!(f, "  of those judged {there:.1} % redirects, {gone:.1} % of ids that are not there")?;
        for kind in [Kind::Stale, Kind::Resurrected, Kind::WentBack, Kind::FromFuture, Kind::Lost] {
            writeln!(f, "  {kind:?}: {}", self.verdict.count(kind))?;
        }
        for violation in self.verdict.violations.iter().take(20) {
            writeln!(f, "    {:?}: {:?}: {}", violation.kind, violation.read, violation.why)?;
        }
        let (counted, lost, doubled) = (self.counted, self.lost(), self.doubled());
        let (degraded, hits) = (self.degraded, self.hits);
        writeln!(
            f,
            "  scans sent {sent}, perhaps sent {unseen}, counted {counted}, by link and minute {degraded}"
        )?;
        writeln!(f, "  hits of redirections {hits}, not there yet {}", self.lost_hits())?;
        writeln!(f, "  scans lost {lost} (at most {} may be), doubled {doubled}", self.may_lose())?;
        write!(f, "  {}", if self.is_right() { "everything held" } else { "BROKEN" })
    }
}

/// Runs a campaign of at least `length`, in which every kind of fault happens once at least; what the
/// processes say goes to `logs`, and what happens to them to `say`.
pub async fn run(length: Duration, seed: u64, logs: &Path, say: &dyn Fn(&str)) -> Result<Report> {
    let begun = Instant::now();
    let shape =
        Shape { controls: CONTROLS, edges: usize::from(EDGES), has_clocks: true, has_small_disks: true };
    let mut world = World::start(shape, logs).await?;
    let pause = if length > LONG { LONG_PAUSE } else { PAUSE };
    let (shared, stop) = (Arc::new(Shared::default()), CancellationToken::new());
    let (mut tasks, mut choices) = (tokio::task::JoinSet::new(), seed);
    for _ in 0..WRITERS {
        let mut writer = Writer {
            shared: shared.clone(),
            http: client()?,
            apis: world.controls.iter().map(|control| control.api.clone()).collect(),
            key: world.key.clone(),
            product: world.product.clone(),
            edges: EDGES,
            seed: random(&mut choices),
        };
        let seeded = writer.seed().await?;
        tasks.spawn(writer.run(seeded, stop.clone()));
    }
    for edge in 0..EDGES {
        for _ in 0..READERS_PER_EDGE {
            tasks.spawn(reader(&world, &shared, edge, random(&mut choices))?.run(pause, stop.clone()));
        }
    }
    let mut ended: BTreeMap<String, u64> = BTreeMap::new();
    let mut done: BTreeMap<Fault, u64> = BTreeMap::new();
    let mut todo: Vec<Fault> = Vec::new();
    let mut kinds = faults::ALL.to_vec();
    let no_disks = world.no_disks.clone();
    if no_disks.is_some() {
        kinds.retain(|fault| *fault != Fault::FillDisk);
    }
    while begun.elapsed() < length || done.len() < kinds.len() {
        if todo.is_empty() {
            todo = kinds.clone();
        }
        let fault = todo.swap_remove((random(&mut choices) % todo.len() as u64) as usize);
        say(&format!("{:.1} s: {fault:?}", begun.elapsed().as_secs_f64()));
        faults::inject(fault, &mut world, &shared, &mut choices).await?;
        for process in world.processes() {
            if process.look_after()? {
                say(&format!("{:.1} s: {} ended by itself", begun.elapsed().as_secs_f64(), process.name));
                *ended.entry(process.name.clone()).or_default() += 1;
            }
        }
        *done.entry(fault).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(500 + random(&mut choices) % 2_500)).await;
    }
    stop.cancel();
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    rest(&world).await?;
    for edge in 0..EDGES {
        let reader = reader(&world, &shared, edge, 0)?;
        for key in 0..shared.keys() {
            let read = reader.read(key).await;
            shared.history().last.push(read);
        }
    }
    let sums = shared.sums();
    let (counted, hits) = count_scans(&world, sums.sent - sums.degraded.min(sums.sent)).await?;
    let history = std::mem::take(&mut *shared.history());
    let verdict = history::check(&history);
    let mut writes: BTreeMap<&'static str, u64> = BTreeMap::new();
    for write in &history.writes {
        let name = match write.outcome {
            Outcome::Acked(_) => ACKED,
            Outcome::Stored => "stored",
            Outcome::Unknown => "unknown",
            Outcome::Refused => "refused",
        };
        *writes.entry(name).or_default() += 1;
    }
    let (took, degraded) = (begun.elapsed(), sums.degraded);
    Ok(Report { seed, took, faults: done, sums, verdict, counted, degraded, hits, no_disks, writes, ended })
}

fn reader(world: &World, shared: &Arc<Shared>, edge: u16, seed: u64) -> Result<Reader> {
    let url = world.edges[usize::from(edge)].url.clone();
    Ok(Reader { shared: shared.clone(), http: client()?, edge, url, seed })
}

/// Waits until every edge is live at the same head.
async fn rest(world: &World) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < REST {
        let mut seen = Vec::new();
        for edge in 0..world.edges.len() {
            if let Ok(status) = world.edge_status(edge).await
                && status["state"] == "LIVE"
                && status["applied"] == status["head"]
            {
                seen.push(status["applied"].clone());
            }
        }
        if seen.len() == world.edges.len() && seen.iter().all(|applied| *applied == seen[0]) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("the edges did not come to rest")
}

const MONTHS: &str = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname ~ '^scans_[0-9]{6}$' \
    AND pg_table_is_visible(oid)";

/// Counts the stored scans once they are all there, or no more come, and the hits of all redirections.
async fn count_scans(world: &World, sent: u64) -> Result<(u64, u64)> {
    let pool = sqlx::PgPool::connect(&world.postgres.url()).await?;
    let (mut counted, mut still) = (0, Instant::now());
    while counted < sent && still.elapsed() < Duration::from_secs(10) {
        // A table for each month: the clock of control jumps, so there are several.
        let months: Vec<String> = sqlx::query_scalar(MONTHS).fetch_all(&pool).await?;
        let mut now = 0;
        for month in months {
            let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {month}"));
            now += sqlx::query_scalar::<_, i64>(sql).fetch_one(&pool).await?.unsigned_abs();
        }
        if now != counted {
            (counted, still) = (now, Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let hits: i64 = sqlx::query_scalar("SELECT COALESCE(SUM(hits), 0)::bigint FROM redirections")
        .fetch_one(&pool)
        .await?;
    pool.close().await;
    Ok((counted, hits.unsigned_abs()))
}
