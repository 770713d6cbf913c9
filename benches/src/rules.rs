//! What rules of redirection cost a redirect: the same scans with and without them, alternated.

use std::{
    env, fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    build::build,
    drive::{Outcome, Plan, Script, Until, drive},
    http::Client,
    links::{Id, Links, Rng},
    process::{self, CLIENT_CORE, SERVER_CORE, Server},
    waymark::Waymark,
};

#[expect(unreachable_pub, reason = "the module of the tests is public there")]
#[path = "../../tests/src/mmdb.rs"]
mod mmdb;

/// Measures the CPU time of a redirect with 20 rules against none; every answer is checked.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "rules", version, max_term_width = 100)]
pub struct RulesArgs {
    /// Redirections that are asked for at random
    #[arg(long, default_value_t = 10_000)]
    links: usize,
    /// Rounds, each with and without rules
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Measured seconds of one turn
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Connections, each with one request under way
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Ask by GET, so that scans are recorded, and stored meanwhile
    #[arg(long)]
    get: bool,
    /// Small sizes, for CI: correctness only
    #[arg(long)]
    smoke: bool,
    /// The waymark binary [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    waymark: Option<PathBuf>,
}

/// Runs the comparison and prints it; `false` when an answer was wrong.
///
/// # Errors
/// Something could not be started or measured.
pub fn run_rules(mut args: RulesArgs) -> Result<bool> {
    if args.smoke {
        (args.links, args.rounds, args.seconds, args.connections) = (200, 1, 0.2, 8);
    }
    ensure!((1..=10_000).contains(&args.links) && args.rounds >= 1, "sizes are out of range");
    let folder = env::temp_dir().join(format!("waymark-rules-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = compare(&args, &folder);
    fs::remove_dir_all(&folder)?;
    result
}

/// Twenty rules over everything that a request tells, of which the last one fires: each is tried.
fn twenty() -> Value {
    let mut conditions: Vec<String> =
        ["FR", "IT", "ES", "PL", "NL", "BE"].iter().map(|country| format!("country={country}")).collect();
    conditions.extend(
        [
            "language=fr|language=it",
            "language=es",
            "language=pl",
            "userAgentName=Firefox",
            "userAgentName=Chrome&operatingSystemName=Windows 10",
            "operatingSystemName~Android",
            "country=DE&city=Hamburg",
            "hour<0|hour>23",
            "timestamp<1000",
            "weekday>7",
            "product=U5Gq8sKVBfgRtKRaagBefgwk",
            "project=U5Gq8sKVBfgRtKRaagBefgwk",
            "thng.name~Left",
        ]
        .map(str::to_owned),
    );
    let mut rules: Vec<Value> = conditions
        .iter()
        .map(|condition| json!({"match": condition, "redirectUrl": "https://example.com/never"}))
        .collect();
    rules.push(json!({"match": "country=DE&operatingSystemName=iPhone", "redirectUrl": LAST}));
    Value::Array(rules)
}

/// The target of the rule that fires; its tag is filled in for each link.
const LAST: &str = "https://example.com/de/{shortId}";

/// Random known ids, and where each must lead.
struct Ask<'a> {
    links: &'a Links,
    rng: Rng,
    by_rule: bool,
}

impl Script for Ask<'_> {
    type Ticket = usize;

    fn next(&mut self) -> Option<(Id, usize)> {
        let index = self.rng.below(self.links.count());
        Some((self.links.known(index), index))
    }

    fn check(&mut self, index: usize, answer: &Answer<'_>) -> Result<(), String> {
        let id = String::from_utf8_lossy(&self.links.known(index)).into_owned();
        let expected = match self.by_rule {
            true => LAST.replace("{shortId}", &id).into_bytes(),
            false => self.links.target(index).to_vec(),
        };
        let location = answer.location.unwrap_or_default();
        if answer.status == 307 && location == expected {
            Ok(())
        } else {
            Err(format!("{id}: {} to {}", answer.status, String::from_utf8_lossy(location)))
        }
    }
}

