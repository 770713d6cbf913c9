//! What the log of events adds to `POST /actions`: the real product, asked by clients that keep their connections, in
//! rounds with the log and without it alternated.
//!
//! Without it, a trigger of this database alone takes each row away before it is written. What is left of the log in
//! those rounds is counted on the wrong side: the parameters of the row, the call of the trigger, and the looks of the
//! readers that each commit wakes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tests::{
    db::{Engine, Location},
    product::{Options, Product},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    process::{self, Cpu},
    stats::Spread,
};

/// How much is measured.
pub(super) struct Form {
    /// Clients that ask at once, each on a connection of its own.
    pub(super) clients: usize,
    /// Rounds of either kind.
    pub(super) rounds: usize,
    /// What goes by after the log was switched, before a round is counted.
    pub(super) settle: Duration,
    /// How long a round is.
    pub(super) round: Duration,
}

const MAKE_SWITCH: &str =
    "CREATE FUNCTION no_events() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'";
const WITHOUT: &str =
    "CREATE OR REPLACE TRIGGER no_events BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION no_events()";
const WITH: &str = "DROP TRIGGER IF EXISTS no_events ON events";
const COUNT: &str = "SELECT (SELECT COUNT(*) FROM actions), (SELECT COUNT(*) FROM events)";

