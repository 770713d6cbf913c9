//! One run from the links to the report.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use tests::redis::RedisServer;

use super::{
    Args, Who,
    certificate::Certificate,
    edges::{Edge, Holds, touch_all},
    fixed, haproxy, nginx,
    peers::{MOKA, Other, Peer, Place, REPLICA},
    report::{Fill, FirstTouch, Report, Start, mib},
    rounds::{Case, Round},
    say, sizes,
    standin::{BASE, StandIn},
    steady::{self, SteadyPlan},
    view::{publish, start_redis},
};
use crate::{drive::Outcome, links::Links, process};

pub(super) struct Bench<'a> {
    pub(super) args: &'a Args,
    pub(super) folder: &'a Path,
    pub(super) links: Links,
    pub(super) server_core: Option<usize>,
    pub(super) client_core: Option<usize>,
    pub(super) certificate: Certificate,
    pub(super) report: Report,
}

impl<'a> Bench<'a> {
    pub(super) fn new(args: &'a Args, folder: &'a Path) -> Result<Self> {
        let cores = process::split_cores()?;
        let (server_core, client_core) = (cores.server, cores.client);
        let links = Links::generate(args.links, args.seed);
        let certificate = Certificate::generate(folder)?;
        let report = Report::new(
            args.links,
            args.length.rounds,
            args.length.seconds,
            args.connections,
            server_core.is_some(),
        );
        Ok(Self { args, folder, links, server_core, client_core, certificate, report })
    }

    pub(super) fn run(mut self) -> Result<Report> {
        if let Some(seconds) = self.args.steady {
            self.steady(seconds)?;
            return Ok(self.report);
        }
        self.compare()?;
        sizes::run(&mut self)?;
        Ok(self.report)
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place {
            folder: self.folder,
            core: self.server_core,
            links: &self.links,
            certificate: &self.certificate,
        }
    }

    pub(super) fn starts(&self) -> usize {
        if self.args.smoke { 1 } else { 3 }
    }

    /// Takes what was wrong of an outcome.
    pub(super) fn judge(&mut self, what: &str, outcome: &Outcome) {
        if outcome.wrong > 0 {
            let first = outcome.first_wrong.as_deref().unwrap_or_default();
            self.report.faults.push(format!("{what}: {} wrong answers, first: {first}", outcome.wrong));
        }
    }

    /// Every server in every case, alternated.
    fn compare(&mut self) -> Result<()> {
        let mut peers = Vec::new();
        let waymark = self.args.has(Who::Waymark).then(|| self.one_process()).transpose()?;
        let waymark = waymark.map(|(waymark, peer, redirects)| {
            peers.push(peer);
            (waymark, redirects)
        });
        let control = StandIn::start(&self.links)?;
        let redis = self.redis(&control)?;
        for (who, holds) in [(Who::Replica, Holds::Every), (Who::Moka, Holds::Asked)] {
            if self.args.has(who) {
                peers.push(self.start_edge(holds, &control, &redis)?);
            }
        }
        peers.extend(self.start_others()?);
        // All of ours count what they answer from here on.
        let before = self.counts(&peers)?;
        let mut redirects = vec![0; peers.len()];
        for peer in &peers {
            peer.set_awake(false)?;
        }
        self.rounds(&peers, &mut redirects)?;
        for peer in &peers {
            peer.set_awake(true)?;
        }
        say("waiting until all scans are handed over");
        for (at, peer) in peers.into_iter().enumerate() {
            if let (Some(admin), Some(before)) = (peer.admin, before[at]) {
                admin.settle()?;
                let scans = admin.scans()?;
                let counted = scans.recorded + scans.lost - before;
                if counted != redirects[at] {
                    let fault = format!("{}: {} redirects, but {counted} scans", peer.name, redirects[at]);
                    self.report.faults.push(fault);
                }
            }
            let admin = peer.admin.filter(|_| waymark.is_some() && peer.host.is_none());
            if let (Some((_, first)), Some(admin)) = (&waymark, admin) {
                let scans = admin.scans()?;
                self.end_one_process(scans, first + redirects[at]);
            }
            peer.end()?;
        }
        Ok(())
    }

    fn redis(&mut self, control: &StandIn) -> Result<RedisServer> {
        say("filling Redis");
        let redis = start_redis()?;
        publish(&redis, &self.links, control.epoch(), BASE)?;
        self.report.redis_mib = Some(mib(process::memory(redis.pid())?.rss));
        Ok(redis)
    }

    /// Starts an edge with all links where it holds them, and the others in its memory.
    fn start_edge(&mut self, holds: Holds, control: &StandIn, redis: &RedisServer) -> Result<Peer> {
        let (id, name) = if holds == Holds::Every { ("replica", REPLICA) } else { ("moka", MOKA) };
        say(&format!("starting {name} of {} links", self.links.count()));
        let program = self.args.edge.clone().context("no edge binary")?;
        let edge = Edge::new(&self.place(), &program, id, holds, control, redis)?;
        if holds == Holds::Every {
            let filled = edge.fill(&self.place())?;
            self.report.fills.push(Fill::new(self.links.count(), &filled));
        }
        let (peer, times) = edge.start(&self.place(), self.starts())?;
        if holds == Holds::Asked {
            let cpu = process::cpu(peer.server.pid)?;
            let outcome = touch_all(&self.place(), &peer, self.args.connections)?;
            let cpu = process::cpu(peer.server.pid)?.since(cpu);
            self.judge("every known id at once", &outcome);
            self.report.first_touch.push(FirstTouch::new(MOKA, "every known id", &outcome, cpu));
        }
        let rss = process::memory(peer.server.pid)?.rss;
        self.report.starts.push(Start::new(name, self.links.count(), &times, rss));
        Ok(peer)
    }

