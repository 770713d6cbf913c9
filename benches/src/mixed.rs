//! Redirects at a steady rate, with and without codes that are rendered beside them, alternated.

use std::{
    io::{Write, stdout},
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use ::tests::hist::Hist;
use anyhow::{Context, Result, bail, ensure};

use crate::{
    args::{Length, RedirectArgs},
    drive::{Outcome, Plan, Until, drive},
    http::Client,
    links::{Links, Rng},
    process,
    scripts::{Kind, Scans},
    stats::Spread,
    waymark::{Waymark, path},
};

/// Connections that ask for images, each with one request under way.
const PAINTERS: usize = 8;

/// Sides of the images, in pixels: with each of the links another image.
const SIDES: std::ops::Range<usize> = 256..400;

/// Measures redirects at a steady rate with and without images that nobody asked for before; every answer is checked.
#[derive(Debug, Clone, clap::Args)]
#[command(mut_arg("rounds", |arg| arg.default_value("7")), mut_arg("seconds", |arg| arg.default_value("4")))]
pub(crate) struct Args {
    #[command(flatten)]
    of: RedirectArgs,
    /// Redirects a second
    #[arg(long, default_value_t = 10_000.0)]
    redirects: f64,
    /// Images a second, each of them uncached
    #[arg(long, default_value_t = 500.0)]
    images: f64,
}

/// Runs the comparison and prints it; `false` when an answer was wrong.
pub(crate) fn run(mut args: Args, is_smoke: bool) -> Result<bool> {
    if is_smoke {
        (args.of.links, args.of.length) = (200, Length { rounds: 1, seconds: 0.3 });
        (args.redirects, args.images) = (500.0, 50.0);
    }
    args.of.check()?;
    let needed = args.images * args.of.length.seconds * args.of.length.rounds as f64;
    ensure!(needed < (args.of.links * SIDES.len()) as f64, "there are not so many different images");
    compare(&args, tempfile::tempdir()?.path())
}

/// What one turn showed.
#[derive(Default)]
struct Turn {
    redirects: Outcome,
    images: Hist,
    painted: usize,
}

fn compare(args: &Args, folder: &Path) -> Result<bool> {
    let waymark = Waymark::new(&args.of.waymark.binary()?, folder, process::split_cores()?.server, 1)?;
    let links = Links::generate(args.of.links, 1);
    let mut server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    waymark.create_links(&links)?;
    // Every link is in memory: what is measured is the redirect.
    let warm = Plan { head: true, ..Plan::new(waymark.edge, 16, Until::Done) };
    let mut wrong = drive(&warm, &mut Scans::new(&links, Kind::EachKnown, 1))?;

    let [mut p50, mut p99] = [(); 2].map(|()| [Vec::new(), Vec::new()]);
    let (mut images, mut painted) = (Vec::new(), 0);
    for round in 0..args.of.length.rounds {
        // Each goes first as often as second.
        for turn in [round % 2, 1 - round % 2] {
            let measured = turn_of(args, &waymark, &links, (turn == 1).then_some(painted), round as u64)?;
            p50[turn].push(measured.redirects.hist.quantile_us(0.5));
            p99[turn].push(measured.redirects.hist.quantile_us(0.99));
            if turn == 1 {
                painted += measured.painted;
                images.push(measured.images.quantile_us(0.99));
            }
            wrong.add_wrong(measured.redirects);
        }
        if args.of.get {
            waymark.settle()?;
        }
    }
    server.stop().context("waymark up")?;
    let rate = painted as f64 / (args.of.length.seconds * args.of.length.rounds as f64);
    let [[p50_alone, p50_mixed], [p99_alone, p99_mixed]] =
        [p50, p99].map(|all| all.map(|us| Spread::of(&us)));
    writeln!(
        stdout(),
        "{}, {} redirects/s of {} links, {} rounds of {} s alternated; median (least–most) in µs\n\
         redirects alone: p50 {}, p99 {}\n\
         beside {rate:.0} uncached images/s: p50 {}, p99 {}\n\
         ratio of the medians: p50 {:.2}, p99 {:.2}\np99 of the images: {}",
        if args.of.get { "GET" } else { "HEAD" },
        args.redirects,
        args.of.links,
        args.of.length.rounds,
        args.of.length.seconds,
        p50_alone.text(2),
        p99_alone.text(2),
        p50_mixed.text(2),
        p99_mixed.text(2),
        p50_mixed.median / p50_alone.median,
        p99_mixed.median / p99_alone.median,
        Spread::of(&images).text(2)
    )?;
    wrong.is_right()
}

/// One turn; `first` is the first image that nobody has asked for, if there are to be images.
fn turn_of(args: &Args, waymark: &Waymark, links: &Links, first: Option<usize>, seed: u64) -> Result<Turn> {
    let until = Until::After(Duration::from_secs_f64(args.of.length.seconds));
    let plan =
        Plan { head: !args.of.get, per_second: Some(args.redirects), ..Plan::new(waymark.edge, 64, until) };
    let mut script = Scans::new(links, Kind::Known { among: links.count() }, Rng::new(seed).next());
    let ended = AtomicBool::new(false);
    scope(|threads| {
        let painters: Vec<_> = (0..PAINTERS)
            .filter_map(|painter| Some((painter, first?)))
            .map(|(painter, first)| {
                let ended = &ended;
                threads.spawn(move || paint(args, waymark, links, (painter, first), ended))
            })
            .collect();
        let redirects = drive(&plan, &mut script);
        ended.store(true, Relaxed);
        let mut turn = Turn { redirects: redirects?, ..Turn::default() };
        for painter in painters {
            let (hist, painted) =
                painter.join().unwrap_or_else(|_| bail!("a thread that asks for images panicked"))?;
            turn.images.merge(&hist);
            turn.painted += painted;
        }
        Ok(turn)
    })
}

/// Asks for its share of the images until the turn has ended.
fn paint(
    args: &Args,
    waymark: &Waymark,
    links: &Links,
    (painter, first): (usize, usize),
    ended: &AtomicBool,
) -> Result<(Hist, usize)> {
    let mut client = Client::connect(waymark.edge, None)?;
    let (mut hist, mut painted, begun) = (Hist::default(), 0, Instant::now());
    while !ended.load(Relaxed) {
        let due = Duration::from_secs_f64((painted * PAINTERS + painter) as f64 / args.images);
        let now = begun.elapsed();
        if due > now {
            sleep((due - now).min(Duration::from_millis(50)));
            continue;
        }
        let image = first + painted * PAINTERS + painter;
        let side = SIDES.start + image / links.count() % SIDES.len();
        let path = format!("{}.png?w={side}&h={side}", path(&links.known(image % links.count())));
        let answer = client.ask("GET", &path, None)?;
        ensure!(answer.status == 200 && answer.body.starts_with(b"\x89PNG"), "{path}: {}", answer.status);
        hist.add(begun.elapsed() - due);
        painted += 1;
    }
    Ok((hist, painted))
}
