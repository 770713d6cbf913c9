//! Redirects at a steady rate, with and without codes that are rendered beside them, alternated.

use std::{
    env, fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    build::build,
    drive::{Outcome, Plan, Until, drive},
    hist::Hist,
    http::Client,
    links::{Links, Rng},
    process::{self, CLIENT_CORE, SERVER_CORE},
    rules::{Spread, create},
    scripts::{Kind, Scans},
    waymark::{Waymark, path},
};

/// Connections that ask for images, each with one request under way.
const PAINTERS: usize = 8;

/// Sides of the images, in pixels: with each of the links another image.
const SIDES: std::ops::Range<usize> = 256..400;

/// Measures redirects at a steady rate with and without images that nobody asked for before; every answer is checked.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "mixed", version, max_term_width = 100)]
pub struct MixedArgs {
    /// Redirections that are asked for at random
    #[arg(long, default_value_t = 10_000)]
    links: usize,
    /// Rounds, each with and without images
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Measured seconds of one turn
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Redirects a second
    #[arg(long, default_value_t = 10_000.0)]
    redirects: f64,
    /// Images a second, each of them uncached
    #[arg(long, default_value_t = 500.0)]
    images: f64,
    /// Ask for redirects by GET, so that scans are recorded, and stored meanwhile
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
pub fn run_mixed(mut args: MixedArgs) -> Result<bool> {
    if args.smoke {
        (args.links, args.rounds, args.seconds) = (200, 1, 0.3);
        (args.redirects, args.images) = (500.0, 50.0);
    }
    ensure!((1..=10_000).contains(&args.links) && args.rounds >= 1, "sizes are out of range");
    let needed = args.images * args.seconds * args.rounds as f64;
    ensure!(needed < (args.links * SIDES.len()) as f64, "there are not so many different images");
    let folder = env::temp_dir().join(format!("waymark-mixed-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = compare(&args, &folder);
    fs::remove_dir_all(&folder)?;
    result
}

/// What one turn showed.
#[derive(Default)]
struct Turn {
    redirects: Outcome,
    images: Hist,
    painted: usize,
}

fn compare(args: &MixedArgs, folder: &Path) -> Result<bool> {
    let binary = args.waymark.clone().map_or_else(build, Ok)?;
    let can_pin = process::can_pin();
    if can_pin {
        process::pin_self(CLIENT_CORE)?;
    }
    let waymark = Waymark::new(&binary, folder, can_pin.then_some(SERVER_CORE), 1)?;
    let links = Links::generate(args.links, 1);
    let mut server = waymark.spawn()?;
    waymark.wait_for_api(&mut server)?;
    create(&waymark, &links)?;
    // Every link is in memory: what is measured is the redirect.
    let warm = Plan { head: true, ..Plan::new(waymark.edge, 16, Until::Done) };
    let mut wrong = drive(&warm, &mut Scans::new(&links, Kind::EachKnown, 1))?;

    let [mut p50, mut p99] = [(); 2].map(|()| [Vec::new(), Vec::new()]);
    let (mut images, mut painted) = (Vec::new(), 0);
    for round in 0..args.rounds {
        // Each goes first as often as second.
        for turn in [round % 2, 1 - round % 2] {
            let measured = turn_of(args, &waymark, &links, (turn == 1).then_some(painted), round as u64)?;
            p50[turn].push(measured.redirects.hist.quantile_us(0.5));
            p99[turn].push(measured.redirects.hist.quantile_us(0.99));
            if turn == 1 {
                painted += measured.painted;
                images.push(measured.images.quantile_us(0.99));
            }
            wrong.wrong += measured.redirects.wrong;
            wrong.first_wrong = wrong.first_wrong.or(measured.redirects.first_wrong);
        }
        if args.get {
            waymark.settle()?;
        }
    }
    server.stop().context("waymark up")?;
    let rate = painted as f64 / (args.seconds * args.rounds as f64);
    let ([p50_alone, p50_mixed], [p99_alone, p99_mixed]) = (p50.map(Spread::of), p99.map(Spread::of));
    writeln!(
        stdout(),
        "{}, {} redirects/s of {} links, {} rounds of {} s alternated; median (least–most) in µs\n\
         redirects alone: p50 {p50_alone}, p99 {p99_alone}\n\
         beside {rate:.0} uncached images/s: p50 {p50_mixed}, p99 {p99_mixed}\n\
         ratio of the medians: p50 {:.2}, p99 {:.2}\np99 of the images: {}",
        if args.get { "GET" } else { "HEAD" },
        args.redirects,
        args.links,
        args.rounds,
        args.seconds,
        p50_mixed.median / p50_alone.median,
        p99_mixed.median / p99_alone.median,
        Spread::of(images)
    )?;
    if wrong.wrong > 0 {
        let first = wrong.first_wrong.unwrap_or_default();
        writeln!(stderr(), "WRONG: {} answers, first: {first}", wrong.wrong)?;
    }
    Ok(wrong.wrong == 0)
}

/// One turn; `first` is the first image that nobody has asked for, if there are to be images.
fn turn_of(
    args: &MixedArgs,
    waymark: &Waymark,
    links: &Links,
    first: Option<usize>,
    seed: u64,
) -> Result<Turn> {
    let until = Until::After(Duration::from_secs_f64(args.seconds));
    let plan =
        Plan { head: !args.get, per_second: Some(args.redirects), ..Plan::new(waymark.edge, 64, until) };
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
    args: &MixedArgs,
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