    fn start_others(&mut self) -> Result<Vec<Peer>> {
        let mut others: Vec<Other> = Vec::new();
        for who in &self.args.peers {
            let place = self.place();
            others.extend(match who {
                Who::Nginx => Some(nginx::prepare(&place, &self.args.nginx, false)?),
                Who::NginxFixed => Some(nginx::prepare(&place, &self.args.nginx, true)?),
                Who::Haproxy => Some(haproxy::prepare(&place, &self.args.haproxy)?),
                Who::Hyper => Some(fixed::prepare(&place)?),
                Who::Replica | Who::Moka | Who::Waymark => None,
            });
        }
        let mut peers = Vec::new();
        for other in others {
            say(&format!("starting {}", other.name));
            let (peer, times) = other.start(&self.place(), self.starts())?;
            let rss = process::memory(peer.server.pid)?.rss;
            self.report.starts.push(Start::new(peer.name, self.links.count(), &times, rss));
            peers.push(peer);
        }
        Ok(peers)
    }

    /// Redirects that each of ours has counted so far.
    fn counts(&self, peers: &[Peer]) -> Result<Vec<Option<u64>>> {
        let count = |peer: &Peer| match peer.admin {
            Some(admin) => admin.scans().map(|scans| Some(scans.recorded + scans.lost)),
            None => Ok(None),
        };
        peers.iter().map(count).collect()
    }

    fn rounds(&mut self, peers: &[Peer], redirects: &mut [u64]) -> Result<()> {
        for case in Case::ALL {
            for number in 0..self.args.length.rounds {
                say(&format!("{}, round {} of {}", case.name(), number + 1, self.args.length.rounds));
                let fits = |at: &usize| case.fits(&peers[*at]);
                let mut order: Vec<usize> = (0..peers.len()).filter(fits).collect();
                // Each follows the others as often as it goes before them.
                if number % 2 == 1 {
                    order.reverse();
                }
                for at in order {
                    redirects[at] += self.turn(case, number, &peers[at])?;
                }
            }
        }
        Ok(())
    }

    /// One case against one server, while the others sleep; gives the redirects that are scans.
    fn turn(&mut self, case: Case, number: usize, peer: &Peer) -> Result<u64> {
        peer.set_awake(true)?;
        let looked = peer.admin.map(|admin| admin.lookups()).transpose()?;
        let links = self.links;
        let client = self.certificate.client()?;
        let round = Round {
            links: &links,
            connections: self.args.connections,
            time: Duration::from_secs_f64(self.args.length.seconds),
            seed: self.args.seed + 10 * number as u64,
            client: &client,
        };
        let (sample, outcomes) =
            round.measure(case, peer).with_context(|| format!("{}, {}", peer.name, case.name()))?;
        if let (Some(admin), Some(looked)) = (peer.admin, looked) {
            self.report.looked_up(case, peer.name, looked, admin.lookups()?);
        }
        peer.set_awake(false)?;
        for outcome in &outcomes {
            self.judge(&format!("{}, {}", peer.name, case.name()), outcome);
        }
        self.report.samples.push(sample);
        let redirects = outcomes.iter().map(|outcome| outcome.redirects).sum();
        Ok(if case.records() { redirects } else { 0 })
    }

    /// The long run alone.
    fn steady(&mut self, seconds: f64) -> Result<()> {
        let control = StandIn::start(&self.links)?;
        // Nothing is read from it: the edge holds every link.
        let redis = start_redis()?;
        let program = self.args.edge.clone().context("no edge binary")?;
        say(&format!("starting {REPLICA} of {} links", self.links.count()));
        let edge = Edge::new(&self.place(), &program, "steady", Holds::Every, &control, &redis)?;
        let (peer, _) = edge.start(&self.place(), 1)?;
        say(&format!("{seconds} s at half of what it can do"));
        let plan = SteadyPlan {
            time: Duration::from_secs_f64(seconds),
            warm_up: Duration::from_secs_f64(self.args.length.seconds),
            connections: self.args.connections,
            changes_per_second: self.args.changes_per_second,
            import: self.args.import,
            import_per_second: self.args.import_per_second,
            seed: self.args.seed,
        };
        let first = peer.admin.context("no admin listener")?.scans()?.recorded;
        let (steady, outcomes) = steady::run(&plan, &self.links, &peer, &edge.id, &control)?;
        self.report.steady = Some(steady);
        for outcome in &outcomes {
            self.judge("steady", outcome);
        }
        let admin = peer.admin.context("no admin listener")?;
        admin.settle()?;
        let (scans, taken) = (admin.scans()?, control.scans(&edge.id));
        let redirects: u64 = outcomes.iter().map(|outcome| outcome.redirects).sum();
        if scans.recorded + scans.lost - first != redirects || taken != scans.shipped {
            let fault = format!("steady: {redirects} redirects, {scans:?}, and {taken} scans were taken");
            self.report.faults.push(fault);
        }
        peer.end()
    }
}
