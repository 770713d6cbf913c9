//! One simulation: its hosts, its faults by a seed, and the result.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use tests::{
    campaign::{
        history::{self, Outcome, Verdict},
        load::random,
    },
    repetitions,
};
use turmoil::{Builder, Sim};

use super::{
    control,
    edges::{self, CONTROLS, Plan, REDIS},
    truth::{EDGES, Form, Truth},
};

/// Milliseconds during which faults happen; a broken form shows sooner, or with another seed.
const STEPS: [u64; 2] = [15_000, 25_000];
const BROKEN_STEPS: u64 = 8_000;

/// Longest time for everything to come to rest, in milliseconds.
const REST: u64 = 60_000;

/// Writers, each with keys of its own.
const WRITERS: u64 = 2;

/// What a simulation found.
pub(super) struct Report {
    seed: u64,
    form: Form,
    faults: BTreeMap<&'static str, u32>,
    pub(super) verdict: Verdict,
    pub(super) broken_rules: Vec<String>,
    /// Writes that at least one edge acknowledged.
    pub(super) acked: u64,
    writes: usize,
    pub(super) rejected: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, form, faults, verdict, acked, writes, rejected, .. } = self;
        let Verdict { judged, redirects, failed, excused, violations } = verdict;
        write!(f, "{form:?}, seed {seed}: {writes} writes, {acked} acknowledged, {rejected} refusals, ")?;
        write!(f, "{judged} reads judged, {redirects} redirects, {failed} without an answer, ")?;
        write!(f, "{excused} excused, {} violations, faults {faults:?}", violations.len())
    }
}

/// What ends a fault.
enum Heal {
    /// Packets flow between two hosts again, those that were held too.
    Flow(String, String),
    /// A host starts again.
    Start(String),
    /// Packets are as fast as before.
    Speed(String, String),
}

/// Runs one.
pub(super) fn simulate(seed: u64, form: Form) -> Report {
    let truth = Truth::new(form);
    let folder = tempfile::tempdir().unwrap();
    let mut sim = Builder::new()
        .rng_seed(seed)
        .tick_duration(Duration::from_millis(1))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(LATENCY)
        .simulation_duration(Duration::from_secs(3_600))
        .tcp_capacity(4_096)
        .enable_random_order()
        .enable_tokio_io()
        .build();
    let mut choices = seed;
    for name in CONTROLS {
        let truth = truth.clone();
        sim.host(name, move || control::control(truth.clone()));
    }
    let (view, fill) = (truth.clone(), random(&mut choices));
    sim.host(REDIS, move || control::redis(view.clone(), fill));
    for number in 0..EDGES {
        let folder = folder.path().join(format!("edge-{number}"));
        let plan = Plan { number, folder, truth: truth.clone(), form, seed: random(&mut choices) };
        sim.host(format!("edge-{number}"), move || edges::run(plan.clone()));
    }
    for writer in 0..WRITERS {
        let (truth, seed) = (truth.clone(), random(&mut choices));
        sim.host(format!("writer-{writer}"), move || control::write(truth.clone(), seed));
    }
    let mut driver = Driver { sim, truth, choices, down: BTreeSet::new(), heals: BTreeMap::new() };
    let faults = driver.run(if form == Form::Right { repetitions(STEPS[0], STEPS[1]) } else { BROKEN_STEPS });
    drop(driver.sim);
    let mut state = driver.truth.state();
    let history = std::mem::take(&mut state.history);
    let acked = |outcome: &Outcome| matches!(outcome, Outcome::Acked(edges) if !edges.is_empty());
    Report {
        seed,
        form,
        faults,
        verdict: history::check(&history),
        broken_rules: std::mem::take(&mut state.broken_rules),
        acked: history.writes.iter().filter(|write| acked(&write.outcome)).count() as u64,
        writes: history.writes.len(),
        rejected: state.rejected,
    }
}

/// Longest time on the way where nothing is at fault.
const LATENCY: Duration = Duration::from_millis(8);

struct Driver<'a> {
    sim: Sim<'a>,
    truth: Truth,
    choices: u64,
    /// Hosts that are killed.
    down: BTreeSet<String>,
    heals: BTreeMap<u64, Vec<Heal>>,
}

