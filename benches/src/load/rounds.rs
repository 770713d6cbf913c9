//! The measured rounds: each case alternated against every server, at full speed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use rustls::ClientConfig;
use serde::Serialize;

use super::peers::Peer;
use crate::{
    drive::{Outcome, Plan, Until, drive},
    links::Links,
    other::{drive_h2, drive_tls},
    process::{self, Cpu},
    scripts::{Answers, Kind, Scans},
};

/// Unknown ids, and codes, that are asked for again and again.
const FEW: usize = 1_000;

/// What is asked for in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Scenario {
    /// Random known ids by HEAD: the redirect alone. Ours records no scan, and nginx sends no body.
    KnownHead,
    /// The codes of a thousand known ids as PNG of the usual size, all from memory; of ours alone.
    Image,
    /// Random unknown ids, of as many as there are links.
    Unknown,
    /// Random ones of a thousand unknown ids.
    UnknownAgain,
    /// One known id.
    Hot,
    /// Random known ids.
    Known,
}

/// How it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Protocol {
    /// HTTP/1.1 on connections that stay.
    Http1,
    /// HTTP/2 on connections that stay.
    Http2,
    /// A new connection with a full TLS 1.3 handshake for each request.
    Tls,
}

/// A scenario over a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Case {
    /// How.
    pub(crate) protocol: Protocol,
    /// What.
    pub(crate) scenario: Scenario,
}

impl Case {
    /// Those that leave no scans behind come first: nothing of them is still being stored when the next
    /// one is measured.
    pub(crate) const ALL: [Self; 9] = [
        Self::of(Protocol::Http1, Scenario::KnownHead),
        Self::of(Protocol::Http1, Scenario::Image),
        Self::of(Protocol::Http1, Scenario::Unknown),
        Self::of(Protocol::Http1, Scenario::UnknownAgain),
        Self::of(Protocol::Http1, Scenario::Hot),
        Self::of(Protocol::Http1, Scenario::Known),
        Self::of(Protocol::Http2, Scenario::Known),
        Self::of(Protocol::Http2, Scenario::UnknownAgain),
        Self::of(Protocol::Tls, Scenario::Known),
    ];

    const fn of(protocol: Protocol, scenario: Scenario) -> Self {
        Self { protocol, scenario }
    }

    /// As people read it.
    pub(crate) fn name(self) -> String {
        let scenario = match self.scenario {
            Scenario::KnownHead => "random known, HEAD",
            Scenario::Image => "code as PNG, of a thousand",
            Scenario::Unknown => "random unknown",
            Scenario::UnknownAgain => "unknown, of a thousand",
            Scenario::Hot => "one hot id",
            Scenario::Known => "random known",
        };
        match self.protocol {
            Protocol::Http1 => scenario.to_owned(),
            Protocol::Http2 => format!("{scenario}, HTTP/2"),
            Protocol::Tls => format!("{scenario}, each on a new TLS connection"),
        }
    }

    /// Whether a server can be asked for it.
    pub(crate) fn fits(self, peer: &Peer) -> bool {
        let speaks = self.protocol != Protocol::Tls || peer.ports.tls.is_some();
        let is_fixed = matches!(peer.answers, Answers::Fixed(_));
        let fits = match self.scenario {
            Scenario::KnownHead | Scenario::Known => true,
            Scenario::Image => peer.admin.is_some(),
            Scenario::Unknown | Scenario::UnknownAgain | Scenario::Hot => !is_fixed,
        };
        speaks && fits
    }

    /// Whether its redirects become scans.
    pub(crate) fn records(self) -> bool {
        !matches!(self.scenario, Scenario::KnownHead | Scenario::Image)
    }

    const fn kind(self, links: &Links) -> Kind {
        let among = links.count();
        match self.scenario {
            Scenario::KnownHead | Scenario::Known => Kind::Known { among },
            Scenario::Image => Kind::Known { among: if among < FEW { among } else { FEW } },
            Scenario::Unknown => Kind::Unknown { among },
            Scenario::UnknownAgain => Kind::Unknown { among: if among < FEW { among } else { FEW } },
            Scenario::Hot => Kind::Hot,
        }
    }
}

/// One case against one server once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sample {
    /// What was asked for.
    pub(crate) case: Case,
    /// Of whom.
    pub(crate) peer: &'static str,
    /// How many links it holds.
    pub(crate) links: usize,
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
    /// Mean bytes of an answer, head and body; over HTTP/2 of its body.
    pub(crate) answer_bytes: f64,
    /// Share of its core that the load generator used, with the stand-in for control.
    pub(crate) generator_busy: f64,
    /// Wrong or missing answers.
    pub(crate) wrong: u64,
}

/// How a round is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round<'a> {
    /// The links that all hold.
    pub(crate) links: &'a Links,
    /// Connections, or requests under way.
    pub(crate) connections: usize,
    /// Measured time; a quarter of it goes before, unmeasured.
    pub(crate) time: Duration,
    /// Makes each round ask for other ids.
    pub(crate) seed: u64,
    /// Who trusts the servers' certificate.
    pub(crate) client: &'a Arc<ClientConfig>,
}

impl Round<'_> {
    /// Measures one case against one server. The first outcome is the unmeasured one.
    ///
    /// # Errors
    /// The server cannot be reached or is gone; wrong answers are counted.
    pub(crate) fn measure(&self, case: Case, peer: &Peer) -> Result<(Sample, [Outcome; 2])> {
        let answers = if case.scenario == Scenario::Image { Answers::Image } else { peer.answers };
        let mut script = Scans::of(self.links, case.kind(self.links), answers, self.seed);
        let before = self.drive(case, peer, self.time / 4, &mut script)?;
        let (pid, own) = (peer.server.pid, std::process::id());
        let (threads, cpu, own_cpu) =
            (process::cpu_by_thread_name(pid)?, process::cpu(pid)?, process::cpu(own)?);
        let outcome = self.drive(case, peer, self.time, &mut script)?;
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
            case,
            peer: peer.name,
            links: self.links.count(),
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

    fn drive(&self, case: Case, peer: &Peer, time: Duration, script: &mut Scans<'_>) -> Result<Outcome> {
        let head = case.scenario == Scenario::KnownHead;
        let plan = |address| Plan {
            host: peer.host,
            head,
            suffix: if case.scenario == Scenario::Image { ".png" } else { "" },
            ..Plan::new(address, self.connections, Until::After(time))
        };
        match case.protocol {
            Protocol::Http1 => drive(&plan(peer.ports.plain), script),
            Protocol::Http2 => drive_h2(&plan(peer.ports.h2), script),
            Protocol::Tls => {
                let address = peer.ports.tls.context("it does not speak TLS")?;
                drive_tls(&plan(address), self.client, script)
            }
        }
    }
}
