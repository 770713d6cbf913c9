//! An account with as many Thngs and scans as a brand has: one item that the service made, copied in the database.

use std::{
    io::Write,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use shared::id::ThngId;
use sqlx::{AssertSqlSafe, PgPool};
use tests::db::Location;
use tokio::task::JoinSet;

use super::{Bench, told};

/// Assessments that are measured for each round of the rest, by one caller and by so many at a time.
const ASSESSMENTS: usize = 10;
const CALLERS: usize = 4;

/// Pairs of a list.
const LISTED: usize = 1_000;

/// Steps in which rows are made.
const STEPS: i64 = 20;

/// What a scan takes with its indexes, what one index takes of that while it is made, and what stays free.
const BYTES_PER_SCAN: f64 = 1_200.0;
const BYTES_PER_ENTRY: f64 = 150.0;
const LEFT_FREE: f64 = 2e9;

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Many {
    thngs: usize,
    scans: usize,
}

impl Default for Many {
    fn default() -> Self {
        Self { thngs: 1_000_000, scans: 20_000_000 }
    }
}

impl Many {
    /// Enough to see that it works.
    pub(super) const SMOKE: Self = Self { thngs: 50, scans: 1_000 };

    /// So many; each Thng has 1 to 999 scans.
    pub(super) fn new(thngs: usize, scans: usize) -> Option<Self> {
        let made = Self { thngs, scans };
        (1..=10_000_000).contains(&made.thngs).then_some(())?;
        (1..1_000).contains(&(made.scans / made.thngs)).then_some(made)
    }

    /// Copies the model: rows in steps, the indexes of the largest table after its rows.
    ///
    /// Each step says how far it came, and none begins without room for what is left.
    async fn fill(self, pool: &PgPool, model: ThngId, out: &mut impl Write) -> Result<()> {
        let begun = Instant::now();
        let thngs = i64::try_from(self.thngs)?;
        let free = Free::of(pool).await;
        let indexes: Vec<(String, String)> = sqlx::query_as(INDEXES).fetch_all(pool).await?;
        ensure!(indexes.len() > 3, "{indexes:?}");
        for (name, _) in &indexes {
            sqlx::query(AssertSqlSafe(format!("DROP INDEX {name}"))).execute(pool).await?;
        }
        let step = (thngs + STEPS - 1) / STEPS;
        for from in (1..=thngs).step_by(usize::try_from(step)?) {
            let scans_left = (thngs - from + 1) as f64 / thngs as f64 * self.scans as f64;
            free.hold(scans_left * BYTES_PER_SCAN)?;
            for statement in [THNGS, IDENTIFIERS, PROFILES, ACTIONS] {
                let to = (from + step - 1).min(thngs);
                sqlx::query(statement).bind(model.as_str()).bind(from).bind(to).execute(pool).await?;
            }
            writeln!(out, "  rows of {} Thngs: {:.0?}", (from + step - 1).min(thngs), begun.elapsed())?;
        }
        for (name, definition) in indexes {
            free.hold(self.scans as f64 * BYTES_PER_ENTRY)?;
            sqlx::query(AssertSqlSafe(definition)).execute(pool).await?;
            writeln!(out, "  index {name}: {:.0?}", begun.elapsed())?;
        }
        for table in ["thngs", "identifiers", "scan_profiles", "actions"] {
            sqlx::query(AssertSqlSafe(format!("VACUUM (ANALYZE) {table}"))).execute(pool).await?;
        }
        Ok(())
    }

    /// Fills the database, and assesses Thngs all over it.
    pub(super) async fn measure(self, bench: &Arc<Bench>, rounds: usize, out: &mut impl Write) -> Result<()> {
        let begun = Instant::now();
        let scans_each = self.scans / self.thngs;
        let (model, at) = bench.scanned(scans_each).await?;
        let pool = open(bench).await?;
        self.fill(&pool, model, out).await?;
        let [thngs, scans, bytes] = counts(&pool).await?;
        pool.close().await;
        ensure!(usize::try_from(thngs)? > self.thngs, "{thngs} Thngs");
        writeln!(
            out,
            "{thngs} Thngs with {scans} actions, {:.1} GB, made in {:.0?}",
            bytes as f64 / 1e9,
            begun.elapsed()
        )?;
        for callers in [1, CALLERS] {
            let begun = Instant::now();
            let mut tasks = JoinSet::new();
            for caller in 0..callers {
                let bench = bench.clone();
                tasks.spawn(async move {
                    let mut times = Vec::new();
                    for n in (caller..ASSESSMENTS * rounds).step_by(callers) {
                        // Far from each other, so that no page of the database serves two.
                        let place = 1 + (n * 7_919_993) % self.thngs;
                        times.push(bench.assess((copy_of(model, place)?, at)).await?);
                    }
                    anyhow::Ok(times)
                });
            }
            let mut times: Vec<Duration> = Vec::new();
            while let Some(done) = tasks.join_next().await {
                times.extend(done??);
            }
            let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
            writeln!(out, "assessments by {callers} callers: {}; {rate:.0}/s in all", told(&mut times))?;
        }
        let mut times = Vec::new();
        for round in 0..rounds {
            // Pages of the database that no other pair needs, where a factory asks for neighbours.
            let places = (0..LISTED).map(|n| 1 + ((round * LISTED + n) * 7_919_993) % self.thngs);
            let serials: Vec<String> = places.map(|place| format!("scanned {scans_each}-{place}")).collect();
            times.push(bench.states(&serials).await?);
        }
        writeln!(out, "states of {LISTED} pairs far from each other: {}", told(&mut times))?;
        Ok(())
    }
}

/// The id of a copy: the last ten letters are its number, and digits are letters of an id.
fn copy_of(model: ThngId, place: usize) -> Result<ThngId> {
    let id = format!("{}{place:010}", model.as_str().get(..14).context("an id")?);
    Ok(id.parse()?)
}

async fn open(bench: &Bench) -> Result<PgPool> {
    let Location::Postgres(url) = &bench.made.db.location else { bail!("--many is for Postgres") };
    Ok(PgPool::connect(url).await?)
}

const THNGS: &str = "INSERT INTO thngs (id, account_id, name, product_id, doc, created_at, updated_at, \
    commission_state, commission_product, commission) \
    SELECT left(id, 14) || lpad(n::text, 10, '0'), account_id, name || n, product_id, \
    jsonb_set(doc, '{identifiers,gs1:21}', to_jsonb((doc -> 'identifiers' ->> 'gs1:21') || '-' || n)), created_at, updated_at, \
    commission_state, commission_product, commission FROM thngs, generate_series($2::bigint, $3::bigint) n WHERE id = $1";
const IDENTIFIERS: &str = "INSERT INTO identifiers (account_id, kind, key, value, resource_id) \
    SELECT account_id, kind, key, value || '-' || n, left(resource_id, 14) || lpad(n::text, 10, '0') \
    FROM identifiers, generate_series($2::bigint, $3::bigint) n WHERE resource_id = $1";
const PROFILES: &str = "INSERT INTO scan_profiles (thng_id, account_id, profile, unverified, clients, rules_version) \
    SELECT left(thng_id, 14) || lpad(n::text, 10, '0'), account_id, profile, unverified, clients, rules_version \
    FROM scan_profiles, generate_series($2::bigint, $3::bigint) n WHERE thng_id = $1";
// In order of time, as scans come.
const ACTIONS: &str = "INSERT INTO actions (id, account_id, type, thng_id, product_id, timestamp, created_at, doc, \
    facets) SELECT left(id, 12) || lpad((n * 1000 + place)::text, 12, '0'), account_id, type, \
    left(thng_id, 14) || lpad(n::text, 10, '0'), product_id, timestamp, created_at, doc, facets \
    FROM (SELECT *, row_number() OVER (ORDER BY seq) AS place FROM actions WHERE thng_id = $1) a, \
    generate_series($2::bigint, $3::bigint) n";
const INDEXES: &str = "SELECT i.indexname, i.indexdef FROM pg_indexes i WHERE i.schemaname = current_schema() \
    AND i.tablename = 'actions' AND NOT EXISTS (SELECT 1 FROM pg_constraint c \
    WHERE c.conname = i.indexname AND c.connamespace = current_schema()::regnamespace)";
const COUNTS: &str = "SELECT (SELECT count(*) FROM thngs), (SELECT count(*) FROM actions), \
    (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c \
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r')";

/// The room where the database keeps its data; `None` where that is not told, or not on this machine.
struct Free(Option<String>);

impl Free {
    async fn of(pool: &PgPool) -> Self {
        let found: std::result::Result<(String,), _> =
            sqlx::query_as("SHOW data_directory").fetch_one(pool).await;
        Self(found.ok().map(|(folder,)| folder).filter(|folder| std::path::Path::new(folder).is_dir()))
    }

    /// Fails where fewer bytes are free, and those that must stay so.
    fn hold(&self, bytes: f64) -> Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let told = Command::new("df").args(["-Pk", folder]).output()?;
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let free = told.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<f64>().ok());
        let free = free.with_context(|| format!("df of {folder}: {told}"))? * 1_024.0;
        ensure!(
            free >= bytes + LEFT_FREE,
            "{:.1} GB are free in {folder}, {:.1} are needed, and {:.1} left",
            free / 1e9,
            bytes / 1e9,
            LEFT_FREE / 1e9
        );
        Ok(())
    }
}

async fn counts(pool: &PgPool) -> Result<[i64; 3]> {
    let (thngs, scans, bytes): (i64, i64, i64) = sqlx::query_as(COUNTS).fetch_one(pool).await?;
    Ok([thngs, scans, bytes])
}

/// Removes the tables; the empty database goes with the next one that is made.
pub(super) async fn clean_up(bench: &Bench) -> Result<()> {
    let Location::Postgres(_) = &bench.made.db.location else { return Ok(()) };
    let pool = open(bench).await?;
    sqlx::query("DROP SCHEMA public CASCADE").execute(&pool).await?;
    pool.close().await;
    Ok(())
}
