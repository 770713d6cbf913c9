//! Crashes at a chosen step of a job: a database trigger holds the worker there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Method, StatusCode};
use sqlx::{AssertSqlSafe, PgConnection};
use tests::{
    campaign::postgres::Postgres,
    db::{Engine, Location, TestDb},
    is_long,
    product::{Options, Product},
};

use super::{
    DEADLINE, Expected, LOST, Worker, check_results, count, execute, postgres, signal, sqlite, submit,
    submit_once, thngs, until, wait_for,
};

/// A lease is 30 s.
const BEYOND_LEASE: Duration = Duration::from_secs(35);

/// A statement of a worker, as a trigger sees it.
#[derive(Clone, Copy)]
struct Step {
    table: &'static str,
    event: &'static str,
    when: &'static str,
    /// Not with the statement but with the commit; on Postgres alone.
    in_commit: bool,
}

const fn step(table: &'static str, event: &'static str, when: &'static str) -> Step {
    Step { table, event, when, in_commit: false }
}

/// What a worker writes in the life of a job, in this order.
const STEPS: [Step; 10] = [
    step("jobs", "UPDATE", "NEW.fence <> OLD.fence"),
    step("jobs", "UPDATE", "NEW.status = 'STARTING' AND OLD.status = 'ENQUEUED'"),
    step("job_chunks", "INSERT", "NEW.first >= 0"),
    step("jobs", "UPDATE", "NEW.status = 'EXECUTING' AND OLD.status = 'STARTING'"),
    step("actions", "INSERT", "NEW.type = 'scans'"),
    step("events", "INSERT", "NEW.kind = 'actions'"),
    step("job_logs", "INSERT", "NEW.entry >= 0"),
    step("jobs", "UPDATE", "NEW.done > OLD.done"),
    step("job_chunks", "DELETE", "OLD.first >= 0"),
    step("jobs", "UPDATE", "NEW.completed_at IS NOT NULL AND OLD.completed_at IS NULL"),
];
const IN_COMMIT: Step = Step { table: "jobs", event: "UPDATE", when: "NEW.done > OLD.done", in_commit: true };
/// A lease that ends before its time, and not by a test.
const RELEASE: Step = step("jobs", "UPDATE", "NEW.lease_until > 0 AND NEW.lease_until < OLD.lease_until");
const END_OF_CANCEL: Step = step("jobs", "UPDATE", "NEW.status = 'CANCELLED' AND OLD.status = 'CANCELLING'");

/// Holds workers at steps: on Postgres they wait for an advisory lock, on SQLite they count for ever.
struct Stall {
    location: Location,
    key: i32,
    /// Holds the lock.
    holder: Option<PgConnection>,
}

impl Stall {
    async fn new(location: Location) -> Result<Self> {
        let key = getrandom::u32().map_err(|error| anyhow::anyhow!("{error}"))? >> 1;
        let mut stall = Self { location, key: key.cast_signed(), holder: None };
        if let Location::Sqlite(_) = stall.location {
            let sql = "CREATE VIEW endless AS WITH RECURSIVE n (i) AS \
                (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
            execute(&stall.location, sql).await?;
        }
        stall.lock().await?;
        Ok(stall)
    }

    /// Takes the lock, again after a restart of the server.
    async fn lock(&mut self) -> Result<()> {
        if let Location::Postgres(url) = &self.location {
            let mut conn = postgres(url).await?;
            let sql = format!("SELECT pg_advisory_lock(7021, {})", self.key);
            sqlx::query(AssertSqlSafe(sql)).execute(&mut conn).await?;
            self.holder = Some(conn);
        }
        Ok(())
    }

    async fn set(&self, step: Step) -> Result<()> {
        let Step { table, event, when, in_commit } = step;
        let sql = match &self.location {
            Location::Sqlite(_) => format!(
                "CREATE TRIGGER stall AFTER {event} ON {table} WHEN {when} \
                 BEGIN SELECT COUNT(*) FROM endless; END"
            ),
            Location::Postgres(..) => {
                let (kind, time) = if in_commit {
                    ("CONSTRAINT TRIGGER", "DEFERRABLE INITIALLY DEFERRED")
                } else {
                    ("TRIGGER", "")
                };
                format!(
                    "CREATE OR REPLACE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ \
                     BEGIN PERFORM pg_advisory_xact_lock(7021, {}); RETURN NULL; END $$; \
                     CREATE {kind} stall AFTER {event} ON {table} {time} \
                     FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION stall()",
                    self.key
                )
            }
        };
        execute(&self.location, &sql).await
    }

    fn waiting(&self) -> String {
        format!(
            "pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = 7021 AND objid = {}",
            self.key
        )
    }

