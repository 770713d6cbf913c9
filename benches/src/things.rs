//! Properties and the broker on Postgres, beside raw SQL on the same server by `pgbench` and `psql`.

mod mqtt;

use std::{
    fs,
    io::{Write, stdout},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread::scope,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use self::mqtt::Mqtt;
use ::tests::hist::Hist;

use crate::{
    args::{DatabaseArgs, Length, WaymarkArgs},
    http::Client,
    postgres::Schema,
    process::Server,
    stats::Spread,
    waymark::{Waymark, free_addresses},
};

/// Measures properties and the broker on Postgres beside raw SQL; every answer is checked.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("5")), mut_arg("seconds", |arg| arg.default_value("5")))]
pub(crate) struct Args {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    length: Length,
    /// Clients that write at once, on both sides
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Points of the long history
    #[arg(long, default_value_t = 1_000_000)]
    points: usize,
    /// Things that are connected at once
    #[arg(long, default_value_t = 1_000)]
    connected: usize,
    #[command(flatten)]
    waymark: WaymarkArgs,
}

/// Statements of COPY in a round, by all sessions together.
const COPIES: usize = 1_600;
/// Values in one batch.
const BATCH: usize = 1_000;

struct Run<'a> {
    args: &'a Args,
    waymark: &'a Waymark,
    mqtt: SocketAddr,
    schema: &'a Schema,
    /// Statements of COPY in a round, by each session.
    copies: usize,
}

/// Runs the measurements and prints them.
///
/// # Errors
/// Something could not be started or measured, or an answer was wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        args.length = Length { rounds: 1, seconds: 0.3 };
        (args.clients, args.points, args.connected) = (2, 2_000, 10);
    }
    let binary = args.waymark.binary()?;
    let (folder, schema) = (tempfile::tempdir()?, Schema::create(&args.database.database)?);
    let [mqtt] = free_addresses()?;
    let mut waymark = Waymark::new(&binary, folder.path(), None, 7)?;
    waymark.database = Some(schema.url());
    waymark.mqtt = Some(mqtt);
    let mut server: Server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    let copies = if is_smoke { 3 } else { COPIES.div_ceil(args.clients) };
    let run = Run { args: &args, waymark: &waymark, mqtt, schema: &schema, copies };
    run.writes(folder.path())?;
    run.reads()?;
    run.broker()?;
    server.stop()?;
    Ok(true)
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(stdout(), "{line}")?)
}

