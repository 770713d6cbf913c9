//! Jobs under faults, with the real processes: what dies, stands still or is stopped in the middle leaves each
//! entry carried out once (design: push, 7).

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, header};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use tests::{
    db::{Engine, Location},
    product::{Options, Product},
};

/// Longest wait for jobs to end: a lease of 30 s may have to run out first, more than once.
const DEADLINE: Duration = Duration::from_secs(180);

/// Thngs that the inputs name, over and over.
const THNGS: usize = 20;

/// What is asked for and must be there in the end.
struct Expected {
    path: String,
    entries: u64,
    /// Entries that name no Thng whatever happens.
    bad: u64,
}

async fn thngs(product: &Product) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for n in 0..THNGS {
        let (status, body) =
            product.call(Method::POST, "/thngs", Some(json!({"name": format!("t{n}")}))).await?;
        ensure!(status == 201, "{status}: {body}");
        ids.push(body["id"].as_str().context("id")?.to_owned());
    }
    Ok(ids)
}

/// A CSV file of so many lines: every tenth names nothing, every hundredth is no line of CSV.
fn lines(ids: &[String], count: usize) -> (String, u64) {
    let (mut text, mut bad) = ("thng\r\n".to_owned(), 0);
    for n in 0..count {
        match n % 100 {
            99 => text.push_str("\"open\r\n"),
            9 | 19 | 29 | 39 => text.push_str("UKXAGyEf8SQ5eTDmVgGpHqAa\r\n"),
            _ => {
                text.push_str(&ids[n % ids.len()]);
                text.push_str("\r\n");
                continue;
            }
        }
        bad += 1;
    }
    (text, bad)
}

async fn submit(product: &Product, ids: &[String], count: usize) -> Result<Expected> {
    let (text, bad) = lines(ids, count);
    let (_, file) = product.call(Method::POST, "/files", Some(json!({"name": "ids.csv"}))).await?;
    let upload = file["uploadUrl"].as_str().context("uploadUrl")?;
    product.http.put(upload).body(text).send().await?.error_for_status()?;
    let body = json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "FILE", "contentType": "PLATFORM_IDS", "format": "CSV", "location": file["contentUrl"]}});
    // Sent twice: one job.
    let mut paths = Vec::new();
    for _ in 0..2 {
        let request = product.http.post(format!("{}/jobs/actions", product.api)).json(&body);
        let key = format!("job of {upload}");
        let key = &key[key.len().saturating_sub(200)..];
        let request = request.header(header::AUTHORIZATION, &product.key).header("idempotency-key", key);
        let response = request.send().await?.error_for_status()?;
        let location = response.headers().get(header::LOCATION).context("location")?.to_str()?.to_owned();
        paths.push(location.trim_start_matches(&product.api).to_owned());
    }
    ensure!(paths[0] == paths[1], "{paths:?}");
    Ok(Expected { path: paths.remove(0), entries: count as u64, bad })
}

async fn read(product: &Product, job: &Expected) -> Result<Value> {
    let (status, body) = product.call(Method::GET, &job.path, None).await?;
    ensure!(status == 200, "{status}: {body}");
    Ok(body)
}