fn compare(args: &RulesArgs, folder: &Path) -> Result<bool> {
    let binary = args.waymark.clone().map_or_else(build, Ok)?;
    let can_pin = process::can_pin();
    if can_pin {
        process::pin_self(CLIENT_CORE)?;
    }
    let country = json!({
        "city": {"names": {"de": "Berlin", "en": "Berlin", "fr": "Berlin"}},
        "country": {"iso_code": "DE", "names": {"de": "Deutschland", "en": "Germany", "fr": "Allemagne"}},
        "location": {"latitude": 52.5, "longitude": 13.375, "time_zone": "Europe/Berlin"},
        "subdivisions": [{"iso_code": "BE", "names": {"en": "Land Berlin"}}],
    });
    let database = folder.join("city.mmdb");
    fs::write(&database, mmdb::database(4, &[("127.0.0.0/8", country)]))?;
    let mut waymark = Waymark::new(&binary, folder, can_pin.then_some(SERVER_CORE), 1)?;
    waymark.geoip = Some(database);
    let links = Links::generate(args.links, 1);
    let mut server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    create(&waymark, &links)?;

    let (mut samples, mut wrong) = ([Vec::new(), Vec::new()], Outcome::default());
    for round in 0..args.rounds {
        // Each goes first as often as second.
        for turn in [round % 2, 1 - round % 2] {
            let rules = if turn == 1 { twenty() } else { json!([]) };
            put(&waymark, &rules)?;
            let (cpu, outcome) = turn_of(args, &waymark, &server, &links, turn == 1, round as u64)?;
            wrong.wrong += outcome.wrong;
            wrong.first_wrong = wrong.first_wrong.or(outcome.first_wrong);
            samples[turn].push(cpu);
        }
    }
    server.stop().context("waymark up")?;
    let [without, with] = samples.map(Spread::of);
    let method = if args.get { "GET" } else { "HEAD" };
    writeln!(
        stdout(),
        "{method}, {} links, {} rounds of {} s alternated; median (least–most) of CPU µs/request\n\
         without rules: {without}\nwith 20 rules, the last one fires: {with}\nratio of the medians: {:.3}",
        args.links,
        args.rounds,
        args.seconds,
        with.median / without.median
    )?;
    if wrong.wrong > 0 {
        let first = wrong.first_wrong.unwrap_or_default();
        writeln!(stderr(), "WRONG: {} answers, first: {first}", wrong.wrong)?;
    }
    Ok(wrong.wrong == 0)
}

/// One turn: a quarter of its time to warm up, then the CPU time of the server for each answer.
fn turn_of(
    args: &RulesArgs,
    waymark: &Waymark,
    server: &Server,
    links: &Links,
    by_rule: bool,
    seed: u64,
) -> Result<(f64, Outcome)> {
    let mut script = Ask { links, rng: Rng::new(seed), by_rule };
    let time = Duration::from_secs_f64(args.seconds);
    let mut plan =
        Plan { head: !args.get, ..Plan::new(waymark.edge, args.connections, Until::After(time / 4)) };
    let before = drive(&plan, &mut script)?;
    plan.until = Until::After(time);
    let cpu = process::cpu(server.pid)?;
    let mut outcome = drive(&plan, &mut script)?;
    let cpu = process::cpu(server.pid)?.since(cpu).total_us() / outcome.answers.max(1) as f64;
    outcome.wrong += before.wrong;
    outcome.first_wrong = before.first_wrong.or(outcome.first_wrong);
    if args.get {
        waymark.settle()?;
    }
    Ok((cpu, outcome))
}

/// Creates every link by arrays.
pub(crate) fn create(waymark: &Waymark, links: &Links) -> Result<()> {
    let product = waymark.create_product()?;
    let mut client = Client::connect(waymark.api, Some(&waymark.key))?;
    for start in (0..links.count()).step_by(1_000) {
        let end = (start + 1_000).min(links.count());
        let items: Vec<Value> = (start..end)
            .map(|index| {
                json!({
                    "shortId": String::from_utf8_lossy(&links.known(index)),
                    "platformId": product,
                    "defaultRedirectUrl": String::from_utf8_lossy(&links.target(index)),
                })
            })
            .collect();
        let answer =
            client.ask("POST", "/redirections?wait=edges", Some(&Value::Array(items).to_string()))?;
        ensure!(answer.status == 200, "POST /redirections: {} {:?}", answer.status, answer.json());
    }
    Ok(())
}

fn put(waymark: &Waymark, rules: &Value) -> Result<()> {
    let body = json!({"rules": rules}).to_string();
    let mut client = Client::connect(waymark.api, Some(&waymark.key))?;
    let answer = client.ask("PUT", "/redirector?wait=edges&timeout=20s", Some(&body))?;
    ensure!(answer.status == 200, "PUT /redirector: {} {:?}", answer.status, answer.json());
    Ok(())
}

/// A median with the extremes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        Self { median: at(values.len() / 2), least: at(0), most: at(values.len().saturating_sub(1)) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.least, self.most)
    }
}
