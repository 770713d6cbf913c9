//! Properties and the broker on Postgres, beside raw SQL on the same server by `pgbench` and `psql`.

use std::{
    fs,
    io::{Read, Write, stdout},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread::scope,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{build::build, hist::Hist, http::Client, process::Server, waymark::Waymark};

/// Measures properties and the broker on Postgres beside raw SQL; every answer is checked.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "things", version, max_term_width = 100)]
pub struct ThingsArgs {
    /// A Postgres server, as postgres://user@host:port/database; a schema of its own is made and dropped
    #[arg(long, value_name = "URL")]
    database: String,
    /// Measured seconds of each figure
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Rounds of writes, each by HTTP and raw
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Clients that write at once, on both sides
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Points of the long history
    #[arg(long, default_value_t = 1_000_000)]
    points: usize,
    /// Things that are connected at once
    #[arg(long, default_value_t = 1_000)]
    connected: usize,
    /// Small sizes, for CI: correctness only
    #[arg(long)]
    smoke: bool,
    /// The waymark binary [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    waymark: Option<PathBuf>,
}

/// Statements of COPY in a round, by all sessions together.
const COPIES: usize = 1_600;
/// Values in one batch.
const BATCH: usize = 1_000;

struct Run<'a> {
    args: &'a ThingsArgs,
    waymark: &'a Waymark,
    mqtt: SocketAddr,
    schema: &'a str,
}