fn number(job: &Value, pointer: &str) -> u64 {
    job.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

const DONE: &str = "/progress/amountCompleted";

/// Waits until a job has carried out at least so many operations, or has ended.
async fn wait_for(product: &Product, job: &Expected, done: u64) -> Result<Value> {
    let begun = Instant::now();
    loop {
        let read = read(product, job).await?;
        if number(&read, DONE) >= done || read.get("completedAt").is_some() {
            return Ok(read);
        }
        ensure!(begun.elapsed() < DEADLINE, "it does not go on: {read}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn count(location: &Location, sql: &str) -> Result<u64> {
    let count: i64 = match location {
        Location::Sqlite(path) => {
            let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
            sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut conn).await?
        }
        Location::Postgres(url, schema) => {
            let mut conn =
                sqlx::PgConnection::connect(&format!("{url}?options[search_path]={schema}")).await?;
            sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut conn).await?
        }
    };
    Ok(u64::try_from(count)?)
}

/// At the end of every fault run: actions are the entries that succeeded, the log those that failed, the
/// counters both; nothing of the input is left; and each action is in the log of events once.
async fn reckon(product: &Product, jobs: &[Expected], more_failures: bool) -> Result<()> {
    let location = product.location();
    let mut created = 0;
    for job in jobs {
        let ended = wait_for(product, job, u64::MAX).await?;
        let (done, failed) = (number(&ended, DONE), number(&ended, "/failedOperationsAmount"));
        let is_cancelled = ended["status"] == "CANCELLED";
        ensure!(is_cancelled || ended["status"] == "COMPLETED_WITH_FAILURES", "{ended}");
        ensure!(is_cancelled || done == job.entries, "{ended}");
        ensure!(is_cancelled || failed == job.bad || more_failures && failed > job.bad, "{ended}");
        let id = job.path.rsplit('/').next().context("id")?;
        let logged =
            count(&location, &format!("SELECT COUNT(*) FROM job_logs WHERE job_id = '{id}'")).await?;
        ensure!(logged == failed, "{logged} entries in the log: {ended}");
        created += done - failed;
    }
    let stored = count(&location, "SELECT COUNT(*) FROM actions").await?;
    ensure!(stored == created, "{stored} actions are stored, the counters say {created}");
    let told = match location {
        Location::Sqlite(_) => {
            "SELECT COALESCE(SUM(json_array_length(body -> 'ids')), 0) FROM events WHERE kind = 'actions'"
        }
        Location::Postgres(..) => {
            "SELECT COALESCE(SUM(jsonb_array_length(body::jsonb -> 'ids')), 0)::bigint FROM events \
             WHERE kind = 'actions'"
        }
    };
    ensure!(count(&location, told).await? == created, "the log tells of others");
    let ends = count(&location, "SELECT COUNT(*) FROM events WHERE kind = 'job'").await?;
    ensure!(ends == jobs.len() as u64, "{ends} ends of jobs were told");
    let open = "SELECT COUNT(*) FROM job_chunks c JOIN jobs j ON j.seq = c.job WHERE j.status <> 'CANCELLED'";
    ensure!(count(&location, open).await? == 0, "input is left");
    Ok(())
}

/// kill -9 of the whole product at moments that differ, with three jobs under way.
async fn a_kill_at_any_step_doubles_and_loses_nothing(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(submit(&product, &ids, 12_000).await?);
    }
    // On Postgres what was held is free only when its lease has run out.
    let kills = if engine == Engine::Sqlite { 12 } else { 2 };
    for kill in 0..kills {
        let seen: u64 = number(&read(&product, &jobs[0]).await?, DONE);
        // In the reading of inputs first, then in the middle of steps.
        if kill > 0 {
            wait_for(&product, &jobs[0], seen + 1).await?;
        }
        let random = getrandom::u32().map_err(|error| anyhow::anyhow!("{error}"))?;
        tokio::time::sleep(Duration::from_micros(u64::from(random % 60_000))).await;
        product.kill()?;
        product.start_again()?;
        let after = number(&read(&product, &jobs[0]).await?, DONE);
        ensure!(after >= seen, "{after} operations after a kill, {seen} before");
    }
    reckon(&product, &jobs, false).await
}

/// A stop lets go of jobs at once, and a start goes on with them; a hundred small ones among them.
async fn a_restart_goes_on_with_every_job(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let mut jobs = vec![submit(&product, &ids, 20_000).await?];
    for _ in 0..99 {
        jobs.push(submit(&product, &ids, 100).await?);
    }
    wait_for(&product, &jobs[0], 1).await?;
    ensure!(product.stop()?.success());
    product.start_again()?;
    // What was let go of needs no lease to run out.
    reckon(&product, &jobs, false).await
}

/// Thngs that go while a job runs are failed operations, and a cancel keeps what was created.
async fn thngs_may_go_and_jobs_be_cancelled_meanwhile(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let ids = thngs(&product).await?;
    let jobs = [submit(&product, &ids, 30_000).await?, submit(&product, &ids, 30_000).await?];
    wait_for(&product, &jobs[0], 1).await?;
    let (status, _) = product.call(Method::DELETE, &format!("/thngs/{}", ids[0]), None).await?;
    ensure!(status == 200, "{status}");
    wait_for(&product, &jobs[1], 10_000).await?;
    let (status, body) = product.call(Method::POST, &format!("{}/cancel", jobs[1].path), None).await?;
    ensure!(status == 202 || status == 409, "{status}: {body}");
    reckon(&product, &jobs, true).await
}

crate::on_both_engines!(
    a_kill_at_any_step_doubles_and_loses_nothing,
    a_restart_goes_on_with_every_job,
    thngs_may_go_and_jobs_be_cancelled_meanwhile,
);
