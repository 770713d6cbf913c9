//! What rules of redirection cost a redirect: the same scans with and without them, alternated.

use std::{
    fs,
    io::{Write, stdout},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::mmdb;

use crate::{
    answer::Answer,
    args::{Length, RedirectArgs},
    drive::{Outcome, Plan, Script, Until, drive},
    http::Client,
    links::{Id, Links, Rng},
    process::{self, Server},
    stats::Spread,
    waymark::Waymark,
};

/// Measures the CPU time of a redirect with 20 rules against none; every answer is checked.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("9")), mut_arg("seconds", |arg| arg.default_value("3")))]
pub(crate) struct Args {
    #[command(flatten)]
    of: RedirectArgs,
    /// Connections, each with one request under way
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

/// Runs the comparison and prints it; `false` when an answer was wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.of.links, args.of.length, args.connections) = (200, Length { rounds: 1, seconds: 0.2 }, 8);
    }
    args.of.check()?;
    compare(&args, tempfile::tempdir()?.path())
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
pub(crate) struct Ask<'a> {
    pub(crate) links: &'a Links,
    pub(crate) rng: Rng,
    pub(crate) by_rule: bool,
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

fn compare(args: &Args, folder: &Path) -> Result<bool> {
    let country = json!({
        "city": {"names": {"de": "Berlin", "en": "Berlin", "fr": "Berlin"}},
        "country": {"iso_code": "DE", "names": {"de": "Deutschland", "en": "Germany", "fr": "Allemagne"}},
        "location": {"latitude": 52.5, "longitude": 13.375, "time_zone": "Europe/Berlin"},
        "subdivisions": [{"iso_code": "BE", "names": {"en": "Land Berlin"}}],
    });
    let database = folder.join("city.mmdb");
    fs::write(&database, mmdb::database(4, &[("127.0.0.0/8", country)]))?;
    let mut waymark = Waymark::new(&args.of.waymark.binary()?, folder, process::split_cores()?.server, 1)?;
    waymark.geoip = Some(database);
    let links = Links::generate(args.of.links, 1);
    let mut server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    waymark.create_links(&links)?;

    let (mut samples, mut wrong) = ([Vec::new(), Vec::new()], Outcome::default());
    for round in 0..args.of.length.rounds {
        // Each goes first as often as second.
        for by_rule in [round % 2 == 1, round % 2 == 0] {
            put(&waymark, &if by_rule { twenty() } else { json!([]) })?;
            let mut script = Ask { links: &links, rng: Rng::new(round as u64), by_rule };
            let plan = Plan { head: !args.of.get, ..Plan::new(waymark.edge, args.connections, Until::Done) };
            let (cpu, outcome) = turn(plan, args.of.length.seconds, &server, &mut script)?;
            if args.of.get {
                waymark.settle()?;
            }
            wrong.add_wrong(outcome);
            samples[usize::from(by_rule)].push(cpu);
        }
    }
    server.stop().context("waymark up")?;
    let [without, with] = samples.map(|us| Spread::of(&us));
    let method = if args.of.get { "GET" } else { "HEAD" };
    writeln!(
        stdout(),
        "{method}, {} links, {} rounds of {} s alternated; median (least–most) of CPU µs/request\n\
         without rules: {}\nwith 20 rules, the last one fires: {}\nratio of the medians: {:.3}",
        args.of.links,
        args.of.length.rounds,
        args.of.length.seconds,
        without.text(2),
        with.text(2),
        with.median / without.median
    )?;
    wrong.is_right()
}

/// One turn of so many seconds: a quarter of them to warm up, then the CPU time of the server for each answer, in microseconds.
pub(crate) fn turn<S: Script>(
    mut plan: Plan<'_>,
    seconds: f64,
    server: &Server,
    script: &mut S,
) -> Result<(f64, Outcome)> {
    let time = Duration::from_secs_f64(seconds);
    plan.until = Until::After(time / 4);
    let before = drive(&plan, script)?;
    plan.until = Until::After(time);
    let cpu = process::cpu(server.pid)?;
    let mut outcome = drive(&plan, script)?;
    let cpu = process::cpu(server.pid)?.since(cpu).total_us() / outcome.answers.max(1) as f64;
    outcome.add_wrong(before);
    Ok((cpu, outcome))
}

fn put(waymark: &Waymark, rules: &Value) -> Result<()> {
    let body = json!({"rules": rules}).to_string();
    let mut client = Client::connect(waymark.api, Some(&waymark.key))?;
    let answer = client.ask("PUT", "/redirector?wait=edges&timeout=20s", Some(&body))?;
    ensure!(answer.status == 200, "PUT /redirector: {} {:?}", answer.status, answer.json());
    Ok(())
}