impl Driver<'_> {
    fn run(&mut self, steps: u64) -> BTreeMap<&'static str, u32> {
        let mut done = BTreeMap::new();
        let mut next = 500;
        for step in 0..steps {
            for heal in self.heals.remove(&step).unwrap_or_default() {
                self.heal(heal);
            }
            if step == next {
                *done.entry(self.fault(step)).or_default() += 1;
                next = step + 100 + self.random() % 1_000;
            }
            self.step();
        }
        for heal in std::mem::take(&mut self.heals).into_values().flatten() {
            self.heal(heal);
        }
        self.truth.state().is_ending = true;
        self.until("the writers end", |truth| truth.state().ended == WRITERS);
        self.until("every edge has everything", |truth| {
            let state = truth.state();
            state.is_everywhere(state.now)
        });
        self.truth.state().is_over = true;
        self.until("every key is read", |truth| truth.state().ended == WRITERS + u64::from(EDGES));
        done
    }

    fn step(&mut self) {
        self.sim.step().unwrap();
        self.truth.state().now = self.sim.elapsed();
    }

    fn until(&mut self, what: &str, holds: impl Fn(&Truth) -> bool) {
        for _ in 0..REST {
            if holds(&self.truth) {
                return;
            }
            self.step();
        }
        panic!("not in time: {what}");
    }

    fn random(&mut self) -> u64 {
        random(&mut self.choices)
    }

    fn fault(&mut self, step: u64) -> &'static str {
        // Mostly shorter than the watchdog's patience with a few heartbeats, at times longer than a lease.
        let most = if self.random().is_multiple_of(8) { 13_000 } else { 2_500 };
        let length = 20 + self.random() % most;
        let (end, until) = (step + length, self.sim.elapsed() + Duration::from_millis(length));
        let edge = format!("edge-{}", self.random() % u64::from(EDGES));
        let control = CONTROLS[(self.random() % 2) as usize].to_owned();
        match self.random() % 14 {
            0 => {
                for control in CONTROLS {
                    self.sim.hold(&*edge, control);
                    self.at(end, Heal::Flow(edge.clone(), control.to_owned()));
                }
                "packets held"
            }
            1 => {
                self.sim.hold(&*edge, &*control);
                self.at(end, Heal::Flow(edge, control));
                "packets to one control held"
            }
            2 => {
                for control in CONTROLS {
                    self.sim.partition(&*edge, control);
                    self.at(end, Heal::Flow(edge.clone(), control.to_owned()));
                }
                "cut from control"
            }
            3 => {
                self.sim.partition_oneway(&*control, &*edge);
                self.at(end, Heal::Flow(edge, control));
                "cut one way"
            }
            4 => {
                self.sim.partition_oneway(&*edge, &*control);
                self.at(end, Heal::Flow(edge, control));
                "acknowledgements cut"
            }
            5 => {
                self.sim.partition(&*edge, REDIS);
                self.at(end, Heal::Flow(edge, REDIS.to_owned()));
                "cut from Redis"
            }
            6 => {
                self.sim.set_link_max_message_latency(&*edge, &*control, Duration::from_millis(200));
                self.at(end, Heal::Speed(edge, control));
                "slow packets"
            }
            7 => {
                self.kill(edge, end);
                "edge killed"
            }
            8 => {
                self.kill(control, end);
                "control killed"
            }
            9 => {
                CONTROLS.iter().for_each(|control| self.kill((*control).to_owned(), end));
                "both controls killed"
            }
            10 => {
                let mut state = self.truth.state();
                (state.view.is_complete, state.view.rests_until) = (false, until);
                "Redis flushed"
            }
            11 => {
                let back = self.random() % 20;
                let mut state = self.truth.state();
                state.view.watermark = state.view.watermark.saturating_sub(back);
                state.view.rests_until = until;
                "Redis rolled back"
            }
            12 => {
                let mut state = self.truth.state();
                state.compacted = state.head();
                "log compacted"
            }
            _ => {
                self.truth.state().begin_epoch();
                "another epoch"
            }
        }
    }

    fn kill(&mut self, host: String, until: u64) {
        if !self.down.insert(host.clone()) {
            return;
        }
        if let Some(edge) = host.strip_prefix("edge-").and_then(|number| number.parse().ok()) {
            self.truth.boots(edge);
        }
        self.sim.crash(&*host);
        self.at(until, Heal::Start(host));
    }

    fn at(&mut self, step: u64, heal: Heal) {
        self.heals.entry(step).or_default().push(heal);
    }

    fn heal(&mut self, heal: Heal) {
        match heal {
            Heal::Flow(a, b) => {
                self.sim.release(&*a, &*b);
                self.sim.repair(&*a, &*b);
            }
            Heal::Start(host) => {
                self.down.remove(&host);
                self.sim.bounce(&*host);
            }
            Heal::Speed(a, b) => self.sim.set_link_max_message_latency(&*a, &*b, LATENCY),
        }
    }
}
