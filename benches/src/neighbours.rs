//! The effect of noisy accounts on a quiet one: its redirects, writes and webhooks, with and without them.
//!
//! One `waymark up` over Postgres. Each noisy account changes links, makes Things and actions over several connections as
//! fast as it is answered, and has more webhooks than it gets lanes, whose receivers take their time. A refusal for lack of
//! a place (429, 503) is an answer to noise; the quiet account must get none. What does not get done in time counts as
//! long as was waited for it, so a run ends whatever the product does.

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::{hist::Hist, product::random_key, receiver::Receiver};

use crate::{
    args::{DatabaseArgs, Length, WaymarkArgs, given_or_built},
    http::Client,
    postgres::Schema,
    process::{self, Server},
    stats::Spread,
    waymark::Waymark,
};

/// The short domain of the quiet account.
const DOMAIN: &str = "quiet.test";

/// Its redirects and its writes a second.
const REDIRECTS_PER_SECOND: f64 = 100.0;
const WRITES_PER_SECOND: f64 = 20.0;

/// Connections of each noisy account.
const CONNECTIONS: usize = 4;

/// How long the receivers of noisy accounts take.
const SLOW: Duration = Duration::from_secs(1);

/// Pause before what is measured of a round, with the noise already there.
const SETTLE: Duration = Duration::from_secs(2);

/// Longest wait for a webhook.
const DEADLINE: Duration = Duration::from_secs(20);

/// How long requests that are late may still take when their round is over.
const GRACE: Duration = Duration::from_secs(5);

/// What a round gives.
const FIGURES: [&str; 5] = [
    "p99 of a redirect, ms",
    "p99 of POST /redirections, ms",
    "p99 from action to webhook, ms",
    "cores, waymark",
    "cores, Postgres",
];
type Round = [f64; FIGURES.len()];

/// Measures a quiet account beside noisy ones.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("5")), mut_arg("seconds", |arg| arg.default_value("8")))]
pub(crate) struct Args {
    /// Noisy accounts
    #[arg(long, default_value_t = 10)]
    noisy: usize,
    /// Webhooks of each of them
    #[arg(long, default_value_t = 20)]
    webhooks: usize,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    waymark: WaymarkArgs,
    /// The control binary, which makes the accounts [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Runs the benchmark and prints a table.
///
/// # Errors
/// A server does not start, or an answer is wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        args.length = Length { rounds: 1, seconds: 0.5 };
        (args.noisy, args.webhooks) = (2, 3);
    }
    let binary = args.waymark.binary()?;
    let control = given_or_built(args.control.as_deref(), "control", "control")?;
    let (folder, schema) = (tempfile::tempdir()?, Schema::create(&args.database.database)?);
    let mut waymark = Waymark::new(&binary, folder.path(), None, 11)?;
    waymark.database = Some(schema.url());
    waymark.has_local_webhooks = true;
    let mut server: Server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    let receiver = Receiver::start(SLOW)?;
    let make = |name: &str, domain: &str| account(&control, folder.path(), &schema, (&waymark, name, domain));
    let quiet = Quiet::new(&waymark, make("quiet", DOMAIN)?, &receiver)?;
    let mut noisy = Vec::new();
    for n in 0..args.noisy {
        let key = make(&format!("noisy {n}"), &format!("noisy{n}.test"))?;
        noisy.push(Noisy::new(&waymark, key, &receiver.slow(), args.webhooks)?);
    }
    let length = Duration::from_secs_f64(args.length.seconds);
    // A child of the first process of Postgres, if that is of this machine.
    let pid = schema.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")?;
    let found = pid.trim().parse().ok().map(process::stat).transpose()?.flatten();
    let postgres = found.filter(|found| found.name.contains("postgres")).map(|found| found.parent);
    let mut rounds: [Vec<Round>; 2] = Default::default();
    let mut done = Vec::new();
    // What noise leaves to do must not count as the account alone: that is measured before.
    for is_noisy in [false, true] {
        for _ in 0..args.length.rounds {
            let stop = Arc::new(AtomicBool::new(false));
            let count = AtomicU64::new(0);
            let measured = scope(|threads| {
                if is_noisy {
                    for one in &noisy {
                        for connection in 0..CONNECTIONS {
                            let (stop, count) = (stop.clone(), &count);
                            threads.spawn(move || one.shout(connection, &stop, count));
                        }
                    }
                    sleep(SETTLE.min(length));
                }
                let look = || -> Result<[f64; 3]> {
                    let of_postgres = postgres.map(process::cpu_of_family).transpose()?.unwrap_or_default();
                    let own = process::cpu(server.pid)?.total_us();
                    Ok([count.load(Relaxed) as f64, own / 1e6, of_postgres.total_us() / 1e6])
                };
                let (before, begun) = (look(), Instant::now());
                let measured = quiet.measure(&receiver, length);
                let (after, took) = (look(), begun.elapsed().as_secs_f64());
                stop.store(true, Relaxed);
                let (before, after) = (before?, after?);
                let of = |index: usize| (after[index] - before[index]) / took;
                done.extend(is_noisy.then(|| of(0)));
                let [redirect, write, webhook] = measured?;
                Ok::<_, anyhow::Error>([redirect, write, webhook, of(1), of(2)])
            })?;
            rounds[usize::from(is_noisy)].push(measured);
            server.check_alive()?;
        }
    }
    show(&args, &rounds, &done)?;
    server.stop()?;
    Ok(true)
}

