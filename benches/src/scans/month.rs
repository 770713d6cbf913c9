//! How long it takes to drop a month of scans, what changes of redirections wait for meanwhile, and what is given back.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use control::worker::ingest_scans::ingest;
use kernel::{
    on_db,
    store::{Ctx, Db, Tx},
};
use shared::{time::UnixMillis, wire::scan::MAX_BATCH};
use sqlx::AssertSqlSafe;
use tests::db::{Engine, Location, TestApp};

use super::{CHANGE, batch, changes, lasting, links, print, shown};

/// Scans that are taken by the intake; the others are copies of them.
const BASE: u64 = 100_000;

/// The columns that copies have in common.
const SAME: &str =
    "account, shape, agent, place, referer, language, rule, key, thng, ip, short_id, entry, redirect_url";

/// Far behind the end of the month.
const LATER_MS: i64 = 62 * 86_400_000;

/// Changes that are measured at least.
const LEAST: usize = 50;

pub(super) async fn run(engine: Engine, scans: u64) -> Result<()> {
    if engine == Engine::ClickHouse {
        // It drops a partition, and its rows are not made by SQL here.
        return Ok(());
    }
    ensure!(scans > 0, "a month of no scans");
    let made = TestApp::new(engine).await?;
    let links = links(&made, usize::try_from(scans)?.min(1_000)).await?;
    let base = BASE.min(scans.div_ceil(2)).next_multiple_of(MAX_BATCH as u64);
    let copies = scans.div_ceil(base) - 1;
    for first_seq in (0..base).step_by(MAX_BATCH) {
        ingest(&made.app, &batch(&links, first_seq)).await?;
    }
    let store = &made.app.actions.scans.pool;
    let month = store.describe().await?.months.first().copied().context("no month")?;
    fill(&made, month.number(), copies).await?;
    let before = store.describe().await?.bytes;
    let quiet = changes(&made, &links, lasting(Duration::from_secs(1))).await?;

    let is_over = UnixMillis(month.end().0 + LATER_MS);
    let (is_done, begun) = (AtomicBool::new(false), Instant::now());
    let drop_it = async {
        // It is tried again when somebody reads the tables, as by the look below.
        while store.drop_before(is_over).await?.is_none() {
            ensure!(begun.elapsed() < Duration::from_secs(120), "the month is not dropped");
        }
        // What one run does not give back, others do.
        let mut bytes = i64::MAX;
        loop {
            let now = store.describe().await?.bytes;
            if now >= bytes {
                break;
            }
            bytes = now;
            store.drop_before(is_over).await?;
        }
        is_done.store(true, SeqCst);
        anyhow::Ok((bytes, begun.elapsed()))
    };
    let watch = async {
        while store.describe().await?.months.contains(&month) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        anyhow::Ok(begun.elapsed())
    };
    let meanwhile = changes(&made, &links, |count| count < LEAST || !is_done.load(SeqCst));
    let ((after, all), seen, busy) = tokio::try_join!(drop_it, watch, meanwhile)?;
    ensure!(after < before, "{before} bytes before, {after} after");
    let mib = |bytes: i64| format!("{} MiB", bytes >> 20);
    print(
        engine,
        vec![
            ("scans of a month", (base * (copies + 1)).to_string()),
            ("until they are dropped, s", format!("{:.2}", seen.as_secs_f64())),
            ("until their room is given back, s", format!("{:.2}", all.as_secs_f64())),
            ("room of all scans before and after", format!("{}, {}", mib(before), mib(after))),
            (CHANGE, shown(quiet)),
            ("the same meanwhile", shown(busy)),
        ],
    )
}

/// Copies the scans of a month so many times, with other positions and times.
async fn fill(made: &TestApp, month: i32, copies: u64) -> Result<()> {
    let db = match &made.db.location {
        Location::Sqlite(path) => Db::open_sqlite_shrinking(&scan_store::store::file_of(path)).await?,
        Location::Postgres(_) => made.app.core.db.clone(),
    };
    let is_postgres = matches!(db, Db::Pg(_));
    let run = async |sql: String| -> Result<()> {
        let mut tx = db.begin(&Ctx::default()).await?;
        if is_postgres {
            execute(&mut tx, "SET LOCAL statement_timeout = 0".to_owned()).await?;
        }
        execute(&mut tx, sql).await?;
        Ok(tx.commit().await?)
    };
    run(format!("CREATE TABLE scans_base AS SELECT * FROM scans_{month}")).await?;
    for copy in 1..=copies {
        run(format!(
            "INSERT INTO scans_{month} (created_at, seq, timestamp, {SAME}) \
             SELECT created_at + {copy}, seq + {copy} * {BASE}, timestamp + {copy}, {SAME} FROM scans_base"
        ))
        .await?;
    }
    run("DROP TABLE scans_base".to_owned()).await
}

async fn execute(tx: &mut Tx, sql: String) -> Result<()> {
    let sql = AssertSqlSafe(sql);
    on_db!(&mut **tx, |c| sqlx::query(sql).execute(c).await.map(|_| ()))?;
    Ok(())
}