/// Runs the measurements and prints them.
///
/// # Errors
/// Something could not be started or measured, or an answer was wrong.
pub fn run_things(mut args: ThingsArgs) -> Result<()> {
    if args.smoke {
        (args.seconds, args.clients, args.points, args.connected) = (0.3, 2, 2_000, 10);
        args.rounds = 1;
    }
    let binary = match &args.waymark {
        Some(path) => path.clone(),
        None => build()?,
    };
    let folder = std::env::temp_dir().join(format!("waymark-things-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let schema = format!("things{}", std::process::id());
    psql(&args.database, &format!("CREATE SCHEMA {schema}"))?;
    let [mqtt] = crate::waymark::free_addresses()?;
    let result = started(&args, &binary, &folder, &schema, mqtt);
    psql(&args.database, &format!("DROP SCHEMA {schema} CASCADE"))?;
    fs::remove_dir_all(&folder)?;
    result
}

fn started(args: &ThingsArgs, binary: &Path, folder: &Path, schema: &str, mqtt: SocketAddr) -> Result<()> {
    let mut waymark = Waymark::new(binary, folder, None, 7)?;
    waymark.database = Some(format!("{}?options[search_path]={schema}", args.database));
    waymark.mqtt = Some(mqtt);
    let mut server: Server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    let run = Run { args, waymark: &waymark, mqtt, schema };
    run.writes()?;
    run.reads()?;
    run.broker()?;
    server.stop()
}

fn psql(database: &str, sql: &str) -> Result<String> {
    let output = Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, database])
        .output()?;
    ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
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
        let (count, length) = (AtomicU64::new(0), Duration::from_secs_f64(self.args.seconds));
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
                self.schema
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
                &self.args.seconds.ceil().to_string(),
                "-f",
            ])
            .arg(&script)
            .arg(&self.args.database)
            .output()
            .context("pgbench")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        tps.with_context(|| format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Rows a second of COPY in statements of 1,000 rows, by as many sessions, each with a property of its own.
    fn raw_copies(&self, table: &str) -> Result<f64> {
        let rounds = if self.args.smoke { 3 } else { COPIES.div_ceil(self.args.clients) };
        let texts: Vec<String> = (0..self.args.clients)
            .map(|client| {
                let mut text = String::new();
                for round in 0..rounds {
                    text += &format!("COPY {}.{table} FROM STDIN;\n", self.schema);
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
                let mut child = Command::new("psql")
                    .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", &self.args.database])
                    .stdin(Stdio::piped())
                    .spawn()?;
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
    fn writes(&self) -> Result<()> {
        let folder = std::env::temp_dir();
        let columns = "property bigint, timestamp bigint, created_at bigint, value text";
        psql(
            &self.args.database,
            &format!(
                "CREATE TABLE {schema}.raw ({columns}); \
                 CREATE TABLE {schema}.keyed ({columns}, PRIMARY KEY (property, timestamp))",
                schema = self.schema
            ),
        )?;
        let (mut ours, mut raw) = (Vec::new(), Vec::new());
        for _ in 0..self.args.rounds {
            ours.push(self.http_writes(1)?);
            raw.push(self.raw_inserts(&folder)?);
        }
        let (ours, raw) = (median(ours), median(raw));
        say(&format!(
            "single writes/s: {ours:.0} by HTTP, {raw:.0} raw prepared inserts: {:.2}",
            ours / raw
        ))?;
        let (mut ours, mut raw, mut keyed) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.args.rounds {
            psql(&self.args.database, &format!("TRUNCATE {0}.raw, {0}.keyed", self.schema))?;
            ours.push(self.http_writes(BATCH)?);
            raw.push(self.raw_copies("raw")?);
            keyed.push(self.raw_copies("keyed")?);
        }
        let (ours, raw, keyed) = (median(ours), median(raw), median(keyed));
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
                while begun.elapsed().as_secs_f64() < self.args.seconds {
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
        let (count, length) = (AtomicU64::new(0), Duration::from_secs_f64(self.args.seconds));
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
        while begun.elapsed().as_secs_f64() < self.args.seconds {
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

/// As much of MQTT 3.1.1 as this needs.
struct Mqtt {
    stream: TcpStream,
    topic: String,
}

impl Mqtt {
    fn connect(address: SocketAddr, id: &str, key: &str, topic: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut body = vec![0, 4, b'M', b'Q', b'T', b'T', 4, 0xc2, 0, 0];
        for text in [id, "authorization", key] {
            push_text(&mut body, text)?;
        }
        let mut this = Self { stream, topic: topic.to_owned() };
        this.send(0x10, &body)?;
        let (kind, body) = this.read()?;
        ensure!(kind == 0x20 && body.get(1) == Some(&0), "CONNACK {body:?}");
        Ok(this)
    }

    fn subscribe(&mut self) -> Result<()> {
        let mut body = vec![0, 1];
        push_text(&mut body, &self.topic)?;
        body.push(0);
        self.send(0x82, &body)?;
        let (kind, body) = self.read()?;
        ensure!(kind == 0x90 && body.get(2) == Some(&0), "SUBACK {body:?}");
        Ok(())
    }

    fn publish(&mut self, payload: &[u8]) -> Result<()> {
        let mut body = Vec::new();
        let topic = self.topic.clone();
        push_text(&mut body, &topic)?;
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(payload);
        self.send(0x32, &body)
    }

    fn acknowledged(&mut self) -> Result<()> {
        let (kind, _) = self.read()?;
        ensure!(kind == 0x40, "{kind:#x} instead of PUBACK");
        Ok(())
    }

    fn heard(&mut self) -> Result<()> {
        let (kind, body) = self.read()?;
        ensure!(kind & 0xf0 == 0x30 && body.ends_with(b"]"), "{kind:#x} instead of a message");
        Ok(())
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let mut packet = vec![kind];
        let mut length = body.len();
        loop {
            let byte = u8::try_from(length % 128)?;
            length /= 128;
            packet.push(if length > 0 { byte | 0x80 } else { byte });
            if length == 0 {
                break;
            }
        }
        packet.extend_from_slice(body);
        Ok(self.stream.write_all(&packet)?)
    }

    fn read(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        let (kind, mut length, mut shift) = (byte[0], 0_usize, 0);
        loop {
            self.stream.read_exact(&mut byte)?;
            length |= usize::from(byte[0] & 0x7f) << shift;
            shift += 7;
            if byte[0] & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((kind, body))
    }
}

fn push_text(body: &mut Vec<u8>, text: &str) -> Result<()> {
    body.extend_from_slice(&u16::try_from(text.len())?.to_be_bytes());
    body.extend_from_slice(text.as_bytes());
    Ok(())
}
