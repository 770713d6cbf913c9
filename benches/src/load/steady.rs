//! A long run at half of what an edge can do, with changes and an import beside it: what moves the tail, and
//! whether memory stays where it is.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde::Serialize;
use shared::{redirect::RedirectKey, wire::stream::Change};

use super::{
    peers::Peer,
    plot::{Figure, Panel, Series},
    report::mib,
    standin::StandIn,
    update::Quantiles,
};
use ::tests::hist::Hist;

use crate::{
    answer::Answer,
    drive::{Outcome, Plan, Script, Until, drive},
    links::{HOST, Id, Links, Rng, text},
    process,
    scripts::{CHANGED, Kind, Scans, describe, version},
};

/// Links that are changed in turn.
const CHANGING: usize = 100;
/// One request of so many goes to them.
const TO_CHANGING: usize = 8;
/// Links of one run of events while importing, as control commits an array.
const RUN: usize = 1_000;
/// How long an acknowledgement may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a steady run is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SteadyPlan {
    /// How long.
    pub(crate) time: Duration,
    /// How long what goes before, unmeasured but for its rate: as fast as it goes.
    pub(crate) warm_up: Duration,
    /// Connections.
    pub(crate) connections: usize,
    /// Changes of targets a second, each acknowledged before the next.
    pub(crate) changes_per_second: f64,
    /// Links that are added meanwhile, from a quarter of the time on.
    pub(crate) import: usize,
    /// How many of them a second.
    pub(crate) import_per_second: f64,
    /// Seed of what is asked for.
    pub(crate) seed: u64,
}

/// What a steady run was like.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Steady {
    links: usize,
    seconds: f64,
    window_seconds: f64,
    /// As many redirects a second as the edge answers.
    capacity_per_second: f64,
    /// As many were asked for: half of that.
    redirects_per_second: f64,
    changes: u64,
    changes_per_second: f64,
    imported: usize,
    /// When the import began and ended, in seconds.
    import: (f64, f64),
    /// From the commit of a change to its acknowledgement.
    ack_ms: Quantiles,
    windows: Vec<Window>,
}

/// Some seconds of it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Window {
    /// When it ended.
    at_seconds: f64,
    answers: u64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
    rss_mib: f64,
    /// The part of it that is no file: the spool and the snapshot are mapped or read by nobody.
    anonymous_mib: f64,
}

/// Known ids at random, some of them of links that are being changed.
struct Asking<'a> {
    links: &'a Links,
    acknowledged: &'a [AtomicU64],
    rng: Rng,
}

impl Script for Asking<'_> {
    /// The index of the link, and its acknowledged version when it was asked for.
    type Ticket = (usize, u64);

    fn next(&mut self) -> Option<(Id, Self::Ticket)> {
        let among = match self.rng.below(TO_CHANGING) {
            0 => self.acknowledged.len(),
            _ => self.links.count(),
        };
        let index = self.rng.below(among);
        let promised = self.acknowledged.get(index).map_or(0, |version| version.load(SeqCst));
        Some((self.links.known(index), (index, promised)))
    }

    fn check(&mut self, (index, promised): (usize, u64), answer: &Answer<'_>) -> Result<(), String> {
        let location = answer.location.unwrap_or_default();
        let is_right = match version(location) {
            0 => promised == 0 && location == self.links.target(index),
            shown => index < self.acknowledged.len() && shown >= promised,
        };
        if answer.status == 307 && is_right {
            Ok(())
        } else {
            Err(format!("{}, after version {promised}", describe(Some(index), answer)))
        }
    }
}

