//! The measured rounds: each scenario by turns against ours and nginx, at full speed.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use anyhow::Result;
use serde::Serialize;

use crate::{
    drive::{Outcome, Plan, Until, drive},
    links::Links,
    process::{self, Cpu, Server},
    scripts::{Kind, Scans},
};

/// What is asked for in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Scenario {
    /// Random known ids by HEAD: the redirect alone. Ours records no scan, and nginx sends no body.
    KnownHead,
    /// Random unknown ids.
    Unknown,
    /// One known id.
    Hot,
    /// Random known ids.
    Known,
}

impl Scenario {
    /// Those that leave no scans behind come first: nothing of them is still being stored when the next
    /// one is measured.
    pub(crate) const ALL: [Self; 4] = [Self::KnownHead, Self::Unknown, Self::Hot, Self::Known];

    /// As people read it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KnownHead => "random known, HEAD",
            Self::Unknown => "random unknown",
            Self::Hot => "one hot id",
            Self::Known => "random known",
        }
    }

    const fn kind(self, links: &Links) -> Kind {
        match self {
            Self::KnownHead | Self::Known => Kind::Known { among: links.known.len() },
            Self::Unknown => Kind::Unknown,
            Self::Hot => Kind::Hot,
        }
    }
}

/// A server in the rounds.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Ours or nginx.
    pub(crate) name: &'static str,
    /// Where it answers.
    pub(crate) address: SocketAddr,
    /// The status of its redirects.
    pub(crate) status: u16,
    /// Its process.
    pub(crate) server: Server,
}

/// One scenario against one server once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sample {
    /// What was asked for.
    pub(crate) scenario: Scenario,
    /// Of whom.
    pub(crate) peer: &'static str,
    /// Answers a second.
    pub(crate) per_second: f64,
    /// CPU time of the whole server process for each answer.
    pub(crate) cpu: Cpu,
    /// The same by names of threads, in microseconds; a few ticks of ended threads may be missing.
    pub(crate) cpu_by_thread: BTreeMap<String, f64>,
    /// Median latency in microseconds.
    pub(crate) p50_us: f64,
    /// 99 %.
    pub(crate) p99_us: f64,
    /// 99.9 %.
    pub(crate) p999_us: f64,
    /// Resident memory after the round, in MiB.
    pub(crate) rss_mib: f64,
    /// Mean bytes of an answer, head and body.
    pub(crate) answer_bytes: f64,
    /// Share of its core that the load generator used.
    pub(crate) generator_busy: f64,
    /// Wrong or missing answers.
    pub(crate) wrong: u64,
}

/// How a round is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round<'a> {
    /// The links that both sides hold.
    pub(crate) links: &'a Links,
    /// Connections.
    pub(crate) connections: usize,
    /// Measured time; a quarter of it goes before, unmeasured.
    pub(crate) time: Duration,
    /// Makes each round ask for other ids.
    pub(crate) seed: u64,
}

impl Round<'_> {
    /// Measures one scenario against one server. The first outcome is the unmeasured one.
    ///
    /// # Errors
    /// The server cannot be reached or is gone; wrong answers are counted.
    pub(crate) fn measure(&self, scenario: Scenario, peer: &Peer) -> Result<(Sample, [Outcome; 2])> {
        let kind = scenario.kind(self.links);
        let mut script = Scans::new(self.links, kind, peer.status, self.seed);
        let mut plan = Plan {
            address: peer.address,
            head: scenario == Scenario::KnownHead,
            connections: self.connections,
            per_second: None,
            until: Until::After(self.time / 4),
        };
        let before = drive(&plan, &mut script)?;
        plan.until = Until::After(self.time);
        let (pid, own) = (peer.server.pid, std::process::id());
        let (threads, cpu, own_cpu) =
            (process::cpu_by_thread_name(pid)?, process::cpu(pid)?, process::cpu(own)?);
        let outcome = drive(&plan, &mut script)?;
        let (cpu, own_cpu) = (process::cpu(pid)?.since(cpu), process::cpu(own)?.since(own_cpu));
        let answers = (outcome.answers.max(1)) as f64;
        let cpu_by_thread = process::cpu_by_thread_name(pid)?
            .into_iter()
            .map(|(name, us)| {
                let used = us - threads.get(&name).copied().unwrap_or_default();
                (name, used / answers)
            })
            .filter(|(_, us)| *us > 0.0)
            .collect();
        let sample = Sample {
            scenario,
            peer: peer.name,
            per_second: answers / outcome.took.as_secs_f64(),
            cpu: Cpu { user_us: cpu.user_us / answers, system_us: cpu.system_us / answers },
            cpu_by_thread,
            p50_us: outcome.hist.quantile_us(0.5),
            p99_us: outcome.hist.quantile_us(0.99),
            p999_us: outcome.hist.quantile_us(0.999),
            rss_mib: process::memory(pid)?.rss as f64 / f64::from(1 << 20),
            answer_bytes: outcome.bytes as f64 / answers,
            generator_busy: own_cpu.total_us() / outcome.took.as_micros() as f64,
            wrong: outcome.wrong,
        };
        Ok((sample, [before, outcome]))
    }
}