impl Run<'_> {
    fn client(&self) -> Result<Client> {
        Client::connect(self.waymark.api, Some(&self.waymark.key))
    }

    fn thng(&self, client: &mut Client) -> Result<String> {
        let answer = client.ask("POST", "/thngs", Some(r#"{"name":"t"}"#))?;
        Ok(answer.json()?["id"].as_str().context("no id")?.to_owned())
    }

    /// Values a second by HTTP, one or many a request; each client has a Thng of its own.
    fn http_writes(&self, batch: usize) -> Result<f64> {
        let (count, length) = (AtomicU64::new(0), Duration::from_secs_f64(self.args.length.seconds));
        let begun = Instant::now();
        scope(|threads| {
            let work = || -> Result<()> {
                let mut client = self.client()?;
                let path = format!("/thngs/{}/properties/temp", self.thng(&mut client)?);
                let mut at = 0;
                while begun.elapsed() < length {
                    let points: Vec<Value> =
                        (0..batch).map(|n| json!({"value": n as f64 / 8.0, "timestamp": at + n})).collect();
                    at += batch;
                    let answer = client.ask("PUT", &path, Some(&json!(points).to_string()))?;
                    ensure!(answer.status == 200, "PUT {path}: {}", answer.status);
                    count.fetch_add(batch as u64, Ordering::Relaxed);
                }
                Ok(())
            };
            let threads: Vec<_> = (0..self.args.clients).map(|_| threads.spawn(work)).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
        })?;
        Ok(count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
    }

    /// Rows a second of a prepared INSERT into a table without an index, each in a transaction of its own.
    fn raw_inserts(&self, folder: &Path) -> Result<f64> {
        let script = folder.join("insert.sql");
        fs::write(
            &script,
            format!(
                "\\set n random(1, 1000000000)\nINSERT INTO {}.raw VALUES (:client_id, :n, :n, '21.5');\n",
                self.schema.name
            ),
        )?;
        let bin = fs::read_dir("/usr/lib/postgresql")?
            .filter_map(|entry| Some(entry.ok()?.path().join("bin/pgbench")))
            .filter(|path| path.exists())
            .max();
        let clients = self.args.clients.to_string();
        let output = Command::new(bin.unwrap_or_else(|| "pgbench".into()))
            .args([
                "-n",
                "-M",
                "prepared",
                "-c",
                &clients,
                "-j",
                "1",
                "-T",
                &self.args.length.seconds.ceil().to_string(),
                "-f",
            ])
            .arg(&script)
            .arg(&self.args.database.database)
            .output()
            .context("pgbench")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        tps.with_context(|| format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Rows a second of COPY in statements of 1,000 rows, by as many sessions, each with a property of its own.
    fn raw_copies(&self, table: &str) -> Result<f64> {
        let rounds = self.copies;
        let texts: Vec<String> = (0..self.args.clients)
            .map(|client| {
                let mut text = String::new();
                for round in 0..rounds {
                    text += &format!("COPY {table} FROM STDIN;\n");
                    for n in 0..BATCH {
                        text += &format!("{client}\t{}\t1\t{}\n", round * BATCH + n, n as f64 / 8.0);
                    }
                    text += "\\.\n";
                }
                text
            })
            .collect();
        let begun = Instant::now();
        scope(|threads| {
            let work = |text: &String| -> Result<()> {
                let mut child = self.schema.psql().stdin(Stdio::piped()).spawn()?;
                child.stdin.take().context("no stdin")?.write_all(text.as_bytes())?;
                ensure!(child.wait()?.success(), "psql failed");
                Ok(())
            };
            let threads: Vec<_> = texts.iter().map(|text| threads.spawn(move || work(text))).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
        })?;
        Ok((rounds * BATCH * self.args.clients) as f64 / begun.elapsed().as_secs_f64())
    }

    /// Ours and raw SQL alternated; medians.
    fn writes(&self, folder: &Path) -> Result<()> {
        let columns = "property bigint, timestamp bigint, created_at bigint, value text";
        self.schema.sql(&format!(
            "CREATE TABLE raw ({columns}); \
             CREATE TABLE keyed ({columns}, PRIMARY KEY (property, timestamp))"
        ))?;
        let (mut ours, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..self.args.length.rounds {
            ours.push(self.http_writes(1)?);
            raw.push(self.raw_inserts(folder)?);
        }
        let [ours, raw] = [ours, raw].map(|all| Spread::of(&all).median);
        say(&format!(
            "single writes/s: {ours:.0} by HTTP, {raw:.0} raw prepared inserts: {:.2}",
            ours / raw
        ))?;
        let (mut ours, mut raw, mut keyed) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.args.length.rounds {
            self.schema.sql("TRUNCATE raw, keyed")?;
            ours.push(self.http_writes(BATCH)?);
            raw.push(self.raw_copies("raw")?);
            keyed.push(self.raw_copies("keyed")?);
        }
        let [ours, raw, keyed] = [ours, raw, keyed].map(|all| Spread::of(&all).median);
        say(&format!(
            "values/s in batches of {BATCH}: {ours:.0} by HTTP, {raw:.0} raw COPY without an index: {:.2}, \
             {keyed:.0} with the key of the history: {:.2}",
            ours / raw,
            ours / keyed
        ))
    }

    /// Latest of each and a page of history, on a Thng with many points and on one with 100.
    fn reads(&self) -> Result<()> {
        let mut client = self.client()?;
        let mut figures = Vec::new();
        for points in [100, self.args.points] {
            let base = format!("/thngs/{}/properties", self.thng(&mut client)?);
            for begin in (0..points).step_by(10_000) {
                let body: Vec<Value> = (begin..points.min(begin + 10_000))
                    .map(|n| json!({"value": n, "timestamp": n}))
                    .collect();
                let answer = client.ask("PUT", &format!("{base}/temp"), Some(&json!(body).to_string()))?;
                ensure!(answer.status == 200, "{}", answer.status);
            }
            let middle = points / 2;
            for path in [base.clone(), format!("{base}/temp?to={middle}")] {
                let mut hist = Hist::default();
                let begun = Instant::now();
                while begun.elapsed().as_secs_f64() < self.args.length.seconds {
                    let asked = Instant::now();
                    let answer = client.ask("GET", &path, None)?;
                    hist.add(asked.elapsed());
                    let expected = if path == base { 1 } else { 30 };
                    ensure!(answer.json()?.as_array().map(Vec::len) == Some(expected), "{path}");
                }
                figures.push(hist.quantile_us(0.5));
            }
        }
        let [latest, page, latest_long, page_long] = figures[..] else { bail!("figures are missing") };
        say(&format!(
            "latest of each, p50: {latest:.0} us with 100 points, {latest_long:.0} us with {}: {:.2}",
            self.args.points,
            latest_long / latest
        ))?;
        say(&format!(
            "page of history, p50: {page:.0} us with 100 points, {page_long:.0} us with {}: {:.2}",
            self.args.points,
            page_long / page
        ))
    }

    /// Messages a second with many connected, and the delay from an HTTP write to a subscriber.
    fn broker(&self) -> Result<()> {
        let mut client = self.client()?;
        let mut things = Vec::new();
        for _ in 0..self.args.connected {
            let thng = self.thng(&mut client)?;
            let answer =
                client.ask("POST", "/auth/evrythng/thngs", Some(&json!({"thngId": thng}).to_string()))?;
            let key = answer.json()?["thngApiKey"].as_str().context("no key")?.to_owned();
            things.push(Mqtt::connect(self.mqtt, &thng, &key, &format!("/thngs/{thng}/properties/temp"))?);
        }
        let (count, length) = (AtomicU64::new(0), Duration::from_secs_f64(self.args.length.seconds));
        let share = things.len().div_ceil(8).max(1);
        let begun = Instant::now();
        scope(|threads| {
            let work = |some: &mut [Mqtt]| -> Result<()> {
                while begun.elapsed() < length {
                    for thing in &mut *some {
                        thing.publish(b"21.5")?;
                    }
                    for thing in &mut *some {
                        thing.acknowledged()?;
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            };
            let threads: Vec<_> =
                things.chunks_mut(share).map(|some| threads.spawn(move || work(some))).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")))
        })?;
        let rate = count.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
        say(&format!("messages/s of QoS 1 from {} connected Thngs: {rate:.0}", things.len()))?;
        let thng = self.thng(&mut client)?;
        let path = format!("/thngs/{thng}/properties/temp");
        let mut ear = Mqtt::connect(self.mqtt, "ear", &self.waymark.key, &path)?;
        ear.subscribe()?;
        let mut hist = Hist::default();
        let begun = Instant::now();
        while begun.elapsed().as_secs_f64() < self.args.length.seconds {
            let asked = Instant::now();
            ensure!(client.ask("PUT", &path, Some("1"))?.status == 200, "PUT {path}");
            ear.heard()?;
            hist.add(asked.elapsed());
        }
        say(&format!(
            "from the start of an HTTP write to its subscriber, {} connected: p50 {:.0} us, p99 {:.0} us",
            things.len(),
            hist.quantile_us(0.5),
            hist.quantile_us(0.99)
        ))
    }
}
