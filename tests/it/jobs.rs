//! Jobs under faults, with the real processes: after crashes, suspensions and stops each entry was executed once.

mod faults;
mod inputs;
mod steps;
mod workers;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Method, header};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use tests::{
    db::Location,
    killed::Killed,
    product::{Product, built, metrics_of, spawn_up, value_of},
};

use crate::store::schema::run;

/// Longest wait for jobs to end: a lease of 30 s may have to run out first, more than once.
const DEADLINE: Duration = Duration::from_secs(180);

/// Counts the jobs that others took from a process.
const LOST: &str = "waymark_control_job_leases_lost_total";

/// Thngs that the inputs name, over and over.
const THNGS: usize = 20;

/// A process that only works on jobs; killed when dropped.
struct Worker {
    child: Killed,
    /// Base of the admin listener.
    admin: String,
}

impl Worker {
    /// Starts one over the database and the files of a product, with further variables.
    fn start(product: &Product, variables: &[(&str, &str)]) -> Result<Self> {
        let Location::Postgres(url) = product.location() else { bail!("a worker needs Postgres") };
        let mut command = Command::new(built("control")?);
        command
            .arg("worker")
            .env("DATABASE_URL", url)
            .env("WAYMARK_FILES_URL", product.data.join("files"))
            .env("WAYMARK_SECRET_KEY_FILE", product.data.join("secret.key"))
            .env("WAYMARK_WORKER_ADMIN_LISTEN", "127.0.0.1:0")
            .env("RUST_LOG", "warn")
            .envs(variables.iter().copied());
        let (child, said) = spawn_up(&mut command, DEADLINE)?;
        Ok(Self { child: Killed(child), admin: value_of(&said, "Admin ")? })
    }

    fn signal(&self, name: &str) -> Result<()> {
        signal(self.child.id(), name)
    }

    fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to stop, and waits until it has.
    fn stop(&mut self) -> Result<()> {
        self.signal("-TERM")?;
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "{status}");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the worker did not stop")
    }

    async fn metric(&self, product: &Product, name: &str) -> Result<f64> {
        let metrics = metrics_of(&product.http, &self.admin).await?;
        metrics.get(name).copied().with_context(|| format!("{name} is not in {metrics:#?}"))
    }
}

fn signal(pid: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").args([name, &pid.to_string()]).status()?;
    ensure!(status.success(), "kill {name}: {status}");
    Ok(())
}

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
        let body =
            product.must_answer(201, Method::POST, "/thngs", Some(json!({"name": format!("t{n}")}))).await?;
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

/// Uploads a file of so many lines, and asks twice for a job on it.
async fn submit(product: &Product, ids: &[String], count: usize) -> Result<Expected> {
    let (text, bad) = lines(ids, count);
    let path = submit_file(product, "CSV", text.into_bytes()).await?;
    Ok(Expected { path, entries: count as u64, bad })
}

/// The same, asked for once: where a worker is held in a write, SQLite cannot keep the answer for a second request.
async fn submit_once(product: &Product, ids: &[String], count: usize) -> Result<Expected> {
    let (text, bad) = lines(ids, count);
    let (body, key) = upload(product, "CSV", text.into_bytes()).await?;
    Ok(Expected { path: request_job(product, &body, &key).await?, entries: count as u64, bad })
}

/// Uploads a file, and asks twice for a job that makes a scan of each line, which is one job; gives its path.
pub(crate) async fn submit_file(product: &Product, format: &str, content: Vec<u8>) -> Result<String> {
    let (body, key) = upload(product, format, content).await?;
    let (path, again) =
        tokio::try_join!(request_job(product, &body, &key), request_job(product, &body, &key))?;
    ensure!(path == again, "{path} {again}");
    Ok(path)
}

/// Uploads a file; gives the body of a request for a job that makes a scan of each line, and an idempotency key.
async fn upload(product: &Product, format: &str, content: Vec<u8>) -> Result<(Value, String)> {
    let (_, file) = product.call(Method::POST, "/files", Some(json!({"name": "ids.csv"}))).await?;
    let upload = file["uploadUrl"].as_str().context("uploadUrl")?;
    product.http.put(upload).body(content).send().await?.error_for_status()?;
    let body = json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "FILE", "contentType": "PLATFORM_IDS", "format": format, "location": file["contentUrl"]}});
    let key = format!("job of {upload}");
    Ok((body, key[key.len().saturating_sub(200)..].to_owned()))
}

async fn request_job(product: &Product, body: &Value, key: &str) -> Result<String> {
    let request = product.http.post(format!("{}/jobs/actions", product.api)).json(body);
    let request = request.header(header::AUTHORIZATION, &product.key).header("idempotency-key", key);
    let response = request.send().await?.error_for_status()?;
    let location = response.headers().get(header::LOCATION).context("location")?.to_str()?;
    Ok(location.trim_start_matches(&product.api).to_owned())
}

async fn read(product: &Product, job: &Expected) -> Result<Value> {
    let body = product.must_answer(200, Method::GET, &job.path, None).await?;
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

async fn sqlite(path: &std::path::Path) -> Result<sqlx::SqliteConnection> {
    Ok(sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?)
}

async fn postgres(url: &str) -> Result<sqlx::PgConnection> {
    Ok(sqlx::PgConnection::connect(url).await?)
}

async fn count(location: &Location, sql: &str) -> Result<u64> {
    let sql = AssertSqlSafe(sql.to_owned());
    let count: i64 = match location {
        Location::Sqlite(path) => sqlx::query_scalar(sql).fetch_one(&mut sqlite(path).await?).await?,
        Location::Postgres(url) => sqlx::query_scalar(sql).fetch_one(&mut postgres(url).await?).await?,
    };
    Ok(u64::try_from(count)?)
}

async fn execute(location: &Location, sql: &str) -> Result<()> {
    run(location, &[sql.to_owned()]).await
}

/// Waits until a count is at least so large.
async fn until(location: &Location, what: &str, sql: &str, least: u64) -> Result<()> {
    let begun = Instant::now();
    while count(location, sql).await? < least {
        ensure!(begun.elapsed() < DEADLINE, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Jobs that a worker holds, by the database's clock.
fn held(location: &Location) -> &'static str {
    match location {
        Location::Sqlite(_) => {
            "SELECT COUNT(*) FROM jobs WHERE completed_at IS NULL AND lease_until > unixepoch('subsec') * 1000"
        }
        Location::Postgres(..) => {
            "SELECT COUNT(*) FROM jobs WHERE completed_at IS NULL \
             AND lease_until > EXTRACT(EPOCH FROM clock_timestamp()) * 1000"
        }
    }
}

const OPEN: &str = "SELECT COUNT(*) FROM jobs WHERE completed_at IS NULL";

/// At the end of every fault run: actions are the entries that succeeded, the log those that failed, the
/// counters both; nothing of the input is left; and each action is in the log of events once.
async fn check_results(product: &Product, jobs: &[Expected], more_failures: bool) -> Result<()> {
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