/// Measures what a full replica can do, then half of it with changes and an import beside.
///
/// Gives both outcomes: every redirect of them must have become a scan.
///
/// # Errors
/// The edge is gone, or does not acknowledge.
pub(crate) fn run(
    plan: &SteadyPlan,
    links: &Links,
    peer: &Peer,
    edge: &str,
    control: &StandIn,
) -> Result<(Steady, [Outcome; 2])> {
    let known = Kind::Known { among: links.count() };
    let until = Until::After(plan.warm_up);
    let full = Plan { host: peer.host, ..Plan::new(peer.ports.plain, plan.connections, until) };
    let capacity = drive(&full, &mut Scans::of(links, known, peer.answers, plan.seed))?;
    let capacity_per_second = capacity.answers as f64 / capacity.took.as_secs_f64();
    let window = (plan.time / 120).max(Duration::from_millis(100));
    let half = Plan {
        per_second: Some(capacity_per_second / 2.0),
        until: Until::After(plan.time),
        window: Some(window),
        ..full
    };
    let acknowledged: Vec<AtomicU64> = (0..CHANGING.min(links.count())).map(|_| AtomicU64::new(0)).collect();
    let mut script = Asking { links, acknowledged: &acknowledged, rng: Rng::new(plan.seed + 1) };
    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    let (outcome, changed, imported, memory) = scope(|threads| {
        let changer = threads.spawn(|| change(plan, links, &acknowledged, edge, control, &stop));
        let importer = threads.spawn(|| import(plan, links, control, begun, &stop));
        let watch = threads.spawn(|| {
            let mut memory = Vec::new();
            while !stop.load(SeqCst) {
                let due = window * (memory.len() as u32 + 1);
                sleep(due.saturating_sub(begun.elapsed()).min(Duration::from_millis(50)));
                if begun.elapsed() >= due {
                    memory.push(process::memory(peer.server.pid)?);
                }
            }
            anyhow::Ok(memory)
        });
        let outcome = drive(&half, &mut script);
        stop.store(true, SeqCst);
        let panicked = |_| anyhow!("a thread of the steady run panicked");
        let changed = changer.join().map_err(panicked)??;
        let imported = importer.join().map_err(panicked)??;
        let memory = watch.join().map_err(panicked)??;
        anyhow::Ok((outcome?, changed, imported, memory))
    })?;
    let windows = outcome
        .windows
        .iter()
        .zip(&memory)
        .enumerate()
        .map(|(index, (hist, memory))| Window {
            at_seconds: window.as_secs_f64() * (index + 1) as f64,
            answers: hist.count(),
            p50_us: hist.quantile_us(0.5),
            p99_us: hist.quantile_us(0.99),
            p999_us: hist.quantile_us(0.999),
            max_us: hist.max_us(),
            rss_mib: mib(memory.rss),
            anonymous_mib: mib(memory.anonymous),
        })
        .collect();
    let steady = Steady {
        links: links.count(),
        seconds: plan.time.as_secs_f64(),
        window_seconds: window.as_secs_f64(),
        capacity_per_second,
        redirects_per_second: capacity_per_second / 2.0,
        changes: changed.0,
        changes_per_second: plan.changes_per_second,
        imported: imported.0,
        import: (imported.1.as_secs_f64(), imported.2.as_secs_f64()),
        ack_ms: (&changed.1).into(),
        windows,
    };
    Ok((steady, [capacity, outcome]))
}

/// Changes one link after the other; gives how many, and how long the acknowledgements took.
fn change(
    plan: &SteadyPlan,
    links: &Links,
    acknowledged: &[AtomicU64],
    edge: &str,
    control: &StandIn,
    stop: &AtomicBool,
) -> Result<(u64, Hist)> {
    let (mut turn, mut acks, begun) = (0_u64, Hist::default(), Instant::now());
    while !stop.load(SeqCst) {
        let due = Duration::from_secs_f64(turn as f64 / plan.changes_per_second);
        sleep(due.saturating_sub(begun.elapsed()).min(Duration::from_millis(50)));
        if begun.elapsed() < due {
            continue;
        }
        turn += 1;
        let index = turn as usize % acknowledged.len();
        let record = links.record(index, Some(format!("{CHANGED}{turn}")))?;
        let committed = Instant::now();
        let rev = control.commit([Change::Redirect(links.key(index), Some(Arc::new(record)))])?;
        control.wait_acked(edge, rev, PATIENCE)?;
        acks.add(committed.elapsed());
        acknowledged[index].store(turn, SeqCst);
    }
    Ok((turn, acks))
}

