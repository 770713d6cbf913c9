//! One run from generated links to the report.

use std::{
    env, fs,
    io::{Write, stderr, stdout},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::{
    drive::{Outcome, Plan, Until, drive},
    import,
    links::Links,
    nginx::Nginx,
    process::{self, CLIENT_CORE, SERVER_CORE, Server},
    report::{FirstTouch, Report, Start},
    rounds::{Peer, Round, Scenario},
    scripts::{Kind, Scans},
    update,
    waymark::{Waymark, time_start},
};

/// Unknown ids that are asked for after the import.
const UNKNOWN_SAMPLE: usize = 10_000;

/// Measures Waymark beside nginx with the same links; every answer is checked.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "load", version, max_term_width = 100)]
pub struct Args {
    /// Redirections to import
    #[arg(long, default_value_t = 1_000_000)]
    links: usize,
    /// Rounds of each scenario, by turns between ours and nginx
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measured seconds of one scenario in one round
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Connections, each with one request under way
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Changes of targets under scan load
    #[arg(long, default_value_t = 1_000)]
    changes: usize,
    /// Scans a second during the import and during the changes
    #[arg(long, default_value_t = 1_000.0)]
    scans_per_second: f64,
    /// Seed of the links and of what is asked for
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Small sizes, for CI: correctness only, in well under a minute
    #[arg(long)]
    smoke: bool,
    /// Folder for load.json and load.md [default: none is written]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The waymark binary [default: built, in the profile of this program]
    #[arg(long, value_name = "PATH")]
    waymark: Option<PathBuf>,
    /// The nginx binary
    #[arg(long, value_name = "PATH", default_value = "nginx")]
    nginx: PathBuf,
    /// Measure ours alone
    #[arg(long)]
    without_nginx: bool,
    /// Keep the data and the logs
    #[arg(long)]
    keep: bool,
}

/// Runs everything and prints the report; `false` when an answer was wrong.
///
/// # Errors
/// Something could not be started or measured.
pub fn run(mut args: Args) -> Result<bool> {
    if args.smoke {
        (args.links, args.rounds, args.seconds, args.changes) = (2_000, 1, 0.4, 100);
    }
    ensure!(args.links >= 100 && args.rounds >= 1 && args.connections >= 1, "sizes are too small");
    let folder = env::temp_dir().join(format!("waymark-load-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = Bench::new(&args, &folder).and_then(Bench::run);
    if args.keep {
        say(&format!("data and logs: {}", folder.display()));
    } else {
        fs::remove_dir_all(&folder)?;
    }
    let report = result?;
    let table = report.markdown();
    writeln!(stdout(), "{table}")?;
    if let Some(out) = &args.out {
        fs::create_dir_all(out)?;
        fs::write(out.join("load.json"), serde_json::to_string_pretty(&report)?)?;
        fs::write(out.join("load.md"), table)?;
    }
    for fault in &report.faults {
        say(&format!("WRONG: {fault}"));
    }
    Ok(report.faults.is_empty())
}

/// Tells what goes on.
fn say(text: &str) {
    // A closed stderr must not end a measurement.
    let _ = writeln!(stderr(), "{text}");
}

struct Bench<'a> {
    args: &'a Args,
    folder: &'a Path,
    links: Links,
    waymark: Waymark,
    server_core: Option<usize>,
    client_core: Option<usize>,
    report: Report,
    /// Redirects of the running process that were asked for by GET.
    redirects: u64,
}

impl<'a> Bench<'a> {
    fn new(args: &'a Args, folder: &'a Path) -> Result<Self> {
        let binary = args.waymark.clone().map_or_else(build, Ok)?;
        let can_pin = process::can_pin();
        let (server_core, client_core) = (can_pin.then_some(SERVER_CORE), can_pin.then_some(CLIENT_CORE));
        client_core.map_or(Ok(()), process::pin_self)?;
        say(&format!("making {} links", args.links));
        let links = Links::generate(args.links, args.seed);
        let waymark = Waymark::new(&binary, folder, server_core, args.seed)?;
        let report = Report::new(args.links, args.rounds, args.seconds, args.connections, can_pin);
        Ok(Self { args, folder, links, waymark, server_core, client_core, report, redirects: 0 })
    }

    fn run(mut self) -> Result<Report> {
        self.import()?;
        let ours = self.start_ours()?;
        let nginx = if self.args.without_nginx { None } else { Some(self.start_nginx()?) };
        self.touch_all(&ours)?;
        // Before the rounds: they leave more scans behind than are stored in their time.
        self.update()?;
        // Before the rounds too: there ours is stopped now and then, and its writer with it.
        self.report.writer_lag_us = Some(self.waymark.scans()?.writer_lag_max_us);
        self.rounds(&ours, nginx.as_ref())?;
        if let Some(nginx) = nginx {
            nginx.server.stop().context("nginx")?;
        }
        say("waiting until all scans are stored");
        self.count_scans()?;
        ours.server.stop().context("waymark up")?;
        self.report.end();
        Ok(self.report)
    }

    /// Takes an outcome into account: its redirects, and its faults.
    fn tally(&mut self, what: &str, outcome: &Outcome) {
        self.redirects += outcome.redirects;
        if outcome.wrong > 0 {
            let first = outcome.first_wrong.as_deref().unwrap_or_default();
            self.report.faults.push(format!("{what}: {} wrong answers, first: {first}", outcome.wrong));
        }
    }

    fn import(&mut self) -> Result<()> {
        say("importing under load");
        let mut server = self.waymark.spawn()?;
        self.waymark.wait_for_api(&mut server)?;
        let per_second = self.args.scans_per_second;
        let (import, outcome) =
            import::run(&self.waymark, &server, &self.links, self.folder, self.client_core, per_second)?;
        say(&format!("  {:.0} rows/s", import.rows_per_second));
        self.tally("redirects during the import", &outcome);
        self.report.import = Some(import);
        self.waymark.settle()?;
        self.count_scans()?;
        server.stop().context("waymark up")
    }

    fn start_ours(&mut self) -> Result<Peer> {
        say("starting ours with all links in place");
        let (mut starts, mut running) = (Vec::new(), None::<Server>);
        for _ in 0..self.starts() {
            if let Some(server) = running.take() {
                server.stop()?;
            }
            let (server, took) = time_start(self.waymark.edge, 307, &self.links, || self.waymark.spawn())?;
            starts.push(took.as_secs_f64());
            // The redirect that ended the measurement.
            self.redirects = 1;
            running = Some(server);
        }
        let server = running.context("no start was asked for")?;
        let rss = process::memory(server.pid)?.rss;
        self.report.starts.push(Start::new("ours", &starts, rss));
        Ok(Peer { name: "ours", address: self.waymark.edge, status: 307, server })
    }

    fn start_nginx(&mut self) -> Result<Peer> {
        say("starting nginx with the same links");
        let nginx = Nginx::new(&self.args.nginx, self.folder, self.server_core, &self.links)?;
        let (mut starts, mut running) = (Vec::new(), None::<Server>);
        for _ in 0..self.starts() {
            if let Some(server) = running.take() {
                server.stop()?;
            }
            let (server, took) = time_start(nginx.address, 302, &self.links, || nginx.spawn())
                .with_context(|| format!("nginx: {}", nginx.last_words()))?;
            starts.push(took.as_secs_f64());
            running = Some(server);
        }
        let mut server = running.context("no start was asked for")?;
        Nginx::find_worker(&mut server)?;
        let rss = process::memory(server.pid)?.rss;
        self.report.starts.push(Start::new("nginx", &starts, rss));
        Ok(Peer { name: "nginx", address: nginx.address, status: 302, server })
    }

    const fn starts(&self) -> usize {
        if self.args.smoke { 1 } else { 3 }
    }

    /// Every known id once and some unknown ones: all are right, and the memory is warm.
    fn touch_all(&mut self, ours: &Peer) -> Result<()> {
        say("asking for every known id once, and for unknown ones");
        let plan = Plan {
            address: ours.address,
            head: false,
            connections: self.args.connections,
            per_second: None,
            until: Until::Done,
        };
        let count = UNKNOWN_SAMPLE.min(self.links.unknown.len());
        for (name, kind) in
            [("every known id", Kind::EachKnown), ("unknown ids", Kind::EachUnknown { count })]
        {
            let cpu = process::cpu(ours.server.pid)?;
            let outcome = drive(&plan, &mut Scans::new(&self.links, kind, 307, 0))?;
            let cpu = process::cpu(ours.server.pid)?.since(cpu);
            self.tally(name, &outcome);
            self.report.first_touch.push(FirstTouch::new(name, &outcome, cpu));
            let (scans, took) = self.waymark.settle()?;
            self.report.stored(scans, took);
        }
        Ok(())
    }

    fn rounds(&mut self, ours: &Peer, nginx: Option<&Peer>) -> Result<()> {
        for scenario in Scenario::ALL {
            for number in 0..self.args.rounds {
                say(&format!("{}, round {} of {}", scenario.name(), number + 1, self.args.rounds));
                for peer in [Some(ours), nginx].into_iter().flatten() {
                    self.round(scenario, number, peer, ours)?;
                }
            }
        }
        Ok(())
    }

    /// One scenario against one server; ours sleeps meanwhile when it is not its turn.
    fn round(&mut self, scenario: Scenario, number: usize, peer: &Peer, ours: &Peer) -> Result<()> {
        let is_ours = peer.name == ours.name;
        let round = Round {
            links: &self.links,
            connections: self.args.connections,
            time: Duration::from_secs_f64(self.args.seconds),
            seed: self.args.seed + 10 * number as u64,
        };
        let measured = if is_ours {
            let looked = self.waymark.lookups()?;
            let measured = round.measure(scenario, peer);
            self.report.looked_up(scenario, looked, self.waymark.lookups()?);
            measured
        } else {
            ours.server.signal("STOP")?;
            let measured = round.measure(scenario, peer);
            ours.server.signal("CONT")?;
            measured
        };
        let (sample, outcomes) = measured?;
        for outcome in &outcomes {
            let counted = Outcome {
                redirects: if is_ours && scenario != Scenario::KnownHead { outcome.redirects } else { 0 },
                ..outcome.clone()
            };
            self.tally(&format!("{}, {}", peer.name, scenario.name()), &counted);
        }
        self.report.samples.push(sample);
        Ok(())
    }

    fn update(&mut self) -> Result<()> {
        say("changing targets under scan load");
        let (args, begun) = (self.args, Instant::now());
        let (update, outcome) = update::run(&self.waymark, &self.links, args.changes, args.scans_per_second)?;
        say(&format!("  {} changes in {:.1} s", update.changes, begun.elapsed().as_secs_f64()));
        if update.stale > 0 {
            let first = update.first_stale.as_deref().unwrap_or_default();
            self.report.faults.push(format!("{} old targets after a change, first: {first}", update.stale));
        }
        self.redirects += outcome.redirects;
        self.report.update = Some(update);
        Ok(())
    }

    /// Each redirect must have become one scan, or a counted loss.
    fn count_scans(&mut self) -> Result<()> {
        let (scans, took) = self.waymark.settle()?;
        self.report.stored(scans, took);
        let scans = self.waymark.scans()?;
        if scans.recorded + scans.lost != self.redirects {
            let redirects = self.redirects;
            self.report.faults.push(format!("{redirects} redirects, but the edge counted {scans:?}"));
        }
        self.report.scans = Some(scans);
        Ok(())
    }
}

/// Builds `waymark` in the profile of this program, and says where it is.
pub(crate) fn build() -> Result<PathBuf> {
    let own = env::current_exe()?;
    let folder = own.parent().context("this program has no folder")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "-p", "standalone", "--bin", "waymark"]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies nowhere")?;
    let status = command.current_dir(root).status()?;
    ensure!(status.success(), "building waymark: {status}");
    Ok(folder.join("waymark"))
}