fn show(args: &Args, [alone, beside]: &[Vec<Round>; 2], done: &[f64]) -> Result<()> {
    let mut out = stdout().lock();
    let noise = Spread::of(done).text(0);
    let (noisy, webhooks) = (args.noisy, args.webhooks);
    writeln!(out, "{noisy} noisy accounts, {webhooks} webhooks each, {noise} requests/s of them\n")?;
    writeln!(out, "| the quiet account | alone | beside them | times |\n|---|---:|---:|---:|")?;
    for (index, name) in FIGURES.into_iter().enumerate() {
        let of = |rounds: &[Round]| Spread::of(&rounds.iter().map(|round| round[index]).collect::<Vec<_>>());
        let (alone, beside) = (of(alone), of(beside));
        let times = beside.median / alone.median;
        writeln!(out, "| {name} | {} | {} | {times:.1} |", alone.text(1), beside.text(1))?;
    }
    Ok(())
}

/// Makes an account by the command; gives the key of its operator.
fn account(
    control: &Path,
    folder: &Path,
    schema: &Schema,
    (waymark, name, domain): (&Waymark, &str, &str),
) -> Result<String> {
    let key = random_key()?;
    let output = Command::new(control)
        .args(["accounts", "create", "--name", name, "--domains", domain, "--operator-key", &key])
        .env("DATABASE_URL", schema.url())
        .env("WAYMARK_SECRET_KEY_FILE", folder.join("data").join("secret.key"))
        .output()
        .context("control")?;
    ensure!(output.status.success(), "accounts create: {}", String::from_utf8_lossy(&output.stderr));
    // The process that serves knows it from now on.
    let begun = Instant::now();
    loop {
        let answer = Client::connect(waymark.api, Some(&key))?.ask("GET", "/access", None)?;
        if answer.status == 200 {
            return Ok(key);
        }
        ensure!(begun.elapsed() < DEADLINE, "the key of {name}: {}", answer.status);
        sleep(Duration::from_millis(20));
    }
}

fn id(client: &mut Client, path: &str, body: &Value) -> Result<String> {
    let answer = client.ask("POST", path, Some(&body.to_string()))?;
    ensure!(answer.status == 201, "POST {path}: {} {:?}", answer.status, answer.json());
    Ok(answer.json()?["id"].as_str().context("no id")?.to_owned())
}

/// The account that is measured.
struct Quiet<'a> {
    waymark: &'a Waymark,
    key: String,
    product: String,
    short_id: String,
    /// How many webhooks were caused.
    caused: AtomicUsize,
}

impl<'a> Quiet<'a> {
    fn new(waymark: &'a Waymark, key: String, receiver: &Receiver) -> Result<Self> {
        let mut api = Client::connect(waymark.api, Some(&key))?;
        let product = id(&mut api, "/products", &json!({"name": "p"}))?;
        let link = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/"});
        let answer = api.ask("POST", "/redirections?wait=edges", Some(&link.to_string()))?;
        ensure!(matches!(answer.status, 201 | 202), "the link: {} {:?}", answer.status, answer.json());
        let short_id = answer.json()?["shortId"].as_str().context("no short id")?.to_owned();
        let hook = json!({"name": "w", "url": receiver.quick(), "types": ["action.checkins"]});
        id(&mut api, "/webhooks", &hook)?;
        Ok(Self { waymark, key, product, short_id, caused: AtomicUsize::new(0) })
    }

