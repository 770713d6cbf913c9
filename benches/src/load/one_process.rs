//! `waymark up` by itself: the import, the starts, the first touch of every id, changes under load.

use std::time::Instant;

use anyhow::{Context, Result};

use super::{
    bench::Bench,
    import,
    peers::{ONE_PROCESS, Peer, Ports},
    report::{FirstTouch, Start},
    say, update,
};
use crate::{
    drive::{Outcome, Plan, Until, drive},
    metrics::Scans,
    process::{self, Server},
    scripts::{self, Answers, Kind},
    waymark::{Waymark, time_start},
};

/// Unknown ids that are asked for after the import.
const UNKNOWN_SAMPLE: usize = 10_000;

impl Bench<'_> {
    /// Everything that is measured of it alone; gives it as a peer, with the redirects that it has answered.
    pub(super) fn one_process(&mut self) -> Result<(Waymark, Peer, u64)> {
        let waymark =
            Waymark::new(&self.args.waymark.binary()?, self.folder, self.server_core, self.args.seed)?;
        self.import(&waymark)?;
        let (peer, mut redirects) = self.start(&waymark)?;
        redirects += self.touch_all(&waymark, &peer)?;
        // Before the rounds: they leave more scans behind than are stored in their time.
        redirects += self.change(&waymark, self.args.changes)?;
        // Before the rounds too: there it sleeps now and then, and its writer with it.
        self.report.writer_lag_us = Some(waymark.scans()?.writer_lag_max_us);
        Ok((waymark, peer, redirects))
    }

    /// Each redirect since its last start must have become one scan, or a counted loss.
    pub(super) fn end_one_process(&mut self, scans: Scans, redirects: u64) {
        if scans.recorded + scans.lost != redirects {
            let fault = format!("{ONE_PROCESS}: {redirects} redirects since its start, but {scans:?}");
            self.report.faults.push(fault);
        }
        self.report.scans = Some(scans);
    }

    fn import(&mut self, waymark: &Waymark) -> Result<()> {
        say("importing under load");
        let mut server = waymark.spawn()?;
        waymark.wait_for_api(&mut server)?;
        let per_second = self.args.scans_per_second;
        let (import, outcome) =
            import::run(waymark, &server, &self.links, self.folder, self.client_core, per_second)?;
        say(&format!("  {:.0} rows/s", import.rows_per_second));
        self.judge("redirects during the import", &outcome);
        self.report.import = Some(import);
        waymark.settle()?;
        self.end_one_process(waymark.scans()?, outcome.redirects);
        server.stop().context("waymark up")
    }

    fn start(&mut self, waymark: &Waymark) -> Result<(Peer, u64)> {
        say("starting ours with all links in place");
        let (mut starts, mut running) = (Vec::new(), None::<Server>);
        for _ in 0..self.starts() {
            if let Some(server) = running.take() {
                server.stop()?;
            }
            let (server, took) = time_start(waymark.edge, None, 307, &self.links, || waymark.spawn())?;
            starts.push(took.as_secs_f64());
            running = Some(server);
        }
        let server = running.context("no start was asked for")?;
        let rss = process::memory(server.pid)?.rss;
        self.report.starts.push(Start::new(ONE_PROCESS, self.links.count(), &starts, rss));
        let peer = Peer {
            name: ONE_PROCESS,
            ports: Ports { plain: waymark.edge, h2: waymark.edge, tls: None },
            host: None,
            answers: Answers::Link(307),
            admin: Some(waymark.admin),
            is_replica: false,
            server,
        };
        // The redirect that ended the measurement.
        Ok((peer, 1))
    }

    /// Every known id once and some unknown ones: all are right, and the memory is warm.
    fn touch_all(&mut self, waymark: &Waymark, peer: &Peer) -> Result<u64> {
        say("asking for every known id once, and for unknown ones");
        let plan = Plan::new(waymark.edge, self.args.connections, Until::Done);
        let (count, mut redirects) = (UNKNOWN_SAMPLE.min(self.links.count()), 0);
        for (name, kind) in
            [("every known id", Kind::EachKnown), ("unknown ids", Kind::EachUnknown { count })]
        {
            let cpu = process::cpu(peer.server.pid)?;
            let outcome = drive(&plan, &mut scripts::Scans::new(&self.links, kind, 0))?;
            let cpu = process::cpu(peer.server.pid)?.since(cpu);
            self.judge(name, &outcome);
            redirects += outcome.redirects;
            self.report.first_touch.push(FirstTouch::new(ONE_PROCESS, name, &outcome, cpu));
            if kind == Kind::EachKnown && self.args.backlog_changes > 0 {
                redirects += self.change(waymark, self.args.backlog_changes)?;
            }
            let (scans, took) = waymark.settle()?;
            self.report.stored(scans, took);
        }
        Ok(redirects)
    }

    fn change(&mut self, waymark: &Waymark, changes: usize) -> Result<u64> {
        say("changing targets under scan load");
        let (args, begun) = (self.args, Instant::now());
        let (update, outcome) = update::run(waymark, &self.links, changes, args.scans_per_second)?;
        say(&format!("  {} changes in {:.1} s", update.changes, begun.elapsed().as_secs_f64()));
        if update.stale > 0 {
            let first = update.first_stale.as_deref().unwrap_or_default();
            self.report.faults.push(format!("{} old targets after a change, first: {first}", update.stale));
        }
        let Outcome { redirects, .. } = outcome;
        self.report.updates.push(update);
        Ok(redirects)
    }
}
