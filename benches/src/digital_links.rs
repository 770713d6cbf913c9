//! What a redirect by a GS1 Digital Link costs beside one by a short id, alternated: all serials of one GTIN come before one of
//! them comes again.

use std::{
    io::{Write, stdout},
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    answer::Answer,
    args::{Length, RedirectArgs},
    drive::{Outcome, Plan, Script, Until},
    http::Client,
    links::{Id, Links, Rng},
    process,
    rules::{Ask, turn},
    stats::Spread,
    waymark::Waymark,
};

/// The path before the serial.
const PREFIX: &str = "/01/09528765123457/21/";
/// The target before the serial; with it as long as that of a short id.
const TARGET: &str = "https://shop.example.com/products/view?of=shoes&s=";
/// Longest wait for the domain and the product to be at the edge.
const DEADLINE: Duration = Duration::from_secs(20);

/// Measures the CPU time of a redirect by Digital Link against one by short id; every answer is checked.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("9")), mut_arg("seconds", |arg| arg.default_value("3")))]
pub(crate) struct Args {
    /// Serials of one GTIN that are asked for one after the other
    #[arg(long, default_value_t = 1_000_000)]
    serials: u32,
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

/// One serial after the other, in an order that looks like chance.
struct Serials {
    count: u32,
    asked: u32,
}

impl Script for Serials {
    type Ticket = u32;

    fn next(&mut self) -> Option<(Id, u32)> {
        // A prime factor that does not divide the count visits each number once before the first comes again. It is below
        // the count.
        let serial = (u64::from(self.asked) * 2_654_435_761 % u64::from(self.count.max(1))) as u32;
        self.asked = self.asked.wrapping_add(1);
        Some((digits(serial), serial))
    }

    fn check(&mut self, serial: u32, answer: &Answer<'_>) -> Result<(), String> {
        let location = answer.location.unwrap_or_default();
        if answer.status == 307 && location.strip_prefix(TARGET.as_bytes()) == Some(digits(serial).as_slice())
        {
            return Ok(());
        }
        Err(format!("serial {serial}: {} to {}", answer.status, String::from_utf8_lossy(location)))
    }
}

fn digits(mut number: u32) -> Id {
    let mut id = [b'0'; size_of::<Id>()];
    for digit in id.iter_mut().rev() {
        // One digit.
        *digit += (number % 10) as u8;
        number /= 10;
    }
    id
}

fn compare(args: &Args, folder: &Path) -> Result<bool> {
    let waymark = Waymark::new(&args.of.waymark.binary()?, folder, process::split_cores()?.server, 1)?;
    let links = Links::generate(args.of.links, 1);
    let mut server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    waymark.create_links(&links)?;
    prepare(&waymark)?;

    let mut serials = Serials { count: args.serials, asked: 0 };
    let (mut samples, mut wrong) = ([Vec::new(), Vec::new()], Outcome::default());
    let mut memory = Vec::new();
    for round in 0..args.of.length.rounds {
        // Each goes first as often as second.
        for by_link in [round % 2 == 1, round % 2 == 0] {
            let mut plan =
                Plan { head: !args.of.get, ..Plan::new(waymark.edge, args.connections, Until::Done) };
            let (cpu, outcome) = if by_link {
                plan.prefix = PREFIX;
                turn(plan, args.of.length.seconds, &server, &mut serials)?
            } else {
                let mut short = Ask { links: &links, rng: Rng::new(round as u64), by_rule: false };
                turn(plan, args.of.length.seconds, &server, &mut short)?
            };
            if args.of.get {
                waymark.settle()?;
            }
            wrong.add_wrong(outcome);
            samples[usize::from(by_link)].push(cpu);
        }
        memory.push(process::memory(server.pid)?.rss as f64 / f64::from(1 << 20));
    }
    server.stop().context("waymark up")?;
    let [short, by_link] = samples.map(|us| Spread::of(&us));
    let method = if args.of.get { "GET" } else { "HEAD" };
    writeln!(
        stdout(),
        "{method}, {} short ids, {} serials of one GTIN, {} asked for; {} rounds of {} s alternated; median (least–most) of \
         CPU µs/request\nby short id: {}\nby Digital Link: {}\nratio of the medians: {:.3}\n\
         MiB after each round: {}",
        args.of.links,
        args.serials,
        serials.asked,
        args.of.length.rounds,
        args.of.length.seconds,
        short.text(2),
        by_link.text(2),
        by_link.median / short.median,
        memory.iter().map(|mib| format!("{mib:.0}")).collect::<Vec<_>>().join(" "),
    )?;
    wrong.is_right()
}

/// Lets the domain resolve Digital Links, makes the product, and waits until the edge knows both.
fn prepare(waymark: &Waymark) -> Result<()> {
    let mut client = Client::connect(waymark.api, Some(&waymark.key))?;
    let access = client.ask("GET", "/access", None)?.json()?;
    let account = access["account"].as_str().context("no account")?;
    let domains = client.ask("GET", &format!("/accounts/{account}/shortDomains"), None)?.json()?;
    let host = domains[0]["host"].as_str().or(domains[0].as_str()).context("no domain")?.to_owned();
    let path = format!("/accounts/{account}/shortDomains/{host}");
    let answer = client.ask("PUT", &path, Some(&json!({"digitalLinks": true}).to_string()))?;
    ensure!(answer.status == 200, "PUT {path}: {} {:?}", answer.status, answer.json());
    let link =
        json!({"linkType": "gs1:pip", "href": format!("{TARGET}{{21}}"), "title": "Shoe", "default": true});
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": "09528765123457"}, "serialMode": "template", "links": [link]});
    let answer = client.ask("POST", "/products", Some(&body.to_string()))?;
    ensure!(answer.status == 201, "POST /products: {} {:?}", answer.status, answer.json());
    let begun = Instant::now();
    loop {
        let answer = Client::connect(waymark.edge, None)?.ask("GET", &format!("{PREFIX}0000000000"), None)?;
        if answer.status == 307 {
            return Ok(());
        }
        ensure!(begun.elapsed() < DEADLINE, "the edge does not know the product: {}", answer.status);
        sleep(Duration::from_millis(20));
    }
}