/// Adds links; gives how many, and from when to when.
fn import(
    plan: &SteadyPlan,
    links: &Links,
    control: &StandIn,
    begun: Instant,
    stop: &AtomicBool,
) -> Result<(usize, Duration, Duration)> {
    let (from, count) = (plan.time / 4, plan.import.min(links.count()));
    let mut done = 0;
    while done < count && !stop.load(SeqCst) {
        let due = from + Duration::from_secs_f64(done as f64 / plan.import_per_second);
        sleep(due.saturating_sub(begun.elapsed()).min(Duration::from_millis(50)));
        if begun.elapsed() < due {
            continue;
        }
        let next = count.min(done + RUN);
        let changes = (done..next)
            .map(|index| {
                let id = links.unknown(index);
                let record = links.record_of(&id, text(&links.target(index)))?;
                Ok(Change::Redirect(RedirectKey::new(HOST, &text(&id)), Some(Arc::new(record))))
            })
            .collect::<Result<Vec<_>>>()?;
        control.commit(changes)?;
        done = next;
    }
    Ok((done, from, begun.elapsed()))
}

impl Steady {
    /// The run for people.
    pub(crate) fn write(&self, out: &mut String) -> std::fmt::Result {
        let (from, to) = self.import;
        writeln!(
            out,
            "\nSteady: a full replica of {} links answers {:.0} requests/s at most; for {} s it was asked for {:.0} \
             redirects/s, with {} changes ({}/s; commit to acknowledgement p50 {:.1} ms, p99 {:.1} ms, max {:.1} \
             ms) and {} more links from {from:.0} to {to:.0} s.\n",
            self.links,
            self.capacity_per_second,
            self.seconds,
            self.redirects_per_second,
            self.changes,
            self.changes_per_second,
            self.ack_ms.p50,
            self.ack_ms.p99,
            self.ack_ms.max,
            self.imported
        )?;
        writeln!(
            out,
            "| from s | to s | redirects/s | p50 µs | p99 µs | p99.9 µs | max µs | RSS MiB at the end |\n\
             |---|---|---|---|---|---|---|---|"
        )?;
        // A row of a table for every tenth of the time; the file has them all.
        for part in self.windows.chunks(self.windows.len().div_ceil(10).max(1)) {
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            let begun = first.at_seconds - self.window_seconds;
            let answers: u64 = part.iter().map(|window| window.answers).sum();
            let worst = |value: fn(&Window) -> f64| part.iter().map(value).fold(0.0, f64::max);
            writeln!(
                out,
                "| {begun:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
                last.at_seconds,
                answers as f64 / (last.at_seconds - begun),
                worst(|window| window.p50_us),
                worst(|window| window.p99_us),
                worst(|window| window.p999_us),
                worst(|window| window.max_us),
                last.rss_mib
            )?;
        }
        writeln!(out, "\nQuantiles are the highest of the windows of {} s.", self.window_seconds)
    }

    /// Latency and memory over time.
    pub(crate) fn figure(&self) -> Figure {
        let line = |name: &str, value: fn(&Window) -> f64| Series {
            name: name.to_owned(),
            points: self.windows.iter().map(|window| (window.at_seconds, value(window))).collect(),
        };
        let latency = vec![
            line("p50", |window| window.p50_us),
            line("p99", |window| window.p99_us),
            line("p99.9", |window| window.p999_us),
        ];
        let memory = vec![
            line("resident", |window| window.rss_mib),
            line("without files", |window| window.anonymous_mib),
        ];
        Figure {
            title: format!(
                "{:.0} redirects/s of {} links, {} changes/s",
                self.redirects_per_second, self.links, self.changes_per_second
            ),
            label: "seconds",
            is_log: false,
            panels: vec![
                Panel { label: "latency, µs", is_log: true, series: latency },
                Panel { label: "memory, MiB", is_log: false, series: memory },
            ],
            bands: vec![(self.import.0, self.import.1, format!("import of {}", self.imported))],
        }
    }
}
