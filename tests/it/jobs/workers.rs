//! Workers that are suspended, killed or stopped, or that believe they hold the same job.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sqlx::AssertSqlSafe;
use tests::{
    db::{Engine, Location},
    is_long,
    kills::expire_leases,
    product::{Options, Product},
    repetitions,
};

use super::{
    DEADLINE, LOST, OPEN, Worker, check_results, count, execute, held, postgres, signal, submit, thngs,
    until, wait_for,
};

const DONE_HERE: &str = "waymark_control_job_entries_done_total";
const PROGRESS: &str = "SELECT CAST(SUM(done) AS BIGINT) FROM jobs";

/// Postgres still carries out what a process had sent before it was stopped: that may have been the end of a job.
const ENDED: &str = "completed_at IS NOT NULL";

/// How long processes stand still in the long form: twice a lease. In the gate until others have taken what they held.
const STILL: Duration = Duration::from_secs(60);

/// Jobs that the product and three workers carry out at once.
const LANES: u64 = 8;

/// How soon a process notices that it has lost a job, once it goes on.
const NOTICE: Duration = Duration::from_secs(5);

/// Stops processes at a moment at which so many jobs are held, by whichever of them.
async fn freeze(pids: &[u32], location: &Location, least: u64) -> Result<()> {
    let begun = Instant::now();
    loop {
        for pid in pids {
            signal(*pid, "-STOP")?;
        }
        if count(location, held(location)).await? >= least {
            return Ok(());
        }
        for pid in pids {
            signal(*pid, "-CONT")?;
        }
        ensure!(begun.elapsed() < DEADLINE, "fewer than {least} jobs are held");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The jobs that somebody holds, with their fences.
async fn held_fences(location: &Location) -> Result<Vec<(i64, i64)>> {
    let Location::Postgres(url) = location else { return Ok(Vec::new()) };
    let sql = held(location).replace("COUNT(*)", "seq, fence");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).fetch_all(&mut postgres(url).await?).await?)
}

/// Waits until each of these jobs has another holder, or has ended.
async fn until_taken(location: &Location, fences: &[(i64, i64)]) -> Result<()> {
    let taken: String = fences
        .iter()
        .map(|(seq, fence)| format!(" OR (seq = {seq} AND (fence > {fence} OR {ENDED}))"))
        .collect();
    let taken = format!("SELECT COUNT(*) FROM jobs WHERE FALSE{taken}");
    until(location, "another holder of each job", &taken, fences.len() as u64).await
}