    /// The p99 of a redirect, a write and a webhook, in milliseconds.
    fn measure(&self, receiver: &Receiver, length: Duration) -> Result<[f64; 3]> {
        let (redirects, writes, webhooks) = scope(|threads| {
            let redirects = threads.spawn(|| self.redirects(length));
            let writes = threads.spawn(|| self.writes(length));
            let webhooks = self.webhooks(receiver, length);
            let joined = |thread: std::thread::ScopedJoinHandle<'_, Result<Hist>>| {
                thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?
            };
            Ok::<_, anyhow::Error>((joined(redirects)?, joined(writes)?, webhooks?))
        })?;
        Ok([&redirects, &writes, &webhooks].map(|hist| hist.quantile_us(0.99) / 1e3))
    }

    fn redirects(&self, length: Duration) -> Result<Hist> {
        let mut client = Client::connect(self.waymark.edge, None)?;
        client.set_host(Some(DOMAIN));
        let path = format!("/{}", self.short_id);
        paced(&mut client, (length, REDIRECTS_PER_SECOND), |client| {
            let answer = client.ask("GET", &path, None)?;
            ensure!(answer.status == 307, "the redirect: {}", answer.status);
            Ok(())
        })
    }

    fn writes(&self, length: Duration) -> Result<Hist> {
        let mut api = Client::connect(self.waymark.api, Some(&self.key))?;
        let link = json!({"platformId": self.product, "defaultRedirectUrl": "https://example.com/"});
        let body = link.to_string();
        paced(&mut api, (length, WRITES_PER_SECOND), |api| {
            let answer = api.ask("POST", "/redirections", Some(&body))?;
            ensure!(answer.status == 201, "a write: {} {:?}", answer.status, answer.json());
            Ok(())
        })
    }

    fn webhooks(&self, receiver: &Receiver, length: Duration) -> Result<Hist> {
        let mut api = Client::connect(self.waymark.api, Some(&self.key))?;
        api.set_timeout(DEADLINE)?;
        let (begun, mut hist, mut is_late) = (Instant::now(), Hist::default(), false);
        while !is_late && begun.elapsed() < length {
            let (count, asked) = (self.caused.fetch_add(1, Relaxed) + 1, Instant::now());
            if let Err(error) = id(&mut api, "/actions/checkins", &json!({}))
                && asked.elapsed() < DEADLINE
            {
                return Err(error);
            }
            let committed = Instant::now();
            let came = receiver.wait(count, DEADLINE.saturating_sub(asked.elapsed()));
            is_late = came.is_none();
            hist.add(came.map_or(DEADLINE, |came| came.saturating_duration_since(committed)));
        }
        Ok(hist)
    }
}

/// Does something again and again at even times; a latency counts from the moment at which it was due, and up to
/// [`GRACE`] behind the end where it was not done by then.
fn paced(
    client: &mut Client,
    (length, per_second): (Duration, f64),
    mut ask: impl FnMut(&mut Client) -> Result<()>,
) -> Result<Hist> {
    let (begun, end, mut hist) = (Instant::now(), length + GRACE, Hist::default());
    for n in 0.. {
        let due = Duration::from_secs_f64(f64::from(n) / per_second);
        if due >= length {
            break;
        }
        sleep(due.saturating_sub(begun.elapsed()));
        let left = end.saturating_sub(begun.elapsed());
        if !left.is_zero() {
            client.set_timeout(left)?;
            // One that breaks off at the end was too slow.
            if let Err(error) = ask(client)
                && begun.elapsed() + GRACE / 10 < end
            {
                return Err(error);
            }
        }
        hist.add(begun.elapsed().saturating_sub(due));
    }
    Ok(hist)
}

/// An account that takes all that it gets.
struct Noisy<'a> {
    waymark: &'a Waymark,
    key: String,
    product: String,
    short_id: String,
}

impl<'a> Noisy<'a> {
    fn new(waymark: &'a Waymark, key: String, slow: &str, webhooks: usize) -> Result<Self> {
        let mut api = Client::connect(waymark.api, Some(&key))?;
        let product = id(&mut api, "/products", &json!({"name": "p"}))?;
        let link = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/"});
        let answer = api.ask("POST", "/redirections", Some(&link.to_string()))?;
        let short_id = answer.json()?["shortId"].as_str().context("no short id")?.to_owned();
        for n in 0..webhooks {
            let body = json!({"name": format!("w{n}"), "url": slow, "types": ["action.checkins"]});
            id(&mut api, "/webhooks", &body)?;
        }
        Ok(Self { waymark, key, product, short_id })
    }

    /// Asks as fast as it is answered, until it is told to stop.
    fn shout(&self, connection: usize, stop: &AtomicBool, count: &AtomicU64) {
        let change = json!({"defaultRedirectUrl": "https://example.com/other"}).to_string();
        let link = json!({"platformId": self.product, "defaultRedirectUrl": "https://example.com/"});
        let import = Value::Array(vec![link; 100]).to_string();
        let requests = [
            ("PUT", format!("/redirections/{}", self.short_id), change),
            ("POST", "/thngs".to_owned(), json!({"name": "t"}).to_string()),
            ("POST", "/actions/checkins".to_owned(), json!({}).to_string()),
            ("POST", "/redirections".to_owned(), import),
        ];
        let (method, path, body) = &requests[connection % requests.len()];
        while !stop.load(Relaxed) {
            // One that is refused, or whose connection is closed, begins again.
            let Ok(mut api) = Client::connect(self.waymark.api, Some(&self.key)) else { continue };
            while !stop.load(Relaxed) {
                match api.ask(method, path, Some(body)) {
                    Ok(answer) if answer.status < 400 => count.fetch_add(1, Relaxed),
                    Ok(_) => continue,
                    Err(_) => break,
                };
            }
        }
    }
}
