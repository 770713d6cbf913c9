//! What an edge loses when it is killed at full speed.
//!
//! Each link is asked for at most once between two kills, so that each missing scan is seen, and each that came twice.

use std::{
    io::{Write, stdout},
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use ::tests::redis::signal;
use anyhow::{Context, Result, ensure};

use super::{
    Args,
    bench::Bench,
    edges::{Edge, Holds},
    peers::REPLICA,
    say,
    standin::StandIn,
    view::start_redis,
};
use crate::{
    answer::Answer,
    drive::{Plan, Script, Until, drive},
    links::{Id, Links, Rng},
    scripts::describe,
    stats::Spread,
};

/// All scans count as handed over when none came for so long.
const QUIET: Duration = Duration::from_secs(2);

/// The longest time between the first request and the kill.
const LONGEST: Duration = Duration::from_millis(1_500);

/// Each known link once, from the second on: the first tells whether the edge is there.
struct Once<'a> {
    links: &'a Links,
    next: usize,
    /// Of each link whether it was answered rightly.
    answered: Vec<bool>,
    wrong: Option<String>,
}

impl Script for Once<'_> {
    type Ticket = usize;

    fn next(&mut self) -> Option<(Id, usize)> {
        let index = self.next;
        self.next += 1;
        (index < self.links.count()).then(|| (self.links.known(index), index))
    }

    fn check(&mut self, index: usize, answer: &Answer<'_>) -> Result<(), String> {
        if answer.status == 307 && answer.location == Some(&self.links.target(index)) {
            self.answered[index] = true;
            return Ok(());
        }
        let what = describe(Some(index), answer);
        self.wrong.get_or_insert(what.clone());
        Err(what)
    }
}

/// What came of one kill.
#[derive(Debug, Default)]
struct Kill {
    answered: u64,
    lost: u64,
    doubled: u64,
    /// Scans of links that nobody asked for.
    strays: u64,
    /// The traffic of so many milliseconds was lost.
    lost_ms: f64,
}

/// Kills an edge again and again and prints what was lost; `false` when a scan came twice or an answer was wrong.
pub(super) fn run(args: &Args, folder: &Path, kills: usize) -> Result<bool> {
    ensure!(kills >= 1, "at least one kill is needed");
    let bench = Bench::new(args, folder)?;
    let place = bench.place();
    let control = StandIn::keeping(&bench.links)?;
    // Nothing is read from it: the edge holds every link.
    let redis = start_redis()?;
    let program = args.edge.clone().context("no edge binary")?;
    say(&format!("starting {REPLICA} of {} links", bench.links.count()));
    let edge = Edge::new(&place, &program, "killed", Holds::Every, &control, &redis)?;
    let longest = if args.smoke { LONGEST / 10 } else { LONGEST };
    let (mut rng, mut all) = (Rng::new(args.seed), Vec::new());
    let (mut peer, _) = edge.start(&place, 1)?;
    for number in 1..=kills {
        say(&format!("kill {number} of {kills}"));
        let before = control.counts();
        let mut script =
            Once { links: &bench.links, next: 1, answered: vec![false; bench.links.count()], wrong: None };
        let delay = longest.mul_f64(0.1 + 0.9 * rng.below(1_000) as f64 / 1e3);
        let plan = Plan { host: peer.host, ..Plan::new(peer.ports.plain, args.connections, Until::Done) };
        let pid = peer.server.pid;
        let killed = std::thread::scope(|threads| {
            let killer = threads.spawn(|| {
                sleep(delay);
                signal(pid, "KILL")
            });
            // It ends with an error when the edge is gone, which is what is wanted.
            let _ = drive(&plan, &mut script);
            killer.join()
        });
        killed.map_err(|_| anyhow::anyhow!("the thread that kills panicked"))??;
        drop(peer);
        if let Some(wrong) = script.wrong {
            say(&format!("WRONG: {wrong}"));
            return Ok(false);
        }
        (peer, _) = edge.start(&place, 1)?;
        wait_until_quiet(&control);
        all.push(judge(&script.answered, script.next, &before, &control.counts(), delay));
    }
    peer.end()?;
    print(&all)
}

fn wait_until_quiet(control: &StandIn) {
    let (mut last, mut moved) = (control.scans("killed"), Instant::now());
    while moved.elapsed() < QUIET {
        sleep(QUIET / 20);
        let now = control.scans("killed");
        if now != last {
            (last, moved) = (now, Instant::now());
        }
    }
}

/// Compares the answers with the scans that came. A request under way at the kill may have a scan without an answer.
fn judge(answered: &[bool], next: usize, before: &[u32], after: &[u32], delay: Duration) -> Kill {
    let mut kill = Kill::default();
    for (index, (answered, (before, after))) in
        answered.iter().zip(before.iter().zip(after)).enumerate().skip(1)
    {
        let scans = u64::from(after - before);
        kill.answered += u64::from(*answered);
        kill.lost += u64::from(*answered && scans == 0);
        kill.doubled += scans.saturating_sub(1);
        kill.strays += u64::from(index >= next && scans > 0);
    }
    kill.lost_ms = kill.lost as f64 * delay.as_secs_f64() * 1e3 / kill.answered.max(1) as f64;
    kill
}

fn print(all: &[Kill]) -> Result<bool> {
    let sum = |of: fn(&Kill) -> u64| all.iter().map(of).sum::<u64>();
    let spread = |of: fn(&Kill) -> f64| Spread::of(&all.iter().map(of).collect::<Vec<_>>());
    let (doubled, strays) = (sum(|kill| kill.doubled), sum(|kill| kill.strays));
    writeln!(
        stdout(),
        "| kills | redirects | scans lost | lost by a kill | traffic lost by a kill, ms | doubled | of links not asked for |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n| {} | {} | {} | {} | {} | {doubled} | {strays} |",
        all.len(),
        sum(|kill| kill.answered),
        sum(|kill| kill.lost),
        spread(|kill| kill.lost as f64).text(0),
        spread(|kill| kill.lost_ms).text(1),
    )?;
    Ok(doubled == 0 && strays == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_doubled_and_stray_scans_are_told_apart() {
        // Link 0 is not looked at; 1 is right, 2 lost, 3 doubled, 4 has a scan and no answer, 5 was not asked for.
        let answered = [false, true, true, true, false, false];
        let kill = judge(&answered, 5, &[7; 6], &[9, 8, 7, 9, 8, 8], Duration::from_millis(300));
        assert_eq!((kill.answered, kill.lost, kill.doubled, kill.strays), (3, 1, 1, 1));
        assert!((kill.lost_ms - 100.0).abs() < 1e-9);
    }
}