/// SIGSTOP of three processes in the middle of what they do, until their leases have run out and others have their jobs;
/// then they go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_suspended_beyond_their_lease_write_nothing() -> Result<()> {
    let mut product = Product::start(Options { engine: Engine::Postgres, ..Options::default() }).await?;
    let (ids, location) = (thngs(&product).await?, product.location());
    let mut jobs = Vec::new();
    for _ in 0..6 {
        jobs.push(submit(&product, &ids, 12_000).await?);
    }
    ensure!(product.stop()?.success());
    let before = count(&location, PROGRESS).await?;
    // They begin together: the first two could have done all jobs before the third one is up.
    let mut workers = Vec::new();
    for _ in 0..3 {
        let worker = Worker::start(&product, &[])?;
        worker.signal("-STOP")?;
        workers.push(worker);
    }
    for worker in &workers {
        worker.signal("-CONT")?;
    }
    until(&location, "progress", PROGRESS, before + 1).await?;
    let read = "SELECT COUNT(*) FROM jobs WHERE status <> 'ENQUEUED' AND status <> 'STARTING'";
    until(&location, "the reading of every input", read, 6).await?;
    // Two of a process at most: so each of the three holds one.
    let pids: Vec<u32> = workers.iter().map(|worker| worker.child.id()).collect();
    freeze(&pids, &location, 5).await?;
    let frozen = Instant::now();
    let fences = held_fences(&location).await?;
    product.start_again()?;
    if !is_long() {
        // `jobs_of_a_dead_worker_are_taken_over` waits for leases to run out.
        expire_leases(&product).await?;
    }
    until_taken(&location, &fences).await?;
    if is_long() {
        tokio::time::sleep(STILL.saturating_sub(frozen.elapsed())).await;
    }
    for pid in &pids {
        signal(*pid, "-CONT")?;
    }
    for _ in 0..8 {
        jobs.push(submit(&product, &ids, 4_000).await?);
    }
    // Each notices what it has lost, and is of use again.
    let (begun, mut resumed, mut marks) = (Instant::now(), Instant::now(), vec![None; workers.len()]);
    loop {
        let (mut left, mut seen) = (0, Vec::new());
        for (worker, mark) in workers.iter().zip(&mut marks) {
            let (lost, done) =
                (worker.metric(&product, LOST).await?, worker.metric(&product, DONE_HERE).await?);
            if lost >= 1.0 && mark.is_none() {
                *mark = Some(done);
            }
            seen.push((lost, done, *mark));
            left += usize::from(mark.is_none_or(|mark| done <= mark));
        }
        if left == 0 {
            break;
        }
        ensure!(
            begun.elapsed() < DEADLINE,
            "{left} workers do not go on: leases lost, items done, and before: {seen:?}"
        );
        // More than the lanes of all processes: else those of the product, which are woken first, take each new one.
        if count(&location, OPEN).await? < LANES {
            jobs.push(submit(&product, &ids, 4_000).await?);
        }
        // One of which Postgres still carried out a release, or the end of its last job, had nothing to lose.
        let idle: Vec<u32> =
            pids.iter().zip(&marks).filter(|(_, mark)| mark.is_none()).map(|(pid, _)| *pid).collect();
        if !idle.is_empty() && resumed.elapsed() > NOTICE {
            freeze(&idle, &location, 1).await?;
            let fences = held_fences(&location).await?;
            expire_leases(&product).await?;
            until_taken(&location, &fences).await?;
            for pid in &idle {
                signal(*pid, "-CONT")?;
            }
            resumed = Instant::now();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    check_results(&product, &jobs, false).await
}

/// The one process of SQLite stands still beyond the leases that it holds, and finds its own lanes as rivals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_suspended_beyond_its_leases_resumes() -> Result<()> {
    let product = Product::start(Options::default()).await?;
    let (ids, location) = (thngs(&product).await?, product.location());
    let entries = repetitions(12_000, 30_000);
    let jobs = [submit(&product, &ids, entries).await?, submit(&product, &ids, entries).await?];
    wait_for(&product, &jobs[0], 1).await?;
    freeze(&[product.pid()], &location, 1).await?;
    let begun = Instant::now();
    while count(&location, held(&location)).await? > 0 {
        ensure!(begun.elapsed() < DEADLINE, "the leases do not run out");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    signal(product.pid(), "-CONT")?;
    check_results(&product, &jobs, false).await
}

/// Leases that are taken away all the time: several workers are in the middle of a step of one job at once.
async fn two_workers_on_one_job_do_it_once(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let (ids, location) = (thngs(&product).await?, product.location());
    let mut workers = Vec::new();
    if engine == Engine::Postgres {
        for _ in 0..2 {
            workers.push(Worker::start(&product, &[])?);
        }
    }
    let mut jobs = vec![submit(&product, &ids, 6_000).await?];
    let begun = Instant::now();
    loop {
        let mut lost = product.metrics().await?.get(LOST).copied().context(LOST)?;
        for worker in &workers {
            lost += worker.metric(&product, LOST).await?;
        }
        if count(&location, OPEN).await? == 0 {
            if lost >= 5.0 {
                break;
            }
            jobs.push(submit(&product, &ids, 6_000).await?);
        }
        ensure!(begun.elapsed() < DEADLINE, "{lost} leases were lost");
        // What `jobs_of_a_dead_worker_are_taken_over` waits half a minute for.
        execute(&location, "UPDATE jobs SET lease_until = 0 WHERE completed_at IS NULL").await?;
        let random = getrandom::u32().map_err(|error| anyhow::anyhow!("{error}"))?;
        tokio::time::sleep(Duration::from_millis(20 + u64::from(random % 80))).await;
    }
    check_results(&product, &jobs, false).await
}

/// A worker that is stopped lets go at once; one that is killed is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_dead_worker_are_taken_over() -> Result<()> {
    let mut product = Product::start(Options { engine: Engine::Postgres, ..Options::default() }).await?;
    let (ids, location) = (thngs(&product).await?, product.location());
    let entries = repetitions(12_000, 20_000);
    let jobs = [submit(&product, &ids, entries).await?, submit(&product, &ids, entries).await?];
    ensure!(product.stop()?.success());
    ensure!(count(&location, held(&location)).await? == 0, "a stop lets go of jobs");
    for is_killed in [false, true] {
        let mut worker = Worker::start(&product, &[])?;
        let ready = product.http.get(format!("{}/ready", worker.admin)).send().await?;
        ensure!(ready.status() == 200 || ready.status() == 503, "{ready:?}");
        let before = count(&location, PROGRESS).await?;
        until(&location, "progress", PROGRESS, before + 1).await?;
        if is_killed {
            worker.kill()?;
        } else {
            worker.stop()?;
            ensure!(count(&location, held(&location)).await? == 0, "a stop lets go of jobs");
        }
        ensure!(count(&location, OPEN).await? > 0, "it was done before it was stopped");
    }
    let mut last = Worker::start(&product, &[])?;
    let begun = Instant::now();
    while count(&location, OPEN).await? > 0 {
        ensure!(begun.elapsed() < DEADLINE, "the jobs do not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(last.metric(&product, DONE_HERE).await? > 0.0);
    let ended = "waymark_control_jobs_ended_total{status=\"COMPLETED_WITH_FAILURES\"}";
    ensure!(last.metric(&product, ended).await? >= 1.0);
    let ready = product.http.get(format!("{}/ready", last.admin)).send().await?;
    ensure!(ready.status() == 200, "{ready:?}");
    last.stop()?;
    product.start_again()?;
    check_results(&product, &jobs, false).await
}

crate::on_both_engines!(two_workers_on_one_job_do_it_once);
