//! Full replicas of several sizes, alternated: what a redirect costs must not depend on how many links there are.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result};
use tests::redis::RedisServer;

use super::{
    bench::Bench,
    edges::{Edge, Holds},
    peers::{Peer, Place, REPLICA},
    plot::{Figure, Panel, Series},
    report::{Fill, Report, Size, Start},
    rounds::{Case, Protocol, Round, Sample, Scenario},
    say,
    standin::StandIn,
    view::start_redis,
};
use crate::{links::Links, process};

/// Bytes of memory that a link takes at the most while a replica is restarted from disk, with room.
const MEMORY: u64 = 110;
/// Bytes on disk, twice while the file is rewritten.
const DISK: u64 = 200;
/// What goes to everything else.
const SPARE: u64 = 2 << 30;

/// The cases that are measured for each size.
const CASES: [Case; 3] = [
    Case { protocol: Protocol::Http1, scenario: Scenario::Known },
    Case { protocol: Protocol::Http1, scenario: Scenario::Unknown },
    Case { protocol: Protocol::Http1, scenario: Scenario::Hot },
];

/// One of them.
struct Sized {
    links: Links,
    peer: Peer,
    /// Goes with it.
    _control: StandIn,
}

/// Measures all sizes.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let mut sizes = bench.args.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        return Ok(());
    }
    // Empty: the view of no size is read.
    let redis = start_redis()?;
    let mut all = Vec::new();
    for count in sizes {
        match room(bench, count)? {
            Some(reason) => bench.report.left_out.push(format!("a replica of {count} links, {reason}")),
            None => all.push(start(bench, count, &redis)?),
        }
    }
    for sized in &all {
        sized.peer.set_awake(false)?;
    }
    for case in CASES {
        for number in 0..bench.args.length.rounds {
            say(&format!("{}, all sizes, round {} of {}", case.name(), number + 1, bench.args.length.rounds));
            let mut order: Vec<&Sized> = all.iter().collect();
            if number % 2 == 1 {
                order.reverse();
            }
            for sized in order {
                turn(bench, case, number, sized)?;
            }
        }
    }
    for Sized { peer, .. } in all {
        peer.set_awake(true)?;
        peer.server.stop_within(Duration::from_secs(600)).context("a replica")?;
    }
    Ok(())
}

/// Why there is no room for a replica of so many links.
fn room(bench: &Bench<'_>, count: usize) -> Result<Option<String>> {
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let memory = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
    let memory = memory.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(u64::MAX >> 10) << 10;
    let said = Command::new("df").args(["-k", "--output=avail"]).arg(bench.folder).output()?;
    let disk = String::from_utf8_lossy(&said.stdout).lines().last().and_then(|kib| kib.trim().parse().ok());
    let disk = disk.unwrap_or(u64::MAX >> 10) << 10;
    for (what, free, each) in [("memory", memory, MEMORY), ("disk", disk, DISK)] {
        let needed = count as u64 * each + SPARE;
        // Small ones fit wherever this program does.
        if count > 100_000 && needed > free {
            return Ok(Some(format!(
                "as {:.1} GiB of {what} are needed and {:.1} free",
                gib(needed),
                gib(free)
            )));
        }
    }
    Ok(None)
}

fn start(bench: &mut Bench<'_>, count: usize, redis: &RedisServer) -> Result<Sized> {
    say(&format!("starting {REPLICA} of {count} links"));
    let links = Links::generate(count, bench.args.seed);
    let control = StandIn::start(&links)?;
    let program = bench.args.edge.clone().context("no edge binary")?;
    let place = Place {
        folder: bench.folder,
        core: bench.server_core,
        links: &links,
        certificate: &bench.certificate,
    };
    let edge = Edge::new(&place, &program, &format!("size-{count}"), Holds::Every, &control, redis)?;
    let filled = edge.fill(&place)?;
    let (peer, times) = edge.start(&place, 1)?;
    let rss = process::memory(peer.server.pid)?.rss;
    let table = peer.admin.context("no admin listener")?.replica_bytes()?.context("it holds no table")?;
    let each = |bytes: u64| bytes as f64 / count as f64;
    bench.report.sizes.push(Size { links: count, table_bytes: each(table), rss_bytes: each(rss) });
    bench.report.fills.push(Fill::new(count, &filled));
    bench.report.starts.push(Start::new(REPLICA, count, &times, rss));
    Ok(Sized { links, peer, _control: control })
}

fn turn(bench: &mut Bench<'_>, case: Case, number: usize, sized: &Sized) -> Result<()> {
    sized.peer.set_awake(true)?;
    let client = bench.certificate.client()?;
    let round = Round {
        links: &sized.links,
        connections: bench.args.connections,
        time: Duration::from_secs_f64(bench.args.length.seconds),
        seed: bench.args.seed + 10 * number as u64,
        client: &client,
    };
    let (sample, outcomes) = round.measure(case, &sized.peer)?;
    sized.peer.set_awake(false)?;
    for outcome in &outcomes {
        bench.judge(&format!("a replica of {} links, {}", sized.links.count(), case.name()), outcome);
    }
    bench.report.size_samples.push(sample);
    Ok(())
}

/// What a request costs and what a link takes, against the number of links.
pub(super) fn figure(report: &Report) -> Figure {
    let line = |case: Case, name: String, value: fn(&Sample) -> f64| Series {
        name,
        points: report
            .sizes
            .iter()
            .filter_map(|size| Some((size.links as f64, report.of_size(case, size.links, value)?.median)))
            .collect(),
    };
    let cpu = CASES.map(|case| line(case, case.name(), |sample| sample.cpu.total_us())).to_vec();
    let p99 = CASES.map(|case| line(case, case.name(), |sample| sample.p99_us)).to_vec();
    let bytes = |name: &str, of: fn(&Size) -> f64| Series {
        name: name.to_owned(),
        points: report.sizes.iter().map(|size| (size.links as f64, of(size))).collect(),
    };
    let memory = vec![bytes("table", |size| size.table_bytes), bytes("process", |size| size.rss_bytes)];
    Figure {
        title: format!("Full replica: cost against size ({})", report.date),
        label: "links",
        is_log: true,
        panels: vec![
            Panel { label: "CPU, µs/request", is_log: false, series: cpu },
            Panel { label: "p99, µs", is_log: false, series: p99 },
            Panel { label: "memory, bytes/link", is_log: true, series: memory },
        ],
        bands: Vec::new(),
    }
}