    /// Waits until a worker stands at the step.
    async fn reached(&self) -> Result<()> {
        match &self.location {
            Location::Postgres(..) => {
                let sql = format!("SELECT COUNT(*) FROM {}", self.waiting());
                until(&self.location, "a worker at the step", &sql, 1).await
            }
            Location::Sqlite(path) => {
                // No honest step keeps the only writer for so many looks in a row.
                let (mut conn, begun, mut busy) = (sqlite(path).await?, Instant::now(), 0);
                sqlx::raw_sql("PRAGMA busy_timeout = 0").execute(&mut conn).await?;
                while busy < 100 {
                    ensure!(begun.elapsed() < DEADLINE, "no worker comes to the step");
                    match sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut conn).await {
                        Ok(_) => busy = 0,
                        Err(_) => busy += 1,
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Ok(())
            }
        }
    }

    /// Ends what the dead left behind, and the trigger.
    async fn clear(&mut self, step: Step) -> Result<()> {
        if let Location::Postgres(..) = self.location {
            if step.in_commit {
                // The commit goes on without whoever asked for it.
                self.holder = None;
                let none = format!("SELECT 1 - LEAST(COUNT(*), 1) FROM {}", self.waiting());
                until(&self.location, "the end of a commit", &none, 1).await?;
                self.lock().await?;
            } else {
                let sql = format!("SELECT COUNT(pg_terminate_backend(pid)) FROM {}", self.waiting());
                count(&self.location, &sql).await?;
            }
            return execute(&self.location, &format!("DROP TRIGGER stall ON {}", step.table)).await;
        }
        execute(&self.location, "DROP TRIGGER stall").await
    }

    /// Kills a product that stands at a step, and starts it again.
    async fn kill(&mut self, product: &mut Product, step: Step, next: Option<Step>) -> Result<()> {
        self.reached().await.with_context(|| format!("{} of {}: {}", step.event, step.table, step.when))?;
        product.kill()?;
        self.clear(step).await?;
        if let Some(next) = next {
            self.set(next).await?;
        }
        // As though the lease had run out; `workers` waits for that.
        execute(&self.location, "UPDATE jobs SET lease_until = 0 WHERE completed_at IS NULL").await?;
        product.start_again()
    }
}

/// kill -9 in the middle of each statement by which a worker moves a job on, and of a cancel.
async fn a_kill_at_each_statement_neither_duplicates_nor_loses_actions(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let mut stall = Stall::new(product.location()).await?;
    let mut steps = STEPS.to_vec();
    if engine == Engine::Postgres {
        steps.insert(9, IN_COMMIT);
    }
    stall.set(steps[0]).await?;
    let mut jobs = vec![submit_once(&product, &ids, 7_000).await?];
    for (at, step) in steps.iter().enumerate() {
        stall.kill(&mut product, *step, steps.get(at + 1).copied()).await?;
    }
    wait_for(&product, &jobs[0], u64::MAX).await?;
    let job = submit(&product, &ids, 30_000).await?;
    wait_for(&product, &job, 1).await?;
    stall.set(END_OF_CANCEL).await?;
    product.must_answer(202, Method::POST, &format!("{}/cancel", job.path), None).await?;
    stall.kill(&mut product, END_OF_CANCEL, None).await?;
    jobs.push(job);
    check_results(&product, &jobs, false).await
}

/// A worker whose release fails asks again, and counts that another one has the job: in the long form beyond the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_suspended_in_a_release_counts_what_it_lost() -> Result<()> {
    let product = Product::start(Options { engine: Engine::Postgres, ..Options::default() }).await?;
    let (ids, location) = (thngs(&product).await?, product.location());
    let mut stall = Stall::new(product.location()).await?;
    // That of the lane which has read the input.
    stall.set(RELEASE).await?;
    let job = submit_once(&product, &ids, 7_000).await?;
    stall.reached().await?;
    signal(product.pid(), "-STOP")?;
    let frozen = Instant::now();
    stall.clear(RELEASE).await?;
    execute(&location, "UPDATE jobs SET lease_until = 0 WHERE completed_at IS NULL").await?;
    let mut other = Worker::start(&product, &[])?;
    until(&location, "the end by another", "SELECT COUNT(*) FROM jobs WHERE completed_at IS NOT NULL", 1)
        .await?;
    other.stop()?;
    if is_long() {
        tokio::time::sleep(BEYOND_LEASE.saturating_sub(frozen.elapsed())).await;
    }
    signal(product.pid(), "-CONT")?;
    let begun = Instant::now();
    while product.metrics().await?.get(LOST).copied().context(LOST)? < 1.0 {
        ensure!(begun.elapsed() < DEADLINE, "nothing was lost");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    check_results(&product, &[job], false).await
}

/// Waits until the API answers again.
async fn until_answered(product: &Product, job: &Expected) -> Result<()> {
    let begun = Instant::now();
    loop {
        match product.call(Method::GET, &job.path, None).await {
            Ok((StatusCode::OK, _)) => return Ok(()),
            other if begun.elapsed() > DEADLINE => bail!("{other:?}"),
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// The server ends in the middle of the reading of an input, of a step, and of a commit, and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_restart_neither_duplicates_nor_loses_actions() -> Result<()> {
    let server = Postgres::start()?;
    let options = Options { engine: Engine::Postgres, ..Options::default() };
    let product = Product::start_over(options, Some(TestDb::in_server(server.url()).await?)).await?;
    let pid = product.pid();
    let ids = thngs(&product).await?;
    let mut stall = Stall::new(product.location()).await?;
    let [.., parts, _, actions, _, logs, counters, _, _] = STEPS;
    let steps = [parts, actions, logs, counters, IN_COMMIT];
    stall.set(steps[0]).await?;
    let jobs = [submit(&product, &ids, 30_000).await?, submit(&product, &ids, 10_000).await?];
    for (at, step) in steps.iter().enumerate() {
        stall.reached().await.with_context(|| format!("{} of {}", step.event, step.table))?;
        server.restart_immediately()?;
        // What waited may have gone on since: the lock went with the server.
        execute(&stall.location, &format!("DROP TRIGGER stall ON {}", step.table)).await?;
        stall.lock().await?;
        if let Some(next) = steps.get(at + 1) {
            stall.set(*next).await?;
        }
    }
    until_answered(&product, &jobs[0]).await?;
    check_results(&product, &jobs, false).await?;
    ensure!(product.pid() == pid && std::path::Path::new(&format!("/proc/{pid}")).exists());
    Ok(())
}

crate::on_both_engines!(a_kill_at_each_statement_neither_duplicates_nor_loses_actions);