/// Measures an action about nothing, of which the log is the greatest part, and one about a Thng.
pub(super) async fn measure(form: &Form) -> Result<Vec<String>> {
    let options = Options { engine: Engine::Postgres, unlimited: true, ..Options::default() };
    let product = Product::start(options).await?;
    let Location::Postgres(url) = product.location() else { anyhow::bail!("Postgres is measured") };
    let mut conn = PgConnection::connect(&url).await?;
    sqlx::raw_sql(MAKE_SWITCH).execute(&mut conn).await?;
    let postgres = postmaster(&mut conn).await?;
    let thng = product.must_answer(201, Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let mut lines = Vec::new();
    for (what, body) in [("nothing", json!({})), ("a Thng", json!({"thng": thng["id"]}))] {
        let clients = Clients::start(&product, form.clients, &body.to_string()).await?;
        let mut rounds: [Vec<Round>; 2] = Default::default();
        for index in 0..form.rounds {
            // Each kind goes first as often as second: the table grows meanwhile.
            let kinds = if index % 2 == 0 { [0, 1] } else { [1, 0] };
            for kind in kinds {
                let has_log = kind == 0;
                sqlx::raw_sql(if has_log { WITH } else { WITHOUT }).execute(&mut conn).await?;
                let before = count(&mut conn).await?;
                rounds[kind].push(round(&clients, &product, postgres, form).await?);
                let after = count(&mut conn).await?;
                ensure!(after.0 > before.0, "nothing is written");
                ensure!((after.1 > before.1) == has_log, "the log is not as it should be");
            }
        }
        clients.stop().await?;
        lines.extend(report(what, &rounds));
    }
    Ok(lines)
}

async fn count(conn: &mut PgConnection) -> Result<(i64, i64)> {
    Ok(sqlx::query_as(COUNT).fetch_one(conn).await?)
}

fn report(what: &str, rounds: &[Vec<Round>; 2]) -> Vec<String> {
    let medians = rounds.each_ref().map(|all| {
        let of = |value: fn(&Round) -> f64| median(all.iter().map(value));
        (of(|one| one.rate), of(|one| one.own_us), of(|one| one.postgres_us))
    });
    let mut lines = Vec::new();
    for (name, (rate, own, postgres), all) in
        [("with the log", medians[0], &rounds[0]), ("without it", medians[1], &rounds[1])]
    {
        let rates: Vec<String> = all.iter().map(|one| format!("{:.0}", one.rate)).collect();
        lines.push(format!(
            "an action about {what}, {name}: {rate:.0} requests/s ({}), {own:.0} us of CPU each in waymark and \
             {postgres:.0} us in Postgres",
            rates.join(" ")
        ));
    }
    let [(rate, own, postgres), (bare_rate, bare_own, bare_postgres)] = medians;
    let ratios = rounds[0].iter().zip(&rounds[1]).map(|(with, without)| without.rate / with.rate);
    lines.push(format!(
        "an action about {what}: the log adds {:.1} % to the time of a request ({:.1} % by pairs of rounds) and \
         {:.1} % to its CPU",
        100.0 * (bare_rate / rate - 1.0),
        100.0 * (median(ratios) - 1.0),
        100.0 * ((own + postgres) / (bare_own + bare_postgres) - 1.0)
    ));
    lines
}

fn median(all: impl Iterator<Item = f64>) -> f64 {
    Spread::of(&all.collect::<Vec<_>>()).median
}

/// What a round gave.
struct Round {
    /// Requests a second.
    rate: f64,
    /// CPU of the product for one, in microseconds.
    own_us: f64,
    /// CPU of Postgres for one; nothing where it runs on another machine.
    postgres_us: f64,
}

async fn round(clients: &Clients, product: &Product, postgres: Option<u32>, form: &Form) -> Result<Round> {
    tokio::time::sleep(form.settle).await;
    let look = || -> Result<(u64, Cpu, Cpu, Instant)> {
        let of_postgres = postgres.map(process::cpu_of_family).transpose()?.unwrap_or_default();
        let own = process::cpu(product.pid())?;
        Ok((clients.done.load(Ordering::Relaxed), own, of_postgres, Instant::now()))
    };
    let before = look()?;
    tokio::time::sleep(form.round).await;
    let after = look()?;
    ensure!(!clients.has_failed.load(Ordering::Relaxed), "a client was refused");
    let requests = (after.0 - before.0) as f64;
    ensure!(requests > 0.0, "nothing was answered");
    Ok(Round {
        rate: requests / (after.3 - before.3).as_secs_f64(),
        own_us: after.1.since(before.1).total_us() / requests,
        postgres_us: after.2.since(before.2).total_us() / requests,
    })
}

/// The process that has begun all others of the server, if it is of this machine.
async fn postmaster(conn: &mut PgConnection) -> Result<Option<u32>> {
    let (pid,): (i32,) = sqlx::query_as("SELECT pg_backend_pid()").fetch_one(conn).await?;
    let backend = process::stat(u32::try_from(pid)?)?.filter(|found| found.name.contains("postgres"));
    Ok(backend.map(|backend| backend.parent))
}

/// Clients that ask as soon as they were answered.
struct Clients {
    done: Arc<AtomicU64>,
    has_failed: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    tasks: JoinSet<Result<()>>,
}

impl Clients {
    async fn start(product: &Product, count: usize, body: &str) -> Result<Self> {
        let host = product.api.trim_start_matches("http://").to_owned();
        let request: Arc<[u8]> = format!(
            "POST /actions/scans HTTP/1.1\r\nhost: {host}\r\nauthorization: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            product.key,
            body.len()
        )
        .into_bytes()
        .into();
        let (done, has_failed, is_over) = (Arc::default(), Arc::default(), Arc::default());
        let mut clients = Self { done, has_failed, is_over, tasks: JoinSet::new() };
        for _ in 0..count {
            let stream = TcpStream::connect(&host).await?;
            stream.set_nodelay(true)?;
            let (done, has_failed, is_over) =
                (clients.done.clone(), clients.has_failed.clone(), clients.is_over.clone());
            let request = request.clone();
            clients.tasks.spawn(async move {
                let mut stream = BufReader::new(stream);
                while !is_over.load(Ordering::Relaxed) {
                    let asked = ask(&mut stream, &request).await;
                    if asked.is_err() {
                        has_failed.store(true, Ordering::Relaxed);
                    }
                    asked?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Ok(clients)
    }

    async fn stop(mut self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

async fn ask(stream: &mut BufReader<TcpStream>, request: &[u8]) -> Result<()> {
    stream.write_all(request).await?;
    let (mut head, mut length) = (String::new(), None);
    stream.read_line(&mut head).await?;
    ensure!(head.starts_with("HTTP/1.1 201 "), "{head:?}");
    loop {
        let mut line = String::new();
        ensure!(stream.read_line(&mut line).await? > 0, "the answer ends in its head");
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let mut body = vec![0; length.context("content-length")?];
    stream.read_exact(&mut body).await?;
    Ok(())
}
